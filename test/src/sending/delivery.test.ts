import assert from 'node:assert/strict';
import { beginSending, forever } from './sending-side';

describe('a node that throws at an outcome', () => {
  for (const keep of [false, true]) {
    it(`gets no other outcome of a ${keep ? 'stored' : 'plain'} message`, async () => {
      const { side, node } = beginSending();
      const told: string[] = [];
      node.onOutcome = async ({ outcome }) => {
        told.push('code' in outcome ? outcome.code : 'sent');
        throw new Error('thrown');
      };
      await side.send(node, 'hello', keep ? { keep: forever } : {}, 1_000);
      assert.deepEqual([told, side.faults.length], [['sent'], 1]);
    });
  }
});
