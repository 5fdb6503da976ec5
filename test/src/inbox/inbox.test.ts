import assert from 'node:assert/strict';
import type { Channel } from '../../../src/inbox/entries';
import { type Arrival, type Inbox, type InboxOptions, maxWaitingForCallback } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { MemoryStore } from '../../../src/store/memory';
import { formatRemembered, type Store } from '../../../src/store/store';
import { settle as settleTurns, TurningClock } from '../../virtual-clock';
import { RecordingSubscriber } from '../delivery/recording-subscriber';
import { FailingStore } from '../store/failing-store';
import { calledBack, incoming, polled } from './arrivals';
import { Inboxes } from './inbox-on';

const dedupeMs = 72 * 3_600_000;

const called = (fields: Partial<IncomingRecord> = {}) => calledBack(incoming(undefined, fields));
const settle = () => settleTurns(20);

describe('Inbox', () => {
  let clock: TurningClock;
  let dedupe: boolean;
  let storeStates: (string | undefined)[];
  let store: FailingStore;
  let inbox: Inbox;
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new TurningClock(Date.UTC(2026, 2, 1, 10, 0, 5));
    dedupe = true;
    storeStates = [];
    store = new FailingStore();
    createInbox();
  });
  afterEach(() => inboxes.close());

  /** Creates the inbox of this process, or of the next one on the same disk. */
  function createInbox(more: Partial<InboxOptions & { store: Store }> = {}): void {
    store = new FailingStore(store.disk);
    inbox = inboxes.create({
      store,
      clock,
      dedupe: () => dedupe,
      dedupeMs: () => dedupeMs,
      onStore: (error) => storeStates.push(error?.code),
      ...more,
    });
  }

  const attach = (id = 'node') => new RecordingSubscriber(inbox, id);
  const attachCallback = (id = 'callback', path = '/sms') =>
    new RecordingSubscriber(inbox, id, { channel: 'callback', path });

  async function pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 5_000) {
      await clock.advance(Math.min(5_000, ms - passedMs));
      await settle();
    }
  }

  /** Writes all changes. Returns the number of stored items. */
  async function countStored(): Promise<number> {
    await inbox.journal.flush();
    return store.disk.entries.size;
  }

  describe('Inbox when it delivers records', () => {
    it('delivers each record to every node, in order, after it is stored', async () => {
      store.turns = 1;
      const wasStored: boolean[] = [];
      const nodes = ['a', 'b'].map((id) => attach(id));
      for (const node of nodes) node.onReceive = ([entry]) => wasStored.push(store.disk.entries.has(entry?.id ?? ''));
      await Promise.all(['1', '2', '3', '4'].map((id) => inbox.accept(polled(id))));
      for (const { bodies, attempts } of nodes) {
        assert.deepEqual(bodies, ['1', '2', '3', '4']);
        assert.deepEqual(attempts, [1, 1, 1, 1]);
      }
      assert.ok(wasStored.every(Boolean));
    });

    it('forgets a record when the last node has acknowledged it', async () => {
      const [a, b] = [attach('a'), attach('b')];
      await inbox.accept(polled('1'));
      a.acknowledge();
      a.acknowledge();
      assert.equal(await countStored(), 1);
      b.acknowledge();
      assert.equal(await countStored(), 0);
    });

    it('does not deliver a status to nodes for messages', async () => {
      const channels: Channel[] = ['incoming', 'status'];
      const nodes = channels.map((channel) => new RecordingSubscriber(inbox, 'same', { channel }));
      await settle();
      await inbox.accept(polled('1'));
      const status = { messageId: '2', from: '6421555001', statusCode: 'RCV', via: 'poll' } as const;
      await inbox.accept({ kind: 'status', via: 'poll', records: [status] });
      assert.deepEqual(
        nodes.map(({ messageIds }) => messageIds),
        [['1'], ['2']],
      );
    });

    it('stores the first attempt before it delivers to a node added later', async () => {
      store.turns = 3;
      await inbox.accept(polled('1', '2'));
      const storedAttempts: number[][] = [];
      const node = attach();
      node.onReceive = () => void storedAttempts.push(store.disk.items.map(({ attempts }) => attempts));
      await inbox.accept(polled('3'));
      await settle();
      assert.deepEqual(node.bodies, ['1', '2', '3']);
      assert.deepEqual(node.attempts, [1, 1, 1]);
      assert.deepEqual(storedAttempts[0], [1, 1, 1]);
    });
  });

  describe('Inbox with dedupe on or off', () => {
    it('delivers every copy if dedupe is off, and still reports repeated polls', async () => {
      dedupe = false;
      const node = attach();
      await settle();
      await inbox.accept(polled('1'));
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
      assert.deepEqual(node.bodies, ['1', '1']);
    });

    it('delivers an outgoing message once even if dedupe is off', async () => {
      dedupe = false;
      const node = new RecordingSubscriber(inbox, 'node', { channel: 'outbox' });
      const records = [{ messageId: '1', body: 'x', recipientsList: [] }];
      for (let index = 0; index < 3; index++) await inbox.accept({ kind: 'outbox', via: 'poll', records });
      assert.deepEqual(node.bodies, ['x']);
    });

    it('forgets an identifier after dedupeHours', async () => {
      const node = attach();
      await settle();
      await inbox.accept(polled('1'));
      await clock.advance(dedupeMs);
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
      await clock.advance(1);
      assert.deepEqual(await inbox.accept(polled('1')), ['new']);
      assert.deepEqual(node.bodies, ['1', '1']);
    });

    it('remembers for dedupeHours although the clock is set forward', async () => {
      createInbox({ store: new MemoryStore() });
      attach();
      await inbox.accept(polled('1'));
      clock.set(10 * dedupeMs);
      // A thousand messages make the inbox search for expired identifiers.
      await inbox.accept(polled(...Array.from({ length: 1_000 }, (_, n) => `2-${n}`)));
      await clock.advance(dedupeMs);
      assert.deepEqual(await inbox.accept(called({ messageId: '1' })), ['duplicate']);
      await clock.advance(1);
      assert.deepEqual(await inbox.accept(polled('1')), ['new']);
    });
  });

  describe('Inbox with records on demand', () => {
    const records = [{ messageId: '1', body: 'x', recipientsList: [] }];
    const list: Arrival = { kind: 'outbox', via: 'poll', records };
    const attach = (inbox: Inbox, id: string, onDemand = true) =>
      new RecordingSubscriber(inbox, id, { channel: 'outbox', onDemand });

    it('delivers only requested records, with the context of the request', async () => {
      const nodes = [attach(inbox, 'asker'), attach(inbox, 'idle'), attach(inbox, 'watcher', false)];
      await inbox.accept({ ...list, asker: 'asker', context: 'trigger' });
      await settle();
      assert.deepEqual(
        nodes.map(({ received }) => received.map(({ context }) => context)),
        [['trigger'], [], [undefined]],
      );
    });

    it('delivers records without a requesting node to one node, once', async () => {
      await inbox.accept(list);
      const [node, other] = [attach(inbox, 'node'), attach(inbox, 'other')];
      await settle();
      assert.deepEqual([node.attempts, other.attempts], [[1], []]);
      node.acknowledge();
      attach(inbox, 'later');
      await inbox.journal.flush();
      assert.equal(inbox.isSettled, true);
    });
  });

  describe('Inbox during a redeploy or a restart', () => {
    it('does not wait for a removed node if another has the record', async () => {
      const [a, b] = [attach('a'), attach('b')];
      await inbox.accept(polled('1'));
      a.detach();
      const c = attach('c');
      await settle();
      assert.equal(await countStored(), 1);
      b.acknowledge();
      assert.equal(await countStored(), 0);
      assert.deepEqual(c.bodies, []);
    });

    it('delivers a record only to the returned node if it is redeployed during the save', async () => {
      const [before, other] = [attach(), attach('other')];
      await inbox.journal.ready();
      store.turns = 5;
      const accepted = inbox.accept(polled('1'));
      while (store.commits === 0) await settleTurns();
      before.detach();
      const returned = attach();
      await accepted;
      await settle();
      assert.deepEqual([before.bodies, returned.bodies, other.bodies], [[], ['1'], ['1']]);
      assert.deepEqual(returned.attempts, [1]);
    });

    it('refuses callbacks while it closes and afterwards, but stores polled answers', async () => {
      store.turns = 2;
      await inbox.journal.ready();
      const closing = inbox.journal.close();
      await settleTurns();
      await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
      await inbox.accept(polled('1'));
      await closing;
      await inbox.journal.close();
      await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
      assert.deepEqual([await countStored(), store.isOpen], [1, false]);
    });
  });

  describe('a callback', () => {
    it('is stored before it is accepted, and delivered to its callback node', async () => {
      const [node, other] = [attachCallback(), attachCallback('other', '/other')];
      const polling = attach();
      await inbox.accept(called());
      assert.deepEqual([store.disk.entries.size, node.bodies], [1, ['hello']]);
      assert.deepEqual([other.bodies, polling.bodies], [[], []]);
      node.acknowledge();
      assert.equal(await countStored(), 0);
    });

    it('goes to the new node at its path if its node was removed', async () => {
      const removed = attachCallback();
      await inbox.accept(called());
      removed.detach();
      const elsewhere = attachCallback('elsewhere', '/other');
      await settle();
      assert.deepEqual(elsewhere.bodies, []);
      const heir = attachCallback('heir');
      await settle();
      assert.deepEqual(heir.bodies, ['hello']);
    });

    it('is redelivered to its own node, not to another at its path', async () => {
      attachCallback();
      await inbox.accept(called());
      await inbox.journal.close();
      createInbox();
      const [other, node] = [attachCallback('other'), attachCallback()];
      await settle();
      assert.deepEqual([other.bodies, node.bodies], [[], ['hello']]);
    });

    it('becomes unhandled 20 s after its node was removed', async () => {
      const removed = attachCallback();
      await inbox.accept(called());
      removed.detach();
      await settle();
      assert.equal(inbox.state.unhandled, 0);
      await pass(20_000);
      assert.deepEqual([inbox.state.undelivered, inbox.state.unhandled], [0, 1]);
      const node = attachCallback();
      await settle();
      assert.deepEqual([node.bodies, node.attempts, inbox.state.unhandled], [['hello'], [2], 0]);
    });

    it('goes to a polling node if its own node was removed', async () => {
      attachCallback().detach();
      await inbox.accept(called());
      await pass(20_000);
      const polling = attach();
      await settle();
      assert.deepEqual(polling.bodies, ['hello']);
    });

    it('is stored once if it arrives while its polled copy becomes unhandled', async () => {
      for (let turns = 0; turns <= 10; turns++) {
        store = new FailingStore();
        createInbox();
        store.turns = 3;
        const node = attachCallback();
        const accepted = inbox.accept(polled(incoming('1', { body: 'hello' })));
        await settleTurns(turns);
        await Promise.all([accepted, inbox.accept(called())]);
        await settle();
        assert.deepEqual([turns, node.bodies, store.disk.entries.size], [turns, ['hello'], 1]);
        node.acknowledge();
        assert.equal(await countStored(), 0);
      }
    });

    it('is refused while too many records wait for the flow', async () => {
      const [polling, node] = [attach(), attachCallback()];
      await inbox.accept(polled(...Array.from({ length: maxWaitingForCallback }, (_, index) => `${index}`)));
      const refused = inbox.accept(called({ body: 'x' }));
      await assert.rejects(refused, { code: 'SMS_BUSY', params: { limit: maxWaitingForCallback } });
      polling.acknowledge();
      assert.deepEqual(await inbox.accept(called({ body: 'x' })), ['new']);
      assert.deepEqual(node.bodies, ['x']);
    });
  });

  describe('a possible reply to a message with an unknown outcome', () => {
    let settleOutcome: () => void;
    let isReply: boolean;

    beforeEach(createMatching);

    function createMatching(): void {
      const outcome = new Promise<void>((resolve) => {
        settleOutcome = resolve;
      });
      isReply = true;
      createInbox({
        correlator: ({ record }) => ({
          mayAnswer: true,
          keys: [],
          outcome,
          correlate: () => ({ record: isReply ? { ...record, awaited: true as const } : record, effect() {} }),
        }),
      });
    }

    for (const via of ['poll', 'callback'] as const) {
      it(`is stored (${via}), and delivered when the outcome is known`, async () => {
        const node = via === 'poll' ? attach() : attachCallback();
        const arrival = via === 'poll' ? polled('1') : called();
        assert.deepEqual(await inbox.accept(arrival), ['new']);
        await settle();
        assert.deepEqual([store.disk.entries.size, node.bodies], [1, []]);
        assert.notEqual((await inbox.accept(arrival))[0], 'new');
        settleOutcome();
        await settle();
        assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
      });
    }

    it('is dropped if it is a reply that no node receives', async () => {
      await inbox.accept(polled('1'));
      settleOutcome();
      await settle();
      assert.deepEqual([inbox.state.undelivered, inbox.state.unhandled, store.disk.entries.size], [0, 0, 0]);
      const node = attachCallback();
      await inbox.accept(called({ body: '1' }));
      assert.equal(node.last.record.awaited, true);
    });

    it('goes to the callback node if a callback comes before the outcome', async () => {
      const node = attachCallback();
      await inbox.accept(polled('1'));
      await inbox.accept(called({ body: '1' }));
      settleOutcome();
      await settle();
      assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
    });

    it('is delivered after a crash', async () => {
      await inbox.accept(polled('1'));
      store.kill();
      createMatching();
      const node = attach();
      await settle();
      assert.deepEqual(node.bodies, []);
      isReply = false;
      settleOutcome();
      await settle();
      assert.deepEqual([node.bodies, node.attempts, node.last.record.awaited], [['1'], [1], undefined]);
    });
  });

  describe('Inbox if the store fails', () => {
    for (const step of ['open', 'recall', 'commit'] as const) {
      it(`delivers polled records, refuses callbacks, and recovers (${step} fails)`, async () => {
        const [node, calledNode] = [attach(), attachCallback()];
        if (step !== 'open') await inbox.journal.ready();
        store.failing.add(step);
        await inbox.accept(polled('1'));
        assert.deepEqual(node.bodies, ['1']);
        await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
        await pass(20_000);
        await inbox.accept(polled('2', '2'));
        assert.deepEqual([storeStates, calledNode.bodies], [['SMS_STORE'], []]);
        store.failing.clear();
        await pass(5_000);
        assert.deepEqual(storeStates, ['SMS_STORE', undefined]);
        assert.deepEqual(
          [node.bodies, node.attempts],
          [
            ['1', '2'],
            [1, 1],
          ],
        );
        assert.equal(store.disk.entries.size, 2);
        assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
        assert.deepEqual(await inbox.accept(called()), ['new']);
      });
    }

    it('does not redeliver records that were delivered during the failure', async () => {
      const node = attach();
      await settle();
      await inbox.accept(polled('1'));
      store.failing.add('commit');
      await inbox.accept(polled('2'));
      node.acknowledge(node.received.map(({ entry }) => entry));
      store.failing.clear();
      await pass(5_000);
      assert.deepEqual([node.bodies, store.disk.entries.size], [['1', '2'], 0]);
    });

    describe('Inbox with a possible reply while the store fails', () => {
      /** Bodies of the messages that were matched with a sent message, in order. */
      let matchedBodies: unknown[];
      let node: RecordingSubscriber;

      beforeEach(async () => {
        matchedBodies = [];
        const sent = { at: clock.now(), forMs: 3_600_000, value: '' };
        store.disk.remembered.set('sent', formatRemembered(sent));
        createInbox({
          correlator: ({ record }) => ({
            mayAnswer: true,
            keys: ['sent'],
            correlate: (readKey) =>
              readKey('sent')
                ? {
                    record: Object.assign({ ...record }, { sent: { messageId: 'mine' } }),
                    effect: () => matchedBodies.push(record.body),
                  }
                : { record, effect() {} },
          }),
        });
        node = attach();
        await inbox.journal.ready();
        for (const step of ['recall', 'open'] as const) store.failing.add(step);
        void inbox.accept(polled('1'));
        await settle();
      });

      it('matches a polled message when the store is back', async () => {
        await pass(30_000);
        assert.deepEqual(node.bodies, []);
        store.failing.clear();
        await pass(5_000);
        assert.deepEqual([node.bodies, node.attempts, matchedBodies], [['1'], [1], ['1']]);
        assert.ok((node.last.record as IncomingRecord).sent);
      });

      it('delivers a message after 60 s, and matches it later', async () => {
        await pass(55_000);
        assert.deepEqual(node.bodies, []);
        await pass(10_000);
        assert.deepEqual([node.bodies, matchedBodies], [['1'], []]);
        store.failing.clear();
        await pass(10_000);
        assert.deepEqual([node.bodies, matchedBodies], [['1'], ['1']]);
      });
    });
  });

  describe('Inbox after a crash', () => {
    const saveAhead = (id: string) => store.disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming(id)] }));

    it('delivers a polled record that was not committed', async () => {
      await inbox.journal.ready();
      store.turns = 1_000_000;
      void inbox.accept(polled('1'));
      store.kill();
      createInbox();
      const node = attach();
      await settle();
      assert.deepEqual([node.bodies, node.attempts, store.disk.pendingWrites.size], [['1'], [1], 0]);
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
    });

    for (const [title, downMs] of [
      ['does not redeliver a record whose poll answer is still saved', 0],
      ['recognises a saved poll answer whose identifier has expired', dedupeMs + 1],
    ] as const) {
      it(title, async () => {
        const before = attach();
        await inbox.accept(polled('1'));
        before.acknowledge();
        await inbox.journal.close();
        saveAhead('1');
        await clock.advance(downMs);
        createInbox();
        const node = attach();
        await settle();
        assert.deepEqual([node.bodies, store.disk.pendingWrites.size], [[], 0]);
      });
    }

    it('delivers records of saved poll answers only if it can read the store', async () => {
      await inbox.accept(polled('1'));
      await inbox.journal.close();
      for (const id of ['1', '2']) saveAhead(id);
      createInbox();
      store.failing.add('recall');
      const node = attach();
      await settle();
      node.acknowledge();
      await pass(15_000);
      assert.deepEqual([node.bodies, store.disk.pendingWrites.size], [['1'], 2]);
      store.failing.clear();
      await pass(5_000);
      assert.deepEqual([node.bodies, node.attempts.at(-1), store.disk.pendingWrites.size], [['1', '2'], 1, 0]);
    });
  });
});
