import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Placed, PriorityQueue } from '../../../src/outbox/queue';

interface Item extends Placed {
  rank: number;
  order: number;
}

const isBefore = (a: Item, b: Item) => a.rank < b.rank || (a.rank === b.rank && a.order < b.order);

describe('PriorityQueue', () => {
  it('gives what a sorted list gives, whoever leaves from its midst', () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('add' as const), rank: fc.integer({ min: 0, max: 5 }) }),
      fc.record({ do: fc.constant('take' as const) }),
      fc.record({ do: fc.constant('delete' as const), which: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
        const queue = new PriorityQueue<Item>(isBefore);
        const list: Item[] = [];
        for (const [order, action] of actions.entries()) {
          if (action.do === 'add') {
            const item = { rank: action.rank, order };
            queue.add(item);
            list.push(item);
            list.sort((a, b) => a.rank - b.rank || a.order - b.order);
          } else if (action.do === 'take') {
            assert.equal(queue.take(), list.shift());
          } else if (list.length > 0) {
            const [item] = list.splice(action.which % list.length, 1);
            assert.equal(item && queue.delete(item), true);
            assert.equal(item && queue.delete(item), false);
          }
          assert.equal(queue.size, list.length);
        }
        for (const item of list) assert.equal(queue.take(), item);
        assert.equal(queue.take(), undefined);
      }),
    );
  });

  it('looks at few of 10,000 for each that comes, is taken or leaves', () => {
    let comparisons = 0;
    const queue = new PriorityQueue<Item>((a, b) => {
      comparisons++;
      return isBefore(a, b);
    });
    const items: Item[] = Array.from({ length: 10_000 }, (_, order) => ({ rank: (order * 7_919) % 21, order }));
    const most = 2 * Math.ceil(Math.log2(items.length)) + 2;
    const count = (operation: () => unknown) => {
      comparisons = 0;
      operation();
      assert.ok(comparisons <= most, `${comparisons} comparisons`);
    };
    for (const item of items) count(() => queue.add(item));
    for (const item of items.slice(3_000, 6_000)) count(() => queue.delete(item));
    while (queue.size > 0) count(() => queue.take());
  });
});
