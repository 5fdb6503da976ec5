import assert from 'node:assert/strict';
import { addCount, type Count, isWithinLimits } from '../../../src/store/counts';
import {
  type Changes,
  countMessages,
  createChanges,
  dropItem,
  type Item,
  keepItem,
  type Remembered,
  type Store,
  StoreConflict,
  type StoreEvents,
} from '../../../src/store/store';
import fc from '../../fast-check';

/** Event handlers for tests that need none of the events. */
export const events: StoreEvents = {
  wantedNames: () => [],
  isReadable: () => true,
  onUnreadable() {},
  onTakenOver() {},
  onFailure() {},
};
const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 0, 1);

/** Creates an item of the inbox. */
export function createItem(id: string, more: object = {}): Item {
  return { id, part: 'inbox', subscribers: ['incoming'], attempts: 0, ...more };
}

/** Creates the changes of a step that stores items. */
export function keepItems(...items: readonly Item[]): Changes {
  const changes = createChanges();
  for (const item of items) keepItem(changes, item);
  return changes;
}

/** Returns a request to count `number` messages that were sent at the time `at`. The window is an hour. */
function createCount(at: number, number: number, limits: Count['limits'] = []): Count {
  return { now: Math.max(at, startMs), windowMs: hourMs, clock: 'server', changes: [[at, number]], limits };
}

function createValue(value: string): Remembered {
  return { at: Date.now(), forMs: hourMs, value };
}

/**
 * Tests that every driver of a store must pass.
 *
 * @param createStore creates an empty store, which the caller closes
 * @param isSwept false if the store itself drops outdated values
 */
export function testDriver(createStore: () => Store, { isSwept }: { isSwept: boolean }): void {
  describe('as a store driver', () => testDriverWith(createStore, isSwept));
}

