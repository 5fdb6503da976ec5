import assert from 'node:assert/strict';
import type { Remembered } from '../../../src/store/store';
import { beginSending, copyDisk, forever, type SendingSide, sendText } from '../sending/sending-side';
import { FailingStore } from '../store/failing-store';

const hourMs = 3_600_000;

/** A store that records its reads: one list of key kinds per read. */
class ReadStore extends FailingStore {
  readonly readings: string[][] = [];

  override recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    this.readings.push(keys.map((key) => key.replace(/:.*/, '')).sort());
    return super.recall(keys);
  }

  /** Returns the reads since the last call. */
  takeReadings(): string[][] {
    return this.readings.splice(0);
  }
}

describe('the lookup of remembered messages', () => {
  function begin(store = new ReadStore()) {
    const { side, node } = beginSending({ store, sentMs: hourMs });
    side.receive();
    return { side, node, store };
  }

  const sentWith = ({ received }: SendingSide) =>
    (received.at(-1)?.sent as { remembered?: unknown } | undefined)?.remembered;

  it('reads the value of a message found by messageId in one step', async () => {
    const { side, store, node } = begin();
    await side.send(node, 'well?', { messageId: 'q1', remember: { value: 7 } });
    store.takeReadings();
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    assert.equal(sentWith(side), 7);
    assert.deepEqual(store.takeReadings(), [['incoming', 'request', 'sent']]);
    await side.status('6421555123', 'RCV', 'q1');
    assert.equal(sentWith(side), 7);
    assert.deepEqual(store.takeReadings(), [['request', 'sent', 'status', 'statuses']]);
  });

  describe('the lookup of remembered messages in a shared store', () => {
    class SharedStore extends ReadStore {
      readonly shared = true as const;
    }

    it('finds messages of other instances', async () => {
      const { side, node, store } = begin(new SharedStore());
      await side.pass(100);
      const other = begin(new SharedStore());
      for (const value of [7, 8]) {
        sendText(other.node, 'well?', { messageId: `q${value}`, remember: { value } });
        await other.side.pass(100);
      }
      for (const [key, text] of other.store.disk.remembered) store.disk.remembered.set(key, text);
      store.takeReadings();
      await side.incoming('6421555123', 'yes');
      assert.equal(sentWith(side), 8);
      assert.deepEqual(store.takeReadings(), [['handset', 'incoming'], ['sent']]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q7' });
      assert.equal(sentWith(side), 7);
      assert.deepEqual(store.takeReadings(), [['incoming', 'request', 'sent']]);
      assert.equal(node.answers.length, 0);
    });
  });

  for (const remember of [undefined, { value: 7 }]) {
    const what = remember
      ? 'waits for a store that fails, also after a restart'
      : 'is immediate while the store fails if nothing was ever remembered';
    it(what, async () => {
      const before = begin();
      sendText(before.node, 'well?', { messageId: 'q1', ...(remember && { remember }), keep: forever });
      await before.side.pass(100);
      const { side, store } = begin(new ReadStore(copyDisk(before.store.disk)));
      await side.pass(100);
      store.failing.add('commit').add('open');
      const coming = side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await side.pass(100);
      assert.equal(side.received.length, remember ? 0 : 1);
      store.failing.clear();
      await Promise.all([coming, side.pass(60_000)]);
      assert.equal(sentWith(side), remember?.value);
    });
  }
});
