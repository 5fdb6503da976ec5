import assert from 'node:assert/strict';
import {
  answersOf,
  beginReceiving,
  beginSending,
  type FakeNode,
  forever,
  type SendTextOptions,
} from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';

const hour = 3_600_000;

/** Payload and handsets of each report. */
function reportsOf({ reports }: FakeNode): string[] {
  return reports.map(({ report: { result, delivered, undelivered, pending }, redelivered }) => {
    const failed = undelivered.map(({ msisdn, statusCode }) => `${statusCode} ${msisdn}`);
    const all = [delivered.join(' '), failed.join(' '), pending.join(' ')].join(' | ');
    return `${result}: ${all}${redelivered ? ' again' : ''}`;
  });
}

describe('a delivery report', () => {
  const [first, second] = ['6421555001', '6421555002'] as const;

  async function begin({ store = new FailingStore(), ...options }: SendTextOptions & { store?: FailingStore } = {}) {
    const receiving = beginReceiving(store);
    await receiving.side.send(receiving.node, 'hello', {
      messageId: 'm1',
      to: [first, second],
      reportMs: hour,
      ...options,
    });
    return receiving;
  }

  it('is sent when all accepted recipients have a final status', async () => {
    const { side, node } = await begin();
    assert.deepEqual(
      [side.outbox.admin.state.awaitingReport, side.needsStatusPoll, side.needsReplyPoll],
      [1, true, false],
    );
    await side.status(first, 'SNT', 'm1');
    await side.status(first, 'RCV', 'm1');
    assert.deepEqual(reportsOf(node), []);
    await side.status(`+${second}`, 'RCV', 'm1');
    await side.status(second, 'EXP', 'm1');
    await side.pass(2 * hour);
    assert.deepEqual(node.reports, [
      {
        messageId: 'm1',
        report: { result: 'delivered', delivered: [first, second], undelivered: [], pending: [] },
        redelivered: false,
        origin: { body: 'hello' },
      },
    ]);
    assert.deepEqual(
      [side.outbox.admin.state.awaitingReport, side.needsStatusPoll, side.outbox.isSettled],
      [0, false, true],
    );
    assert.equal(side.outbox.hasMessages, false);
    assert.equal(node.state?.awaitingReply, 0);
  });

  it('distinguishes the results `undelivered` and `partly`', async () => {
    const { side, node } = await begin();
    await side.send(node, 'hello', { messageId: 'm2', to: [first, second], reportMs: hour });
    for (const id of ['m1', 'm2']) await side.status(first, 'EXP', id);
    await side.status(second, 'NUR', 'm1');
    await side.status(second, 'RCV', 'm2');
    assert.deepEqual(reportsOf(node), [
      `undelivered:  | EXP ${first} NUR ${second} | `,
      `partly: ${second} | EXP ${first} | `,
    ]);
    assert.deepEqual(node.reports[1]?.report.undelivered, [
      { msisdn: first, statusCode: 'EXP', description: 'not delivered within the allowed time' },
    ]);
  });

  it('has the result `unknown` after its deadline', async () => {
    const { side, node } = await begin();
    await side.status(first, 'RCV', 'm1');
    await side.pass(hour - 200);
    assert.deepEqual(reportsOf(node), []);
    await side.pass(200);
    assert.deepEqual(reportsOf(node), [`unknown: ${first} |  | ${second}`]);
  });

  it('counts the first final status of each recipient', async () => {
    const { side, node } = await begin();
    await side.status(first, 'QUE', 'm1');
    await side.status(first, 'EXP', 'm1');
    await side.status(first, 'RCV', 'm1');
    await side.status(second, 'RCV', 'm1');
    assert.deepEqual(reportsOf(node), [`partly: ${second} | EXP ${first} | `]);
  });

  for (const error of ['forbidden', 'uncertain'] as const) {
    it(`is not sent after SMS_${error.toUpperCase()}`, async () => {
      const { side, node } = beginReceiving();
      side.service.script.push({ takes: true, error: createError(error) });
      await side.send(node, 'hello', { messageId: 'm1', reportMs: hour });
      assert.deepEqual([node.ends.length, side.outbox.admin.state.awaitingReport, side.needsStatusPoll], [1, 0, false]);
      await side.status('6421555123', 'RCV', 'm1');
      await side.pass(hour);
      assert.deepEqual([reportsOf(node), side.outbox.hasMessages], [[], false]);
    });
  }

  describe('for one recipient', () => {
    it('counts a status that came before the outcome', async () => {
      const { side, node } = beginReceiving();
      const accept = side.service.holdNext();
      await side.send(node, 'hello', { messageId: 'm1', to: [first], reportMs: hour });
      await side.status(first, 'RCV', 'm1');
      assert.deepEqual([node.ends, reportsOf(node)], [[], []]);
      accept();
      await side.pass(100);
      assert.deepEqual([node.ends, reportsOf(node)], [[`to ${first}`], [`delivered: ${first} |  | `]]);
    });

    it('counts a status with a messageId that the service created', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'hello', { to: [first], reportMs: hour });
      await side.status(first, 'RCV', 'made-1');
      assert.deepEqual(reportsOf(node), [`delivered: ${first} |  | `]);
      assert.equal(node.reports[0]?.messageId, 'made-1');
    });

    it('ignores statuses of an earlier message with the same messageId', async () => {
      const { side, node } = await begin({ to: [first] });
      await side.status(first, 'EXP', 'm1');
      await side.send(node, 'hello again', { messageId: 'm1', to: [first], reportMs: hour });
      assert.equal(node.reports.length, 1);
      await side.status(first, 'RCV', 'm1');
      assert.deepEqual(reportsOf(node), [`undelivered:  | EXP ${first} | `, `delivered: ${first} |  | `]);
    });

    it('prevents its statuses from becoming unhandled messages', async () => {
      const { side, node } = beginSending();
      await side.send(node, 'hello', { messageId: 'm1', to: [first], reportMs: hour });
      await side.status(first, 'SNT', 'm1');
      await side.status(first, 'RCV', 'm1');
      assert.deepEqual([node.reports.length, side.inbox.state], [1, { undelivered: 0, unhandled: 0 }]);
      await side.status(first, 'RCV', 'other');
      assert.deepEqual(side.inbox.state, { undelivered: 0, unhandled: 1 });
    });
  });

  describe('for a group', () => {
    it('lists the group as pending even if handsets have a status', async () => {
      const { side, node } = await begin({ to: ['nurses', first] });
      await side.status('6421555777', 'RCV', 'm1');
      await side.status(first, 'RCV', 'm1');
      await side.status('6421555778', 'EXP', 'm1');
      assert.deepEqual(reportsOf(node), []);
      await side.pass(hour);
      assert.deepEqual(reportsOf(node), [`unknown: ${first} 6421555777 | EXP 6421555778 | nurses`]);
    });

    it('ignores statuses of an earlier message with the same messageId', async () => {
      const { side, node } = await begin({ to: [first, second] });
      await side.status(first, 'RCV', 'm1');
      await side.send(node, 'hello again', { messageId: 'm1', to: ['nurses'], reportMs: hour });
      await side.status(second, 'RCV', 'm1');
      assert.deepEqual(reportsOf(node), [`delivered: ${first} ${second} |  | `]);
    });
  });

  describe('after a restart', () => {
    it('counts statuses from before and after the restart', async () => {
      const { side, node } = await begin();
      await side.status(first, 'RCV', 'm1');
      const { next, back } = side.crash();
      next.receive();
      await next.pass(100);
      assert.equal(next.needsStatusPoll, true);
      await next.status(second, 'RCV', 'm1');
      assert.deepEqual(reportsOf(node), []);
      assert.deepEqual(reportsOf(back), [`delivered: ${first} ${second} |  | `]);
      assert.deepEqual(back.reports[0]?.flowMessage, JSON.stringify({ payload: 'hello' }));
    });

    it('is redelivered if it had not entered the flow', async () => {
      const { side, node } = await begin({ to: [first] });
      node.isFlowing = false;
      await side.status(first, 'RCV', 'm1');
      const { next, back } = side.crash();
      await next.pass(100);
      assert.deepEqual(reportsOf(back), [`delivered: ${first} |  |  again`]);
    });

    it('is not sent before the account has read all statuses', async () => {
      const { side } = await begin();
      const { next, back } = await side.crashFor(2 * hour);
      next.receive();
      await next.pass(10_000);
      next.outbox.replies.onDrained('incoming');
      await next.pass(100);
      assert.deepEqual(reportsOf(back), []);
      await next.status(first, 'RCV', 'm1');
      next.outbox.replies.onDrained('status');
      await next.pass(100);
      assert.deepEqual(reportsOf(back), [`unknown: ${first} |  | ${second}`]);
    });
  });

  it('is sent in addition to the replies', async () => {
    const { side, node } = await begin({ waitMs: hour });
    assert.deepEqual([side.needsReplyPoll, side.needsStatusPoll], [true, true]);
    await side.incoming(first, 'yes', { inReplyToId: 'm1' });
    await side.status(first, 'RCV', 'm1');
    await side.status(second, 'EXP', 'm1');
    assert.deepEqual(answersOf(node), [`${first}: yes`, `${second}: undelivered EXP`]);
    assert.deepEqual(reportsOf(node), [`partly: ${first} | EXP ${second} | `]);
    assert.deepEqual([side.outbox.hasMessages, side.outbox.isSettled], [false, true]);
  });

  it('is not sent again for a duplicate message', async () => {
    const { side, node } = await begin({ to: [first], once: 'key' });
    await side.send(node, 'hello', { to: [first], once: 'key', reportMs: hour });
    assert.deepEqual([node.ends.length, side.outbox.admin.state.awaitingReport], [2, 1]);
    await side.status(first, 'RCV', 'm1');
    await side.pass(2 * hour);
    assert.equal(node.reports.length, 1);
  });

  it('counts statuses that came before `markSent`', async () => {
    const { side, node } = beginReceiving();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'hello', { messageId: 'm1', to: [first, second], reportMs: hour, keep: forever });
    await side.status(first, 'RCV', 'm1');
    assert.equal(await side.act('uncertain', 'markSent'), 'done');
    await side.pass(100);
    assert.equal(side.outbox.admin.state.awaitingReport, 1);
    await side.status(second, 'RCV', 'm1');
    assert.deepEqual(reportsOf(node), [`delivered: ${first} ${second} |  | `]);
  });
});