function testDriverWith(createStore: () => Store, isSwept: boolean): void {
  let store: Store;

  beforeEach(async () => {
    store = createStore();
    await store.open(events);
  });

  async function commit(change: (changes: Changes) => void, recalled = new Map()): Promise<void> {
    const changes = createChanges();
    change(changes);
    await store.commit(changes, recalled);
  }

  const keep = (...items: Item[]) => store.commit(keepItems(...items), new Map());
  const remember = (key: string, value: Remembered | undefined, formerValue?: Remembered) =>
    commit(({ remember }) => remember.set(key, value), new Map([[key, formerValue]]));
  const count = (key: string, ...counts: Count[]) =>
    commit((changes) => {
      for (const one of counts) countMessages(changes, key, one);
    });

  async function valueUnder(key: string): Promise<string | undefined> {
    const [remembered] = await store.recall([key]);
    return remembered?.value;
  }

  async function reopen(): Promise<Item[]> {
    await store.close();
    return (await store.open(events)).items;
  }

  it('finds each item in its last state when it reopens', async () => {
    await keep(createItem('1'), createItem('2'), createItem('3'));
    await keep(createItem('3', { attempts: 4 }));
    await commit((changes) => {
      for (const id of ['1', 'never stored']) dropItem(changes, id, 'inbox');
    });
    assert.deepEqual(await reopen(), [createItem('2'), createItem('3', { attempts: 4 })]);
  });

  it('finds 2,300 items in order', async () => {
    const items = Array.from({ length: 2_300 }, (_, index) => createItem(String(10_000 + index)));
    await keep(...items);
    assert.deepEqual(await reopen(), items);
  });

  it('stores special characters and large items', async () => {
    const items = [
      createItem('1', { body: 'a\u0000"\\\n\u2028 ]] 😀 \ud800 ä' }),
      createItem('2', { body: '€𝄞\n'.repeat(100_000) }),
    ];
    await keep(...items);
    assert.deepEqual(await reopen(), items);
  });

  it('keeps values when it reopens', async () => {
    const [a, b] = [createValue('A'), createValue('B')];
    await remember('a', a);
    await remember('b', b);
    assert.deepEqual(await store.recall(['a', 'none', 'b']), [a, undefined, b]);
    await remember('a', undefined, a);
    await reopen();
    assert.deepEqual(await store.recall(['a', 'b']), [undefined, b]);
  });

  it('continues a count when it reopens', async () => {
    await count('day', createCount(startMs, 2));
    await reopen();
    await count('day', createCount(startMs + 5, 1));
    assert.equal(await valueUnder('day'), `server ${startMs}:2 ${startMs + 5}:1`);
    await count('day', createCount(startMs, -2), createCount(startMs + 5, -1));
    assert.equal(await valueUnder('day'), undefined);
  });

  it('commits nothing if a count would exceed its limit', async () => {
    await count('day', createCount(startMs, 2));
    const refused = commit((changes) => {
      keepItem(changes, createItem('1'));
      changes.remember.set('mark', createValue('mark'));
      countMessages(changes, 'handset', createCount(startMs, 1));
      countMessages(changes, 'day', createCount(startMs, 1, [{ since: startMs - hourMs, max: 1 }]));
    });
    await assert.rejects(refused, StoreConflict);
    assert.deepEqual(await store.recall(['mark', 'handset']), [undefined, undefined]);
    assert.equal(await valueUnder('day'), `server ${startMs}:2`);
    assert.deepEqual(await reopen(), []);
  });

  it('checks the limit of each count in a commit', async () => {
    await count('day', createCount(startMs, 1));
    const within = (max: number) => createCount(startMs + 1, 1, [{ since: startMs - hourMs, max }]);
    await assert.rejects(count('day', within(2), within(2), within(1)), StoreConflict);
    await count('day', within(2), within(2));
    assert.equal(await valueUnder('day'), `server ${startMs}:1 ${startMs + 1}:2`);
  });

  it('calculates the same counts as `addCount` for random input', async () => {
    const change = fc.tuple(fc.integer({ min: 0, max: 2 * hourMs }), fc.integer({ min: -3, max: 9 }));
    const limit = fc.record({ since: fc.integer({ min: -hourMs, max: hourMs }), max: fc.integer({ min: 0, max: 99 }) });
    const step = fc.record({
      afterMs: fc.integer({ min: 0, max: 900_000 }),
      windowMs: fc.constantFrom(hourMs, 90_000.5, 6 * hourMs),
      changes: fc.oneof(
        { weight: 3, arbitrary: fc.array(change, { maxLength: 5 }) },
        fc.array(change, { minLength: 420, maxLength: 500 }),
      ),
      limits: fc.oneof(
        { weight: 2, arbitrary: fc.constant<{ since: number; max: number }[]>([]) },
        fc.array(limit, { maxLength: 2 }),
      ),
    });
    let key = 0;
    const isEqual = async (steps: readonly (typeof step extends fc.Arbitrary<infer One> ? One : never)[]) => {
      const name = `count ${key++}`;
      let [now, expected]: [number, string | undefined] = [startMs, undefined];
      for (const { afterMs, windowMs, changes, limits } of steps) {
        now += afterMs;
        const one: Count = {
          now,
          windowMs,
          clock: 'server',
          changes: changes.map(([agoMs, number]) => [now - agoMs, number]),
          limits: limits.map(({ since, max }) => ({ since: now + since, max })),
        };
        const isKept = isWithinLimits(expected, one);
        if (isKept) expected = addCount(expected, one)?.value;
        await count(name, one).then(
          () => assert.ok(isKept),
          (error: unknown) => assert.ok(error instanceof StoreConflict && !isKept),
        );
        assert.equal(await valueUnder(name), expected);
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 8 }), isEqual), { numRuns: 40, seed: 67 });
  });

  it('reads all items and values in pages', async () => {
    const items = Array.from({ length: 1_200 }, (_, index) => createItem(String(1_000 + index)));
    const keys = Array.from({ length: 2_500 }, (_, index) => `once:${index}`);
    await keep(...items);
    await commit(({ remember }) => {
      for (const key of keys) remember.set(key, createValue(key));
    });
    const [pageItems, values]: [Item[], Map<string, string>] = [[], new Map()];
    for await (const page of store.pages()) {
      pageItems.push(...page.items);
      for (const [key, { value }] of page.remembered) values.set(key, value);
    }
    assert.deepEqual(pageItems, items);
    assert.deepEqual(new Map([...values].sort()), new Map(keys.map((key): [string, string] => [key, key]).sort()));
  });

  it('removes all items when it is marked as imported', async () => {
    const mark = createValue('mark');
    await keep(createItem('1'), createItem('2'));
    await store.clear('imported:x', mark);
    assert.deepEqual(await reopen(), []);
    assert.deepEqual(await store.recall(['imported:x']), [mark]);
    await keep(createItem('3'));
    assert.deepEqual(await reopen(), [createItem('3')]);
  });

  if (isSwept)
    it('drops only outdated values in a sweep', async () => {
      const keys = Array.from({ length: 2_500 }, (_, index) => `id:${index}`);
      await commit((changes) => {
        keepItem(changes, createItem('1'));
        for (const [index, key] of keys.entries()) changes.remember.set(key, { at: index % 2, forMs: 10, value: key });
      });
      await remember('id:0', { at: 5, forMs: 10, value: 'again' });
      const sweep = async (now: number) => {
        for (let round = 0; round < 4; round++) {
          await store.sweep((value) => (value.at + value.forMs < now ? undefined : value));
        }
        return (await store.recall(keys)).filter((value) => value !== undefined).length;
      };
      assert.deepEqual([await sweep(10), await sweep(11), await sweep(12), await sweep(16)], [2_500, 1_251, 1, 0]);
      assert.equal((await reopen()).length, 1);
    });

  it('returns its items from `pages` if it opens for an import', async () => {
    await keep(createItem('1'));
    await store.close();
    const { items } = await store.open({ ...events, isImport: true });
    const pages: Item[] = [];
    for await (const page of store.pages()) pages.push(...page.items);
    assert.deepEqual([store.durable ? items : [], pages], [[], [createItem('1')]]);
  });
}
