import assert from 'node:assert/strict';
import {
  changeOptOuts,
  isOptedOut,
  listOptOuts,
  mergeOptOuts,
  type OptOutPage,
  type OptOutQuery,
} from '../../../src/consent/opt-outs';
import type { ConsentChange } from '../../../src/consent/words';
import { MemoryStore } from '../../../src/store/memory';
import { createChanges, type ReadKey, type Remembered, type Store } from '../../../src/store/store';

/** Reads and changes the list of opted-out numbers as steps of the journal do. */
class List {
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  /** Repeats a decision until the store has read all keys that the decision needs. */
  async decide<Result>(decision: (readKey: ReadKey) => Result): Promise<Result> {
    const known = new Map<string, Remembered | undefined>();
    for (;;) {
      const asked = new Set<string>();
      const result = decision((key) => {
        if (!known.has(key)) asked.add(key);
        return known.get(key);
      });
      if (asked.size === 0) return result;
      const keys = [...asked];
      const values = await this.store.recall(keys);
      for (const [index, key] of keys.entries()) known.set(key, values[index]);
    }
  }

  async change(wish: ConsentChange, msisdns: readonly string[], at = 1): Promise<number> {
    const { changed, changes } = await this.decide((readKey) => {
      const changes = createChanges();
      const lookAgain: ReadKey = (key) => (changes.remember.has(key) ? changes.remember.get(key) : readKey(key));
      return { changed: changeOptOuts({ msisdns, change: wish, at, via: 'message' }, lookAgain, changes), changes };
    });
    await this.store.commit(changes, new Map());
    return changed;
  }

  list(asked: OptOutQuery = {}): Promise<OptOutPage> {
    return this.decide((readKey) => listOptOuts(readKey, asked));
  }

  async all(search?: string): Promise<string[]> {
    const found: string[] = [];
    let after: string | undefined;
    do {
      const { optouts, next } = await this.list({ ...(search && { search }), ...(after && { after }) });
      found.push(...optouts.map(({ msisdn }) => msisdn));
      after = next;
    } while (after !== undefined);
    return found;
  }

  async values(): Promise<[string, Remembered][]> {
    const values: [string, Remembered][] = [];
    for await (const { remembered } of this.store.pages()) values.push(...remembered);
    return values;
  }

  async has(msisdn: string): Promise<boolean> {
    return this.decide((readKey) => isOptedOut(msisdn, readKey));
  }
}

const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => String(64_210_000_000 + from + index));

describe('the list of opted-out numbers', () => {
  let list: List;

  beforeEach(() => {
    list = new List(new MemoryStore());
  });

  it('lists the latest number first', async () => {
    assert.equal(await list.change('out', ['6421'], 5), 1);
    assert.equal(await list.change('out', ['6422'], 7), 1);
    assert.deepEqual(await list.list(), {
      optouts: [
        { msisdn: '6422', at: 7, via: 'message' },
        { msisdn: '6421', at: 5, via: 'message' },
      ],
      total: 2,
    });
    assert.ok(await list.has('6421'));
    assert.ok(!(await list.has('6423')));
  });

  it('does not change if a number is already opted out or in', async () => {
    await list.change('out', ['6421'], 5);
    assert.equal(await list.change('out', ['6421', '6421'], 9), 0);
    assert.equal(await list.change('in', ['6422'], 9), 0);
    assert.deepEqual((await list.list()).optouts, [{ msisdn: '6421', at: 5, via: 'message' }]);
  });

  it('removes numbers, and stores nothing for an empty list', async () => {
    await list.change('out', numbers(450));
    assert.equal(await list.change('in', numbers(450)), 450);
    assert.deepEqual(await list.list(), { optouts: [], total: 0 });
    assert.deepEqual(await list.values(), []);
  });

  it('has pages of 200 numbers', async () => {
    const all = numbers(1_001);
    for (let index = 0; index < all.length; index += 77) await list.change('out', all.slice(index, index + 77), index);
    const first = await list.list();
    assert.equal(first.optouts.length, 200);
    assert.equal(first.total, 1_001);
    assert.deepEqual(await list.all(), [...all].reverse());
  });

  for (const search of [undefined, '6421']) {
    it(`continues after numbers opted in between two pages${search ? ' of a search' : ''}`, async () => {
      const all = numbers(1_000);
      await list.change('out', all);
      const asked = search ? { search } : {};
      const { optouts, next = '' } = await list.list(asked);
      assert.equal(optouts.at(-1)?.msisdn, all[800]);
      await list.change('in', all.slice(600, 800));
      const { optouts: later, total } = await list.list({ ...asked, after: next });
      const shown = later.map(({ msisdn }) => msisdn);
      assert.deepEqual([shown, total], [all.slice(400, 600).reverse(), 800]);
    });
  }

  it('finds numbers by some of their digits', async () => {
    await list.change('out', numbers(1_000));
    const { optouts, total } = await list.list({ search: '0077' });
    assert.deepEqual([optouts.length, total], [11, 11]);
    assert.equal((await list.all('642100003')).length, 100);
    assert.equal((await list.all('64210000')).length, 1_000);
  });

  it('does not reveal numbers in the keys of the store', async () => {
    await list.change('out', ['64211234567']);
    for (const [key] of await list.values()) assert.doesNotMatch(key, /64211234567/);
  });

  it('merges the lists of two stores', async () => {
    const former = new List(new MemoryStore());
    await former.change('out', ['64001', '65001'], 5);
    await list.change('out', ['64001', '66001'], 7);
    const [[key, theirs] = []] = await former.values();
    const [[, own] = []] = await list.values();
    assert.ok(key && theirs && own);
    const both = mergeOptOuts(own, theirs);
    const { optouts } = listOptOuts((one) => (one === key ? both : undefined));
    assert.deepEqual(
      optouts.map(({ msisdn, at }) => [msisdn, at]),
      [
        ['66001', 7],
        ['64001', 7],
        ['65001', 5],
      ],
    );
  });

  it('reads and writes a key once for many numbers', () => {
    const msisdns = Array.from({ length: 10_000 }, (_, index) => `${64_210_000 + index}777`);
    for (const wish of ['out', 'in'] as const) {
      const [changes, value] = [
        createChanges(),
        msisdns.map((msisdn) => `000000000000001-${msisdn}-person`).join('\n'),
      ];
      let looks = 0;
      const readKey: ReadKey = () => {
        looks++;
        return wish === 'in' ? { at: 1, forMs: 1, value } : undefined;
      };
      assert.equal(changeOptOuts({ msisdns, change: wish, at: 1, via: 'person' }, readKey, changes), 10_000);
      assert.equal(looks, 1);
      assert.deepEqual(
        [...changes.remember.values()].map((remembered) => remembered?.value),
        [wish === 'in' ? undefined : value],
      );
    }
  });
});
