import assert from 'node:assert/strict';
import { formatRemembered, parseRemembered } from '../../src/store/store';
import { beginReceiving, forever, type SendingSide, sendText } from './sending/sending-side';
import type { FailingStore } from './store/failing-store';

const handset = '6421555123';

/** Replaces all remembered values in the store, but keeps the time and duration that are stored with each. */
function damage({ disk }: FailingStore, value: string): void {
  for (const [key, text] of disk.remembered) {
    disk.remembered.set(key, formatRemembered({ ...parseRemembered(text), value }));
  }
}

describe('a damaged value in the store', () => {
  for (const value of ['', '{', 'null', '1', '"x"', '{}', '[null]', '[{}]', '{"to":1}', '{"lead":"x"}']) {
    it(`does not stop sending or receiving if it is ${JSON.stringify(value)}`, async () => {
      const { side, node, store } = beginReceiving();
      const options = { keep: forever, once: 'k', remember: { value: 1 }, waitMs: 60_000 };
      sendText(node, 'first', { ...options, messageId: 'm1', to: [handset, 'friends'] });
      await side.pass(100);
      await side.incoming(handset, 'one', { inReplyToId: 'm1' });
      await receiveAfter(side, () => damage(store, value));
      sendText(node, 'second', { ...options, messageId: 'm2', to: [handset, 'friends'] });
      await receiveAfter(side, () => damage(store, value));
      const leaves = side.service.holdNext();
      sendText(node, 'third', { ...options, once: 'other', messageId: 'm3' });
      await side.pass(100);
      damage(store, value);
      leaves();
      await side.pass(100);
      damage(store, value);
      await side.pass(10 * 60_000);
      assert.deepEqual(side.faults, []);
      assert.ok(node.ends.includes(`to ${handset} friends`) && node.ends.includes(`to ${handset}`), String(node.ends));
      assert.equal(side.received.length, 7);
      assert.equal(side.outbox.admin.state.awaitingReply, 0);
      assert.equal(store.disk.entries.size, 0);
      await side.close();
    });
  }

  /** Delivers a reply that names its message, a reply that does not, and a status. Calls `harm` before each. */
  async function receiveAfter(side: SendingSide, harm: () => void): Promise<void> {
    harm();
    await side.incoming(handset, 'by id', { inReplyToId: 'm1' });
    harm();
    await side.incoming(handset, 'by handset');
    harm();
    await side.status(handset, 'EXP', 'm2');
  }
});
