import assert from 'node:assert/strict';
import { MemoryStore } from '../../../src/store/memory';
import { createChanges, type Remembered } from '../../../src/store/store';
import { testDriver } from './driver-suite';

const seen = (at: number): Remembered => ({ at, forMs: 10, value: 'value' });

/** Lets a sweep delete the values that expired before `now`. */
const until = (now: number) => (noted: Remembered) => (noted.at + noted.forMs < now ? undefined : noted);

function remembering(...pairs: [string, Remembered | undefined][]) {
  const changes = createChanges();
  for (const [key, value] of pairs) changes.remember.set(key, value);
  return changes;
}

async function isRemembered(store: MemoryStore, ...keys: string[]): Promise<boolean[]> {
  return (await store.recall(keys)).map((value) => value !== undefined);
}

describe('MemoryStore', () => {
  testDriver(() => new MemoryStore());

  it('drops outdated keys and keeps the rest (dedupeHours)', async () => {
    const store = new MemoryStore();
    await store.commit(remembering(['a', seen(1)], ['b', seen(2)], ['c', seen(3)]));
    await store.sweep(until(13));
    assert.deepEqual(await isRemembered(store, 'a', 'b', 'c'), [false, false, true]);
  });

  it('drops outdated keys although an earlier key was renewed', async () => {
    const store = new MemoryStore();
    await store.commit(remembering(['again', seen(1)], ['old', seen(2)]));
    await store.commit(remembering(['again', seen(10)]));
    await store.sweep(until(15));
    assert.deepEqual(await isRemembered(store, 'again', 'old'), [true, false]);
  });

  it('drops each key at its end, in any order and number', async () => {
    const store = new MemoryStore();
    const names = Array.from({ length: 2_500 }, (_, index) => String(index));
    await store.commit(remembering(...names.map((name): [string, Remembered] => [name, { ...seen(1), forMs: 1_000 }])));
    await store.commit(remembering(['short', seen(2)]));
    for (let round = 0; round < 3; round++) await store.sweep(until(100));
    assert.deepEqual(await isRemembered(store, 'short', '0', '2499'), [false, true, true]);
  });
});
