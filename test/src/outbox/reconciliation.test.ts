import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import type { FeedEntry, IncomingRecord, RecordOfKind, StatusRecord } from '../../../src/model';
import type { SendHandlerState } from '../../../src/outbox/sender-registrations';
import { MemoryStore } from '../../../src/store/memory';
import { createChanges } from '../../../src/store/store';
import {
  beginReceiving,
  beginSending,
  forever,
  SendingSide,
  type SendingSideOptions,
  type SendTextOptions,
  sendText,
} from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';

const messageId = 'b7c1-mine';
const storeKinds = Object.entries({ memory: MemoryStore, durable: FailingStore });
const status = (from: string, inReplyToId = messageId): RecordOfKind => ({
  kind: 'status',
  record: { messageId: 's1', inReplyToId, from, statusCode: 'SNT', via: 'poll' } as StatusRecord,
});
const reply = (from: string): RecordOfKind => ({
  kind: 'incoming',
  record: { messageId: 'm1', inReplyToId: messageId, from, isReply: true, body: 'yes', via: 'poll' } as IncomingRecord,
});
const entry = (more: Partial<FeedEntry>): FeedEntry => ({ categories: [], fields: {}, ...more });

describe('the search for evidence of a send', () => {
  function observe(side: SendingSide, witness: RecordOfKind): void {
    side.outbox.replies
      .correlationOf(witness)
      .correlate(() => undefined, createChanges())
      .effect();
  }

  function begin(options: SendTextOptions = {}) {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    sendText(node, 'hello', { resolveMs: 60_000, messageId, ...options });
    return { side, node };
  }

  for (const [what, witness, by] of [
    ['a status', status('6421555123'), 'status'],
    ['a reply', reply('+6421555123'), 'reply'],
    ['an outbox record', { kind: 'outbox', record: { messageId, body: 'hello', recipientsList: [] } }, 'outbox'],
  ] satisfies [string, RecordOfKind, string][]) {
    it(`accepts ${what} as evidence`, async () => {
      const { side, node } = begin();
      await side.pass(1_000);
      observe(side, witness);
      await side.pass(0);
      assert.deepEqual(node.ends, ['to 6421555123']);
      const [news] = node.outcomes;
      assert.ok(news && !(news.outcome instanceof SmsError));
      assert.equal(news.outcome.resolvedBy, by);
      assert.equal('statusCode' in news.outcome, false);
      assert.deepEqual(news.outcome.failed, []);
      assert.equal(side.outbox.admin.counts.resolved, 1);
      assert.equal(side.clock.timers, 0);
    });
  }

  it('uses evidence that arrived before the send failed', async () => {
    const { side, node } = beginSending();
    side.service.script.push({
      takes: true,
      after: side.clock.advance(0).then(() => observe(side, status('6421555123'))),
      error: createError('uncertain'),
    });
    await side.send(node, 'hello', { resolveMs: 60_000, messageId });
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('reads the feed after 2 s, 10 s, then every 30 s', async () => {
    const { side, node } = begin({ resolveMs: 75_000 });
    const reads: number[] = [];
    for (const ms of [1_900, 200, 7_800, 200, 29_800, 200, 29_800, 200, 4_800, 200]) {
      await side.pass(ms);
      reads.push(side.service.feedReads);
    }
    assert.deepEqual(reads, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
    const [news] = node.outcomes;
    assert.ok(news?.outcome instanceof SmsError);
    assert.equal(news.outcome.code, 'SMS_UNCERTAIN');
    assert.deepEqual(news.outcome.searched, ['feed', 'status']);
    assert.equal(news.outcome.messageId, messageId);
  });

  for (const [what, more, isFound, ownId = messageId] of [
    ['the messageId as its id', { id: messageId }, true],
    ['the messageId in its link', { link: `https://sms.example.com/message/${messageId}?x=1` }, true],
    ['the messageId inside one of its `fields`', { fields: { ref: { inner: `out ${messageId}.` } } }, true],
    ['the messageId inside a longer word', { id: `${messageId}0`, link: `x-${messageId}` }, false],
    ['the messageId only in its body', { body: messageId }, false],
    ['a messageId under 8 characters', { id: '1234567' }, false, '1234567'],
  ] as [string, Partial<FeedEntry>, boolean, string?][]) {
    it(`${isFound ? 'uses' : 'ignores'} a feed entry with ${what}`, async () => {
      const { side, node } = begin({ to: ['6421555123', 'nurses'], resolveMs: 5_000, messageId: ownId });
      side.service.feed.entries.push(entry(more));
      await side.pass(6_000);
      assert.deepEqual(node.ends, [isFound ? 'to 6421555123 nurses' : 'SMS_UNCERTAIN']);
    });
  }

  it('uses a status only for the recipient that it names', async () => {
    const { side, node } = begin({ to: ['6421555123', '6421555124', '6421555125'], resolveMs: 20_000 });
    await side.pass(1_000);
    observe(side, status('6421555124'));
    await side.pass(15_000);
    assert.deepEqual(node.ends, []);
    observe(side, status('6421555123'));
    observe(side, status('6421555999'));
    observe(side, status('6421555125', 'another'));
    await side.pass(5_000);
    assert.deepEqual(node.ends, ['to 6421555123 6421555124']);
  });

  it('accepts the status of any handset if the recipient is a group', async () => {
    const { side, node } = begin({ to: ['nurses'] });
    await side.pass(100);
    observe(side, status('6421555999'));
    await side.pass(100);
    assert.deepEqual(node.ends, ['to nurses']);
  });

  it('does not start if the flow set no messageId', async () => {
    const { side, node } = begin({ messageId: undefined });
    await side.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
    assert.equal(side.service.feedReads, 0);
  });

  it('leads to a retry only if it finds nothing', async () => {
    for (const keep of [undefined, forever]) {
      const { side, node } = begin({ resolveMs: 5_000, retryUncertain: true, retries: 3, keep });
      await side.pass(4_900);
      assert.equal(side.service.tries, 1);
      await side.pass(5_000);
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.equal(side.service.tries, 2);
    }
  });

  it('ends 7 s after the node closes', async () => {
    for (const [what, ends] of [
      [status('6421555123'), ['to 6421555123']],
      [undefined, ['SMS_UNCERTAIN']],
    ] as const) {
      const { side, node } = begin({ retries: 1, retryUncertain: true });
      await side.pass(1_000);
      let isClosed = false;
      void node.node.close().then(() => {
        isClosed = true;
      });
      await side.pass(6_000);
      assert.deepEqual([node.ends, isClosed], [[], false]);
      if (what) observe(side, what);
      await side.pass(1_000);
      assert.deepEqual([node.ends, isClosed, side.service.tries], [ends, true, 1]);
    }
  });

  it('reads the feed again after a failed read', async () => {
    const { side, node } = begin({ resolveMs: 15_000 });
    side.service.feed.entries.push(entry({ id: messageId }));
    side.service.feedAfter = Promise.reject(createError('unreachable'));
    side.service.feedAfter.catch(() => {});
    await side.pass(5_000);
    assert.deepEqual([side.service.feedReads, node.ends], [1, []]);
    side.service.feedAfter = Promise.resolve();
    await side.pass(6_000);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('shares each read of the feed among 200 messages', async () => {
    const { side, node } = beginSending({ concurrency: 200 });
    side.service.otherwise = { takes: true, error: createError('uncertain') };
    for (let index = 0; index < 200; index++)
      sendText(node, 'hello', { resolveMs: 5_000, messageId: `message-${index}` });
    await side.pass(6_000);
    assert.equal(node.ends.length, 200);
    assert.equal(side.service.feedReads, 2);
  });

  it('does not delay other messages', async () => {
    const { side, node } = beginSending({ concurrency: 1 });
    side.service.script.push({ error: createError('uncertain') });
    sendText(node, '1', { resolveMs: 60_000, messageId });
    await side.send(node, '2');
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  describe('while it runs', () => {
    const shown = (side: SendingSide, { state }: { state: SendHandlerState | undefined }) => {
      const { inFlight, waiting, kept, uncertain } = side.outbox.admin.state;
      const listed = side.outbox.admin.entries('kept', { limit: 1 }).total;
      return { badge: [state?.sending, state?.waiting], inFlight, waiting, kept, uncertain, listed };
    };
    const searching = { badge: [1, 0], inFlight: 1, waiting: 0, kept: 0, uncertain: 0, listed: 0 };
    const ended = { ...searching, badge: [0, 0], inFlight: 0 };

    for (const [what, options, uncertain] of [
      ['a message without `keep`', {}, 0],
      ['a message with `keep`', { keep: forever }, 1],
      ['a message with `once`', { once: 'key' }, 1],
    ] as const) {
      it(`shows ${what} as being sent`, async () => {
        const { side, node } = begin({ ...options, resolveMs: 30_000 });
        await side.pass(1_000);
        assert.deepEqual(shown(side, node), searching);
        await side.pass(60_000);
        assert.deepEqual([node.ends, shown(side, node)], [['SMS_UNCERTAIN'], { ...ended, uncertain }]);
      });
    }

    it('ends when the account closes', async () => {
      const next = await crash();
      const node = next.attach();
      await next.pass(1_000);
      assert.deepEqual(shown(next, node), searching);
      await Promise.all([next.close(), next.pass(100)]);
      assert.equal(next.outbox.admin.state.inFlight, 0);
    });
  });

  /** Sends a message, crashes the process, and starts the next process. The feed shows the message. */
  async function crash(options: SendingSideOptions = {}): Promise<SendingSide> {
    const side = new SendingSide(options);
    side.service.holdNext();
    sendText(side.attach(), 'hello', { keep: forever, resolveMs: 60_000, messageId });
    await side.pass(100);
    side.service.feed.entries.push(entry({ id: messageId }));
    return side.restart();
  }

  it('uses evidence that arrived before a crash', async () => {
    const { side, node } = beginReceiving();
    side.service.holdNext();
    await side.send(node, 'hello', { keep: forever, resolveMs: 60_000, messageId });
    await side.status('6421555123', 'SNT', messageId);
    const { next, back } = side.crash();
    await next.pass(1_000);
    const [news] = back.outcomes;
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.equal(news && !(news.outcome instanceof SmsError) && news.outcome.resolvedBy, 'status');
    await next.close();
    const keys = [...(next.options.store as FailingStore).disk.remembered.keys()];
    assert.deepEqual(
      keys.filter((key) => key.startsWith('evidence:')),
      [],
    );
  });

  it('resumes before a sending node is deployed', async () => {
    const next = await crash({ isAsker: true });
    next.receive();
    await next.pass(1_000);
    const back = next.attach();
    await next.pass(2_000);
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.equal(next.service.bodies.length, 1);
  });

  it('does not resume until a node can read the feed', async () => {
    const next = await crash();
    next.receive();
    await next.pass(1_000);
    await next.close();
    const back = next.attach();
    await next.pass(2_000);
    assert.deepEqual(back.ends, ['to 6421555123']);
  });

  /** Closes the account while it searches for evidence. The feed contains the evidence. */
  async function redeploy(store: FailingStore | MemoryStore, retryUncertain: boolean) {
    const side = new SendingSide({ store });
    const old = side.attach('second');
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(old, 'hello', { keep: forever, resolveMs: 60_000, messageId, retryUncertain }, 1_000);
    side.service.feed = { format: 'ATOM', account: {}, entries: [entry({ id: messageId })] };
    await side.close();
    old.client.readFeed = () => Promise.reject(new Error('closed'));
    return side;
  }

  for (const [storeName, Store] of storeKinds) {
    describe(`after a redeploy with a ${storeName} store`, () => {
      for (const retryUncertain of [false, true]) {
        it(`still finds evidence${retryUncertain ? ' if retryUncertain is set' : ''}`, async () => {
          const side = await redeploy(new Store(), retryUncertain);
          // Attaches only receiving nodes, so that the store opens before a sending node exists.
          side.receive();
          await side.pass(100);
          side.attach('first');
          const node = side.attach('second');
          await side.pass(3 * 60_000);
          assert.deepEqual(side.service.bodies, ['hello']);
          const [news, ...others] = node.outcomes;
          assert.ok(news && !(news.outcome instanceof SmsError) && others.length === 0);
          assert.equal(news.outcome.resolvedBy, 'feed');
        });
      }

      for (const when of ['before', 'during'] as const) {
        it(`reports an error that arrived ${when} the redeploy`, async () => {
          const side = new SendingSide({ store: new Store() });
          const error = createError('serverError').with({ statusCode: 500, errorMessage: 'Oh' });
          const answer = side.service.holdNext({ error });
          sendText(side.attach(), 'hello', { keep: forever, resolveMs: 60_000, messageId });
          await side.pass(100);
          if (when === 'before') answer();
          await side.pass(100);
          await side.closeInFlight(answer);
          const node = side.attach();
          await side.pass(59_000);
          assert.deepEqual(node.ends, []);
          await side.pass(60_000);
          const outcome = node.outcomes[0]?.outcome;
          assert.ok(outcome instanceof SmsError);
          assert.deepEqual(outcome.toJSON(), error.with({ messageId, searched: ['feed', 'status'] }).toJSON());
        });
      }
    });
  }
});
