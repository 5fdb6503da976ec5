import assert from 'node:assert/strict';
import { CallbackSubscription } from '../../../src/delivery/callback-subscription';
import { PollSubscription } from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord, IncomingRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { createInboxOn } from '../inbox/inbox-on';
import { FailingServer, FailingStore } from '../store/failing-store';

const messageDate = '2026-03-01T10:00:00.123Z';

/** What `sms-in` is given with the filter `new`. */
const isUnasked = (record: InboxRecord) => !(record as IncomingRecord).isReply;

/** A node of a flow, and the texts that got into it. */
interface Listener {
  sent: string[];
  /** Ends it, as a deployment does. */
  stop(): void;
}

for (const [name, createStore] of [
  ['disk', () => new FailingStore()],
  ['Redis', () => new FailingServer()],
] as const) {
  describe(`what no node that polls wants (store: ${name})`, () => {
    let clock: VirtualClock;
    let store: FailingStore;
    let inbox: Inbox;
    let isAsking: boolean;

    beforeEach(() => {
      clock = new VirtualClock();
      isAsking = false;
      store = createStore();
      inbox = createInboxOn({ store, clock, isPolled: () => isAsking });
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

    function serve(): {
      sent: string[];
      call(id: string | undefined): Promise<boolean>;
      fail(isFailing: boolean): void;
    } {
      const sent: string[] = [];
      let isFailing = false;
      const subscription = new CallbackSubscription(inbox, {
        id: 'callback',
        path: '/sms',
        acknowledge: 'flow',
        ackTimeoutMs: 20_000,
        async send({ record, ackId = '' }) {
          sent.push(String(record.body));
          setImmediate(() => subscription.acknowledge(ackId, isFailing));
          return true;
        },
      });
      return {
        sent,
        async call(messageId) {
          const record = { ...createReply(messageId), via: 'callback' as const };
          const accepting = subscription.accept({ kind: 'incoming', records: [record] });
          await clock.advance(30);
          return accepting;
        },
        fail: (fails) => (isFailing = fails),
      };
    }

    function createReply(messageId: string | undefined): IncomingRecord {
      const body = 'yes';
      return { ...(messageId && { messageId }), from: '6421555001', body, messageDate, isReply: true, via: 'poll' };
    }

    async function poll(messageId: string | undefined = 'm1'): Promise<string[]> {
      const accepting = inbox.accept({ kind: 'incoming', via: 'poll', records: [createReply(messageId)] });
      await clock.advance(30);
      return (await accepting).map(({ outcome }) => outcome);
    }

    /** It is polled for somebody who asks, and there is no node yet. */
    async function quarantine(): Promise<void> {
      isAsking = true;
      inbox.journal.open();
      await poll();
      inbox.drained('incoming');
      await clock.advance(30);
      assert.equal(inbox.state.unhandled, 1);
    }

    for (const [how, messageId] of [
      ['by its messageId', 'm1'],
      ['by sender, text and date', undefined],
    ] as const) {
      it(`comes once to the node that is called back with it, known ${how}`, async () => {
        const [polling, called] = [listen(isUnasked), serve()];
        assert.deepEqual(await poll(), ['new']);
        assert.equal(await called.call(messageId), true);
        assert.equal(await called.call(messageId), true);
        assert.deepEqual([polling.sent, called.sent], [[], ['yes']]);
        assert.notDeepEqual(await poll(), ['new']);
        assert.equal(inbox.state.undelivered, 0);
      });
    }

    it('comes to the node that is called back with it in the same moment', async () => {
      const [polling, called] = [listen(isUnasked), serve()];
      const [, isDelivered] = await Promise.all([poll(), called.call('m1')]);
      assert.deepEqual([isDelivered, polling.sent, called.sent], [true, [], ['yes']]);
    });

    it('is known when the service answers with it over and over, which is asked less and less often then', async () => {
      listen(isUnasked);
      assert.deepEqual(await poll(), ['new']);
      for (const _ of [1, 2]) assert.deepEqual(await poll(), ['repeated']);
    });

    it('is brought again where the flow that was called could not handle it, though it was polled meanwhile', async () => {
      const [polling, called] = [listen(isUnasked), serve()];
      called.fail(true);
      const calling = called.call('m1');
      await poll();
      assert.equal(await calling, false);
      called.fail(false);
      assert.equal(await called.call('m1'), true);
      assert.deepEqual([polling.sent, called.sent], [[], ['yes', 'yes']]);
    });

    it('comes to the node that is called back with it after the deployment in which it was polled', async () => {
      const called = serve();
      const before = listen(isUnasked);
      await clock.advance(30);
      before.stop();
      assert.deepEqual(await poll(), ['new']);
      assert.equal(await called.call('m1'), false);
      const after = listen(isUnasked);
      await clock.advance(30);
      assert.equal(await called.call('m1'), true);
      assert.deepEqual([before.sent, after.sent, called.sent], [[], [], ['yes']]);
    });

    for (const [how, id] of [
      ['that has another filter after the deployment', 'in'],
      ['that stands in the place of another after the deployment', 'other'],
    ] as const) {
      it(`comes to the node ${how} in which it was polled`, async () => {
        const before = listen(isUnasked);
        await clock.advance(30);
        before.stop();
        await poll();
        const after = listen(() => true, id);
        await clock.advance(30);
        assert.deepEqual([before.sent, after.sent, inbox.state.undelivered], [[], ['yes'], 0]);
      });
    }

    it('comes to the node that is called back with it where it was wanted before the deployment in which it was polled', async () => {
      const called = serve();
      const before = listen(() => true);
      await clock.advance(30);
      before.stop();
      await poll();
      const after = listen(isUnasked);
      await clock.advance(30);
      assert.equal(inbox.state.undelivered, 0);
      assert.equal(await called.call('m1'), true);
      assert.notDeepEqual(await poll(), ['new']);
      assert.deepEqual([before.sent, after.sent, called.sent], [[], [], ['yes']]);
    });

    it('comes to the node that is called back with it in the moment in which the deployment ends', async () => {
      const called = serve();
      const before = listen(isUnasked);
      await clock.advance(30);
      before.stop();
      await poll();
      store.turns = 5;
      const [calling] = [called.call('m1'), listen(isUnasked)];
      await clock.advance(100);
      const isDelivered = (await calling) || (await called.call('m1'));
      assert.deepEqual([isDelivered, called.sent], [true, ['yes']]);
    });

    it('goes to nobody twice where one of several nodes wants it', async () => {
      const [some, all, called] = [listen(isUnasked), listen(() => true, 'all'), serve()];
      await poll();
      assert.equal(await called.call('m1'), true);
      assert.deepEqual([some.sent, all.sent, called.sent], [[], ['yes'], []]);
    });

    it('stays set aside until a node comes that wants it', async () => {
      await quarantine();
      const some = listen(isUnasked);
      await clock.advance(30);
      assert.deepEqual([inbox.state.unhandled, inbox.state.undelivered], [1, 0]);
      const all = listen(() => true, 'all');
      await clock.advance(30);
      assert.deepEqual([some.sent, all.sent, inbox.state.unhandled], [[], ['yes'], 0]);
    });

    it('goes from where it is set aside to the node that is called back with it', async () => {
      await quarantine();
      const [some, called] = [listen(isUnasked), serve()];
      await clock.advance(30);
      assert.equal(await called.call('m1'), true);
      assert.deepEqual([some.sent, called.sent, inbox.state.unhandled], [[], ['yes'], 0]);
    });
  });
}
