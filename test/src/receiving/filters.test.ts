import assert from 'node:assert/strict';
import { PollSubscription } from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord, IncomingRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { createInboxOn } from '../inbox/inbox-on';
import { FailingServer, FailingStore } from '../store/failing-store';

const messageDate = '2026-03-01T10:00:00.123Z';

/** The filter `new` of `sms-in`. */
const isNew = (record: InboxRecord) => !(record as IncomingRecord).isReply;

/** A node, and the bodies that reached its flow. */
interface Listener {
  sent: string[];
  /** Stops it, as a deployment does. */
  stop(): void;
}

for (const [name, createStore] of [
  ['disk', () => new FailingStore()],
  ['Redis', () => new FailingServer()],
] as const) {
  describe(`a message that every filter leaves out (store: ${name})`, () => {
    let clock: VirtualClock;
    let inbox: Inbox;

    beforeEach(() => {
      clock = new VirtualClock();
      inbox = createInboxOn({ store: createStore(), clock });
    });
    afterEach(() => inbox.journal.close());

    function listen(wants: (record: InboxRecord) => boolean, id = 'in'): Listener {
      const sent: string[] = [];
      const subscription = new PollSubscription(inbox, 'incoming', {
        id,
        wants,
        acknowledge: 'auto',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        send: async ({ record }) => sent.push(String(record.body)) > 0,
        onUndelivered: () => {},
      });
      return { sent, stop: () => subscription.detach() };
    }

    function serve(): { sent: string[]; call(id: string | undefined): Promise<void> } {
      const sent: string[] = [];
      const address = { node: 'callback', path: '/sms' };
      new PollSubscription(inbox, 'callback', {
        id: address.node,
        path: address.path,
        acknowledge: 'auto',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        send: async ({ record }) => sent.push(String(record.body)) > 0,
        onUndelivered: () => {},
      });
      return {
        sent,
        async call(messageId) {
          const record = { ...createReply(messageId), via: 'callback' as const };
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

    it('counts as repeated if the service answers with it again', async () => {
      listen(isNew);
      assert.deepEqual(await poll(), ['new']);
      for (const _ of [1, 2]) assert.deepEqual(await poll(), ['repeated']);
    });

    it('goes to the callback node after a deployment in which it was polled', async () => {
      const called = serve();
      const before = listen(isNew);
      await clock.advance(30);
      before.stop();
      assert.deepEqual(await poll(), ['new']);
      const after = listen(isNew);
      await clock.advance(30);
      await called.call('m1');
      assert.deepEqual([before.sent, after.sent, called.sent], [[], [], ['yes']]);
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

    it('goes to the callback node during a redeploy of the polling node', async () => {
      const called = serve();
      const before = listen(isNew);
      await clock.advance(30);
      before.stop();
      await poll();
      await called.call('m1');
      const after = listen(() => true);
      await clock.advance(30);
      await called.call('m1');
      assert.deepEqual([after.sent, called.sent], [[], ['yes']]);
    });

    it('goes only to a polling node whose filter accepts it', async () => {
      const [some, all, called] = [listen(isNew), listen(() => true, 'all'), serve()];
      await poll();
      await called.call('m1');
      assert.deepEqual([some.sent, all.sent, called.sent], [[], ['yes'], []]);
    });
  });
}
