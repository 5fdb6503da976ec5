import assert from 'node:assert/strict';
import { PassingMap } from '../../src/passing-map';

describe('PassingMap', () => {
  it('has what was set, by its key, in the order in which it came', () => {
    const map = new PassingMap<string, number>();
    map.set('a', 1);
    map.set('b', 2);
    map.set('a', 3);
    assert.deepEqual([...map.values()], [3, 2]);
    assert.deepEqual(
      [map.size, map.has('a'), map.get('a'), map.has('c'), map.get('c')],
      [2, true, 3, false, undefined],
    );
  });

  it('has no more what was deleted, and has it last when it is set again', () => {
    const map = new PassingMap<string, number>();
    map.set('a', 1);
    map.set('b', 2);
    assert.deepEqual([map.delete('a'), map.delete('a')], [true, false]);
    assert.deepEqual([map.size, map.has('a'), map.get('a')], [1, false, undefined]);
    map.set('a', 3);
    assert.deepEqual([...map.values()], [2, 3]);
  });

  it('has nothing in common with another, whatever comes into one of them', () => {
    const [one, other] = [new PassingMap<string, number>(), new PassingMap<string, number>()];
    one.set('a', 1);
    assert.deepEqual([other.size, other.has('a'), [...other.values()], [...other.keys()]], [0, false, [], []]);
    assert.equal(other.delete('a'), false);
    other.clear();
    assert.deepEqual([...one.values()], [1]);
  });

  it('has nothing more when it is cleared, also while it is gone through', () => {
    const map = new PassingMap<string, number>();
    for (const number of [1, 2, 3]) map.set(String(number), number);
    const seen: string[] = [];
    for (const key of map.keys()) {
      seen.push(key);
      map.clear();
    }
    assert.deepEqual([seen, map.size, map.get('2')], [['1'], 0, undefined]);
    map.set('4', 4);
    assert.deepEqual([...map.values()], [4]);
  });

  it('leaves out what is deleted while it is gone through', () => {
    const map = new PassingMap<string, number>();
    for (const number of [1, 2, 3]) map.set(String(number), number);
    const seen: number[] = [];
    for (const value of map.values()) {
      seen.push(value);
      map.delete('2');
    }
    assert.deepEqual(seen, [1, 3]);
  });
});
