import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { MemoryStore } from '../../../src/store/memory';
import { isFlushed, type Store } from '../../../src/store/store';
import { createError } from '../some-error';
import { FailingServer, FailingStore } from '../store/failing-store';
import { beginSending, copyDisk, type FakeNode, forever, SendingSide, sendText } from './sending-side';

const never = new Promise<never>(() => {});
const minuteMs = 60_000;

describe('sending, when several events coincide', () => {
  const keep = forever;

  it('continues an outage after the message that tests the service has expired', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ unreachable: true }, { connects: never });
    await side.send(node, 'first', { keep: { expireMs: minuteMs } }, 10);
    await side.send(node, 'second', { keep }, 2 * minuteMs);
    assert.deepEqual(node.ends, ['SMS_EXPIRED', 'to 6421555123']);
    assert.equal(node.state?.outage, undefined);
  });

  it('does not expire a message that a user sends again', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'hello', { keep: { expireMs: minuteMs } }, 10 * minuteMs);
    assert.equal(await side.act('uncertain', 'send'), 'done');
    await side.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'to 6421555123 again']);
  });

  it('does not report a possibly sent message as expired', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    side.service.otherwise = { unreachable: true };
    sendText(node, 'hello', { keep: { expireMs: minuteMs }, retryUncertain: true, messageId: 'm1', once: 'key' });
    await side.pass(2 * minuteMs);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
    assert.equal(side.outbox.admin.state.uncertain, 1);
    assert.equal(side.outbox.admin.counts.expired, 0);
  });

  describe('a possibly sent message that is not sent again in its time', () => {
    const failed = createError('serverError').with({ statusCode: 500 });
    const errorOf = ({ outcomes }: FakeNode) => {
      const { outcome } = outcomes.at(-1) ?? {};
      return outcome instanceof SmsError ? outcome.toJSON() : undefined;
    };

    for (const resolveMs of [0, 1_000]) {
      it(`has its error${resolveMs === 0 ? '' : ' and the searched places'}, also after a restart`, async () => {
        const store = new FailingStore();
        const side = new SendingSide({ store });
        side.service.script.push({ takes: true, error: failed });
        side.service.otherwise = { unreachable: true };
        const options = { keep: { expireMs: minuteMs }, retryUncertain: true, resolveMs, messageId: 'message-1' };
        const node = side.attach();
        await side.send(node, 'hello', options, 10_000);
        const disk = copyDisk(store.disk);
        await side.pass(minuteMs);
        const back = side.restart(disk).attach();
        await side.pass(minuteMs);
        const searched = resolveMs === 0 ? {} : { searched: ['feed', 'status'] };
        const { code, message } = failed;
        const expected = { code, message, statusCode: 500, messageId: 'message-1', ...searched };
        assert.deepEqual([errorOf(node), errorOf(back)], [expected, expected]);
      });
    }

    it('has its former error after a resend by a user', async () => {
      const { side, node } = beginSending();
      side.service.script.push({ takes: true, error: failed });
      side.service.otherwise = { unreachable: true };
      await side.send(node, 'hello', { keep: { expireMs: minuteMs } });
      const before = errorOf(node);
      assert.equal(await side.act('uncertain', 'send'), 'done');
      await side.pass(2 * minuteMs);
      assert.deepEqual(node.ends, ['SMS_SERVICE', 'SMS_SERVICE again']);
      assert.deepEqual(errorOf(node), before);
    });
  });

  it('does not expire it after a search and an unsent retry', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { retries: 1, retryUncertain: true, resolveMs: 1_000, messageId: 'm1' }, minuteMs);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
  });

  it('keeps the message of a node that throws, and continues with other nodes', async () => {
    const side = new SendingSide();
    const [bad, good] = [side.attach('bad'), side.attach('good')];
    bad.fault = new Error('made to fail');
    sendText(bad, 'kept', { keep });
    sendText(bad, 'plain');
    sendText(bad, 'asked', { keep, waitMs: minuteMs, messageId: 'm1' });
    await side.send(good, 'good', { keep }, 1_000);
    assert.deepEqual(good.ends, ['to 6421555123']);
    assert.deepEqual(side.faults, Array(3).fill(bad.fault));
    const next = side.attach('bad');
    await side.pass(100);
    assert.deepEqual(next.ends, ['to 6421555123', 'to 6421555123']);
    next.fault = bad.fault;
    await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
    assert.equal(side.faults.length, 4);
    const last = side.attach('bad');
    await side.pass(100);
    assert.equal(last.answers.length, 1);
  });

  it('does not poll for reply requests without their node', async () => {
    const { side, node } = beginSending({ store: new MemoryStore() });
    await side.send(node, 'well?', { keep, waitMs: minuteMs });
    assert.equal(side.asking, true);
    const closed = side.close();
    await side.pass(100);
    await closed;
    assert.equal(side.asking, false);
    const next = side.attach();
    assert.equal(side.asking, true);
    await side.incoming('6421555123', 'yes');
    assert.equal(next.answers.length, 1);
    assert.equal(side.asking, false);
  });

  it('sends waiting messages once if the store fails and recovers', async () => {
    const { store, side, node } = beginSending({ concurrency: 2 });
    side.service.otherwise = { unreachable: true };
    for (let n = 0; n < 20; n++) sendText(node, String(n), { keep, once: String(n) });
    await side.pass(1_000);
    store.failing.add('commit').add('recall').add('open');
    side.service.otherwise = { takes: true };
    await side.pass(minuteMs);
    await side.send(node, 'new', { keep }, minuteMs);
    assert.deepEqual([side.service.taken.length, node.ends], [0, ['SMS_STORE']]);
    store.failing.clear();
    await side.pass(2 * minuteMs);
    assert.equal(new Set(side.service.bodies).size, 20);
    assert.equal(side.service.taken.length, 20);
    assert.equal(node.ends.length, 21);
    assert.equal(node.state?.outage, undefined);
    assert.equal(store.disk.entries.size, 0);
  });

  it('delivers an outcome once while the store fails', async () => {
    const { store, side, node } = beginSending();
    let answer = () => {};
    side.service.script.push({ takes: true, after: new Promise<void>((resolve) => (answer = resolve)) });
    await side.send(node, 'hello', { keep, waitMs: minuteMs, messageId: 'm1' });
    store.failing.add('commit').add('open');
    answer();
    await side.pass(minuteMs / 2);
    assert.deepEqual(node.ends, ['to 6421555123']);
    store.failing.clear();
    await side.pass(minuteMs);
    assert.deepEqual(
      node.answers.map(({ result }) => 'reason' in result && result.reason),
      ['timeout'],
    );
    assert.equal(node.ends.length, 1);
    assert.equal(store.disk.entries.size, 0);
  });

  for (const kept of [{}, { keep }]) {
    it(`does not wait for the feed when a node closes${kept.keep ? ', nor does the account' : ''}`, async () => {
      const { side, node } = beginSending();
      side.service.feedAfter = never;
      side.service.script.push({ takes: true, error: createError('uncertain') });
      await side.send(node, 'hello', { ...kept, resolveMs: minuteMs, messageId: 'message-1' }, 5_000);
      assert.equal(side.service.feedReads, 1);
      let isClosed = false;
      void side.close().then(() => {
        isClosed = true;
      });
      await side.pass(10_000);
      assert.equal(isClosed, true);
    });
  }

  describe('a user who decides about a message', () => {
    const actOnFirst = (side: SendingSide, state: 'kept' | 'uncertain', action: 'send' | 'discard') => {
      const [entry] = side.outbox.admin.entries(state, 1).entries;
      return side.outbox.admin.act(entry?.id ?? '', action);
    };

    it('cannot send a message in flight again', async () => {
      const { side, node } = beginSending();
      const connect = side.service.holdConnection();
      await side.send(node, 'hello', { keep });
      assert.equal(await actOnFirst(side, 'kept', 'send'), 'unfit');
      await side.pass(100);
      connect();
      await side.pass(minuteMs);
      assert.deepEqual([node.ends, side.service.tries], [['to 6421555123'], 1]);
    });

    for (const [what, waits] of [
      ['its turn by the pace', { perSecond: 0.1 }],
      ['a free place', { concurrency: 1 }],
    ] as const) {
      it(`sends a message that waits for ${what} before all others`, async () => {
        const { side, node } = beginSending(waits);
        const answer = side.service.holdNext();
        sendText(node, 'first');
        for (const body of ['1', '2']) sendText(node, body, { keep });
        await side.send(node, 'alarm', { keep, priority: 10 });
        const [, second] = side.outbox.admin.entries('kept', 2).entries;
        assert.equal(second?.body, '2');
        assert.equal(await side.outbox.admin.act(second.id, 'send'), 'done');
        answer();
        await side.pass(minuteMs);
        assert.deepEqual(side.service.bodies, ['first', '2', 'alarm', '1']);
      });
    }

    it('sends a paused message before all others', async () => {
      const { side, node } = beginSending({ concurrency: 1 });
      side.service.script.push({ takes: true, error: createError('uncertain') });
      await side.send(node, 'unknown', { keep, retryUncertain: true });
      const answer = side.service.holdNext();
      for (const body of ['1', '2']) sendText(node, body, { keep, priority: 5 });
      await side.pass(100);
      assert.equal(await actOnFirst(side, 'kept', 'send'), 'done');
      answer();
      await side.pass(100);
      assert.deepEqual(side.service.bodies, ['unknown', '1', 'unknown', '2']);
    });

    it('cannot send a message in flight during an outage', async () => {
      const { side, node } = beginSending();
      let give = () => {};
      const connects = new Promise<void>((resolve) => (give = resolve));
      side.service.script.push({ unreachable: true, connects }, { unreachable: true });
      for (const body of ['slow', 'fast']) sendText(node, body, { keep });
      await side.pass(100);
      assert.ok(node.state?.outage);
      assert.equal(await actOnFirst(side, 'kept', 'send'), 'unfit');
      await side.pass(minuteMs);
      assert.deepEqual(side.service.bodies, ['fast']);
      give();
      await side.pass(minuteMs);
      assert.deepEqual(side.service.bodies, ['fast', 'slow']);
      assert.equal(node.ends.length, 2);
    });

    it('cannot send it while evidence is searched', async () => {
      const { side, node } = beginSending();
      const answer = side.service.holdNext({ takes: false, error: createError('uncertain') });
      await side.send(node, 'hello', { keep, messageId: 'id', resolveMs: minuteMs, retryUncertain: true });
      const [entry] = side.outbox.admin.entries('kept', 1).entries;
      answer();
      await side.pass(10_000);
      assert.equal(side.outbox.admin.entries('kept', 1).total, 0);
      for (const action of ['send', 'discard'] as const) {
        assert.equal(await side.outbox.admin.act(entry?.id ?? '', action), 'unfit');
      }
      assert.equal(side.service.tries, 1);
      await side.pass(2 * minuteMs);
      assert.deepEqual(node.ends, ['to 6421555123']);
    });

    describe('resends an unknown message that has only a key', () => {
      /** Lets a user resend an unknown message while the service is unreachable, so that the message waits. */
      async function release() {
        const { store, side, node } = beginSending();
        side.service.script.push({ takes: true, error: createError('uncertain') });
        await side.send(node, 'hello', { once: 'key' });
        side.service.otherwise = { unreachable: true };
        assert.equal(await actOnFirst(side, 'uncertain', 'send'), 'done');
        await side.pass(100);
        assert.equal(side.outbox.admin.entries('kept', 1).total, 1);
        return { side, node, store };
      }

      it('stores it so that it survives a restart', async () => {
        const { side, store } = await release();
        const left = copyDisk(store.disk);
        await Promise.all([side.close(), side.pass(100)]);
        const next = side.restart(left);
        const node = next.attach();
        await next.pass(100);
        assert.equal(next.outbox.admin.entries('kept', 1).total, 1);
        next.service.otherwise = { takes: true };
        await next.pass(2 * minuteMs);
        assert.deepEqual([node.ends, next.service.taken.length], [['to 6421555123 again'], 2]);
      });

      it('keeps it until its node is deployed again', async () => {
        const { side, node } = await release();
        await Promise.all([node.node.close(), side.pass(100)]);
        side.service.otherwise = { takes: true };
        const next = side.attach();
        await side.pass(2 * minuteMs);
        assert.deepEqual([next.ends, side.service.taken.length], [['to 6421555123 again'], 2]);
      });

      it('does not free its key when it is discarded', async () => {
        const { side, node } = await release();
        const discarded = actOnFirst(side, 'kept', 'discard');
        await side.pass(100);
        assert.equal(await discarded, 'done');
        side.service.otherwise = { takes: true };
        await side.send(node, 'hello', { once: 'key' }, 2 * minuteMs);
        assert.equal(side.service.taken.length, 1);
        assert.match(node.ends.at(-1) ?? '', /^SMS_UNCERTAIN/);
      });
    });

    it('counts and discards waiting messages without a sending node', async () => {
      const { side, node } = beginSending({ store: new FailingStore() });
      side.service.otherwise = { unreachable: true };
      for (const body of ['1', '2']) sendText(node, body, { keep });
      await side.pass(100);
      const { failing, ...before } = side.outbox.admin.state;
      assert.equal(failing?.error.code, 'SMS_UNREACHABLE');
      await Promise.all([side.outbox.close(), node.node.close(), side.pass(100)]);
      // The account does not retry, so nothing fails.
      assert.deepEqual(side.outbox.admin.state, before);
      assert.deepEqual([before.kept, before.waiting], [2, 2]);
      assert.equal(await actOnFirst(side, 'kept', 'send'), 'unfit');
      const discarded = actOnFirst(side, 'kept', 'discard');
      await side.pass(100);
      assert.deepEqual([await discarded, side.outbox.admin.state.kept], ['done', 1]);
      side.service.otherwise = { takes: true };
      side.attach();
      await side.pass(2 * minuteMs);
      assert.deepEqual(side.service.bodies, ['2']);
    });

    it('cannot resend an unknown message without its node', async () => {
      const { side, node } = beginSending({ store: new FailingStore() });
      side.service.script.push({ takes: true, error: createError('uncertain') });
      await side.send(node, 'hello', { keep });
      await Promise.all([node.node.close(), side.pass(100)]);
      assert.equal(await actOnFirst(side, 'uncertain', 'send'), 'unfit');
      assert.equal(side.outbox.admin.state.uncertain, 1);
    });

    describe('after an unknown outcome', () => {
      async function hear(
        options: Parameters<typeof sendText>[2],
        store: Store = new FailingStore(),
        onHeard = () => {},
      ) {
        const { side, node } = beginSending({ store });
        const onOutcome = node.onOutcome.bind(node);
        node.onOutcome = (news) => {
          onHeard();
          return onOutcome(news);
        };
        const answer = side.service.holdNext({ error: createError('uncertain') });
        await side.send(node, 'hello', options);
        answer();
        await side.pass(0);
        assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
        return { side, node };
      }
      const total = ({ outbox: { admin } }: SendingSide) => [
        admin.state.uncertain,
        admin.entries('uncertain', 1).total,
      ];

      for (const [what, options] of [
        ['stored', { keep }],
        ['plain with a deduplication key', { once: 'key' }],
      ] as const) {
        it(`sees a message in the list that was ${what}`, async () => {
          const { side } = await hear(options);
          assert.deepEqual(total(side), [1, 1]);
          await side.pass(100);
          assert.deepEqual(total(side), [1, 1]);
        });
      }

      it('sends it again, and sees its outcome', async () => {
        const { side, node } = await hear({ keep });
        const done = actOnFirst(side, 'uncertain', 'send');
        await side.pass(100);
        assert.equal(await done, 'done');
        assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'to 6421555123 again']);
        assert.deepEqual([total(side), side.service.taken.length], [[0, 0], 2]);
      });

      it('discards it for good', async () => {
        const store = new FailingStore();
        const { side, node } = await hear({ keep }, store);
        const done = actOnFirst(side, 'uncertain', 'discard');
        await side.pass(100);
        assert.equal(await done, 'done');
        const { next, back: heir } = side.crash();
        await next.pass(100);
        assert.deepEqual(
          [total(side), total(next)],
          [
            [0, 0],
            [0, 0],
          ],
        );
        assert.deepEqual([node.ends, heir.ends], [['SMS_UNCERTAIN'], []]);
      });

      it('sees it again after a crash, and in the list', async () => {
        const store = new FailingStore();
        let disk = store.disk;
        const { side } = await hear({ keep }, store, () => {
          disk = copyDisk(store.disk);
        });
        const next = side.restart(disk);
        const node = next.attach();
        await next.pass(0);
        assert.deepEqual([node.ends, total(next)], [['SMS_UNCERTAIN again'], [1, 1]]);
      });

      it('sees it in the list while the server reconnects', async () => {
        const server = new FailingServer();
        const { side, node } = beginSending({ store: server });
        let hear = () => {};
        const heard = new Promise<void>((resolve) => (hear = resolve));
        node.onOutcome = () => heard.then(() => true);
        side.service.script.push({ error: createError('uncertain') });
        await side.send(node, 'hello', { keep });
        server.failing.add('commit');
        await side.send(node, 'refused', { keep });
        server.failing.clear();
        server.turns = 500;
        await side.pass(minuteMs);
        assert.ok(side.journal.failure);
        hear();
        server.turns = 0;
        while (!side.journal.isOpen) await side.pass(1_000);
        await side.pass(100);
        assert.deepEqual(total(side), [1, 1]);
      });
    });

    it('sends an unknown message once if two users decide', async () => {
      const { store, side, node } = beginSending();
      side.service.script.push({ error: createError('uncertain') });
      await side.send(node, 'hello', { keep });
      store.turns = 2;
      const first = actOnFirst(side, 'uncertain', 'send');
      await new Promise(setImmediate);
      const others = ['send', 'discard'] as const;
      const second = Promise.all(others.map((action) => actOnFirst(side, 'uncertain', action)));
      await Promise.all([first, second, side.pass(100)]);
      assert.deepEqual([await first, await second], ['done', ['unfit', 'unfit']]);
      await side.pass(100);
      assert.deepEqual([node.ends, side.service.taken.length], [['SMS_UNCERTAIN', 'to 6421555123 again'], 1]);
    });

    it('discards it flushed, or not at all', async () => {
      const { store, side, node } = beginSending();
      side.service.otherwise = { unreachable: true };
      await side.send(node, 'hello', { keep, once: 'key' });
      store.failing.add('commit').add('open');
      await assert.rejects(Promise.all([actOnFirst(side, 'kept', 'discard'), side.pass(100)]), { code: 'SMS_STORE' });
      store.failing.clear();
      await side.pass(2 * minuteMs);
      assert.deepEqual([side.outbox.admin.state.kept, node.discarded], [1, []]);
      const flushed: boolean[] = [];
      const commit = store.commit.bind(store);
      store.commit = (changes) => {
        flushed.push(isFlushed(changes));
        return commit(changes);
      };
      const discarded = actOnFirst(side, 'kept', 'discard');
      await side.pass(100);
      assert.deepEqual([await discarded, flushed, store.disk.entries.size], ['done', [true], 0]);
      side.service.otherwise = { takes: true };
      await side.send(node, 'hello', { keep, once: 'key' }, 2 * minuteMs);
      assert.deepEqual(node.ends, ['to 6421555123']);
    });

    it('cannot stop a message while it is being marked as leaving', async () => {
      const { store, side, node } = beginSending();
      await side.pass(100);
      const commit = store.commit.bind(store);
      const marks: Promise<unknown>[] = [];
      store.commit = async (changes) => {
        const marked = [...changes.keep.values()].some((item) => 'state' in item && item.state === 'leaving');
        if (marked) marks.push(actOnFirst(side, 'kept', 'discard'));
        await commit(changes);
      };
      await side.send(node, 'hello', { keep });
      assert.deepEqual([await Promise.all(marks), node.ends], [['unfit'], ['to 6421555123']]);
      assert.deepEqual([node.discarded, store.disk.entries.size], [[], 0]);
    });
  });

  it('sends a message that expires while it is being marked as leaving', async () => {
    const { store, side, node } = beginSending();
    await side.pass(100);
    const commit = store.commit.bind(store);
    store.commit = async (changes) => {
      const marked = [...changes.keep.values()].some((item) => 'state' in item && item.state === 'leaving');
      if (marked) await side.clock.advance(minuteMs);
      await commit(changes);
    };
    await side.send(node, 'hello', { keep: { expireMs: minuteMs } });
    await side.pass(2 * minuteMs);
    assert.deepEqual([node.ends, side.service.bodies], [['to 6421555123'], ['hello']]);
    assert.equal(store.disk.entries.size, 0);
  });

  it('expires a message in flight when it is known to be unsent', async () => {
    const side = new SendingSide();
    const [node, other] = [side.attach(), side.attach('other')];
    const answer = side.service.holdNext({ takes: false, error: createError('serverError').with({ statusCode: 503 }) });
    side.service.otherwise = { connects: never };
    sendText(node, 'hello', { keep: { expireMs: minuteMs } });
    await side.send(other, 'tries', { keep }, 2 * minuteMs);
    answer();
    await side.pass(10);
    assert.deepEqual([node.ends, node.state?.waiting], [['SMS_EXPIRED'], 0]);
  });

  for (const [place, Emptied] of [
    ['an emptied server', FailingServer],
    ['a deleted folder', FailingStore],
  ] as const)
    for (const failures of [0, 1, 3])
      it(`stores items again that ${place} has lost, after ${failures} failures`, () =>
        loseAll(new Emptied(), failures));

  async function loseAll(store: FailingStore, failures: number): Promise<void> {
    const open = store.open.bind(store);
    let isReset = false;
    store.open = async (events) => {
      const leftovers = { ...(await open(events)), isReset };
      isReset = false;
      return leftovers;
    };
    const side = new SendingSide({ store });
    side.receive();
    const node = side.attach();
    await side.send(node, 'Come?', { messageId: 'q1', waitMs: 60 * minuteMs });
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'kept', { keep });
    store.disk.entries.clear();
    store.disk.remembered.clear();
    // The store has lost its connection too, so the next commits fail.
    const commit = store.commit.bind(store);
    let left = failures + 1;
    store.commit = (...changes) => (left-- > 0 ? Promise.reject(new Error('full')) : commit(...changes));
    isReset = true;
    // A possible reply waits for the store.
    await Promise.all([side.incoming('6421555999', 'something else'), side.pass(minuteMs)]);
    assert.equal(side.journal.failure, undefined);
    assert.deepEqual(store.disk.items.map((item) => 'kind' in item && item.kind).sort(), ['replyRequest', 'text']);
    side.service.otherwise = { takes: true };
    await side.pass(10 * minuteMs);
    await side.incoming('6421555123', 'yes', { inReplyToId: 'q1' });
    await side.pass(60 * minuteMs);
    assert.deepEqual([node.ends, node.replies], [['to 6421555123', 'to 6421555123'], ['timeout']]);
    assert.deepEqual([side.outbox.isSettled, store.disk.entries.size], [true, 0]);
  }
});
