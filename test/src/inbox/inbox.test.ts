import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type Clock, systemClock } from '../../../src/clock';
import type { EntryDelivery, InboxSubscriber } from '../../../src/delivery/subscribers';
import type { SmsError } from '../../../src/errors';
import type { Entry } from '../../../src/inbox/entries';
import { type Arrival, type Inbox, maxWaitingForCallback } from '../../../src/inbox/inbox';
import type { IncomingRecord, OutboxRecord, StatusRecord, Via } from '../../../src/model';
import { MemoryStore } from '../../../src/store/memory';
import type { Store } from '../../../src/store/store';
import { formatRemembered } from '../../../src/store/store';
import { FailingStore, FakeDisk } from '../store/failing-store';
import { incoming, polled } from './arrivals';
import { createInboxOn } from './inbox-on';

/** Creates a clock that is never set. */
function createClock(): Clock {
  return { ...systemClock, elapsed: () => Date.now() };
}

/** A node that records its entries. */
class Node implements InboxSubscriber {
  readonly given: (EntryDelivery & { attempts: number; context: unknown })[] = [];
  inbox: Inbox | undefined;

  constructor(
    readonly id: string,
    readonly options: { path?: string; onDemand?: boolean; onTake?: (entries: readonly Entry[]) => void } = {},
  ) {}

  get path(): string {
    return this.options.path ?? '';
  }

  get onDemand(): boolean {
    return this.options.onDemand ?? false;
  }

  receive(given: readonly EntryDelivery[], context?: unknown): void {
    for (const one of given) {
      if (one.attempt > one.entry.attempts) this.inbox?.countAttempt(one.entry, one.attempt, this.id);
      this.given.push({ ...one, attempts: one.entry.attempts, context });
    }
    this.options.onTake?.(given.map(({ entry }) => entry));
  }

  get texts(): unknown[] {
    return this.given.map(({ entry }) => entry.record.body);
  }

  get attempts(): number[] {
    return this.given.map(({ attempts }) => attempts);
  }

  /** The last entry that the node received. */
  get last(): Entry {
    const gift = this.given.at(-1);
    assert.ok(gift, `${this.id} was given nothing`);
    return gift.entry;
  }
}

/** Returns an XMLv3 callback, which has no identifier (§6.4). */
function called(fields: Partial<IncomingRecord> = {}, node = 'callback', path = '/sms'): Arrival {
  const record = incoming(undefined, { via: 'callback', ...fields });
  return { kind: 'incoming', via: 'callback', records: [record], address: { node, path } };
}

