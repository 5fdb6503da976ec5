import assert from 'node:assert/strict';
import { pageOf } from '../../src/page';

describe('pageOf', () => {
  const keyOf = (item: string) => item;

  it('returns items in order, one page at a time', () => {
    const items = ['d', 'a', 'c', 'b'];
    assert.deepEqual(pageOf(items, keyOf, { limit: 3 }), { items: ['a', 'b', 'c'], total: 4, next: 'c' });
    assert.deepEqual(pageOf(items, keyOf, { limit: 3, after: 'c' }), { items: ['d'], total: 4 });
    assert.deepEqual(pageOf(items, keyOf, { limit: 3, after: 'cc' }), { items: ['d'], total: 4 }, 'c is gone');
    assert.deepEqual(pageOf([], keyOf, { limit: 3 }), { items: [], total: 0 });
  });

  it('counts only items that match', () => {
    const matches = (item: string) => item !== 'b';
    assert.deepEqual(pageOf(['c', 'b', 'a'], keyOf, { limit: 1, matches }), { items: ['a'], total: 2, next: 'a' });
  });
});
