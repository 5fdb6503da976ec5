import assert from 'node:assert/strict';
import type { Remembered } from '../../../src/store/store';
import { beginReceiving, copyDisk, forever, type SendingSide } from '../sending/sending-side';
import { FailingServer, FailingStore } from '../store/failing-store';

/** A shared store that records each read as a list of key prefixes, such as `handset`. */
class ReadStore extends FailingServer {
  readonly readings: string[][] = [];

  override recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    this.readings.push(keys.map((key) => key.replace(/:.*/, '')).sort());
    return super.recall(keys);
  }
}

const sentWith = ({ received }: SendingSide) =>
  (received.at(-1)?.sent as { remembered?: unknown } | undefined)?.remembered;

describe('the lookup of remembered messages', () => {
  it('finds a message of another instance in at most two reads', async () => {
    const { side, store } = beginReceiving(new ReadStore());
    await side.pass(100);
    const other = beginReceiving(new ReadStore());
    for (const value of [7, 8])
      await other.side.send(other.node, 'well?', { messageId: `q${value}`, remember: { value } });
    for (const [key, text] of other.store.disk.remembered) store.disk.remembered.set(key, text);
    store.readings.length = 0;
    await side.incoming('6421555123', 'yes');
    assert.equal(sentWith(side), 8);
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q7' });
    assert.equal(sentWith(side), 7);
    await side.status('6421555123', 'RCV', 'q7');
    assert.equal(sentWith(side), 7);
    assert.deepEqual(store.readings, [
      ['handset', 'incoming'],
      ['sent'],
      ['incoming', 'request', 'sent'],
      ['request', 'sent', 'status', 'statuses'],
    ]);
  });

  for (const remember of [undefined, { value: 7 }]) {
    const title = remember
      ? 'waits for a failing store if a message was remembered'
      : 'does not wait for a failing store if nothing was remembered';
    it(title, async () => {
      const before = beginReceiving();
      const options = { messageId: 'q1', ...(remember && { remember }), keep: forever };
      await before.side.send(before.node, 'well?', options);
      const { side, store } = beginReceiving(new FailingStore(copyDisk(before.store.disk)));
      await side.pass(100);
      store.failing.add('commit').add('open');
      const arriving = side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await side.pass(100);
      assert.equal(side.received.length, remember ? 0 : 1);
      store.failing.clear();
      await Promise.all([arriving, side.pass(60_000)]);
      assert.equal(sentWith(side), remember?.value);
    });
  }
});
