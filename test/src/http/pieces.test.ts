import assert from 'node:assert/strict';
import { Pieces } from '../../../src/http/exchange';

describe('Pieces', () => {
  it('are joined in their order, none, one and many', () => {
    for (const count of [0, 1, 2, 999, 1_000, 1_001, 2_500]) {
      const pieces = new Pieces();
      let whole = '';
      for (let index = 0; index < count; index++) {
        pieces.add(Buffer.from(`${index},`));
        whole += `${index},`;
      }
      assert.equal(pieces.join().toString(), whole);
      assert.equal(pieces.length, whole.length);
    }
  });

  it('of one byte take no more than a few bytes each', () => {
    const count = 1_000_000;
    const pieces = new Pieces();
    const one = Buffer.from('x');
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < count; index++) pieces.add(one.subarray());
    globalThis.gc?.();
    assert.ok(process.memoryUsage().heapUsed - before < 50 * count, 'more than 50 bytes each');
    assert.equal(pieces.join().length, count);
  });
});
