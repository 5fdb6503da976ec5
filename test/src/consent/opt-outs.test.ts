import assert from 'node:assert/strict';
import { createAccounts } from '../../../src/account/accounts';
import { changeOptOuts, isOptedOut, listOptOuts, mergeOptOuts, type OptOutChange } from '../../../src/consent/opt-outs';
import { MemoryStore } from '../../../src/store/memory';
import { createChanges, type ReadKey, type Remembered } from '../../../src/store/store';
import { VirtualClock } from '../../virtual-clock';
import { createSettings } from '../account/joining';

/** Creates an account with a list of opted-out numbers in memory. */
function createList() {
  const [clock, store] = [new VirtualClock(), new MemoryStore()];
  const member = createAccounts().join(createSettings('http://sms.test', { clock, createStore: () => store }));
  return {
    clock,
    change: member.changeOptOuts.bind(member),
    list: member.optOuts.bind(member),
    async all(search = ''): Promise<string[]> {
      const numbers: string[] = [];
      let after: string | undefined;
      do {
        const { optouts, next } = await member.optOuts({ search, ...(after && { after }) });
        numbers.push(...optouts.map(({ msisdn }) => msisdn));
        after = next;
      } while (after !== undefined);
      return numbers;
    },
    async values(): Promise<[string, Remembered][]> {
      const values: [string, Remembered][] = [];
      for await (const { remembered } of store.pages()) values.push(...remembered);
      return values;
    },
  };
}

/**
 * Opts numbers out or in, as messages from their handsets do, one change after another. All numbers share one key in
 * the store.
 * @returns the value of this key after each change
 */
function valuesAfter(changesOfNumbers: readonly Omit<OptOutChange, 'via'>[]): (Remembered | undefined)[] {
  let value: Remembered | undefined;
  return changesOfNumbers.map((one) => {
    const changes = createChanges();
    changeOptOuts({ ...one, via: 'message' }, () => value, changes);
    [value] = changes.remember.values();
    return value;
  });
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(64_210_000_000 + index));

