import assert from 'node:assert/strict';
import { createChanges, dropItem, type Item, keepItem, type Remembered, type Store } from '../../../src/store/store';

const events = { wanted: () => [], isReadable: () => true, onUnreadable() {}, onTakenOver() {}, onFailure() {} };
const hourMs = 3_600_000;

function createItem(id: string, more: object = {}): Item {
  return { id, part: 'inbox', subscribers: ['incoming'], attempts: 0, ...more };
}

function createValue(value: string): Remembered {
  return { at: Date.now(), forMs: hourMs, value };
}

/**
 * Tests that every driver of a store must pass.
 *
 * @param createStore creates an empty store, which the caller closes
 */
export function testDriver(createStore: () => Store): void {
  describe('as every driver', () => testDriverWith(createStore));
}

function testDriverWith(createStore: () => Store): void {
  let store: Store;

  beforeEach(async () => {
    store = createStore();
    await store.open(events);
  });

  async function keep(...items: Item[]): Promise<void> {
    const changes = createChanges();
    for (const item of items) keepItem(changes, item);
    await store.commit(changes, new Map());
  }

  async function drop(...ids: string[]): Promise<void> {
    const changes = createChanges();
    for (const id of ids) dropItem(changes, id, 'inbox');
    await store.commit(changes, new Map());
  }

  async function remember(key: string, value: Remembered | undefined, former?: Remembered): Promise<void> {
    const changes = createChanges();
    changes.remember.set(key, value);
    await store.commit(changes, new Map([[key, former]]));
  }

  async function reopen(): Promise<Item[]> {
    await store.close();
    return (await store.open(events)).items;
  }

  it('finds stored items in their last state after a reopening, and no dropped ones', async () => {
    await keep(createItem('1'), createItem('2'), createItem('3'));
    await keep(createItem('3', { attempts: 4 }));
    await drop('1', 'never stored');
    assert.deepEqual(await reopen(), [createItem('2'), createItem('3', { attempts: 4 })]);
  });

  it('finds more items than fit in a page, in order', async () => {
    const items = Array.from({ length: 2_300 }, (_, index) => createItem(String(10_000 + index)));
    await keep(...items);
    assert.deepEqual(await reopen(), items);
  });

  it('stores every character and large items', async () => {
    const items = [
      createItem('1', { body: 'a\u0000"\\\n\u2028 ]] 😀 \ud800 ä' }),
      createItem('2', { body: '€𝄞\n'.repeat(100_000) }),
    ];
    await keep(...items);
    assert.deepEqual(await reopen(), items);
  });

  it('remembers values until they are forgotten, also after a reopening', async () => {
    const [a, b] = [createValue('A'), createValue('B')];
    await remember('a', a);
    await remember('b', b);
    assert.deepEqual(await store.recall(['a', 'none', 'b']), [a, undefined, b]);
    await remember('a', undefined, a);
    await reopen();
    assert.deepEqual(await store.recall(['a', 'b']), [undefined, b]);
  });

  it('reads all items and values in pages', async () => {
    const items = Array.from({ length: 1_200 }, (_, index) => createItem(String(1_000 + index)));
    const keys = Array.from({ length: 2_500 }, (_, index) => `once:${index}`);
    await keep(...items);
    const changes = createChanges();
    for (const key of keys) changes.remember.set(key, createValue(key));
    await store.commit(changes, new Map());
    const [found, values]: [Item[], Map<string, string>] = [[], new Map()];
    for await (const page of store.pages()) {
      found.push(...page.items);
      for (const [key, { value }] of page.remembered) values.set(key, value);
    }
    assert.deepEqual(found, items);
    assert.deepEqual(new Map([...values].sort()), new Map(keys.map((key): [string, string] => [key, key]).sort()));
  });

  it('clears all items, and remembers the mark', async () => {
    const mark = createValue('mark');
    await keep(createItem('1'), createItem('2'));
    await store.clear('imported:x', mark);
    assert.deepEqual(await reopen(), []);
    assert.deepEqual(await store.recall(['imported:x']), [mark]);
    await keep(createItem('3'));
    assert.deepEqual(await reopen(), [createItem('3')]);
  });

  it('returns no items when it is opened for an import', async () => {
    await keep(createItem('1'));
    await store.close();
    const { items } = await store.open({ ...events, isImport: true });
    const pages: Item[] = [];
    for await (const page of store.pages()) pages.push(...page.items);
    assert.deepEqual([store.durable ? items : [], pages], [[], [createItem('1')]]);
  });
}
