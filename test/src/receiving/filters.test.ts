import assert from 'node:assert/strict';
import { PollSubscription } from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord, IncomingRecord, Kind } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { createInboxOn } from '../inbox/inbox-on';
import { FailingServer, FailingStore } from '../store/failing-store';

const messageDate = '2026-03-01T10:00:00.123Z';

/** Returns the filter `new` of `sms-in`. */
const isNew = (record: InboxRecord) => !(record as IncomingRecord).isReply;

const settled = { undelivered: 0, unhandled: 0 };

/** A node, and the bodies that reached its flow. */
interface Listener {
  sent: string[];
  /** Stops the node, as a deployment does. */
  stop(): void;
}

for (const [name, createStore] of [
  ['disk', () => new FailingStore()],
  ['Redis', () => new FailingServer()],
] as const) {
  describe(`a message that every filter leaves out (store: ${name})`, () => {
    let clock: VirtualClock;
    let inbox: Inbox;
    /** Makes the outcome known for which the record "held back" waits. The record might answer that message. */
    let settleOutcome = () => {};

    beforeEach(() => {
      clock = new VirtualClock();
      const outcome = new Promise<void>((resolve) => {
        settleOutcome = resolve;
      });
      inbox = createInboxOn({
        store: createStore(),
        clock,
        correlator: ({ record }) => ({
          mayAnswer: false,
          keys: [],
          ...(record.messageId === 'held back' && { outcome }),
          correlate: () => ({ record, effect() {} }),
        }),
      });
    });
    afterEach(() => inbox.journal.close());

    function listen(
      wants: (record: InboxRecord) => boolean,
      id = 'in',
      kind: Kind = 'incoming',
      arrives = true,
    ): Listener {
      const sent: string[] = [];
      const subscription = new PollSubscription(inbox, kind, {
        id,
        wants,
        acknowledge: 'auto',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        send: async ({ record }) => sent.push(String(record.body)) > 0 && arrives,
        onUndelivered: () => {},
      });
      return { sent, stop: () => subscription.detach() };
    }

    function serve(): { sent: string[]; queries: unknown[]; call(id: string | undefined): Promise<void> } {
      const sent: string[] = [];
      const queries: unknown[] = [];
      const address = { node: 'callback', path: '/sms' };
      new PollSubscription(inbox, 'callback', {
        id: address.node,
        path: address.path,
        acknowledge: 'auto',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        send: async ({ record }) => queries.push(record.query) > 0 && sent.push(String(record.body)) > 0,
        onUndelivered: () => {},
      });
      return {
        sent,
        queries,
        async call(messageId) {
          const record = { ...createReply(messageId), via: 'callback' as const, query: { id: '7' } };
          const accepting = inbox.accept({ kind: 'incoming', via: 'callback', records: [record], address });
          await Promise.all([accepting, clock.advance(30)]);
        },
      };
    }

    function createReply(messageId: string | undefined): IncomingRecord {
      const body = 'yes';
      return { ...(messageId && { messageId }), from: '6421555001', body, messageDate, isReply: true, via: 'poll' };
    }

    async function poll(messageId: string | undefined = 'm1'): Promise<string[]> {
      const accepting = inbox.accept({ kind: 'incoming', via: 'poll', records: [createReply(messageId)] });
      await clock.advance(30);
      return accepting;
    }

    for (const [how, messageId] of [
      ['by its messageId', 'm1'],
      ['by sender, body and date', undefined],
    ] as const) {
      it(`goes to the callback node once, recognised ${how}`, async () => {
        const [polling, called] = [listen(isNew), serve()];
        assert.deepEqual(await poll(), ['new']);
        await called.call(messageId);
        await called.call(messageId);
        assert.deepEqual([polling.sent, called.sent], [[], ['yes']]);
        assert.notDeepEqual(await poll(), ['new']);
        assert.equal(inbox.state.undelivered, 0);
      });
    }

    it('goes to a callback node that receives it at the same moment', async () => {
      const [polling, called] = [listen(isNew), serve()];
      await Promise.all([poll(), called.call('m1')]);
      assert.deepEqual([polling.sent, called.sent], [[], ['yes']]);
    });

    it('counts as repeated if the service returns it again', async () => {
      listen(isNew);
      assert.deepEqual(await poll(), ['new']);
      for (const _ of [1, 2]) assert.deepEqual(await poll(), ['repeated']);
    });

    for (const [how, id] of [
      ['with another filter', 'in'],
      ['with another id', 'other'],
    ] as const) {
      it(`goes to a node ${how} that a deployment adds`, async () => {
        const before = listen(isNew);
        await clock.advance(30);
        before.stop();
        await poll();
        const after = listen(() => true, id);
        await clock.advance(30);
        assert.deepEqual([before.sent, after.sent, inbox.state.undelivered], [[], ['yes'], 0]);
      });
    }

    it('goes to the callback node if the deployment adds the filter', async () => {
      const called = serve();
      const before = listen(() => true);
      await clock.advance(30);
      before.stop();
      await poll();
      const after = listen(isNew);
      await clock.advance(30);
      assert.equal(inbox.state.undelivered, 0);
      await called.call('m1');
      assert.notDeepEqual(await poll(), ['new']);
      assert.deepEqual([before.sent, after.sent, called.sent], [[], [], ['yes']]);
    });

    it('goes to the polling node if the service calls back during its redeploy', async () => {
      const called = serve();
      const before = listen(() => true);
      await clock.advance(30);
      before.stop();
      await poll();
      await called.call('m1');
      const after = listen(() => true);
      await clock.advance(30);
      await called.call('m1');
      assert.deepEqual([after.sent, called.sent], [['yes'], []]);
    });

    for (const [what, addFilter] of [
      ['adds a filter', () => void listen(isNew)],
      ['removes the polling node', () => void listen(isNew, 'in', 'status')],
    ] as const) {
      it(`goes to the callback node called before a deployment ${what}`, async () => {
        const called = serve();
        const before = listen(() => true, 'in', 'incoming', false);
        await poll();
        await called.call('m1');
        assert.deepEqual([before.sent, called.sent], [['yes'], []]);
        before.stop();
        addFilter();
        await clock.advance(30);
        assert.deepEqual([called.sent, called.queries, inbox.state], [['yes'], [{ id: '7' }], settled]);
      });
    }

    it('goes to the callback node called before the awaited outcome was known', async () => {
      const called = serve();
      const before = listen(() => true);
      await poll('held back');
      await called.call('held back');
      before.stop();
      listen(isNew);
      await clock.advance(30);
      assert.deepEqual([before.sent, called.sent], [[], []]);
      settleOutcome();
      await clock.advance(30);
      assert.deepEqual([before.sent, called.sent, inbox.state], [[], ['yes'], settled]);
    });

    it('goes only to a polling node whose filter accepts it', async () => {
      const [some, all, called] = [listen(isNew), listen(() => true, 'all'), serve()];
      await poll();
      await called.call('m1');
      assert.deepEqual([some.sent, all.sent, called.sent], [[], ['yes'], []]);
    });
  });
}
