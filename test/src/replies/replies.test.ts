import assert from 'node:assert/strict';
import type { IncomingRecord } from '../../../src/model';
import { unsweptPrefix } from '../../../src/store/store';
import { settle } from '../../virtual-clock';
import { answersOf, beginAsking, beginReceiving, forever, SendingSide, sendText } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingServer, FailingStore } from '../store/failing-store';

const hour = 3_600_000;

const bodiesOf = (side: SendingSide) => side.received.map(({ body }: Partial<IncomingRecord>) => body);

describe('a reply request', () => {
  it('ends with the first reply although the message is retried', async () => {
    const { side, node } = beginReceiving();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'well?', { messageId: 'asked', waitMs: 60_000, keep: forever, retryUncertain: true }, 10);
    await side.incoming('6421555123', 'first', { inReplyToId: 'asked' });
    const accept = side.service.holdNext();
    await side.pass(2_000);
    await side.incoming('6421555123', 'second', { inReplyToId: 'asked' });
    accept();
    await side.pass(100);
    assert.equal(side.service.tries, 2);
    assert.deepEqual(answersOf(node), ['6421555123: first']);
    assert.deepEqual(
      side.received.map(({ awaited }) => awaited),
      [true, undefined],
    );
  });

  it('reports failing polls unless its node already reports an outage', async () => {
    const { side, node } = beginReceiving();
    const other = side.attach('other');
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
    const fail = () => side.outbox.registrations.onPollFailing('send', createError('serverError'));
    assert.equal(fail(), true);
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { keep: { expireMs: hour } }, 1_000);
    assert.equal(fail(), false);
    assert.deepEqual(
      node.outages.map(({ code, waiting }) => [code, waiting]),
      [
        ['SMS_SERVICE', 0],
        ['SMS_UNREACHABLE', 1],
      ],
    );
    side.outbox.registrations.onPollRecovered(['gone', 'other', 'send']);
    assert.deepEqual([node.recoveries, other.recoveries], [[], ['polling']]);
    assert.equal(side.outbox.registrations.onPollFailing('gone', createError('serverError')), false);
  });

  it('ends for each handset with the first reply or a timeout', async () => {
    const { side, node } = await beginAsking({ to: ['6421555123', '6421555124'] });
    assert.deepEqual([node.state?.awaitingReply, side.needsReplyPoll], [2, true]);
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    await side.incoming('6421555123', 'or no', { inReplyToId: 'q1' });
    assert.deepEqual(answersOf(node), ['6421555123: yes']);
    const [{ result } = assert.fail()] = node.answers;
    assert.equal('reason' in result ? result.reason : result.reply.sent?.body, 'Come?');
    await side.pass(hour);
    assert.deepEqual(answersOf(node), ['6421555123: yes', '6421555124: timeout']);
    assert.deepEqual([node.state?.awaitingReply, side.needsReplyPoll], [0, false]);
    assert.deepEqual(node.answers[1]?.origin, { body: 'Come?' });
    assert.equal(side.outbox.isSettled, true);
  });

  it('ends immediately for a refused recipient', async () => {
    const { side, node } = beginReceiving();
    side.service.script.push({ takes: true, failed: [{ msisdn: '6421555124' }] }, { error: createError('forbidden') });
    sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
    await side.send(node, 'Come?', { messageId: 'q2', waitMs: hour });
    assert.equal(node.state?.awaitingReply, 1);
    await side.pass(hour);
    assert.deepEqual(answersOf(node), ['6421555124: failed', '6421555123: timeout']);
  });

  it('ends only with a reply to its own messageId if 20 requests are open', async () => {
    const { side, node, store } = beginReceiving();
    for (let index = 0; index < 20; index++) sendText(node, 'Come?', { messageId: `q${index}`, waitMs: hour });
    await side.pass(1_000);
    await side.status('6421555123', 'EXP', 'q1');
    for (let index = 2; index < 20; index++) await side.incoming('6421555123', 'yes', { inReplyToId: `q${index}` });
    await side.incoming('6421555123', 'or no', { inReplyToId: 'q2' });
    assert.equal((side.received.at(-1) as IncomingRecord).awaited, undefined);
    await side.pass(hour);
    const yes = Array(18).fill('6421555123: yes');
    assert.deepEqual(answersOf(node), ['6421555123: undelivered EXP', ...yes, '6421555123: timeout']);
    assert.deepEqual(
      [...store.disk.remembered].filter(([key, value]) => key.startsWith('request:') && !value.endsWith(' []')),
      [],
    );
  });

  it('ends if the first final status is not RCV', async () => {
    const { side, node } = await beginAsking();
    await side.status('6421555123', 'SNT', 'q1');
    await side.status('6421555123', 'XYZ', 'q1');
    assert.deepEqual(answersOf(node), []);
    await side.status('6421555123', 'EXP', 'q1');
    assert.deepEqual(answersOf(node), ['6421555123: undelivered EXP']);
  });

  it('ends if a final status arrives together with the acceptance', async () => {
    const { side, node, store } = beginReceiving();
    const accept = side.service.holdNext();
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
    node.isFlowing = false;
    // Makes each commit slow. The status and the acceptance arrive while the store commits another message, so they
    // share the next commit.
    store.turns = 5;
    const other = side.incoming('6421555999', 'hello');
    await settle();
    const status = side.status('6421555123', 'EXP', 'q1');
    accept();
    await Promise.all([other, status]);
    const { next, back } = side.crash();
    await next.pass(hour);
    assert.deepEqual(answersOf(back), ['6421555123: undelivered EXP again']);
  });

  it('ignores statuses after RCV', async () => {
    const { side, node } = await beginAsking();
    await side.status('6421555123', 'RCV', 'q1');
    await side.status('6421555123', 'NRCV', 'q1');
    const { next, back: nextNode } = side.crash();
    next.receive();
    await next.pass(100);
    await next.status('6421555123', 'NRCV', 'q1');
    await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    assert.deepEqual([answersOf(node), answersOf(nextNode)], [[], ['6421555123: yes']]);
  });

  it('ends with a reply from any handset if the recipient is a group', async () => {
    const { side, node } = beginReceiving();
    await side.send(node, 'Who can?', { messageId: 'q1', waitMs: hour, to: ['nurses'] });
    await side.incoming('6421555777', 'me', { inReplyToId: 'q1' });
    await side.incoming('6421555778', 'me too', { inReplyToId: 'q1' });
    assert.deepEqual(answersOf(node), ['nurses: me']);
  });

  describe('with an early reply', () => {
    async function reply<S extends FailingStore>(messageId?: string, store = new FailingStore() as S) {
      const receiving = beginReceiving(store);
      const { side, node } = receiving;
      const accept = side.service.holdNext();
      await side.send(node, 'Come?', { waitMs: hour, ...(messageId === undefined ? undefined : { messageId }) });
      const arriving = side.incoming('6421555123', 'yes');
      await side.pass(10_000);
      assert.equal(side.received.length, 0);
      return { ...receiving, accept, arriving };
    }

    for (const messageId of [undefined, 'q1']) {
      it(`delays the reply until the outcome if the message has ${messageId ? 'a' : 'no'} messageId`, async () => {
        const { side, node, accept, arriving } = await reply(messageId);
        await side.incoming('6421555777', 'somebody else');
        assert.deepEqual(bodiesOf(side), ['somebody else']);
        accept();
        await arriving;
        await side.pass(100);
        assert.deepEqual([node.ends, answersOf(node)], [['to 6421555123'], ['6421555123: yes']]);
        assert.deepEqual(bodiesOf(side), ['somebody else', 'yes']);
      });
    }

    it('lets another instance deliver the reply after a crash', async () => {
      const { side, store } = await reply(undefined, new FailingServer());
      const items = store.disk.items.filter(({ part }) => part !== 'outgoing');
      const server = new FailingServer();
      const later = new SendingSide({ clock: side.clock, store: server });
      later.attach();
      later.receive();
      await later.pass(100);
      assert.ok(items.every(({ subscribers }) => subscribers.some((one) => server.wanted.includes(one))));
      server.takeOver(items);
      await later.pass(100);
      assert.deepEqual([bodiesOf(later), server.disk.items], [['yes'], []]);
    });

    it('treats the reply as an ordinary message after 60 s', async () => {
      const { side, node, accept, arriving } = await reply();
      await side.pass(51_000);
      await arriving;
      assert.deepEqual(bodiesOf(side), ['yes']);
      accept();
      await side.pass(100);
      assert.deepEqual(answersOf(node), []);
    });
  });

  for (const [kind, options] of [
    ['a message without `keep`', {}],
    ['a message with `keep`', { keep: forever }],
    ['a message with `once`', { once: 'key' }],
  ] as const) {
    it(`delivers the outcome of ${kind} before the reply`, async () => {
      const { side, node, store } = beginReceiving();
      let flows = () => {};
      const flowing = new Promise<void>((resolve) => {
        flows = resolve;
      });
      const take = node.onOutcome.bind(node);
      node.onOutcome = (news) => flowing.then(() => take(news));
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, ...options });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await side.pass(1_000);
      assert.deepEqual([node.ends, answersOf(node)], [[], []]);
      flows();
      await side.pass(100);
      assert.deepEqual([node.ends, answersOf(node)], [['to 6421555123'], ['6421555123: yes']]);
      assert.deepEqual([side.outbox.isSettled, store.disk.entries.size], [true, 0]);
    });
  }

  it('keeps no flow message if its message was not accepted', async () => {
    for (const keep of [undefined, forever]) {
      for (const turn of [
        { unreachable: true },
        { error: createError('badRequest') },
        { error: createError('uncertain') },
      ]) {
        const { side, node, store } = beginReceiving();
        side.service.script.push(turn);
        await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, ...(keep && { keep }) }, 8 * 24 * hour);
        const flowMessages = [...store.disk.remembered.keys()].filter((key) => key.startsWith(unsweptPrefix));
        assert.deepEqual(flowMessages, []);
      }
    }
  });

  it('is not opened again for a duplicate message', async () => {
    const { side, node } = beginReceiving();
    for (let time = 0; time < 2; time++) {
      await side.send(node, 'Come?', { once: 'a', messageId: 'q1', waitMs: hour });
    }
    assert.equal(node.state?.awaitingReply, 1);
    await side.pass(hour);
    assert.equal(node.answers.length, 1);
  });

  describe('after `markSent`', () => {
    const [first, second] = ['6421555123', '6421555124'];

    async function begin(isShared = false) {
      const { side, node } = beginReceiving(isShared ? new FailingServer() : new FailingStore());
      const fail = side.service.holdNext({ error: createError('uncertain') });
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: [first, second], keep: forever });
      const markSent = async (from: SendingSide) => {
        await from.act('uncertain', 'markSent');
        await from.pass(100);
      };
      const end = () => {
        fail();
        return side.pass(100);
      };
      return { side, node, markSent, fail: end };
    }

    for (const [what, isBefore, isShared] of [
      ['that came before the send failed', true, false],
      ['that came after the send failed', false, false],
      ['in a shared store', false, true],
    ] as const) {
      it(`ends with a reply ${what}`, async () => {
        const { side, node, markSent, fail } = await begin(isShared);
        const reply = () => side.incoming(first, 'yes', { inReplyToId: 'q1' });
        if (isBefore) await reply();
        await fail();
        if (!isBefore) await reply();
        assert.deepEqual([node.ends, answersOf(node)], [['SMS_UNCERTAIN'], []]);
        // Until a user decides, the reply is an ordinary message.
        const received = side.received as IncomingRecord[];
        assert.deepEqual(
          received.map(({ sent, awaited }) => [sent?.messageId, awaited]),
          [['q1', undefined]],
        );
        await markSent(side);
        assert.deepEqual(node.ends, ['SMS_UNCERTAIN', `to ${first} ${second} again`]);
        assert.deepEqual([answersOf(node), node.state?.awaitingReply], [[`${first}: yes`], 1]);
        await side.incoming(first, 'and more', { inReplyToId: 'q1' });
        await side.pass(hour);
        assert.deepEqual(answersOf(node), [`${first}: yes`, `${second}: timeout`]);
      });
    }

    it('ends with a reply that came before a restart', async () => {
      const { side, markSent, fail } = await begin();
      await fail();
      await side.incoming(first, 'yes', { inReplyToId: 'q1' });
      const { next, back } = side.crash();
      await next.pass(100);
      await markSent(next);
      await next.pass(2 * hour);
      assert.deepEqual(answersOf(back), [`${first}: yes`, `${second}: timeout`]);
    });

    it('ends with a final status that came before `markSent`', async () => {
      const { side, node, markSent, fail } = await begin();
      await fail();
      await side.status(first, 'EXP', 'q1');
      await markSent(side);
      assert.deepEqual(answersOf(node), [`${first}: undelivered EXP`]);
    });
  });

  it('is resumed for 3,000 handsets without blocking the event loop', async () => {
    const { side, node } = beginReceiving();
    const to = Array.from({ length: 3_000 }, (_, index) => `64215${String(index).padStart(6, '0')}`);
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to });
    const next = side.restart();
    const seen = new Set<number>();
    const nextTurn = next.clock.nextTurn.bind(next.clock);
    next.clock.nextTurn = (callback) => {
      seen.add(next.outbox.admin.state.awaitingReply);
      return nextTurn(callback);
    };
    const back = next.attach();
    await next.pass(1_000);
    assert.ok([...seen].some((asking) => asking > 0 && asking < 3_000));
    assert.equal(back.state?.awaitingReply, 3_000);
    await next.pass(2 * hour);
    assert.equal(new Set(back.answers.map(({ recipient }) => recipient)).size, 3_000);
    assert.ok(back.replies.every((answer) => answer === 'timeout'));
  });
});
