import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import type { IncomingRecord } from '../../../src/model';
import { answersOf, beginReceiving, copyPlatter, forever, House, sendText } from '../sending/sending-house';
import { createError } from '../some-error';
import { FailingServer, FailingStore } from '../store/failing-store';

const hour = 3_600_000;
const [a, b] = ['6421555123', '6421555124'] as const;
const keep = forever;

/** Questions whose text was not accepted, or not yet. */
describe('who was not asked', () => {
  /** What the last message that was received answers, and whether it was awaited. */
  const lastOf = (house: House) => {
    const { sent, awaited } = house.received.at(-1) as IncomingRecord;
    return [sent?.messageId, awaited];
  };

  const questionsIn = ({ platter }: FailingStore) =>
    platter.items.filter((item) => 'kind' in item && item.kind === 'question').length;

  const unavailable = () => new SmsError('serverError', { statusCode: 503, params: { status: 503 } });
  const outages = { 503: unavailable, 401: () => createError('unauthorized'), unreachable: undefined };

  for (const [name, create] of Object.entries(outages)) {
    describe(`while its text waits for the end of an outage (${name})`, () => {
      async function wait() {
        const surroundings = beginReceiving();
        const { house, node } = surroundings;
        sendText(node, 'Q1?', { messageId: 'q1', waitMs: hour, keep });
        await house.pass(100);
        house.service.otherwise = create ? { error: create() } : { unreachable: true };
        sendText(node, 'Q2?', { messageId: 'q2', waitMs: hour, keep: { expireMs: 600_000 } });
        await house.pass(100);
        return surroundings;
      }

      it('a message without an id answers the question before', async () => {
        const { house, node } = await wait();
        assert.equal(house.outbox.admin.state.asking, 1);
        await house.incoming(a, 'yes');
        assert.deepEqual([lastOf(house), answersOf(node)], [['q1', true], [`${a}: yes`]]);
        await house.pass(2 * hour);
        assert.deepEqual(node.ends, [`to ${a}`, 'SMS_EXPIRED']);
        assert.deepEqual(answersOf(node), [`${a}: yes`]);
      });

      it('and its own once it has been sent', async () => {
        const { house, node } = await wait();
        house.service.otherwise = { takes: true };
        await house.pass(hour / 2);
        await house.incoming(a, 'yes');
        await house.incoming(a, 'to the first');
        assert.deepEqual(answersOf(node), [`${a}: yes`, `${a}: to the first`]);
        assert.equal(house.outbox.admin.state.asking, 0);
      });
    });
  }

  for (const [name, retryUncertain, error] of [
    ['waits for the end of an outage', false, unavailable()],
    ['waits to be sent again', true, createError('uncertain')],
  ] as const) {
    it(`nobody when a text is discarded that ${name}`, async () => {
      const { house, node, store } = beginReceiving();
      house.service.otherwise = { error };
      sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, keep, retryUncertain });
      await house.pass(100);
      const [entry] = house.outbox.admin.entries('kept', 10).entries;
      assert.equal(await house.outbox.admin.act(entry?.id ?? '', 'discard'), 'done');
      await house.pass(100);
      assert.deepEqual([house.outbox.admin.state.asking, house.asking, questionsIn(store)], [0, false, 0]);
      await house.incoming(a, 'something else');
      assert.equal(lastOf(house)[1], undefined);
    });
  }

  it('a reply that has come all the same is told when its text is discarded', async () => {
    const { house, node } = beginReceiving();
    house.service.otherwise = { error: createError('uncertain') };
    sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, keep, retryUncertain: true });
    await house.pass(100);
    await house.incoming(a, 'yes', { inReplyToId: 'q1' });
    const [entry] = house.outbox.admin.entries('kept', 10).entries;
    assert.equal(await house.outbox.admin.act(entry?.id ?? '', 'discard'), 'done');
    await house.pass(100);
    assert.deepEqual(answersOf(node), [`${a}: yes`]);
  });

  it('nobody when the node of a text that waits is gone', async () => {
    const { house, node, store } = beginReceiving();
    house.attach('other');
    house.service.otherwise = { error: unavailable() };
    sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, keep: { expireMs: 60_000 } });
    await house.pass(100);
    await node.node.close();
    await house.pass(48 * hour);
    assert.deepEqual([house.abandoned, house.outbox.admin.state.asking, questionsIn(store)], [['send'], 0, 0]);
  });

  for (const [name, options] of Object.entries({ 'only sent': {}, kept: { keep }, 'with a key': { once: 'key' } })) {
    it(`a reply to a text (${name}) whose outcome turns out to be unknown follows it`, async () => {
      const { house, node, store } = beginReceiving();
      const fail = house.service.holdNext({ error: createError('uncertain') });
      sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, ...options });
      await house.pass(100);
      await house.incoming(a, 'yes', { inReplyToId: 'q1' });
      fail();
      await house.pass(100);
      assert.deepEqual([node.ends, answersOf(node)], [['SMS_UNCERTAIN'], [`${a}: yes`]]);
      assert.deepEqual([house.outbox.admin.state.asking, questionsIn(store)], [0, 0]);
    });
  }

  it('and after a crash between the two', async () => {
    const { house, node, store } = beginReceiving();
    house.service.holdNext();
    sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, keep });
    await house.pass(100);
    await house.incoming(a, 'yes', { inReplyToId: 'q1' });
    const next = house.restart(copyPlatter(store.platter));
    const back = next.attach();
    await next.pass(1_000);
    assert.deepEqual([back.ends, answersOf(back)], [['SMS_UNCERTAIN'], [`${a}: yes`]]);
  });

  for (const Store of [FailingStore, FailingServer]) {
    it(`whoever a crash has left out, in a ${Store.name}`, async () => {
      const { house, node, store } = beginReceiving(new Store());
      sendText(node, 'Q1?', { messageId: 'q1', waitMs: hour });
      await house.pass(100);
      house.service.holdNext();
      sendText(node, 'Q2?', { messageId: 'q2', waitMs: hour });
      await house.pass(100);
      const next = new House({ ...house.options, clock: house.clock, store: new Store(copyPlatter(store.platter)) });
      next.receive();
      const back = next.attach();
      await next.pass(1_000);
      await next.incoming(a, 'to the second', { inReplyToId: 'q2' });
      assert.deepEqual(lastOf(next), ['q2', undefined]);
      await next.incoming(a, 'yes');
      assert.deepEqual([lastOf(next), answersOf(back)], [['q1', true], [`${a}: yes`]]);
    });
  }

  it('by a text that was in flight, and was refused: a message without an id answers the question before', async () => {
    const { house, node } = beginReceiving();
    sendText(node, 'Q1?', { messageId: 'q1', waitMs: hour });
    await house.pass(100);
    const fail = house.service.holdNext({ error: createError('forbidden') });
    sendText(node, 'Q2?', { messageId: 'q2', waitMs: hour });
    await house.pass(100);
    const arriving = house.incoming(a, 'yes');
    await house.pass(1_000);
    fail();
    await arriving;
    await house.pass(2 * hour);
    assert.deepEqual([node.ends, answersOf(node)], [[`to ${a}`, 'SMS_FORBIDDEN'], [`${a}: yes`]]);
  });

  it('by a text that did not reach the handset: what was sent before counts', async () => {
    for (const messageId of [undefined, 'm2']) {
      const { house, node } = beginReceiving();
      const own = messageId === undefined ? {} : { messageId };
      sendText(node, 'first', { messageId: 'm1', remember: { value: 1 }, to: [b] });
      await house.pass(100);
      house.service.script.push({ takes: true, failed: [{ msisdn: b }] });
      sendText(node, 'second', { remember: { value: 2 }, to: [a, b], ...own });
      await house.pass(100);
      await house.incoming(b, 'hi');
      assert.equal(lastOf(house)[0], 'm1');
      house.service.script.push({ error: createError('forbidden') });
      sendText(node, 'third', { remember: { value: 3 }, to: [a], ...(messageId && { messageId: 'm3' }) });
      await house.pass(100);
      await house.incoming(a, 'hi');
      assert.equal(lastOf(house)[0], messageId ?? 'made-2');
    }
  });

  it('who may have been reached is known by the handset all the same', async () => {
    const { house, node } = beginReceiving();
    house.service.script.push({ error: createError('uncertain') });
    sendText(node, 'first', { messageId: 'm1', remember: { value: 1 } });
    await house.pass(100);
    await house.incoming(a, 'hi');
    assert.deepEqual(lastOf(house), ['m1', undefined]);
  });

  it('a text that asked is known no longer than others, but for its open questions', async () => {
    const house = new House({ sentMs: hour });
    const node = house.attach();
    house.receive();
    sendText(node, 'Q1?', { messageId: 'q1', waitMs: 60_000 });
    sendText(node, 'Q2?', { messageId: 'q2', waitMs: 3 * hour, to: [b] });
    await house.pass(2 * hour);
    await house.incoming(a, 'late', { inReplyToId: 'q1' });
    assert.deepEqual(lastOf(house), [undefined, undefined]);
    await house.incoming(a, 'late');
    assert.deepEqual(lastOf(house), [undefined, undefined]);
    await house.incoming(b, 'in time');
    assert.deepEqual(lastOf(house), ['q2', true]);
    await house.incoming(b, 'more');
    assert.deepEqual(lastOf(house), [undefined, undefined]);
  });

  it('white space around RCV and around a messageId of the service says nothing', async () => {
    const { house, node } = beginReceiving();
    sendText(node, 'Come?', { messageId: 'q1', waitMs: hour });
    await house.pass(100);
    await house.status(a, 'RCV ', 'q1');
    await house.incoming(a, 'yes');
    assert.deepEqual(answersOf(node), [`${a}: yes`]);
    const send = node.client.send.bind(node.client);
    node.client.send = async (...given) => ({ ...(await send(...given)), messageId: ' made ' });
    sendText(node, 'And now?', { waitMs: hour });
    await house.pass(100);
    await house.incoming(a, 'no', { inReplyToId: 'made' });
    assert.deepEqual(answersOf(node), [`${a}: yes`, `${a}: no`]);
  });
});
