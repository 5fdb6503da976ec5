import assert from 'node:assert/strict';
import { forever, House, sendText } from './sending-house';

describe('a node that throws at an outcome', () => {
  for (const keep of [false, true]) {
    it(`is told no other one besides, of a text that is ${keep ? '' : 'not '}kept`, async () => {
      const house = new House();
      const node = house.attach();
      const told: string[] = [];
      node.onOutcome = async ({ outcome }) => {
        told.push('code' in outcome ? outcome.code : 'sent');
        throw new Error('thrown');
      };
      sendText(node, 'hello', keep ? { keep: forever } : {});
      await house.pass(1_000);
      assert.deepEqual([told, house.faults.length], [['sent'], 1]);
    });
  }
});
