import assert from 'node:assert/strict';
import { unsweptPrefix } from '../../../src/store/store';
import { answersOf, beginAsking, beginReceiving, copyDisk, forever } from '../sending/sending-side';
import type { FailingStore } from '../store/failing-store';

const hour = 3_600_000;

describe('a reply request', () => {
  it('repeats the outcome, then the reply, after a crash', async () => {
    const { side, node } = beginReceiving();
    node.isFlowing = false;
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, keep: forever });
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    const { next, back } = side.crash();
    const repeatOutcome = back.onOutcome.bind(back);
    back.onOutcome = async (news) => {
      assert.deepEqual(back.answers, []);
      await new Promise<void>((resolve) => void next.clock.after(1_000, resolve));
      return repeatOutcome(news);
    };
    await next.pass(10_000);
    assert.deepEqual([back.ends, answersOf(back)], [['to 6421555123 again'], ['6421555123: yes again']]);
  });

  it('is dropped 7 days after its deadline if its node is missing', async () => {
    const { side, node, store } = await beginAsking();
    await Promise.all([node.node.close(), side.pass(0)]);
    side.attach('other');
    await side.pass(2 * hour);
    const disk = copyDisk(store.disk);
    await side.pass(7 * 24 * hour);
    assert.deepEqual([side.outbox.isSettled, store.disk.entries.size], [true, 0]);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(answersOf(back), []);
    const next = side.restart(disk);
    next.attach('other');
    await next.pass(10_000);
    const late = next.attach();
    await next.pass(100);
    assert.deepEqual(answersOf(late), ['6421555123: timeout again']);
  });

  for (const [kind, more] of [
    ['a small flow message', {}],
    ['a large flow message', { keep: forever, flowMessage: 'x'.repeat(5_000) }],
  ] as const) {
    it(`keeps ${kind} during 400 days of downtime`, async () => {
      const { side } = await beginAsking({ reportMs: hour, ...more });
      const { next, back } = await side.crashFor(400 * 24 * hour);
      await next.pass(61_000);
      assert.deepEqual(answersOf(back), ['6421555123: timeout']);
      const flowMessage = 'flowMessage' in more ? more.flowMessage : '{"payload":"Come?"}';
      assert.deepEqual(
        [...back.answers, ...back.reports].map((news) => news.flowMessage),
        [flowMessage, flowMessage],
      );
      const flowMessages = [...(next.store as FailingStore).disk.remembered.keys()].filter((key) =>
        key.startsWith(unsweptPrefix),
      );
      assert.deepEqual(flowMessages, [], 'nothing would ever sweep it');
    });
  }

  it('redelivers its reply after a crash', async () => {
    const { side, node } = await beginAsking();
    node.isFlowing = false;
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    const { next, back } = side.crash();
    await next.pass(100);
    assert.deepEqual(answersOf(back), ['6421555123: yes again']);
  });

  it('times out after a restart only when all replies have been read', async () => {
    const { side } = await beginAsking({ to: ['6421555123', '6421555124'] });
    const { next, back } = await side.crashFor(2 * hour);
    next.receive();
    await next.pass(10_000);
    assert.deepEqual(answersOf(back), []);
    await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    next.outbox.replies.onDrained('incoming');
    await next.pass(100);
    assert.deepEqual(answersOf(back), ['6421555123: yes', '6421555124: timeout']);
  });

  it('is preferred to an older request although the clock moved back', async () => {
    const { side, node } = beginReceiving();
    await side.send(node, 'Open the gate?', { messageId: 'q1', waitMs: hour });
    side.clock.set(-hour);
    await side.send(node, 'Stop the pump?', { messageId: 'q2', waitMs: hour });
    for (const body of ['yes', 'no']) await side.incoming('6421555123', body);
    assert.deepEqual(
      node.answers.map(({ messageId }, index) => [messageId, node.replies[index]]),
      [
        ['q2', 'yes'],
        ['q1', 'no'],
      ],
    );
  });
});
