import assert from 'node:assert/strict';
import { formatRemembered, parseRemembered } from '../../src/store/store';
import { beginReceiving, forever, type House, sendText } from './sending/sending-house';
import type { FailingStore } from './store/failing-store';

const handset = '6421555123';

/** Whatever is remembered says something else, or nothing, from now on. */
function damage({ platter }: FailingStore, value: string): void {
  for (const [key, text] of platter.remembered) {
    platter.remembered.set(key, formatRemembered({ ...parseRemembered(text), value }));
  }
}

describe('a remembered value that is damaged', () => {
  for (const value of ['', '{', 'null', '1', '"x"', '{}', '[]', '[null]', '[{}]', '{"to":1}', '{"lead":"x"}']) {
    it(`keeps nothing else from going on: ${value || 'nothing'}`, async () => {
      const { house, node, store } = beginReceiving();
      const options = { keep: forever, once: 'k', remember: { value: 1 }, waitMs: 60_000 };
      sendText(node, 'first', { ...options, messageId: 'm1', to: [handset, 'friends'] });
      await house.pass(100);
      await house.incoming(handset, 'one', { inReplyToId: 'm1' });
      await receiveAfter(house, () => damage(store, value));
      sendText(node, 'second', { ...options, messageId: 'm2', to: [handset, 'friends'] });
      await receiveAfter(house, () => damage(store, value));
      const leaves = house.service.holdNext();
      sendText(node, 'third', { ...options, once: 'other', messageId: 'm3' });
      await house.pass(100);
      damage(store, value);
      leaves();
      await house.pass(100);
      damage(store, value);
      await house.pass(10 * 60_000);
      assert.deepEqual(house.faults, []);
      assert.ok(node.ends.includes(`to ${handset} friends`) && node.ends.includes(`to ${handset}`), String(node.ends));
      assert.equal(house.received.length, 7);
      assert.equal(house.outbox.admin.state.asking, 0);
      assert.equal(store.platter.entries.size, 0);
      await house.close();
    });
  }

  /** A reply by messageId, one by handset, and a status come. */
  async function receiveAfter(house: House, harm: () => void): Promise<void> {
    harm();
    await house.incoming(handset, 'by id', { inReplyToId: 'm1' });
    harm();
    await house.incoming(handset, 'by handset');
    harm();
    await house.status(handset, 'EXP', 'm2');
  }
});
