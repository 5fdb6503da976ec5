import assert from 'node:assert/strict';
import { addChanges, createChanges, dropItem, type Item, isFlushed, keepItem } from '../../../src/store/store';

const item: Item = { id: '1', part: 'outgoing', subscribers: [], attempts: 0 };

describe('isFlushed', () => {
  it('returns false if no item has to survive a power cut', () => {
    const changes = createChanges();
    keepItem(changes, item, true);
    keepItem(changes, { ...item, attempts: 1 }, true);
    assert.equal(isFlushed(changes), false);
    assert.equal(isFlushed(createChanges(changes)), false);
    keepItem(changes, { ...item, id: '2' });
    assert.equal(isFlushed(changes), true);
  });

  it('returns true if any of the writes must survive a power cut', () => {
    const changes = createChanges();
    keepItem(changes, item);
    keepItem(changes, { ...item, attempts: 1 }, true);
    assert.equal(isFlushed(changes), true);
    const otherChanges = createChanges();
    keepItem(otherChanges, item, true);
    addChanges(otherChanges, changes);
    assert.equal(isFlushed(otherChanges), true);
  });

  it('returns true if a dropped item must not return after a power cut', () => {
    const dropping = createChanges();
    dropItem(dropping, '1', 'outgoing');
    assert.equal(isFlushed(createChanges(dropping, createChanges())), false);
    dropping.firm = true;
    assert.equal(isFlushed(createChanges(dropping, createChanges())), true);
  });
});
