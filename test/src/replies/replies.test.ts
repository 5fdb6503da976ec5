import assert from 'node:assert/strict';
import type { InboxSubscriber } from '../../../src/delivery/subscribers';
import type { InboxRecord, IncomingRecord, SentText } from '../../../src/model';
import type { Text } from '../../../src/outbox/text';
import { createRequests } from '../../../src/replies/reply-steps';
import { sentKeysOf } from '../../../src/replies/sent-index';
import { MemoryStore } from '../../../src/store/memory';
import { unsweptPrefix } from '../../../src/store/store';
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

describe('conversations', () => {
  const bodiesOf = (side: SendingSide) => side.received.map(({ body }: Partial<IncomingRecord>) => body);
  const lastReceived = (side: SendingSide) => side.received.at(-1) as IncomingRecord;

  it('use the first reply, although the message is sent again', async () => {
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

  it('use the first reply if one commit stores it and marks a retry', async () => {
    const { side, node, store } = beginReceiving();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'well?', { messageId: 'asked', waitMs: 60_000, keep: forever, retryUncertain: true }, 10);
    const accept = side.service.holdNext();
    store.turns = 20;
    const arriving = [side.incoming('6421555777', 'occupies the store')];
    await new Promise(setImmediate);
    arriving.push(side.incoming('6421555123', 'first', { inReplyToId: 'asked' }));
    await side.clock.advance(2_000);
    await Promise.all(arriving);
    store.turns = 0;
    await side.pass(1_000);
    assert.equal(side.service.tries, 2);
    const questions = store.disk.items.filter((item) => 'kind' in item && item.kind === 'replyRequest');
    assert.deepEqual(
      questions.map((item) => 'result' in item),
      [true],
      'a crash would bring it back',
    );
    await side.incoming('6421555123', 'second', { inReplyToId: 'asked' });
    accept();
    await side.pass(100);
    assert.deepEqual(answersOf(node), ['6421555123: first']);
    assert.deepEqual(
      side.received.map(({ awaited }) => awaited),
      [undefined, true, undefined],
    );
  });

  it('end both requests of two messages with one messageId', async () => {
    const { side, node } = beginReceiving();
    for (const body of ['well?', 'so?']) {
      await side.send(node, body, { messageId: 'asked', waitMs: 60_000 });
    }
    await side.incoming('6421555123', 'yes', { inReplyToId: 'asked' });
    await side.pass(120_000);
    assert.deepEqual(
      node.answers.map(({ origin }) => origin),
      [{ body: 'so?' }, { body: 'well?' }],
    );
    assert.deepEqual(answersOf(node), ['6421555123: yes', '6421555123: timeout']);
    assert.equal(side.outbox.admin.state.awaitingReply, 0);
  });

  describe('the message that a reply or status answers', () => {
    it('is found by messageId, with its remembered value', async () => {
      const { side, node } = beginReceiving();
      sendText(node, 'Come?', {
        messageId: 'q1',
        remember: { value: { appointment: 7 } },
        to: ['6421555123', 'nurses'],
      });
      await side.pass(100);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      const { sentAt, ...sent } = lastReceived(side).sent ?? assert.fail();
      assert.deepEqual(sent, {
        messageId: 'q1',
        to: ['6421555123', 'nurses'],
        body: 'Come?',
        node: 'send',
        remembered: { appointment: 7 },
        matchedBy: 'messageId',
      });
      assert.equal(sentAt, new Date(Date.UTC(2026, 0, 1)).toISOString());
      assert.equal(lastReceived(side).awaited, undefined);
    });

    it('is found by messageId only for a status', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } });
      await side.status('6421555123', 'RCV', 'q1');
      assert.deepEqual(
        side.received.map(({ sent }) => (sent as SentText | undefined)?.remembered),
        [1],
      );
      await side.status('6421555123', 'RCV', 'default');
      assert.equal(side.received[1]?.sent, undefined);
    });

    for (const inReplyToId of [undefined, 'default', ' ']) {
      it(`is the latest to the handset, with ${inReplyToId === undefined ? 'no' : `the`} inReplyToId ${inReplyToId ?? ''}`, async () => {
        const { side, node } = beginReceiving();
        for (const value of [1, 2]) {
          await side.send(node, `text ${value}`, { remember: { value } }, 1_000);
        }
        await side.incoming('+6421555123', 'yes', inReplyToId === undefined ? {} : { inReplyToId });
        const { sent } = lastReceived(side);
        assert.deepEqual([sent?.remembered, sent?.matchedBy], [2, 'handset']);
      });
    }

    it('is the latest open reply request, if there is one', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'replyRequest', { remember: { value: 'q' }, waitMs: hour }, 1_000);
      await side.send(node, 'news', { remember: { value: 'n' } }, 1_000);
      await side.incoming('6421555123', 'yes');
      assert.equal(lastReceived(side).sent?.remembered, 'q');
      assert.equal(lastReceived(side).awaited, true);
      await side.incoming('6421555123', 'more');
      assert.equal(lastReceived(side).sent?.remembered, 'n');
      assert.equal(lastReceived(side).awaited, undefined);
    });

    it('is not found by another id, another handset, or too late', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'other' });
      assert.equal(lastReceived(side).sent, undefined);
      await side.incoming('6421555999', 'yes');
      assert.equal(lastReceived(side).sent, undefined);
      await side.pass(169 * hour);
      await side.incoming('6421555123', 'late', { inReplyToId: 'q1' });
      assert.equal(lastReceived(side).sent, undefined);
    });

    it('survives a restart', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } }, 1_000);
      const next = side.restart(copyDisk(store.disk));
      next.receive();
      await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.equal(lastReceived(next).sent?.remembered, 1);
    });

    it('is known as soon as a message with a messageId set by the flow leaves', async () => {
      const { side, node } = beginReceiving();
      side.service.script.push({ takes: true, after: new Promise(() => {}) });
      await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.equal(lastReceived(side).sent?.remembered, 1);
    });

    it('is not overridden by a parameter of the service', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Hi', { messageId: 'q1', remember: { value: 1 } });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1', sent: 'forged' } as never);
      assert.equal(lastReceived(side).sent?.remembered, 1);
    });
  });

  describe('reply requests', () => {
    it('report failing polls, unless stored messages report the outage', async () => {
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

    it('end with the first reply of each recipient, or when the time is up', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
      assert.deepEqual([node.state?.awaitingReply, side.asking], [2, true]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await side.incoming('6421555123', 'or no', { inReplyToId: 'q1' });
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
      const [{ result } = assert.fail()] = node.answers;
      assert.equal('reason' in result ? result.reason : result.reply.sent?.body, 'Come?');
      await side.pass(hour);
      assert.deepEqual(answersOf(node), ['6421555123: yes', '6421555124: timeout']);
      assert.deepEqual([node.state?.awaitingReply, side.asking], [0, false]);
      assert.deepEqual(node.answers[1]?.origin, { body: 'Come?' });
      assert.equal(side.outbox.isSettled, true);
    });

    it('end immediately for a failed recipient', async () => {
      const { side, node } = beginReceiving();
      side.service.script.push(
        { takes: true, failed: [{ msisdn: '6421555124' }] },
        { error: createError('forbidden') },
      );
      sendText(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
      await side.send(node, 'Come?', { messageId: 'q2', waitMs: hour });
      assert.equal(node.state?.awaitingReply, 1);
      await side.pass(hour);
      assert.deepEqual(answersOf(node), ['6421555124: failed', '6421555123: timeout']);
    });

    it('end by messageId, even if other requests are open to the handset', async () => {
      const { side, node, store } = beginReceiving();
      for (let index = 0; index < 1_000; index++) sendText(node, 'Come?', { messageId: `q${index}`, waitMs: hour });
      await side.pass(1_000);
      await side.status('6421555123', 'EXP', 'q1');
      for (let index = 2; index < 1_000; index++) {
        await side.incoming('6421555123', `yes ${index}`, { inReplyToId: `q${index}` });
      }
      await side.incoming('6421555123', 'or no', { inReplyToId: 'q2' });
      assert.equal(lastReceived(side).awaited, undefined);
      await side.pass(hour);
      assert.deepEqual(answersOf(node).slice(0, 3), [
        '6421555123: undelivered EXP',
        '6421555123: yes 2',
        '6421555123: yes 3',
      ]);
      assert.deepEqual(answersOf(node).slice(-2), ['6421555123: yes 999', '6421555123: timeout']);
      assert.equal(node.answers.length, 1_000);
      assert.deepEqual(
        [...store.disk.remembered.keys()].filter((key) => key.startsWith('request:')),
        [],
      );
    }).timeout(20_000);

    it('end if the first final status of the handset is not RCV', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await side.status('6421555123', 'SNT', 'q1');
      await side.status('6421555123', 'XYZ', 'q1');
      assert.deepEqual(answersOf(node), []);
      await side.status('6421555123', 'EXP', 'q1');
      assert.deepEqual(answersOf(node), ['6421555123: undelivered EXP']);
    });

    it('do not end by a later status after RCV, also across a restart', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await side.status('6421555123', 'RCV', 'q1');
      await side.status('6421555123', 'NRCV', 'q1');
      const { next, back: nextNode } = side.crash();
      next.receive();
      await next.pass(100);
      await next.status('6421555123', 'NRCV', 'q1');
      await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual([answersOf(node), answersOf(nextNode)], [[], ['6421555123: yes']]);
    });

    it('to a contact or group end with any reply with the messageId', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Who can?', { messageId: 'q1', waitMs: hour, to: ['nurses'] });
      await side.incoming('6421555777', 'me', { inReplyToId: 'q1' });
      await side.incoming('6421555778', 'me too', { inReplyToId: 'q1' });
      assert.deepEqual(answersOf(node), ['nurses: me']);
    });

    it('match by the messageId of the service and by handset', async () => {
      for (const more of [{ inReplyToId: 'made-1' }, {}]) {
        const { side, node } = beginReceiving();
        await side.send(node, 'Come?', { waitMs: hour });
        await side.incoming('6421555123', 'yes', more);
        assert.deepEqual(answersOf(node), ['6421555123: yes']);
      }
    });

    for (const [name, store] of [
      ['disk', new FailingStore()],
      ['Redis', new FailingServer()],
    ] as const) {
      it(`use a reply that no node receives, even if the store failed (${name})`, async () => {
        const { side, node } = beginSending({ store });
        const subscriber: InboxSubscriber = { id: 'in', wants: () => false, take: () => assert.fail() };
        side.inbox.attach('incoming', subscriber);
        await side.send(node, 'Come?', { messageId: 'asked', waitMs: hour });
        store.failing.add('commit').add('open').add('recall');
        const arriving = side.incoming('6421555123', 'yes', { inReplyToId: 'asked' });
        await side.pass(90_000);
        store.failing.clear();
        await side.pass(60_000);
        await arriving;
        await side.pass(10_000);
        assert.deepEqual(answersOf(node), ['6421555123: yes']);
      });
    }

    describe('a reply by handset before the outcome is known', () => {
      async function reply<S extends FailingStore>(messageId?: string, used = new FailingStore() as S) {
        const surroundings = beginReceiving(used);
        const { side, node } = surroundings;
        const accept = side.service.holdNext();
        await side.send(node, 'Come?', { waitMs: hour, ...(messageId === undefined ? undefined : { messageId }) });
        const arriving = side.incoming('6421555123', 'yes');
        await side.pass(10_000);
        assert.equal(side.received.length, 0);
        return { ...surroundings, accept, arriving };
      }

      /** Checks that the account holds the reply back until the service answers, and delivers other messages before. */
      async function assertIsHeldBack(
        { side, node, accept, arriving }: Awaited<ReturnType<typeof reply>>,
        meanwhile = async () => {},
      ): Promise<void> {
        await side.incoming('6421555777', 'somebody else');
        await meanwhile();
        assert.deepEqual(bodiesOf(side), ['somebody else']);
        accept();
        await arriving;
        await side.pass(100);
        assert.deepEqual([node.ends, answersOf(node)], [['to 6421555123'], ['6421555123: yes']]);
        assert.deepEqual(bodiesOf(side), ['somebody else', 'yes']);
      }

      for (const messageId of [undefined, 'q1']) {
        it(`is held back until then, and then used, ${messageId ?? 'without a messageId'}`, async () => {
          await assertIsHeldBack(await reply(messageId));
        });
      }

      for (const [name, store] of [
        ['memory', new MemoryStore()],
        ['disk', new FailingStore()],
        ['Redis', new FailingServer()],
      ] as const) {
        it(`does not stop other polls (store: ${name})`, async () => {
          const side = new SendingSide({ store });
          const accept = side.service.holdNext();
          await side.send(side.attach(), 'Come?', { waitMs: hour });
          const records = [
            { messageId: 'early', from: '6421555123', body: 'yes', isReply: false, via: 'poll' } as const,
          ];
          await Promise.all([side.inbox.accept({ kind: 'incoming', via: 'poll', records }), side.pass(100)]);
          accept();
          await side.pass(100);
          await Promise.all([side.close(), side.pass(1_000)]);
        });
      }

      it('is held back on Redis, and leaves nothing there', async () => {
        const held = await reply(undefined, new FailingServer());
        const { side, store } = held;
        await assertIsHeldBack(held, async () => {
          store.disconnect();
          await side.pass(10_000);
        });
        await side.pass(hour);
        assert.deepEqual(store.disk.items, []);
      });

      it('is claimed by another instance if this one dies', async () => {
        const { side } = await reply(undefined, new FailingServer());
        const left = side.options.store as FailingServer;
        const items = left.disk.items.filter(({ part }) => part !== 'ledger');
        const server = new FailingServer();
        const later = new SendingSide({ clock: side.clock, store: server });
        later.attach();
        later.receive();
        await later.pass(100);
        assert.ok(items.every(({ subscribers }) => subscribers.some((one) => server.wanted.includes(one))));
        server.takeOver(items);
        await later.pass(100);
        assert.deepEqual(bodiesOf(later), ['yes']);
        assert.deepEqual(server.disk.items, []);
      });

      it('is held back if its message is tried again a minute later', async () => {
        const { side, node } = beginReceiving();
        const fail = side.service.holdNext({ error: createError('uncertain') });
        const accept = side.service.holdNext();
        await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, retries: 3, retryUncertain: true }, 61_000);
        fail();
        await side.pass(1_000);
        const arriving = side.incoming('6421555123', 'yes');
        await side.pass(1_000);
        assert.deepEqual(bodiesOf(side), []);
        accept();
        await arriving;
        await side.pass(1_000);
        assert.deepEqual(answersOf(node), ['6421555123: yes']);
      });

      it('is an ordinary message after 60 s', async () => {
        const { side, node, accept, arriving } = await reply();
        await side.pass(51_000);
        await arriving;
        assert.deepEqual(bodiesOf(side), ['yes']);
        accept();
        await side.pass(100);
        assert.deepEqual(answersOf(node), []);
      });

      it('survives a crash', async () => {
        const { side, store } = await reply();
        const left = copyDisk(store.disk);
        for (const text of store.disk.held.values()) left.hold(text);
        const later = side.restart(left);
        later.attach();
        later.receive();
        await later.pass(100);
        assert.deepEqual(bodiesOf(later), ['yes']);
      });
    });

    it('keeps a reply that is written while the acceptance arrives', async () => {
      const { side, node, store } = beginReceiving();
      const accept = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      store.turns = 10;
      const arriving = side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await new Promise(setImmediate);
      accept();
      await arriving;
      for (let turn = 0; turn < 60; turn++) await new Promise(setImmediate);
      await side.pass(100);
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
    });

    it('delivers a reply after the acceptance of the same commit', async () => {
      const { side, node, store } = beginReceiving();
      const accept = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      store.turns = 20;
      const arriving = [side.incoming('6421555777', 'occupies the store')];
      await new Promise(setImmediate);
      accept();
      await new Promise(setImmediate);
      arriving.push(side.incoming('6421555123', 'yes', { inReplyToId: 'q1' }));
      await Promise.all(arriving);
      for (let turn = 0; turn < 60; turn++) await new Promise(setImmediate);
      await side.pass(100);
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
    });

    it('opens a reply request that was made while a shared store failed', async () => {
      const store = Object.assign(new FailingStore(), { shared: true as const });
      const { side, node } = beginReceiving(store);
      await side.pass(100);
      store.failing.add('commit').add('open').add('recall');
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      assert.deepEqual([node.ends, node.state?.awaitingReply], [['to 6421555123'], 1]);
      store.failing.clear();
      await side.pass(60_000);
      assert.equal(node.state?.awaitingReply, 1);
      await side.pass(hour);
      assert.deepEqual(answersOf(node), ['6421555123: timeout']);
    });

    it('ends a reply request only when its end is written', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: 20_000 });
      store.failing.add('commit').add('open');
      await side.pass(60_000);
      assert.deepEqual(answersOf(node), []);
      store.failing.clear();
      await side.pass(10_000);
      assert.deepEqual(answersOf(node), ['6421555123: timeout']);
    });

    it('opens no reply request for a message that was never sent', async () => {
      const { side, node, store } = beginReceiving();
      let connect = () => {};
      const connects = new Promise<void>((resolve) => {
        connect = resolve;
      });
      side.service.script.push({ connects });
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: 20_000, keep: { expireMs: 4_990 } }, 0);
      store.failing.add('commit');
      store.failsAfterwards = true;
      connect();
      await side.pass(10);
      store.failing.clear();
      // The account reopens the store 10 ms after the message expired, when the expiry is not written yet.
      await side.pass(60_000);
      assert.deepEqual([node.ends, side.service.taken.length], [['SMS_EXPIRED'], 0]);
      assert.deepEqual([answersOf(node), node.state?.awaitingReply, store.disk.entries.size], [[], 0, 0]);
    });

    it('opens no reply request for an outcome that became unknown', async () => {
      const { side, node, store } = beginReceiving();
      const fail = side.service.holdNext({ error: createError('uncertain') });
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: 20_000, once: 'key' }, 10);
      const closed = node.node.close();
      void side.outbox.close();
      await Promise.all([side.journal.close(), side.pass(10)]);
      store.failing.add('open');
      const back = side.attach();
      fail();
      await Promise.all([closed, side.pass(100)]);
      store.failing.clear();
      await side.pass(60_000);
      assert.deepEqual([...node.ends, ...back.ends], ['SMS_UNCERTAIN']);
      assert.deepEqual([answersOf(back), back.state?.awaitingReply], [[], 0]);
      assert.deepEqual(
        store.disk.items.map((item) => 'kind' in item && item.kind),
        ['text'],
        'the text alone, which somebody may decide about',
      );
    });

    it('keeps the reply request of a message in flight over a redeploy', async () => {
      const { side, node, store } = beginReceiving();
      const accept = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      void side.outbox.close();
      await side.pass(100);
      const second = side.attach();
      await side.pass(100);
      accept();
      await side.pass(100);
      const restarted = side.restart(copyDisk(store.disk));
      restarted.receive();
      const third = restarted.attach();
      await restarted.pass(100);
      await restarted.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual([node.ends, second.ends], [['to 6421555123'], []]);
      assert.deepEqual(
        third.answers.map(({ flowMessage }) => flowMessage),
        ['{"payload":"Come?"}'],
      );
    });

    it('delivers an early reply after the outcome', async () => {
      const { side, node } = beginReceiving();
      const answer = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual([node.ends, answersOf(node)], [[], []]);
      answer();
      await side.pass(100);
      assert.deepEqual([node.ends, answersOf(node)], [['to 6421555123'], ['6421555123: yes']]);
    });

    for (const [kind, options] of [
      ['a message', {}],
      ['a stored message', { keep: forever }],
      ['a message with a deduplication key', { once: 'key' }],
    ] as const) {
      it(`delivers a reply to ${kind} after its outcome`, async () => {
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

    /** Crashes before the outcome of a stored message and the reply to it enter the flow. */
    async function restartBeforeOutcome(): Promise<SendingSide> {
      const { side, node, store } = beginReceiving();
      node.isFlowing = false;
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, keep: forever });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      return side.restart(copyDisk(store.disk));
    }

    it('delivers a reply after an outcome that is repeated after a crash', async () => {
      const next = await restartBeforeOutcome();
      const order: string[] = [];
      const back = next.attach();
      back.onOutcome = async () => {
        await new Promise<void>((resolve) => void next.clock.after(1_000, resolve));
        order.push('outcome');
        return true;
      };
      back.onAnswer = async () => {
        order.push('answer');
        return true;
      };
      await next.pass(10_000);
      assert.deepEqual(order, ['outcome', 'answer']);
    });

    it('marks a reply and its outcome as redelivered after a crash', async () => {
      const next = await restartBeforeOutcome();
      const back = next.attach();
      await next.pass(100);
      assert.deepEqual([back.ends, answersOf(back)], [['to 6421555123 again'], ['6421555123: yes again']]);
    });

    it('sends a reply or a timeout if both come at the same moment', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      const record = {
        messageId: 'in',
        from: '6421555123',
        body: 'yes',
        inReplyToId: 'q1',
        isReply: true,
        via: 'poll' as const,
      };
      for (const timers of [
        side.clock.advance(hour),
        side.inbox.accept({ kind: 'incoming', via: 'poll', records: [record] }),
      ])
        void timers;
      await side.pass(hour);
      assert.equal(node.answers.length, 1);
    });

    it('waits across a redeploy', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await Promise.all([node.node.close(), side.pass(0)]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      const back = side.attach();
      await side.pass(100);
      assert.deepEqual([answersOf(node), answersOf(back)], [[], ['6421555123: yes']]);
    });

    it('delivers the flow message although the store was closed at the outcome', async () => {
      const { side, node } = beginReceiving();
      const answer = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour }, 10);
      const closed = node.node.close();
      void side.outbox.close();
      await side.journal.close();
      answer();
      await side.pass(100);
      await closed;
      const back = side.attach();
      await side.pass(100);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual(
        back.answers.map(({ origin }) => origin),
        [{ body: 'Come?' }],
      );
    });

    it('closes the store after the last outcome in flight', async () => {
      const { side, node } = beginReceiving();
      const answer = side.service.holdNext();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour }, 10);
      const closed = Promise.all([node.node.close(), side.outbox.close().then(() => side.journal.close())]);
      await side.pass(1_000);
      assert.equal(side.journal.mode, 'open');
      answer();
      await side.pass(100);
      await closed;
      assert.deepEqual([node.ends, side.journal.mode], [['to 6421555123'], 'closed']);
    });

    it('delivers a reply that came during the close after the next open', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await Promise.all([node.node.close(), side.outbox.close()]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await side.journal.close();
      const back = side.attach();
      await side.pass(100);
      assert.deepEqual(
        back.answers.map(({ redelivered }) => redelivered),
        [false],
      );
    });

    it('does not poll for an ended request without its node', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
      side.attach('other');
      await Promise.all([node.node.close(), side.pass(0)]);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual([side.asking, side.outbox.admin.state.awaitingReply], [true, 1]);
      await side.pass(hour);
      assert.deepEqual([side.asking, side.outbox.admin.state.awaitingReply], [false, 0]);
      const next = side.restart(copyDisk(store.disk));
      next.attach('other');
      await next.pass(1_000);
      assert.deepEqual([next.asking, next.outbox.admin.state.awaitingReply], [false, 0]);
      await next.pass(6 * 24 * hour);
      const back = next.attach();
      await next.pass(100);
      assert.deepEqual(answersOf(back), ['6421555123: yes again', '6421555124: timeout again']);
      assert.equal(next.outbox.isSettled, true);
    });

    it('drops a result 7 days after its time if its node is missing', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
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

    it('continues after a crash, with the flow message', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
      const { next, back } = side.crash();
      next.receive();
      await next.pass(100);
      assert.equal(next.asking, true);
      await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      await next.pass(hour);
      assert.deepEqual(answersOf(back), ['6421555123: yes', '6421555124: timeout']);
      assert.deepEqual(
        back.answers.map(({ flowMessage }) => flowMessage),
        ['{"payload":"Come?"}', '{"payload":"Come?"}'],
      );
    });

    for (const [kind, more] of [
      ['a message', {}],
      ['a stored message', { keep: forever }],
      ['a stored message with a large flow message', { keep: forever, flowMessage: 'x'.repeat(5_000) }],
    ] as const) {
      it(`continues after any time: a request and a report of ${kind}`, async () => {
        const { side, node, store } = beginReceiving();
        await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, reportMs: hour, ...more });
        const disk = copyDisk(store.disk);
        await side.clock.advance(400 * 24 * hour);
        const next = side.restart(disk);
        const back = next.attach();
        await next.pass(61_000);
        assert.deepEqual(answersOf(back), ['6421555123: timeout']);
        const flowMessage = 'flowMessage' in more ? more.flowMessage : '{"payload":"Come?"}';
        assert.deepEqual(
          [...back.answers, ...back.reports].map((news) => news.flowMessage),
          [flowMessage, flowMessage],
        );
        const left = [...disk.remembered.keys()].filter((key) => key.startsWith(unsweptPrefix));
        assert.deepEqual(left, [], 'nothing would ever sweep it');
      });
    }

    it('drops the flow message if no reply request opens', async () => {
      for (const keep of [undefined, forever]) {
        for (const turn of [
          { unreachable: true },
          { error: createError('badRequest') },
          { error: createError('uncertain') },
        ]) {
          const { side, node, store } = beginReceiving();
          side.service.script.push(turn);
          await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, ...(keep && { keep }) }, 8 * 24 * hour);
          const left = [...store.disk.remembered.keys()].filter((key) => key.startsWith(unsweptPrefix));
          assert.deepEqual(left, []);
        }
      }
    });

    it('repeats a result after a crash, marked as redelivered', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      node.isFlowing = false;
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      const { next, back } = side.crash();
      await next.pass(100);
      assert.deepEqual(answersOf(back), ['6421555123: yes again']);
    });

    it('reads waiting replies before it ends overdue requests at the start', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: ['6421555123', '6421555124'] });
      const disk = copyDisk(store.disk);
      await side.clock.advance(2 * hour);
      const next = side.restart(disk);
      const back = next.attach();
      next.receive();
      await next.pass(10_000);
      assert.deepEqual(answersOf(back), []);
      await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      next.outbox.replies.onDrained('incoming');
      await next.pass(100);
      assert.deepEqual(answersOf(back), ['6421555123: yes', '6421555124: timeout']);
    });

    it('reads waiting replies also before it ends requests after the start', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: 20_000, to: ['6421555123', '6421555124'] });
      const disk = copyDisk(store.disk);
      await side.clock.advance(15_000);
      const next = side.restart(disk);
      const back = next.attach();
      next.receive();
      await next.send(back, 'And now?', { messageId: 'q2', waitMs: 8_000, to: ['6421555125'] }, 10_000);
      // A reply from before the restart does not answer a reply request from after it.
      assert.deepEqual([answersOf(back), next.asking], [['6421555125: timeout'], true]);
      await next.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      next.outbox.replies.onDrained('incoming');
      await next.pass(100);
      const ends = ['6421555123: yes', '6421555124: timeout', '6421555125: timeout'];
      assert.deepEqual(answersOf(back).sort(), ends);
      await next.send(back, 'Now?', { messageId: 'q3', waitMs: 5_000, to: ['6421555126'] }, 6_000);
      assert.deepEqual(answersOf(back).slice(3), ['6421555126: timeout']);
    });

    it('ends overdue requests after 60 s at the latest', async () => {
      const { side, node, store } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      const disk = copyDisk(store.disk);
      await side.clock.advance(2 * hour);
      const next = side.restart(disk);
      const back = next.attach();
      await next.pass(61_000);
      assert.deepEqual(answersOf(back), ['6421555123: timeout']);
    });

    it('does not end early if the clock is set forward by hours', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      side.clock.set(5 * hour);
      await side.pass(hour / 2);
      assert.deepEqual(answersOf(node), []);
      await side.pass(hour / 2);
      assert.deepEqual(answersOf(node), ['6421555123: timeout']);
    });

    it('matches the latest request even if the clock is set back', async () => {
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

    it('matches a reply if the clock is set forward by days', async () => {
      const { side, node } = beginReceiving();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      side.clock.set(30 * 24 * hour);
      await side.incoming('6421555123', 'yes');
      await side.incoming('6421555123', 'yes, indeed', { inReplyToId: 'q1' });
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
      assert.deepEqual(
        side.received.map((record) => (record as IncomingRecord).sent?.messageId),
        ['q1', 'q1'],
      );
    });

    it('matches a reply if the clock is set forward twice', async () => {
      const { side, node } = beginReceiving();
      for (const id of ['q1', 'q2', 'q3']) {
        await side.send(node, 'Come?', { messageId: id, waitMs: hour });
      }
      for (const [days, id] of [
        [1, 'q1'],
        [5, 'q2'],
      ] as const) {
        await side.pass(hour / 4);
        side.clock.set(days * 24 * hour);
        await side.incoming('6421555123', 'yes', { inReplyToId: id });
      }
      await side.incoming('6421555123', 'and yes');
      assert.deepEqual(answersOf(node), ['6421555123: yes', '6421555123: yes', '6421555123: and yes']);
    });

    it('opens no second request for a duplicate', async () => {
      const { side, node } = beginReceiving();
      for (let time = 0; time < 2; time++) {
        await side.send(node, 'Come?', { once: 'a', messageId: 'q1', waitMs: hour });
      }
      assert.equal(node.state?.awaitingReply, 1);
      await side.pass(hour);
      assert.equal(node.answers.length, 1);
    });

    it('opens after the acceptance or resolution of a stored message', async () => {
      const { side, node } = beginReceiving();
      side.service.script.push({ unreachable: true });
      await side.send(node, 'Come?', { keep: forever, messageId: 'q1', waitMs: hour }, 5_000);
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      side.service.script.push({ takes: true, error: createError('uncertain') });
      await side.send(node, 'Really?', { keep: forever, messageId: 'q2', waitMs: hour, resolveMs: 60_000 }, 1_000);
      await side.incoming('6421555123', 'sure', { inReplyToId: 'q2' });
      await side.pass(100);
      assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
      assert.deepEqual(answersOf(node), ['6421555123: yes', '6421555123: sure']);
    });

    describe('for an unknown outcome that a user decides', () => {
      const [first, second] = ['6421555123', '6421555124'];

      async function begin(isShared = false) {
        const { side, node, store } = beginReceiving(isShared ? new FailingServer() : new FailingStore());
        const fail = side.service.holdNext({ error: createError('uncertain') });
        await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to: [first, second], keep: forever });
        const decide = async (from: SendingSide, action: 'markSent' | 'send' | 'discard') => {
          const [entry] = from.outbox.admin.entries('uncertain', 1).entries;
          await Promise.all([from.outbox.admin.act(entry?.id ?? '', action), from.pass(100)]);
        };
        const end = () => {
          fail();
          return side.pass(100);
        };
        return { side, node, store, decide, fail: end };
      }

      for (const [when, isBefore, isShared] of [
        ['before the error', true, false],
        ['after it', false, false],
        ['after it, in a store that others share', false, true],
      ] as const) {
        it(`delivers a reply ${when} once, and no other end after markSent`, async () => {
          const { side, node, decide, fail } = await begin(isShared);
          const reply = () => side.incoming(first, 'yes', { inReplyToId: 'q1' });
          if (isBefore) await reply();
          await fail();
          if (!isBefore) await reply();
          assert.deepEqual([node.ends, answersOf(node)], [['SMS_UNCERTAIN'], []]);
          // Until a user decides, it is an ordinary message.
          const received = side.received as IncomingRecord[];
          assert.deepEqual(
            received.map(({ sent, awaited }) => [sent?.messageId, awaited]),
            [['q1', undefined]],
          );
          await decide(side, 'markSent');
          assert.deepEqual(node.ends, ['SMS_UNCERTAIN', `to ${first} ${second} again`]);
          assert.deepEqual([answersOf(node), node.state?.awaitingReply], [[`${first}: yes`], 1]);
          await side.incoming(first, 'and more', { inReplyToId: 'q1' });
          await side.pass(hour);
          assert.deepEqual(answersOf(node), [`${first}: yes`, `${second}: timeout`]);
        });

        it(`uses a reply ${when} as the first, although it is sent again`, async () => {
          const { side, node, decide, fail } = await begin(isShared);
          const reply = () => side.incoming(first, 'yes', { inReplyToId: 'q1' });
          if (isBefore) await reply();
          await fail();
          if (!isBefore) await reply();
          await decide(side, 'send');
          await side.incoming(first, 'and more', { inReplyToId: 'q1' });
          await side.pass(hour);
          assert.deepEqual(answersOf(node), [`${first}: yes`, `${second}: timeout`]);
        });
      }

      it('survives a restart', async () => {
        const { side, decide, fail } = await begin();
        await fail();
        await side.incoming(first, 'yes', { inReplyToId: 'q1' });
        const { next, back } = side.crash();
        await next.pass(100);
        await decide(next, 'markSent');
        await next.pass(2 * hour);
        assert.deepEqual(answersOf(back), [`${first}: yes`, `${second}: timeout`]);
      });

      it('opens no request if it is discarded', async () => {
        const { side, node, decide, fail } = await begin();
        await fail();
        assert.deepEqual([side.asking, node.state?.awaitingReply], [false, 0]);
        await side.incoming(first, 'yes', { inReplyToId: 'q1' });
        await decide(side, 'discard');
        await side.incoming(second, 'yes', { inReplyToId: 'q1' });
        await side.pass(2 * hour);
        assert.deepEqual([answersOf(node), side.received.length], [[], 2]);
      });

      it('ends by a final status from before the decision', async () => {
        const { side, node, decide, fail } = await begin();
        await fail();
        await side.status(first, 'EXP', 'q1');
        await decide(side, 'markSent');
        assert.deepEqual(answersOf(node), [`${first}: undelivered EXP`]);
      });
    });

    describe('a reply by callback', () => {
      /** Creates two open reply requests to one handset, and a node that receives callbacks. */
      async function ask() {
        const { side, node } = beginSending();
        for (const messageId of ['q1', 'q2']) {
          await side.send(node, 'Come?', { messageId, waitMs: hour }, 1_000);
        }
        const called: IncomingRecord[] = [];
        const taker: InboxSubscriber = {
          id: 'callback',
          path: '/sms',
          take: (given) => {
            called.push(...given.map(({ entry: { record } }) => record as IncomingRecord));
          },
        };
        side.inbox.attach('callback', taker);
        const record = {
          from: '6421555123',
          body: 'yes',
          messageDate: '2026-11-23T10:00:00Z',
          isReply: false,
        } as const;
        const address = { node: 'callback', path: '/sms' };
        const arrive = async (via: 'poll' | 'callback') => {
          const arrival = { kind: 'incoming', via, records: [{ ...record, via: via as never }] } as const;
          const accepting = side.inbox.accept(via === 'poll' ? arrival : { ...arrival, address });
          await Promise.all([accepting, side.pass(100)]);
        };
        return { side, node, called, taker, arrive };
      }

      const told = (records: readonly InboxRecord[]) =>
        (records as IncomingRecord[]).map(({ sent, awaited }) => [sent?.messageId, awaited]);

      it('ends one request, although the service repeats it', async () => {
        const { node, called, arrive } = await ask();
        for (let time = 0; time < 3; time++) await arrive('callback');
        assert.deepEqual(answersOf(node), ['6421555123: yes']);
        assert.deepEqual(told(called), [['q2', true]]);
      });

      it('is a duplicate for polls of the request', async () => {
        const { side } = await ask();
        const record = { from: '6421555123', body: 'yes', messageId: 'm', isReply: false, via: 'poll' } as const;
        const outcomes: string[] = [];
        for (let time = 0; time < 2; time++) {
          const accepting = side.inbox.accept({ kind: 'incoming', via: 'poll', records: [record] });
          await Promise.all([accepting, side.pass(100)]);
          outcomes.push(...(await accepting));
        }
        assert.deepEqual(outcomes, ['new', 'repeated']);
      });

      it('reaches its node although it was polled for the request', async () => {
        const { side, node, called, taker, arrive } = await ask();
        await arrive('poll');
        assert.deepEqual([answersOf(node), called.length], [['6421555123: yes'], 0]);
        await arrive('callback');
        assert.deepEqual([answersOf(node), told(called)], [['6421555123: yes'], [['q2', true]]]);
        assert.ok(taker);
        assert.equal(side.inbox.state.undelivered, 1);
      });
    });

    it('does not wait for nodes if none receives messages', async () => {
      const { side, node } = beginSending();
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour });
      await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
      assert.deepEqual(answersOf(node), ['6421555123: yes']);
      assert.equal(side.inbox.isSettled, true);
      await side.incoming('6421555123', 'and that');
      assert.equal(side.inbox.isSettled, false);
    });

    it('matches replies without a search of all recipients', () => {
      const to = Array.from({ length: 5_000 }, (_, index) => `6421${1_000_000 + index}`);
      const message = { to, body: 'Come?', messageId: 'q1' };
      const text = { id: 'text', node: 'send', message, options: { waitMs: hour }, subscribers: [] } as unknown as Text;
      const keys = sentKeysOf(text, 'q1', to);
      const asked = createRequests(text, keys, to, []);
      const begun = createRequests(text, keys, to, asked);
      assert.deepEqual(
        [asked, begun].map((questions) => [questions.length, questions.at(-1)?.id, questions.at(-1)?.recipient]),
        [asked, begun].map(() => [5_000, 'text-4999', '64211004999']),
      );
    });

    it('resumes thousands of requests in several turns of the event loop', async () => {
      const { side, node, store } = beginReceiving();
      const to = Array.from({ length: 3_000 }, (_, index) => `64215${String(index).padStart(6, '0')}`);
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to });
      const next = side.restart(copyDisk(store.disk));
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

    it('opens one request for each of a thousand recipients', async () => {
      const { side, node } = beginReceiving();
      const to = Array.from({ length: 1_000 }, (_, index) => `64215${String(index).padStart(6, '0')}`);
      await side.send(node, 'Come?', { messageId: 'q1', waitMs: hour, to });
      for (const msisdn of to.slice(0, 100)) await side.incoming(msisdn, 'yes', { inReplyToId: 'q1' });
      await side.pass(hour);
      assert.equal(answersOf(node).filter((answer) => answer.endsWith('yes')).length, 100);
      assert.equal(answersOf(node).filter((answer) => answer.endsWith('timeout')).length, 900);
      assert.equal(new Set(node.answers.map(({ recipient }) => recipient)).size, 1_000);
    });
  });
});
