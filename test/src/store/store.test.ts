import assert from 'node:assert/strict';
import { addChanges, createChanges, dropItem, type Item, isFlushed, keepItem } from '../../../src/store/store';

const item: Item = { id: '1', part: 'ledger', subscribers: [], attempts: 0 };

describe('changes of which a power cut may undo some', () => {
  it('are flushed unless it may undo all that they keep', () => {
    const changes = createChanges();
    keepItem(changes, item, true);
    keepItem(changes, { ...item, attempts: 1 }, true);
    assert.equal(isFlushed(changes), false);
    assert.equal(isFlushed(createChanges(changes)), false);
    keepItem(changes, { ...item, id: '2' });
    assert.equal(isFlushed(changes), true);
  });

  it('are flushed when it must not undo what one of them was before, or becomes', () => {
    const changes = createChanges();
    keepItem(changes, item);
    keepItem(changes, { ...item, attempts: 1 }, true);
    assert.equal(isFlushed(changes), true);
    const others = createChanges();
    keepItem(others, item, true);
    addChanges(others, changes);
    assert.equal(isFlushed(others), true);
  });

  it('are flushed, though they only drop, when some of them are firm', () => {
    const dropping = createChanges();
    dropItem(dropping, '1', 'ledger');
    assert.equal(isFlushed(createChanges(dropping, createChanges())), false);
    dropping.firm = true;
    assert.equal(isFlushed(createChanges(dropping, createChanges())), true);
  });
});