describe('the list of opted-out numbers', () => {
  it('begins with the most recent opt-out', async () => {
    const { clock, change, list } = createList();
    const at = clock.now();
    assert.equal(await change(['6421'], 'out'), 1);
    clock.stall(2);
    assert.equal(await change(['6421', '6422', '6422'], 'out'), 1);
    assert.equal(await change(['6423'], 'in'), 0);
    assert.deepEqual(await list(), {
      optouts: [
        { msisdn: '6422', at: at + 2, via: 'person' },
        { msisdn: '6421', at, via: 'person' },
      ],
      total: 2,
    });
  });

  it('stores nothing after the last number is removed', async () => {
    const { change, list, values } = createList();
    await change(numbers(450), 'out');
    assert.equal(await change(numbers(450), 'in'), 450);
    assert.deepEqual(await list(), { optouts: [], total: 0 });
    assert.deepEqual(await values(), []);
  });

  it('has pages of 200 numbers', async () => {
    const { clock, change, list, all } = createList();
    const added = numbers(1_001);
    for (let index = 0; index < added.length; index += 77) {
      await change(added.slice(index, index + 77), 'out');
      clock.stall(1);
    }
    const { optouts, total } = await list();
    assert.deepEqual([optouts.length, total], [200, 1_001]);
    assert.deepEqual(await all(), added.reverse());
  });

  for (const search of ['', '6421']) {
    it(`skips no number if numbers opt in between two pages${search ? ' of a search' : ''}`, async () => {
      const { change, list } = createList();
      const added = numbers(1_000);
      await change(added, 'out');
      const { optouts, next = '' } = await list({ search });
      assert.equal(optouts.at(-1)?.msisdn, added[800]);
      await change(added.slice(600, 800), 'in');
      const { optouts: later, total } = await list({ search, after: next });
      const shown = later.map(({ msisdn }) => msisdn);
      assert.deepEqual([shown, total], [added.slice(400, 600).reverse(), 800]);
    });
  }

  it('finds numbers by some of their digits', async () => {
    const { change, list, all } = createList();
    await change(numbers(1_000), 'out');
    const { optouts, total } = await list({ search: '0077' });
    assert.deepEqual([optouts.length, total], [11, 11]);
    assert.equal((await all('642100003')).length, 100);
    assert.equal((await all('64210000')).length, 1_000);
  });

  it('does not reveal numbers in the keys of the store', async () => {
    const { change, values } = createList();
    await change(['64211234567'], 'out');
    for (const [key] of await values()) assert.doesNotMatch(key, /64211234567/);
  });

  it('removes a number whose time is stored with fractions of a ms', () => {
    const [value] = valuesAfter([{ msisdns: ['6421000'], change: 'out', at: 1_764_410_000_000.25 }]);
    assert.equal(value?.value, '001764410000001-6421000-message');
    const stored = { at: 1, forMs: 1, value: '1764410000000.1234-6421000-message' };
    const optIn = { msisdns: ['6421000'], change: 'in', at: 1_764_410_000_001, via: 'message' } as const;
    assert.equal(
      changeOptOuts(optIn, () => stored, createChanges()),
      1,
    );
  });

  it('keeps a digest of an opted-in number for at least 30 days', () => {
    const monthMs = 30 * 24 * 3_600_000;
    const values = valuesAfter([
      { msisdns: ['6421000', '6422000', '6423000'], change: 'out', at: 0 },
      { msisdns: ['6421000'], change: 'in', at: 10 },
      { msisdns: ['6422000'], change: 'in', at: 9 + monthMs },
      { msisdns: ['6423000'], change: 'in', at: 10 + monthMs },
    ]).map((one) => one?.value ?? '');
    assert.deepEqual(
      values.map((value) => [value.split('\n').length, value.includes('6421000')]),
      [
        [3, true],
        [3, false],
        [3, false],
        [2, false],
      ],
    );
  });

  for (const [order, wishes] of [
    ['an opt-in after an opt-out', ['out', 'in']],
    ['an opt-out after an opt-in', ['out', 'in', 'out']],
  ] as const) {
    it(`respects ${order} although the clock moved back`, () => {
      const msisdns = ['6421000'];
      const values = valuesAfter(wishes.map((change, index) => ({ msisdns, change, at: 10 - index })));
      const latest = values.at(-1) as Remembered;
      for (const earlier of values as Remembered[]) {
        const merged = [mergeOptOuts(latest, earlier), mergeOptOuts(earlier, latest)];
        const areOut = merged.map((value) => isOptedOut('6421000', () => value));
        assert.deepEqual(areOut, wishes.length === 3 ? [true, true] : [false, false]);
      }
    });
  }

  it('merges the lists of two stores', async () => {
    const [former, own] = [createList(), createList()];
    await former.change(['64001', '65001'], 'out');
    own.clock.stall(2);
    await own.change(['64001', '66001'], 'out');
    const [[key, formerValue] = []] = await former.values();
    const [[, ownValue] = []] = await own.values();
    assert.ok(ownValue && formerValue);
    const merged = mergeOptOuts(ownValue, formerValue);
    const { optouts } = listOptOuts((one) => (one === key ? merged : undefined));
    const first = former.clock.now();
    assert.deepEqual(
      optouts.map(({ msisdn, at }) => [msisdn, at - first]),
      [
        ['66001', 2],
        ['64001', 2],
        ['65001', 0],
      ],
    );
  });

  it('reads each key of the store only once for 10,000 numbers', () => {
    const msisdns = Array.from({ length: 10_000 }, (_, index) => `${64_210_000 + index}777`);
    const value = msisdns.map((msisdn) => `000000000000001-${msisdn}-person`).join('\n');
    for (const [change, before, after] of [
      ['out', undefined, value],
      ['in', { at: 1, forMs: 1, value }, undefined],
    ] as const) {
      const changes = createChanges();
      let readCount = 0;
      const readKey: ReadKey = () => {
        readCount++;
        return before;
      };
      assert.equal(changeOptOuts({ msisdns, change, at: 1, via: 'person' }, readKey, changes), 10_000);
      assert.equal(readCount, 1);
      assert.deepEqual(
        [...changes.remember.values()].map((remembered) => remembered?.value),
        [after],
      );
    }
  });
});
