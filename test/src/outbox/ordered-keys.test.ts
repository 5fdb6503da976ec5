import assert from 'node:assert/strict';
import fc from 'fast-check';
import { OrderedKeys } from '../../../src/outbox/ordered-keys';

function readAll(keys: OrderedKeys, most: number): string[] {
  const all: string[] = [];
  for (let page = keys.page(most); page.length > 0; page = keys.page(most, page.at(-1))) {
    assert.ok(page.length <= most);
    all.push(...page);
  }
  return all;
}

describe('OrderedKeys', () => {
  it('are what a sorted list has, whatever was added and taken out', () => {
    const change = fc.tuple(fc.integer({ min: 0, max: 99 }).map(String), fc.boolean());
    fc.assert(
      fc.property(fc.array(change), fc.integer({ min: 1, max: 7 }), (changes, most) => {
        const keys = new OrderedKeys();
        const model = new Set<string>();
        for (const [key, isAdded] of changes) {
          if (isAdded) keys.add(key);
          else keys.delete(key);
          if (isAdded) model.add(key);
          else model.delete(key);
          const sorted = [...model].sort();
          assert.deepEqual([keys.size, keys.first], [sorted.length, sorted[0]]);
        }
        assert.deepEqual(readAll(keys, most), [...model].sort());
      }),
    );
  });

  it('are in order however many they are, added in any order', () => {
    const keys = new OrderedKeys();
    const all = Array.from({ length: 5_000 }, (_, index) => `key ${(index * 2_617) % 5_000}`);
    for (const key of all) keys.add(key);
    assert.deepEqual(readAll(keys, 200), [...all].sort());
    for (const key of all) if (key.endsWith('0')) keys.delete(key);
    assert.deepEqual(readAll(keys, 200), all.filter((key) => !key.endsWith('0')).sort());
  });

  it('go on after a page whose last has gone meanwhile', () => {
    const keys = new OrderedKeys();
    for (const key of ['1', '2', '3', '4']) keys.add(key);
    assert.deepEqual(keys.page(2), ['1', '2']);
    keys.delete('2');
    assert.deepEqual(keys.page(2, '2'), ['3', '4']);
    keys.clear();
    assert.deepEqual(keys.page(2, '2'), []);
  });

  it('come from the first for what is no place in them', () => {
    const keys = new OrderedKeys();
    keys.add('a');
    assert.deepEqual(keys.page(2, ''), ['a']);
    assert.deepEqual(keys.page(2, '~ nowhere'), []);
  });
});
