import assert from 'node:assert/strict';
import { forever, SendingSide, sendText } from './sending-side';

describe('a node that throws at an outcome', () => {
  for (const keep of [false, true]) {
    it(`gets no other outcome of a ${keep ? 'stored' : 'plain'} message`, async () => {
      const side = new SendingSide();
      const node = side.attach();
      const told: string[] = [];
      node.onOutcome = async ({ outcome }) => {
        told.push('code' in outcome ? outcome.code : 'sent');
        throw new Error('thrown');
      };
      sendText(node, 'hello', keep ? { keep: forever } : {});
      await side.pass(1_000);
      assert.deepEqual([told, side.faults.length], [['sent'], 1]);
    });
  }
});
