import assert from 'node:assert/strict';
import fc from 'fast-check';
import { EntryOrder } from '../../src/outbox/text-book';

function readAll(order: EntryOrder, most: number): string[] {
  const all: string[] = [];
  let next: string | undefined;
  do {
    const page = order.page(most, next);
    assert.ok(page.ids.length <= most);
    all.push(...page.ids);
    next = page.next;
  } while (next !== undefined);
  return all;
}

describe('entries in the order of their times', () => {
  it('come page by page, oldest first, whatever was added and taken out', () => {
    const entry = fc.record({ id: fc.integer({ min: 0, max: 40 }), at: fc.integer({ min: 0, max: 5 }) });
    fc.assert(
      fc.property(fc.array(fc.tuple(entry, fc.boolean())), fc.integer({ min: 1, max: 7 }), (changes, most) => {
        const order = new EntryOrder();
        const model = new Set<string>();
        for (const [{ id, at }, isAdded] of changes) {
          const key = `${at} ${String(id).padStart(2, '0')}`;
          if (isAdded) {
            order.add(String(id).padStart(2, '0'), at);
            model.add(key);
          } else {
            order.delete(String(id).padStart(2, '0'), at);
            model.delete(key);
          }
        }
        assert.equal(order.size, model.size);
        assert.deepEqual(
          readAll(order, most),
          [...model].sort().map((key) => key.slice(2)),
        );
      }),
    );
  });

  it('are in order however many they are, added in any order', () => {
    const order = new EntryOrder();
    const times = Array.from({ length: 5_000 }, (_, index) => (index * 2_617) % 5_000);
    for (const at of times) order.add(`id ${at}`, at);
    assert.deepEqual(
      readAll(order, 200),
      Array.from({ length: 5_000 }, (_, index) => `id ${index}`),
    );
    for (const at of times) if (at % 2 === 0) order.delete(`id ${at}`, at);
    assert.equal(order.size, 2_500);
    assert.deepEqual(order.page(2).ids, ['id 1', 'id 3']);
  });

  it('go on after a page whose last entry has gone meanwhile', () => {
    const order = new EntryOrder();
    for (const at of [1, 2, 3, 4]) order.add(`id ${at}`, at);
    const { ids, next } = order.page(2);
    assert.deepEqual(ids, ['id 1', 'id 2']);
    order.delete('id 2', 2);
    assert.deepEqual(order.page(2, next), { ids: ['id 3', 'id 4'] });
    order.clear();
    assert.deepEqual(order.page(2, next), { ids: [] });
  });

  it('come from the first for what is no place in them', () => {
    const order = new EntryOrder();
    order.add('a', 1);
    assert.deepEqual(order.page(2, '').ids, ['a']);
    assert.deepEqual(order.page(2, '~ nowhere').ids, []);
  });
});
