import assert from 'node:assert/strict';
import { createSearch, pageOf } from '../../src/page';

describe('a page of a list', () => {
  const keyOf = (item: string) => item;

  it('has the items in order, and leads to the next page', () => {
    const items = ['d', 'a', 'c', 'b'];
    assert.deepEqual(pageOf(items, keyOf, { limit: 3 }), { items: ['a', 'b', 'c'], total: 4, next: 'c' });
    assert.deepEqual(pageOf(items, keyOf, { limit: 3, after: 'c' }), { items: ['d'], total: 4 });
    assert.deepEqual(pageOf(items, keyOf, { limit: 3, after: 'cc' }), { items: ['d'], total: 4 }, 'c is gone');
    assert.deepEqual(pageOf([], keyOf, { limit: 3 }), { items: [], total: 0 });
  });

  it('counts only the items that match', () => {
    const matches = (item: string) => item !== 'b';
    assert.deepEqual(pageOf(['c', 'b', 'a'], keyOf, { limit: 1, matches }), { items: ['a'], total: 2, next: 'a' });
  });
});

describe('a search', () => {
  it('finds a part of a text in any case, and a formatted number', () => {
    for (const [search, found] of [
      ['PUMP', true],
      ['+64 (21) 555-123', true],
      ['5551', true],
      ['64 99', false],
      ['pumps', false],
    ] as const)
      assert.equal(createSearch(search)?.(['6421555123', undefined, 'Pump 2 stopped']), found, search);
    assert.equal(createSearch(' '), undefined, 'a blank search finds everything');
  });
});
