import assert from 'node:assert/strict';
import type { Remembered } from '../../../src/store/store';
import { copyDisk, forever, SendingSide, sendText } from '../sending/sending-side';
import { FailingStore } from '../store/failing-store';

const hourMs = 3_600_000;

/** A store that notes what it is asked for, one list of kinds of keys for each reading. */
class ReadStore extends FailingStore {
  readonly readings: string[][] = [];

  override recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    this.readings.push(keys.map((key) => key.replace(/:.*/, '')).sort());
    return super.recall(keys);
  }

  /** Those since the last call. */
  takeReadings(): string[][] {
    return this.readings.splice(0);
  }
}

describe('what is looked up for what comes in', () => {
  function begin(store = new ReadStore()) {
    const side = new SendingSide({ store, sentMs: hourMs });
    const node = side.attach();
    side.receive();
    return { side, node, store };
  }

  const sentWith = ({ received }: SendingSide) =>
    (received.at(-1)?.sent as { remembered?: unknown } | undefined)?.remembered;

  it('is what identifies it alone while nothing is remembered', async () => {
    const { side, store, node } = begin();
    sendText(node, 'kept, and not remembered', { keep: forever });
    await side.pass(100);
    store.takeReadings();
    await side.incoming('6421555123', 'hi');
    await side.incoming('6421555123', 'hi', { inReplyToId: 'q1' });
    await side.status('6421555123', 'RCV', 'q1');
    assert.deepEqual(store.takeReadings(), [
      ['answer', 'incoming'],
      ['answer', 'incoming'],
      ['answer', 'status'],
    ]);
  });

  it('is read at once with what is remembered of a text that it names', async () => {
    const { side, store, node } = begin();
    sendText(node, 'well?', { messageId: 'q1', remember: { value: 7 } });
    await side.pass(100);
    store.takeReadings();
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    assert.equal(sentWith(side), 7);
    assert.deepEqual(store.takeReadings(), [['answer', 'incoming', 'question', 'sent']]);
    await side.status('6421555123', 'RCV', 'q1');
    assert.equal(sentWith(side), 7);
    assert.deepEqual(store.takeReadings(), [['answer', 'question', 'sent', 'status', 'statuses']]);
  });

  it('is what identifies it alone again when nothing is remembered any more', async () => {
    const { side, store, node } = begin();
    sendText(node, 'well?', { remember: { value: 7 } });
    await side.pass(3 * hourMs);
    store.takeReadings();
    await side.incoming('6421555123', 'yes');
    assert.equal(sentWith(side), undefined);
    assert.deepEqual(store.takeReadings(), [['answer', 'incoming']]);
  });

  it('is known after a restart, from the one reading as the store opens', async () => {
    for (const remember of [undefined, { value: 7 }]) {
      const { side, node, store } = begin();
      sendText(node, 'well?', { messageId: 'q1', ...(remember ? { remember } : undefined), keep: forever });
      await side.pass(100);
      const next = begin(new ReadStore(copyDisk(store.disk)));
      await next.side.pass(100);
      assert.deepEqual(next.store.takeReadings(), [['absent', 'remembers']]);
      await next.side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.equal(sentWith(next.side), remember?.value);
      assert.deepEqual(next.store.takeReadings(), [
        remember ? ['answer', 'incoming', 'question', 'sent'] : ['answer', 'incoming'],
      ]);
    }
  });

  it('is found of what came with another login', async () => {
    const former = begin();
    sendText(former.node, 'well?', { messageId: 'q1', remember: { value: 7 } });
    await former.side.pass(100);
    await Promise.all([former.node.node.close(), former.side.pass(100)]);
    const heir = new SendingSide({ clock: former.side.clock, store: new ReadStore(), sentMs: hourMs });
    heir.attach();
    heir.receive();
    await heir.incoming('6421555123', 'before');
    const handed = former.side.handOverTo(heir, { isLast: true });
    await Promise.all([handed, former.side.pass(1_000)]);
    await heir.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    assert.equal(sentWith(heir), 7);
  });

  describe('in a store that others share', () => {
    class SharedStore extends ReadStore {
      readonly shared = true as const;
    }

    it('is nothing more while nothing is remembered, and what others remember is found', async () => {
      const { side, node, store } = begin(new SharedStore());
      await side.pass(100);
      store.takeReadings();
      await side.incoming('6421555123', 'hi');
      assert.deepEqual(store.takeReadings(), [['answer', 'incoming', 'remembers']]);
      // Another instance writes down the same that this one would.
      const other = begin(new SharedStore());
      for (const value of [7, 8]) {
        sendText(other.node, 'well?', { messageId: `q${value}`, remember: { value } });
        await other.side.pass(100);
      }
      for (const [key, text] of other.store.disk.remembered) store.disk.remembered.set(key, text);
      await side.incoming('6421555123', 'yes');
      assert.equal(sentWith(side), 8);
      assert.deepEqual(store.takeReadings(), [['answer', 'incoming', 'remembers'], ['handset'], ['sent']]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q7' });
      assert.equal(sentWith(side), 7);
      assert.deepEqual(store.takeReadings(), [['answer', 'incoming', 'question', 'sent']]);
      assert.equal(node.answers.length, 0);
    });
  });

  it('is found when a store that fails is back, which it waits for', async () => {
    const { side, store, node } = begin();
    await side.pass(100);
    store.failing.add('commit').add('open');
    sendText(node, 'well?', { messageId: 'q1', remember: { value: 7 } });
    await side.pass(100);
    const coming = side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    await side.pass(100);
    store.failing.clear();
    await Promise.all([coming, side.pass(60_000)]);
    assert.equal(sentWith(side), 7);
    await side.incoming('6421555123', 'again', { inReplyToId: 'q1' });
    assert.equal(sentWith(side), 7);
  });
});
