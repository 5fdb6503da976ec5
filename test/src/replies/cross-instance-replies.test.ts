import assert from 'node:assert/strict';
import type { IncomingRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { answersOf, beginAsking, forever, SendingSide, type SendTextOptions } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingServer, FakeDisk } from '../store/failing-store';

const handset = '6421555123';
/** Interval at which an instance collects the replies that other instances have read, in ms. */
const collectMs = 500;

describe('a reply at another instance', () => {
  async function ask(options: SendTextOptions = {}) {
    const asking = await beginAsking({ waitMs: 60_100, keep: forever, ...options }, new FailingServer());
    const { side, store } = asking;
    /** Lets another instance read a reply. Returns whether a reply request waited for this reply. */
    const replyElsewhere = async (body: string): Promise<boolean | undefined> => {
      const disk = new FakeDisk();
      for (const [key, value] of store.disk.remembered) disk.remembered.set(key, value);
      const clock = new VirtualClock(side.clock.now());
      const other = new SendingSide({ clock, store: new FailingServer(disk) });
      other.receive();
      await other.incoming(handset, body, { inReplyToId: 'q1' });
      for (const [key, value] of disk.remembered) store.disk.remembered.set(key, value);
      return (other.received.at(-1) as IncomingRecord).awaited;
    };
    return { ...asking, replyElsewhere };
  }

  it('ends the reply request once', async () => {
    const { side, node, store, replyElsewhere } = await ask();
    assert.deepEqual([await replyElsewhere('yes'), await replyElsewhere('or no')], [true, undefined]);
    await side.pass(collectMs);
    assert.deepEqual(answersOf(node), [`${handset}: yes`]);
    const keys = [...store.disk.remembered.keys()];
    assert.deepEqual(
      keys.filter((key) => key.startsWith('reply:')),
      [],
    );
    await side.pass(60_100);
    assert.deepEqual([answersOf(node).length, side.outbox.isSettled], [1, true]);
  });

  it('ends the reply request if it arrives just before the deadline', async () => {
    const { side, node, replyElsewhere } = await ask();
    await side.pass(59_950);
    await replyElsewhere('yes');
    await side.pass(100);
    assert.deepEqual(answersOf(node), [`${handset}: yes`]);
  });

  it('closes the reply request even if a retry reopens it', async () => {
    const { side, store, replyElsewhere } = await ask();
    const openRequests = [...store.disk.remembered].filter(([key]) => key.startsWith('request:'));
    await replyElsewhere('yes');
    for (const [key, value] of openRequests) store.disk.remembered.set(key, value);
    await side.pass(collectMs);
    assert.equal(await replyElsewhere('or no'), undefined);
  });

  it('ends the reply request even if the message is accepted later', async () => {
    const { side, node, store, replyElsewhere } = await ask({ messageId: 'q0' });
    const accept = side.service.holdNext();
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: 60_000, keep: forever });
    await replyElsewhere('yes');
    const compared = new Set<string>();
    store.beforeCommit = ({ compare }) => {
      for (const key of compare) compared.add(key.replace(/:.*/, ''));
    };
    accept();
    await side.pass(10);
    assert.ok(compared.has('reply'), 'the commit fails if another instance reads a reply at the same time');
    assert.equal(await replyElsewhere('or no'), undefined);
    await side.pass(collectMs);
    assert.deepEqual(answersOf(node), [`${handset}: yes`]);
  });

  it('ends the reply request although a user discards the message', async () => {
    const { side, node, replyElsewhere } = await ask({ messageId: 'q0', waitMs: 1 });
    side.service.otherwise = { error: createError('uncertain') };
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: 60_000, keep: forever, retryUncertain: true });
    node.answers.length = 0;
    assert.equal(await replyElsewhere('yes'), true);
    assert.equal(await side.act('kept', 'discard'), 'done');
    await side.pass(100);
    assert.deepEqual(answersOf(node), [`${handset}: yes`]);
  });

  it('causes only one second message if it is unclear', async () => {
    const again = { message: { to: [], body: 'YES or NO?' }, encoding: 'GSM-7', parts: 1 } as const;
    const { side, node, replyElsewhere } = await ask({ answers: [{ value: 'YES', words: ['yes'] }], again });
    for (const body of ['who?', 'what?']) {
      assert.equal(await replyElsewhere(body), true);
      await side.pass(collectMs);
      assert.deepEqual(side.service.bodies, ['Come?', 'YES or NO?']);
    }
    await side.pass(60_100);
    assert.deepEqual(node.replies, ['unclear']);
  });
});