/** Runs everything that needs no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

describe('Inbox', () => {
  let dedupe: boolean;
  let dedupeMs: number;
  let storeStates: (string | undefined)[];
  let inboxes: Inbox[];

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 2, 1, 10, 0, 5) });
    dedupe = true;
    dedupeMs = 72 * 3_600_000;
    storeStates = [];
    inboxes = [];
  });
  afterEach(async () => {
    for (const inbox of inboxes) await inbox.journal.close();
    mock.timers.reset();
  });

  function createInbox(store: Store = new FailingStore()): Inbox {
    const inbox = createInboxOn({
      store,
      clock: createClock(),
      dedupe: () => dedupe,
      dedupeMs: () => dedupeMs,
      onStore: (error: SmsError | undefined) => storeStates.push(error?.code),
    });
    inboxes.push(inbox);
    return inbox;
  }

  function attach(inbox: Inbox, node: Node, channel: Entry['channel'] = 'incoming'): Node {
    node.inbox = inbox;
    inbox.attach(channel, node);
    return node;
  }

  /** Returns the disk of a process that has delivered a message. */
  async function leaveDelivered(): Promise<FakeDisk> {
    const disk = new FakeDisk();
    const inbox = createInbox(new FailingStore(disk));
    const node = attach(inbox, new Node('a'));
    await inbox.accept(polled('1'));
    inbox.acknowledge(node.last, node);
    await inbox.journal.close();
    return disk;
  }

  describe('Inbox when it delivers records', () => {
    it('delivers each record to every node, in order, after it is stored', async () => {
      const store = new FailingStore();
      store.turns = 1;
      const inbox = createInbox(store);
      const kept: boolean[] = [];
      const onTake = ([entry]: readonly Entry[]) => kept.push(store.disk.entries.has(entry?.id ?? ''));
      const [a, b] = [attach(inbox, new Node('a', { onTake })), attach(inbox, new Node('b', { onTake }))];
      const all = ['1', '2', '3', '4'].map((id) => inbox.accept(polled(id)));
      await Promise.all(all);
      assert.deepEqual(a.texts, ['1', '2', '3', '4']);
      assert.deepEqual(b.texts, ['1', '2', '3', '4']);
      assert.ok(kept.every(Boolean));
      assert.deepEqual(a.attempts, [1, 1, 1, 1]);
    });

    it('forgets a record when the last node has received it', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.accept(polled('1'));
      inbox.acknowledge(a.last, a);
      inbox.acknowledge(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 1);
      inbox.acknowledge(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('does not deliver a status to nodes for messages', async () => {
      const inbox = createInbox();
      const [one, other] = [attach(inbox, new Node('a')), attach(inbox, new Node('a'), 'status')];
      await settle();
      await inbox.accept(polled('1'));
      const status: StatusRecord = { messageId: '1', from: '6421555001', statusCode: 'RCV', via: 'poll' };
      await inbox.accept({ kind: 'status', via: 'poll', records: [status] });
      assert.equal(one.given.length, 1);
      assert.equal(other.given.length, 1);
      assert.equal(other.last.kind, 'status');
    });

    it('stores the first attempt before it delivers to a node added later', async () => {
      const store = new FailingStore();
      store.turns = 3;
      const inbox = createInbox(store);
      await inbox.accept(polled(incoming('1'), incoming('2')));
      const attempts: number[][] = [];
      const onTake = () => void attempts.push(store.disk.items.map((item) => item.attempts));
      const a = attach(inbox, new Node('a', { onTake }));
      await inbox.accept(polled(incoming('3')));
      await settle();
      assert.deepEqual(
        [a.texts, a.attempts, attempts[0]],
        [
          ['1', '2', '3'],
          [1, 1, 1],
          [1, 1, 1],
        ],
      );
    });
  });

  describe('Inbox with dedupe on or off', () => {
    it('recognises a copy within one answer', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      assert.deepEqual(await inbox.accept(polled('1', '1')), ['new', 'repeated']);
      assert.equal(a.given.length, 1);
    });

    for (const order of [
      ['callback', 'poll'],
      ['poll', 'callback'],
    ] as Via[][]) {
      for (const [format, messageId] of [
        ['XMLv3', undefined],
        ['FORMv1', '1'],
      ] as const) {
        it(`delivers one ${format} message once: ${order.join(' then ')}, with retries`, async () => {
          const inbox = createInbox();
          const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
          const found: string[] = [];
          for (const via of [...order, ...order]) {
            const arrival =
              via === 'poll'
                ? polled('1')
                : called({
                    body: '1',
                    ...(messageId === undefined ? { messageDate: '2026-03-01T10:00:00Z' } : { messageId }),
                  });
            found.push(...(await inbox.accept(arrival)));
          }
          assert.equal(found[0], 'new');
          assert.ok(!found.slice(1).includes('new'), found.join());
          assert.equal(node.given.length + a.given.length, 1);
        });
      }
    }

    it('delivers every copy if dedupe is off, and still reports repeated polls', async () => {
      dedupe = false;
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled('1'));
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
      assert.equal(a.given.length, 2);
    });

    it('delivers an outgoing message once even if dedupe is off', async () => {
      dedupe = false;
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'), 'outbox');
      const record: OutboxRecord = { messageId: '1', body: 'x', recipientsList: [] };
      for (let index = 0; index < 3; index++) {
        await inbox.accept({ kind: 'outbox', via: 'poll', records: [record] });
      }
      assert.equal(a.given.length, 1);
    });

    it('forgets an identifier after dedupeHours', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled('1'));
      mock.timers.tick(dedupeMs);
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
      mock.timers.tick(1);
      assert.deepEqual(await inbox.accept(polled('1')), ['new']);
      assert.equal(a.given.length, 2);
    });

    it('remembers for dedupeHours although the clock is set forward', async () => {
      let setMs = 0;
      const clock = { ...createClock(), now: () => Date.now() + setMs };
      const inbox = createInboxOn({ store: new MemoryStore(), clock, dedupe: () => true, dedupeMs: () => dedupeMs });
      inboxes.push(inbox);
      attach(inbox, new Node('a'));
      await inbox.accept(polled('1'));
      setMs = 10 * dedupeMs;
      // A thousand messages make the inbox search for expired identifiers.
      await inbox.accept(polled(...Array.from({ length: 1_000 }, (_, n) => incoming(`2-${n}`))));
      mock.timers.tick(dedupeMs);
      assert.deepEqual(await inbox.accept(called({ messageId: '1' })), ['duplicate']);
      mock.timers.tick(1);
      assert.deepEqual(await inbox.accept(polled('1')), ['new']);
    });
  });

  describe('Inbox with records on demand', () => {
    const list: Arrival = {
      kind: 'outbox',
      via: 'poll',
      records: [{ messageId: '1', body: 'x', recipientsList: [] }],
    };

    it('delivers only requested records, with the context of the request', async () => {
      const inbox = createInbox();
      const asker = attach(inbox, new Node('asker', { onDemand: true }), 'outbox');
      const idle = attach(inbox, new Node('idle', { onDemand: true }), 'outbox');
      const watcher = attach(inbox, new Node('watcher'), 'outbox');
      await inbox.accept({ ...list, asker: 'asker', context: 'trigger' });
      await settle();
      assert.deepEqual(
        asker.given.map(({ context }) => context),
        ['trigger'],
      );
      assert.deepEqual(
        watcher.given.map(({ context }) => context),
        [undefined],
      );
      assert.equal(idle.given.length, 0);
    });

    it('delivers records without a requesting node to one node, once', async () => {
      const inbox = createInbox();
      await inbox.accept(list);
      const [asker, other] = ['asker', 'other'].map((id) => attach(inbox, new Node(id, { onDemand: true }), 'outbox'));
      await settle();
      assert.deepEqual(asker?.attempts, [1]);
      assert.equal(other?.given.length, 0);
      inbox.acknowledge(asker.last, asker);
      attach(inbox, new Node('later', { onDemand: true }), 'outbox');
      await inbox.journal.flush();
      assert.equal(inbox.isSettled, true);
    });

    it('does not deliver entries of another node to the requesting node', async () => {
      const inbox = createInbox();
      const watcher = attach(inbox, new Node('watcher'), 'outbox');
      await inbox.accept(list);
      const asker = attach(inbox, new Node('asker', { onDemand: true }), 'outbox');
      await settle();
      assert.deepEqual([watcher.given.length, asker.given.length], [1, 0]);
    });
  });

  describe('Inbox during a redeploy or a restart', () => {
    it('does not wait for a removed node if another has the record', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.accept(polled('1'));
      inbox.detach('incoming', a);
      const c = attach(inbox, new Node('c'));
      await settle();
      assert.equal(store.disk.entries.size, 1);
      inbox.acknowledge(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
      assert.equal(c.given.length, 0);
    });

    it('delivers nothing to a detached node', async () => {
      const store = new FailingStore();
      store.turns = 1;
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      const accepted = inbox.accept(polled('1'));
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      inbox.detach('incoming', a);
      await accepted;
      await settle();
      assert.equal(a.given.length, 0);
      const again = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual([again.texts, again.attempts], [['1'], [1]]);
    });

    it('delivers a record to a node that is redeployed during the save', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.journal.ready();
      store.turns = 5;
      const accepted = inbox.accept(polled('1'));
      while (store.commits === 0) await new Promise(setImmediate);
      inbox.detach('incoming', a);
      const again = attach(inbox, new Node('a'));
      await accepted;
      await settle();
      assert.deepEqual([a.texts, again.texts, b.texts], [[], ['1'], ['1']]);
    });

    it('ignores an acknowledgement by a removed node', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.accept(polled('1'));
      inbox.detach('incoming', a);
      const b = attach(inbox, new Node('b'));
      await settle();
      inbox.acknowledge(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 1);
      inbox.acknowledge(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('delivers a callback to the new node at its path if its node was removed', async () => {
      const inbox = createInbox();
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(called());
      inbox.detach('callback', node);
      const elsewhere = attach(inbox, new Node('elsewhere', { path: '/other' }), 'callback');
      await settle();
      assert.equal(elsewhere.given.length, 0);
      const heir = attach(inbox, new Node('heir', { path: '/sms' }), 'callback');
      await settle();
      assert.equal(heir.given.length, 1);
    });

    it('accepts records while it is closed and opened', async () => {
      const store = new FailingStore();
      store.turns = 1;
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      for (let index = 0; index < 10; index++) {
        const closed = inbox.journal.close();
        if (index % 2) await new Promise(setImmediate);
        const accepted = inbox.accept(polled(incoming(String(index))));
        if (index % 3 === 0) inbox.journal.open();
        await closed;
        await accepted;
        inbox.journal.open();
        await settle();
      }
      assert.deepEqual(new Set(a.texts), new Set(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']));
    });

    it('refuses callbacks after it was closed', async () => {
      const store = new FailingStore();
      store.turns = 2;
      const inbox = createInbox(store);
      attach(inbox, new Node('callback'), 'callback');
      await inbox.journal.ready();
      const closing = inbox.journal.close();
      await new Promise(setImmediate);
      const late = inbox.accept(called());
      await assert.rejects(late, { code: 'SMS_STORE' });
      await closing;
      await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
      await settle();
      assert.equal(store.isOpen, false);
    });

    it('keeps a polled answer that arrives while the inbox closes', async () => {
      const store = new FailingStore();
      store.turns = 2;
      const inbox = createInbox(store);
      await inbox.journal.ready();
      const closing = inbox.journal.close();
      await new Promise(setImmediate);
      await inbox.accept(polled('1'));
      await closing;
      await inbox.journal.close();
      assert.equal(store.disk.entries.size, 1);
      assert.equal(store.isOpen, false);
    });

    it('keeps records in memory across close and open', async () => {
      const inbox = createInbox(new MemoryStore());
      const a = attach(inbox, new Node('a'));
      await inbox.accept(polled('1'));
      inbox.detach('incoming', a);
      await inbox.journal.close();
      const b = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual([b.texts, b.attempts], [['1'], [2]]);
      assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
    });

    it('keeps the order although the clock was set back', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      await before.accept(polled('1', '2'));
      await before.journal.close();
      mock.timers.reset();
      mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 2, 1, 9) });
      const between = createInbox(new FailingStore(disk));
      await between.accept(polled('3'));
      await between.journal.close();
      const a = attach(createInbox(new FailingStore(disk)), new Node('a'));
      await settle();
      assert.deepEqual(a.texts, ['1', '2', '3']);
    });
  });

  describe('a callback', () => {
    function attachCallback(inbox: Inbox, id = 'callback', path = '/sms'): Node {
      return attach(inbox, new Node(id, { path }), 'callback');
    }

    it('is stored before it is accepted, and delivered to its callback node', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [node, other, polling] = [attachCallback(inbox), attachCallback(inbox, 'other', '/other'), new Node('a')];
      attach(inbox, polling);
      await inbox.accept(called());
      assert.deepEqual([store.disk.entries.size, node.texts], [1, ['hello']]);
      assert.deepEqual([other.texts, polling.texts], [[], []]);
      inbox.acknowledge(node.last, node);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('survives a crash', async () => {
      const disk = new FakeDisk();
      const store = new FailingStore(disk);
      const inbox = createInbox(store);
      attachCallback(inbox);
      await inbox.accept(called());
      inboxes.pop();
      store.kill();
      const after = createInbox(new FailingStore(disk));
      const node = attachCallback(after);
      await settle();
      assert.deepEqual([node.texts, node.attempts], [['hello'], [2]]);
      assert.deepEqual(await after.accept(called()), ['duplicate']);
    });

    it('becomes unhandled 20 s after its node was removed', async () => {
      const inbox = createInbox();
      const node = attachCallback(inbox);
      await inbox.accept(called());
      inbox.detach('callback', node);
      await settle();
      assert.equal(inbox.state.unhandled, 0);
      mock.timers.tick(20_000);
      await settle();
      assert.deepEqual([inbox.state.undelivered, inbox.state.unhandled], [0, 1]);
      const again = attachCallback(inbox);
      await settle();
      assert.deepEqual([again.texts, again.attempts, inbox.state.unhandled], [['hello'], [2], 0]);
    });

    it('goes to a polling node if its own node was removed', async () => {
      const inbox = createInbox();
      inbox.detach('callback', attachCallback(inbox));
      await inbox.accept(called());
      mock.timers.tick(20_000);
      await settle();
      const polling = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(polling.texts, ['hello']);
    });

    it('is delivered in place of a polled copy in the same commit', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const node = attachCallback(inbox);
      await Promise.all([inbox.accept(polled(incoming('1', { body: 'hello' }))), inbox.accept(called())]);
      await settle();
      assert.deepEqual([node.texts, inbox.state], [['hello'], { ...inbox.state, undelivered: 1, unhandled: 0 }]);
      assert.equal(store.disk.entries.size, 1);
    });

    it('is stored once if it arrives while its polled copy becomes unhandled', async () => {
      for (let wait = 0; wait <= 10; wait++) {
        const store = new FailingStore();
        store.turns = 3;
        const inbox = createInbox(store);
        const node = attachCallback(inbox);
        const accepted = inbox.accept(polled(incoming('1', { body: 'hello' })));
        for (let turn = 0; turn < wait; turn++) await new Promise(setImmediate);
        await Promise.all([accepted, inbox.accept(called())]);
        await settle();
        inbox.acknowledge(node.last, node);
        await inbox.journal.flush();
        assert.deepEqual([wait, node.texts, [...store.disk.entries.keys()]], [wait, ['hello'], []]);
      }
    });

    it('is refused while too many records wait for the flow', async () => {
      const inbox = createInbox();
      const [polling, node] = [attach(inbox, new Node('a')), attachCallback(inbox)];
      const records = Array.from({ length: maxWaitingForCallback }, (_, index) => incoming(`${index}`));
      await inbox.accept(polled(...records));
      const refused = inbox.accept(called({ body: 'x' }));
      await assert.rejects(refused, { code: 'SMS_BUSY', params: { limit: maxWaitingForCallback } });
      inbox.acknowledge(polling.last, polling);
      assert.deepEqual(await inbox.accept(called({ body: 'x' })), ['new']);
      assert.deepEqual(node.texts, ['x']);
    });
  });

  describe('a possible reply to a message with an unknown outcome', () => {
    let learnOutcome = () => {};
    let isAccepted: boolean;

    function createMatching(store: Store): Inbox {
      const outcome = new Promise<void>((resolve) => {
        learnOutcome = resolve;
      });
      isAccepted = true;
      const inbox = createInboxOn({
        store,
        clock: createClock(),
        correlator: ({ record }) => ({
          mayAnswer: true,
          keys: [],
          outcome,
          correlate: () => ({ record: isAccepted ? { ...record, awaited: true as const } : record, effect() {} }),
        }),
      });
      inboxes.push(inbox);
      return inbox;
    }

    for (const via of ['poll', 'callback'] as const) {
      it(`is stored (${via}), and delivered when the outcome is known`, async () => {
        const store = new FailingStore();
        const inbox = createMatching(store);
        const node = attach(inbox, new Node('callback', { path: '/sms' }), via === 'poll' ? 'incoming' : 'callback');
        const arrival = via === 'poll' ? polled('1') : called();
        assert.deepEqual(await inbox.accept(arrival), ['new']);
        await settle();
        assert.deepEqual([store.disk.entries.size, node.texts], [1, []]);
        assert.notEqual((await inbox.accept(arrival))[0], 'new');
        learnOutcome();
        await settle();
        assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
      });
    }

    it('is dropped if it is a reply that no node receives', async () => {
      const store = new FailingStore();
      const inbox = createMatching(store);
      await inbox.accept(polled('1'));
      learnOutcome();
      await settle();
      assert.deepEqual([inbox.state.undelivered, inbox.state.unhandled, store.disk.entries.size], [0, 0, 0]);
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(called({ body: '1' }));
      assert.equal(node.last.record.awaited, true);
    });

    it('goes to the callback node if a callback comes before the outcome', async () => {
      const inbox = createMatching(new FailingStore());
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(polled('1'));
      await inbox.accept(called({ body: '1' }));
      learnOutcome();
      await settle();
      assert.deepEqual([node.attempts, node.last.record.awaited], [[1], true]);
    });

    it('is delivered after a crash', async () => {
      const disk = new FakeDisk();
      const store = new FailingStore(disk);
      const inbox = createMatching(store);
      await inbox.accept(polled('1'));
      inboxes.pop();
      store.kill();
      const after = createMatching(new FailingStore(disk));
      const node = attach(after, new Node('a'));
      await settle();
      assert.deepEqual(node.texts, []);
      isAccepted = false;
      learnOutcome();
      await settle();
      assert.deepEqual([node.texts, node.attempts, node.last.record.awaited], [['1'], [1], undefined]);
    });
  });

  it('redelivers a callback to its own node, not to another at its path', async () => {
    const disk = new FakeDisk();
    const before = createInbox(new FailingStore(disk));
    attach(before, new Node('callback', { path: '/sms' }), 'callback');
    await before.accept(called());
    await before.journal.close();
    const inbox = createInbox(new FailingStore(disk));
    const [first, node] = ['first', 'callback'].map((id) => attach(inbox, new Node(id, { path: '/sms' }), 'callback'));
    await settle();
    assert.deepEqual([first?.texts, node?.texts], [[], ['hello']]);
  });

  describe('Inbox if the store fails', () => {
    for (const step of ['open', 'recall', 'commit'] as const) {
      it(`delivers polled records, refuses callbacks, and recovers (${step} fails)`, async () => {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const [a, node] = [attach(inbox, new Node('a')), attach(inbox, new Node('callback'), 'callback')];
        if (step !== 'open') await inbox.journal.ready();
        store.failing.add(step);
        await inbox.accept(polled('1'));
        assert.deepEqual(a.texts, ['1']);
        await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
        await assert.rejects(inbox.journal.ready(), { code: 'SMS_STORE' });
        assert.equal(inbox.journal.failure?.code, 'SMS_STORE');
        assert.match(inbox.journal.failure?.message ?? '', /ENOSPC/);
        for (let index = 0; index < 4; index++) {
          mock.timers.tick(5_000);
          await settle();
        }
        await inbox.accept(polled('2', '2'));
        assert.deepEqual(storeStates, ['SMS_STORE']);
        assert.equal(node.given.length, 0);
        store.failing.clear();
        mock.timers.tick(5_000);
        await settle();
        assert.deepEqual(storeStates, ['SMS_STORE', undefined]);
        assert.equal(inbox.journal.failure, undefined);
        assert.deepEqual(a.texts, ['1', '2']);
        assert.deepEqual(a.attempts, [1, 1]);
        assert.deepEqual(
          [...store.disk.entries.values()].map((text) => JSON.parse(text).record.body),
          ['1', '2'],
        );
        assert.deepEqual(await inbox.accept(polled('1')), ['repeated']);
        assert.deepEqual(await inbox.accept(called()), ['new']);
      });
    }

    it('delivers once if a commit only seemed to fail', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.journal.ready();
      store.failsAfterwards = true;
      store.failing.add('commit');
      await inbox.accept(polled('1'));
      inbox.acknowledge(a.last, a);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(a.attempts, [1]);
      inbox.acknowledge(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('does not redeliver records that were delivered during the failure', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled('1'));
      const first = a.last;
      store.failing.add('commit');
      await inbox.accept(polled('2'));
      inbox.acknowledge(first, a);
      inbox.acknowledge(a.last, a);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(a.texts, ['1', '2']);
      assert.equal(store.disk.entries.size, 0);
    });

    describe('Inbox with a possible reply while the store fails', () => {
      /** Bodies of the messages whose match was known, in order. */
      let matched: unknown[];

      function createMatching(store: Store): Inbox {
        matched = [];
        const inbox = createInboxOn({
          store,
          clock: createClock(),
          dedupe: () => dedupe,
          dedupeMs: () => dedupeMs,
          correlator: ({ record }) => ({
            mayAnswer: true,
            keys: ['sent'],
            correlate(readKey) {
              const isKnown = readKey('sent') !== undefined;
              const effect = () => {
                if (isKnown) matched.push(record.body);
              };
              return {
                record: isKnown ? Object.assign({ ...record }, { sent: { messageId: 'mine' } }) : record,
                effect,
              };
            },
          }),
        });
        inboxes.push(inbox);
        return inbox;
      }

      async function failAtMessage(): Promise<{ store: FailingStore; node: Node }> {
        const disk = new FakeDisk();
        disk.remembered.set('sent', formatRemembered({ at: Date.now(), forMs: 3_600_000, value: '' }));
        const store = new FailingStore(disk);
        const inbox = createMatching(store);
        const node = attach(inbox, new Node('a'));
        await inbox.journal.ready();
        for (const call of ['recall', 'open'] as const) store.failing.add(call);
        void inbox.accept(polled('1'));
        await settle();
        return { store, node };
      }

      async function pass(ms: number): Promise<void> {
        for (let passed = 0; passed < ms; passed += 5_000) {
          mock.timers.tick(5_000);
          await settle();
        }
      }

      it('matches a polled message when the store is back', async () => {
        const { store, node } = await failAtMessage();
        await pass(30_000);
        assert.deepEqual(node.texts, []);
        store.failing.clear();
        await pass(5_000);
        assert.deepEqual([node.texts, node.attempts, matched], [['1'], [1], ['1']]);
        assert.ok((node.last.record as IncomingRecord).sent);
      });

      it('delivers a message after 60 s, and matches it later', async () => {
        const { store, node } = await failAtMessage();
        await pass(55_000);
        assert.deepEqual(node.texts, []);
        await pass(10_000);
        assert.deepEqual([node.texts, matched], [['1'], []]);
        store.failing.clear();
        await pass(10_000);
        assert.deepEqual([node.texts, matched], [['1'], ['1']]);
      });
    });

    it('closes the store and keeps unwritten records', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.journal.ready();
      store.failing.add('commit');
      await inbox.accept(polled('1'));
      inbox.detach('incoming', a);
      await inbox.journal.close();
      assert.equal(store.isOpen, false);
      assert.equal(inbox.isSettled, false);
      store.failing.clear();
      const b = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual([b.texts, b.attempts], [['1'], [2]]);
      assert.equal(store.disk.entries.size, 1);
    });
  });

  describe('Inbox after a crash', () => {
    /** Leaves messages that are committed and delivered, but whose writes are still pending. */
    async function leaveHeld(): Promise<FakeDisk> {
      const disk = await leaveDelivered();
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('1')] }));
      return disk;
    }

    it('delivers a polled record that was not committed', async () => {
      const disk = new FakeDisk();
      const store = new FailingStore(disk);
      const inbox = createInbox(store);
      await inbox.journal.ready();
      store.turns = 1_000_000;
      void inbox.accept(polled('1'));
      inboxes.pop();
      store.kill();
      const after = createInbox(new FailingStore(disk));
      const a = attach(after, new Node('a'));
      await settle();
      assert.deepEqual([a.texts, a.attempts], [['1'], [1]]);
      assert.equal(disk.pendingWrites.size, 0);
      assert.deepEqual(await after.accept(polled('1')), ['repeated']);
    });

    for (const [title, downMs] of [
      ['does not redeliver a record whose poll answer is still saved', 0],
      ['recognises a saved poll answer whose identifier has expired', dedupeMs + 1],
    ] as const)
      it(title, async () => {
        const disk = await leaveHeld();
        mock.timers.tick(downMs);
        const b = attach(createInbox(new FailingStore(disk)), new Node('a'));
        await settle();
        assert.equal(b.given.length, 0);
        assert.equal(disk.pendingWrites.size, 0);
      });

    it('delivers records of saved poll answers only if it can read the store', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      await before.accept(polled('1'));
      await before.journal.close();
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('1')] }));
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('2')] }));
      const store = new FailingStore(disk);
      store.failing.add('recall');
      const a = attach(createInbox(store), new Node('a'));
      await settle();
      for (const { entry } of [...a.given]) inboxes.at(-1)?.acknowledge(entry, a);
      for (let index = 0; index < 3; index++) {
        mock.timers.tick(5_000);
        await settle();
      }
      assert.deepEqual([a.texts, disk.pendingWrites.size], [['1'], 2]);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual([a.texts, a.attempts.at(-1), disk.pendingWrites.size], [['1', '2'], 1, 0]);
    });
  });
});
