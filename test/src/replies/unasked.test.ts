import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import type { IncomingRecord } from '../../../src/model';
import {
  answersOf,
  beginReceiving,
  beginSending,
  copyDisk,
  forever,
  SendingSide,
  sendText,
} from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingServer, FailingStore } from '../store/failing-store';

const hour = 3_600_000;
const [a, b] = ['6421555123', '6421555124'] as const;
const keep = forever;
const unavailable = new SmsError('serverError', { statusCode: 503, params: { status: 503 } });

/** Tests replies to messages that the service has not accepted yet, or never accepts. */
describe('a reply', () => {
  /** For the last received message: the message that it answers, and whether a reply request waited for it. */
  const lastOf = (side: SendingSide) => {
    const { sent, awaited } = side.received.at(-1) as IncomingRecord;
    return [sent?.messageId, awaited];
  };

  const requestsIn = ({ disk }: FailingStore) =>
    disk.items.filter((item) => 'kind' in item && item.kind === 'replyRequest').length;

  it('does not match a message that still waits in an outage', async () => {
    const { side, node } = beginReceiving();
    await side.send(node, 'Q1?', { messageId: 'q1', waitMs: hour, keep });
    side.service.otherwise = { error: unavailable };
    await side.send(node, 'Q2?', { messageId: 'q2', waitMs: hour, keep: { expireMs: 600_000 } });
    assert.equal(side.outbox.admin.state.awaitingReply, 1);
    await side.incoming(a, 'yes');
    assert.deepEqual([lastOf(side), answersOf(node)], [['q1', true], [`${a}: yes`]]);
    await side.pass(2 * hour);
    assert.deepEqual(node.ends, [`to ${a}`, 'SMS_EXPIRED']);
    assert.deepEqual(answersOf(node), [`${a}: yes`]);
  });

  for (const [name, retryUncertain, error] of [
    ['during an outage', false, unavailable],
    ['before a retry', true, createError('uncertain')],
  ] as const) {
    it(`is not \`awaited\` if the message was discarded ${name}`, async () => {
      const { side, node, store } = beginReceiving();
      side.service.otherwise = { error };
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, keep, retryUncertain });
      assert.equal(await side.act('kept', 'discard'), 'done');
      await side.pass(100);
      assert.deepEqual([side.outbox.admin.state.awaitingReply, side.needsReplyPoll, requestsIn(store)], [0, false, 0]);
      await side.incoming(a, 'something else');
      assert.equal(lastOf(side)[1], undefined);
    });
  }

  it('is delivered even if a user then discards the message', async () => {
    const { side, node } = beginReceiving();
    side.service.otherwise = { error: createError('uncertain') };
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, keep, retryUncertain: true });
    await side.incoming(a, 'yes', { inReplyToId: 'q1' });
    assert.equal(await side.act('kept', 'discard'), 'done');
    await side.pass(100);
    assert.deepEqual(answersOf(node), [`${a}: yes`]);
  });

  for (const [storeName, Store] of Object.entries({ durable: FailingStore, shared: FailingServer })) {
    it(`matches a message in a ${storeName} store after a crash`, async () => {
      const { side, node, store } = beginReceiving(new Store());
      await side.send(node, 'Q1?', { messageId: 'q1', waitMs: hour });
      side.service.holdNext();
      await side.send(node, 'Q2?', { messageId: 'q2', waitMs: hour });
      const next = new SendingSide({ ...side.options, clock: side.clock, store: new Store(copyDisk(store.disk)) });
      next.receive();
      const back = next.attach();
      await next.pass(1_000);
      await next.incoming(a, 'to the second', { inReplyToId: 'q2' });
      assert.deepEqual(lastOf(next), ['q2', undefined]);
      await next.incoming(a, 'yes');
      assert.deepEqual([lastOf(next), answersOf(back)], [['q1', true], [`${a}: yes`]]);
    });
  }

  it('does not match a message that did not reach the handset', async () => {
    for (const messageId of [undefined, 'm2']) {
      const { side, node } = beginReceiving();
      const own = messageId === undefined ? {} : { messageId };
      await side.send(node, 'first', { messageId: 'm1', remember: { value: 1 }, to: [b] });
      side.service.script.push({ takes: true, failed: [{ msisdn: b }] });
      await side.send(node, 'second', { remember: { value: 2 }, to: [a, b], ...own });
      await side.incoming(b, 'hi');
      assert.equal(lastOf(side)[0], 'm1');
      side.service.script.push({ error: createError('forbidden') });
      await side.send(node, 'third', { remember: { value: 3 }, to: [a], ...(messageId && { messageId: 'm3' }) });
      await side.incoming(a, 'hi');
      assert.equal(lastOf(side)[0], messageId ?? 'made-2');
    }
  });

  it('matches an old message only while its reply request is open', async () => {
    const { side, node } = beginSending({ sentMs: hour });
    side.receive();
    sendText(node, 'Q1?', { messageId: 'q1', waitMs: 60_000 });
    await side.send(node, 'Q2?', { messageId: 'q2', waitMs: 3 * hour, to: [b] }, 2 * hour);
    await side.incoming(a, 'late', { inReplyToId: 'q1' });
    assert.deepEqual(lastOf(side), [undefined, undefined]);
    await side.incoming(a, 'late');
    assert.deepEqual(lastOf(side), [undefined, undefined]);
    await side.incoming(b, 'in time');
    assert.deepEqual(lastOf(side), ['q2', true]);
    await side.incoming(b, 'more');
    assert.deepEqual(lastOf(side), [undefined, undefined]);
  });

  it('matches its message despite white space around the messageId', async () => {
    const { side, node } = beginReceiving();
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
    await side.status(a, 'RCV ', 'q1');
    await side.incoming(a, 'yes');
    assert.deepEqual(answersOf(node), [`${a}: yes`]);
    const send = node.client.send.bind(node.client);
    node.client.send = async (...given) => ({ ...(await send(...given)), messageId: ' made ' });
    await side.send(node, 'And now?', { waitMs: hour });
    await side.incoming(a, 'no', { inReplyToId: 'made' });
    assert.deepEqual(answersOf(node), [`${a}: yes`, `${a}: no`]);
  });
});
