import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type Clock, systemClock } from '../../../src/clock';
import type { Given, InboxSubscriber } from '../../../src/delivery/subscribers';
import type { SmsError } from '../../../src/errors';
import type { Entry } from '../../../src/inbox/entries';
import type { Acceptance, Arrival, Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord, OutboxRecord, StatusRecord, Via } from '../../../src/model';
import { MemoryStore } from '../../../src/store/memory';
import type { RecoveredState, Store } from '../../../src/store/store';
import { formatRemembered, parseRemembered, StoreLapse } from '../../../src/store/store';
import { copyDisk } from '../sending/sending-side';
import { FailingStore, FakeDisk } from '../store/failing-store';
import { createInboxOn, handOver, release } from './inbox-on';

/** Nobody sets it: what the tests let pass has passed. */
function createClock(): Clock {
  return { ...systemClock, elapsed: () => Date.now() };
}

/** A node that notes what it gets. */
class Node implements InboxSubscriber {
  readonly given: (Given & { attempts: number; context: unknown })[] = [];
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

  take(given: readonly Given[], context?: unknown): void {
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

  /** What it was given last. */
  get last(): Entry {
    const gift = this.given.at(-1);
    assert.ok(gift, `${this.id} was given nothing`);
    return gift.entry;
  }
}

const date = '2026-03-01T10:00:00.123Z';

function incoming(messageId: string | undefined, fields: Partial<IncomingRecord> = {}): IncomingRecord {
  return {
    ...(messageId === undefined ? undefined : { messageId }),
    from: '6421555001',
    body: messageId ?? 'hello',
    messageDate: date,
    isReply: false,
    via: 'poll',
    ...fields,
  };
}

function polled(...records: IncomingRecord[]): Arrival {
  return { kind: 'incoming', via: 'poll', records };
}

/** As XMLv3 brings it: without an identifier (§6.4). */
function called(fields: Partial<IncomingRecord> = {}, node = 'callback', path = '/sms'): Arrival {
  const record = incoming(undefined, { via: 'callback', ...fields });
  return { kind: 'incoming', via: 'callback', records: [record], address: { node, path } };
}

function outcomes(acceptances: readonly Acceptance[]): string[] {
  return acceptances.map(({ outcome }) => outcome);
}

/** Lets everything happen that needs no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

/** Begins something that commits. Resolves when its commit is under way, and takes its time. */
async function beginCommit<T>(store: FailingStore, begin: () => Promise<T>): Promise<{ ended: Promise<T> }> {
  store.turns = 5;
  const { commits } = store;
  const ended = begin();
  while (store.commits === commits) await new Promise(setImmediate);
  return { ended };
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

  /** What a process leaves that has given a message to a node. */
  async function leaveDelivered(): Promise<FakeDisk> {
    const disk = new FakeDisk();
    const inbox = createInbox(new FailingStore(disk));
    const node = attach(inbox, new Node('a'));
    await inbox.accept(polled(incoming('1')));
    inbox.done(node.last, node);
    await inbox.journal.close();
    return disk;
  }

  it('gives a node that was away for a redeploy what came meanwhile, though another took it', async () => {
    const inbox = createInbox();
    const stays = attach(inbox, new Node('stays'));
    const leaves = attach(inbox, new Node('leaves'));
    await settle();
    inbox.detach('incoming', leaves);
    await inbox.accept(polled(incoming('m1')));
    inbox.done(stays.last, stays);
    await settle();
    const returned = attach(inbox, new Node('leaves'));
    await settle();
    assert.deepEqual(returned.texts, ['m1']);
    assert.deepEqual(stays.texts, ['m1']);
  });

  it('does not wait for a node that stays away', async () => {
    const inbox = createInbox();
    const stays = attach(inbox, new Node('stays'));
    const leaves = attach(inbox, new Node('leaves'));
    await settle();
    inbox.detach('incoming', leaves);
    const [acceptance] = await inbox.accept(polled(incoming('m1')));
    inbox.done(stays.last, stays);
    mock.timers.tick(20_000);
    await settle();
    assert.ok(acceptance?.entry);
    assert.equal(await inbox.ended(acceptance.entry), true);
    const late = attach(inbox, new Node('leaves'));
    await settle();
    assert.deepEqual(late.texts, []);
  });

  it('gives the called node what was polled for a node that is gone', async () => {
    const inbox = createInbox();
    await inbox.accept(polled(incoming('m1')));
    await settle();
    const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
    const [acceptance] = await inbox.accept(called({ body: 'm1' }));
    assert.deepEqual(node.texts, ['m1']);
    assert.equal(acceptance?.entry, node.last);
    inbox.done(node.last, node);
    const late = attach(inbox, new Node('late'));
    await settle();
    assert.deepEqual(late.texts, []);
  });

  it('keeps the polled copy when the called node refuses what was polled for a node that is gone', async () => {
    const inbox = createInbox();
    await inbox.accept(polled(incoming('m1')));
    const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
    await inbox.accept(called({ body: 'm1' }));
    await release(inbox, node.last);
    const back = attach(inbox, new Node('back'));
    await settle();
    assert.deepEqual(back.texts, ['m1']);
  });

  describe('delivery (two nodes on one account both get every message)', () => {
    it('gives each record to every node, in order, after it is in the store', async () => {
      const store = new FailingStore();
      store.turns = 1;
      const inbox = createInbox(store);
      const kept: boolean[] = [];
      const onTake = ([entry]: readonly Entry[]) => kept.push(store.disk.entries.has(entry?.id ?? ''));
      const [a, b] = [attach(inbox, new Node('a', { onTake })), attach(inbox, new Node('b', { onTake }))];
      const all = ['1', '2', '3', '4'].map((id) => inbox.accept(polled(incoming(id))));
      await Promise.all(all);
      assert.deepEqual(a.texts, ['1', '2', '3', '4']);
      assert.deepEqual(b.texts, ['1', '2', '3', '4']);
      assert.ok(kept.every(Boolean));
      assert.deepEqual(a.attempts, [1, 1, 1, 1]);
    });

    it('forgets a record when the last node has taken it, not earlier', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.accept(polled(incoming('1')));
      inbox.done(a.last, a);
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 1);
      const ended = inbox.ended(b.last);
      inbox.done(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
      assert.equal(await ended, true);
    });

    it('keeps channels apart', async () => {
      const inbox = createInbox();
      const [one, other] = [attach(inbox, new Node('a')), attach(inbox, new Node('a'), 'status')];
      await settle();
      await inbox.accept(polled(incoming('1')));
      const status: StatusRecord = { messageId: '1', from: '6421555001', statusCode: 'RCV', via: 'poll' };
      await inbox.accept({ kind: 'status', via: 'poll', records: [status] });
      assert.equal(one.given.length, 1);
      assert.equal(other.given.length, 1);
      assert.equal(other.last.kind, 'status');
    });

    it('keeps what nobody is there for until somebody comes', async () => {
      const inbox = createInbox();
      await inbox.accept(polled(incoming('1'), incoming('2')));
      const a = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(a.texts, ['1', '2']);
      assert.deepEqual(a.attempts, [1, 1]);
    });

    it('saves what comes together in one step', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      attach(inbox, new Node('a'));
      await inbox.journal.ready();
      store.commits = 0;
      await Promise.all(Array.from({ length: 200 }, (_, index) => inbox.accept(polled(incoming(String(index))))));
      assert.equal(store.commits, 1);
    });

    it('gives records of one answer together', async () => {
      const inbox = createInbox();
      const takes: number[] = [];
      attach(inbox, new Node('a', { onTake: (entries) => takes.push(entries.length) }));
      await inbox.accept(polled(incoming('1'), incoming('2'), incoming('3')));
      assert.deepEqual(takes, [3]);
    });
  });

  describe('dedupe (once across polling and callbacks and their retries)', () => {
    it('a polled record that comes again is repeated, whatever its text', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      const first = await inbox.accept(polled(incoming('1')));
      const again = await inbox.accept(polled(incoming('1', { body: 'other', messageDate: '2026-03-02T00:00:00Z' })));
      assert.deepEqual([...outcomes(first), ...outcomes(again)], ['new', 'repeated']);
      assert.equal(a.given.length, 1);
    });

    it('within one answer too', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1'), incoming('1')))), ['new', 'repeated']);
      assert.equal(a.given.length, 1);
    });

    it('within one step too, in the order of arrival', async () => {
      const inbox = createInbox();
      const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
      const [first, second] = await Promise.all([
        inbox.accept(called({ body: '1' })),
        inbox.accept(polled(incoming('1'))),
      ]);
      assert.deepEqual([...outcomes(first), ...outcomes(second)], ['new', 'duplicate']);
      assert.deepEqual([node.given.length, a.given.length], [1, 0]);
    });

    for (const order of [
      ['callback', 'poll'],
      ['poll', 'callback'],
    ] as Via[][]) {
      for (const [format, messageId] of [
        ['XMLv3', undefined],
        ['FORMv1', '1'],
      ] as const) {
        it(`${order.join(' then ')} of one ${format} message is delivered once, with retries of both`, async () => {
          const inbox = createInbox();
          const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
          const found: string[] = [];
          for (const via of [...order, ...order]) {
            const arrival =
              via === 'poll'
                ? polled(incoming('1'))
                : called({
                    body: '1',
                    ...(messageId === undefined ? { messageDate: '2026-03-01T10:00:00Z' } : { messageId }),
                  });
            found.push(...outcomes(await inbox.accept(arrival)));
          }
          assert.equal(found[0], 'new');
          assert.ok(!found.slice(1).includes('new'), found.join());
          assert.equal(node.given.length + a.given.length, 1);
        });
      }
    }

    it('off, everything is delivered, but a poll that repeats is still known to', async () => {
      dedupe = false;
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled(incoming('1')));
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['repeated']);
      assert.equal(a.given.length, 2);
    });

    it('off, the outbox still delivers once by messageId', async () => {
      dedupe = false;
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'), 'outbox');
      const record: OutboxRecord = { messageId: '1', body: 'x', recipientsList: [] };
      for (let index = 0; index < 3; index++) {
        await inbox.accept({ kind: 'outbox', via: 'poll', records: [record] });
      }
      assert.equal(a.given.length, 1);
    });

    it('remembers no longer than dedupeHours', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled(incoming('1')));
      mock.timers.tick(dedupeMs);
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['repeated']);
      mock.timers.tick(1);
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['new']);
      assert.equal(a.given.length, 2);
    });

    it('remembers for all of that when the clock is set forward by days', async () => {
      let setMs = 0;
      const clock = { ...createClock(), now: () => Date.now() + setMs };
      const inbox = createInboxOn({ store: new MemoryStore(), clock, dedupe: () => true, dedupeMs: () => dedupeMs });
      inboxes.push(inbox);
      attach(inbox, new Node('a'));
      await inbox.accept(polled(incoming('1')));
      setMs = 10 * dedupeMs;
      // So many that it looks for what is outdated.
      await inbox.accept(polled(...Array.from({ length: 1_000 }, (_, n) => incoming(`2-${n}`))));
      mock.timers.tick(dedupeMs);
      assert.deepEqual(outcomes(await inbox.accept(called({ messageId: '1' }))), ['duplicate']);
      mock.timers.tick(1);
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['new']);
    });

    it('remembers for all of that when the clock is set forward twice', async () => {
      let setMs = 0;
      const clock = { ...createClock(), now: () => Date.now() + setMs };
      const inbox = createInboxOn({ store: new MemoryStore(), clock, dedupe: () => true, dedupeMs: () => dedupeMs });
      inboxes.push(inbox);
      attach(inbox, new Node('a'));
      await inbox.accept(polled(incoming('1')));
      for (const byMs of [10 * dedupeMs, 50 * dedupeMs]) {
        mock.timers.tick(dedupeMs / 4);
        setMs += byMs;
        assert.deepEqual(outcomes(await inbox.accept(called({ messageId: '1' }))), ['duplicate']);
      }
    });

    it('lasts over a restart', async () => {
      const disk = await leaveDelivered();
      const after = createInbox(new FailingStore(disk));
      const b = attach(after, new Node('a'));
      await settle();
      assert.deepEqual(outcomes(await after.accept(polled(incoming('1')))), ['repeated']);
      assert.equal(b.given.length, 0);
    });
  });

  describe('on demand', () => {
    const list: Arrival = {
      kind: 'outbox',
      via: 'poll',
      records: [{ messageId: '1', body: 'x', recipientsList: [] }],
    };

    it('a node gets only what it asked for, with what it said, and watchers get it too', async () => {
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

    it('one node gets what is left and nobody else takes, once', async () => {
      const inbox = createInbox();
      await inbox.accept(list);
      const [asker, other] = ['asker', 'other'].map((id) => attach(inbox, new Node(id, { onDemand: true }), 'outbox'));
      await settle();
      assert.deepEqual(asker?.attempts, [1]);
      assert.equal(other?.given.length, 0);
      inbox.done(asker.last, asker);
      attach(inbox, new Node('later', { onDemand: true }), 'outbox');
      await inbox.journal.flush();
      assert.equal(inbox.isSettled, true);
    });

    it('what a node asked for and did not get before a restart is delivered after it', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      attach(before, new Node('asker', { onDemand: true }), 'outbox');
      await before.accept({ ...list, asker: 'asker' });
      await before.journal.close();
      const after = createInbox(new FailingStore(disk));
      const again = attach(after, new Node('asker', { onDemand: true }), 'outbox');
      await after.journal.ready();
      await settle();
      assert.deepEqual(again.attempts, [2]);
    });

    it('leaves what another node has in hand', async () => {
      const inbox = createInbox();
      const watcher = attach(inbox, new Node('watcher'), 'outbox');
      await inbox.accept(list);
      const asker = attach(inbox, new Node('asker', { onDemand: true }), 'outbox');
      await settle();
      assert.deepEqual([watcher.given.length, asker.given.length], [1, 0]);
    });
  });

  describe('redeploy (what was read but not delivered is delivered at the next start)', () => {
    it('a node that comes back under its id gets what it was owed, marked by its attempts', async () => {
      const inbox = createInbox();
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.accept(polled(incoming('1'), incoming('2')));
      inbox.done(a.last, a);
      inbox.detach('incoming', a);
      const again = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(again.texts, ['1']);
      assert.deepEqual(again.attempts, [2]);
      assert.equal(b.given.length, 2);
    });

    it('what a node that is gone was owed goes with it when the others have it', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.accept(polled(incoming('1')));
      inbox.detach('incoming', a);
      const c = attach(inbox, new Node('c'));
      await settle();
      assert.equal(store.disk.entries.size, 1);
      inbox.done(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
      assert.equal(c.given.length, 0);
    });

    it('what only a node that is gone was owed goes to whoever is there', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await inbox.accept(polled(incoming('1')));
      inbox.detach('incoming', a);
      await settle();
      const b = attach(inbox, new Node('b'));
      await settle();
      assert.deepEqual([b.texts, b.attempts], [['1'], [2]]);
    });

    it('a node that is detached gets nothing any more', async () => {
      const store = new FailingStore();
      store.turns = 1;
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      const accepted = inbox.accept(polled(incoming('1')));
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

    it('a node that is redeployed while a record is being saved gets it, as its neighbours do', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [a, b] = [attach(inbox, new Node('a')), attach(inbox, new Node('b'))];
      await inbox.journal.ready();
      store.turns = 5;
      const accepted = inbox.accept(polled(incoming('1')));
      while (store.commits === 0) await new Promise(setImmediate);
      inbox.detach('incoming', a);
      const again = attach(inbox, new Node('a'));
      await accepted;
      await settle();
      assert.deepEqual([a.texts, again.texts, b.texts], [[], ['1'], ['1']]);
    });

    it('done by a node that is gone does not count for its successor under another id', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.accept(polled(incoming('1')));
      inbox.detach('incoming', a);
      const b = attach(inbox, new Node('b'));
      await settle();
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 1);
      inbox.done(b.last, b);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('a called-back record goes to the node at its path when its own is gone', async () => {
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

    it('close and open find what was undelivered, with its attempts counted', async () => {
      const disk = new FakeDisk();
      for (const attempts of [1, 2, 3, 4]) {
        const inbox = createInbox(new FailingStore(disk));
        const a = attach(inbox, new Node('a'));
        if (attempts === 1) await inbox.accept(polled(incoming('1'), incoming('2')));
        await settle();
        assert.deepEqual(a.attempts, [attempts, attempts]);
        assert.deepEqual(a.texts, ['1', '2']);
        await inbox.journal.close();
      }
    });

    it('attempts in between are counted', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      const a = attach(before, new Node('a'));
      await before.accept(polled(incoming('1')));
      before.countAttempt(a.last, 2, a.id);
      before.countAttempt(a.last, 3, a.id);
      await before.journal.close();
      const b = attach(createInbox(new FailingStore(disk)), new Node('a'));
      await settle();
      assert.deepEqual(b.attempts, [4]);
    });

    it('can close and open in any order, and what is asked for meanwhile is done', async () => {
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

    it('closed for good is closed whatever comes late', async () => {
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

    it('a polled answer that comes as the inbox closes is kept', async () => {
      const store = new FailingStore();
      store.turns = 2;
      const inbox = createInbox(store);
      await inbox.journal.ready();
      const closing = inbox.journal.close();
      await new Promise(setImmediate);
      await inbox.accept(polled(incoming('1')));
      await closing;
      await inbox.journal.close();
      assert.equal(store.disk.entries.size, 1);
      assert.equal(store.isOpen, false);
    });

    it('what waits in memory is still there after close and open', async () => {
      const inbox = createInbox(new MemoryStore());
      const a = attach(inbox, new Node('a'));
      await inbox.accept(polled(incoming('1')));
      inbox.detach('incoming', a);
      await inbox.journal.close();
      const b = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual([b.texts, b.attempts], [['1'], [2]]);
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['repeated']);
    });

    it('does not answer for a callback that another inbox hands over before that is here', async () => {
      const [earlier, store] = [createInbox(), new FailingStore()];
      const later = createInbox(store);
      await later.journal.ready();
      await earlier.accept(called({ messageId: 'm1' }));
      const { ended } = await beginCommit(store, () => later.accept(polled(incoming('other'))));
      const handing = handOver(earlier, later);
      for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
      const [acceptance] = await later.accept(called({ messageId: 'm1' }));
      assert.deepEqual(acceptance, { outcome: 'duplicate', heldElsewhere: true });
      await Promise.all([ended, handing]);
      const [again] = await later.accept(called({ messageId: 'm1' }));
      assert.deepEqual([again?.outcome, again?.entry?.record.messageId], ['duplicate', 'm1']);
    });

    it('hands over to another inbox what is undelivered', async () => {
      const [earlier, later] = [createInbox(new MemoryStore()), createInbox()];
      const a = attach(earlier, new Node('a'));
      await earlier.accept(polled(incoming('1'), incoming('2')));
      earlier.done(a.last, a);
      await handOver(earlier, later);
      const b = attach(later, new Node('a'));
      await settle();
      assert.deepEqual([b.texts, b.attempts], [['1'], [2]]);
      assert.ok(earlier.isSettled);
      assert.deepEqual(outcomes(await later.accept(polled(incoming('1')))), ['repeated']);
    });

    it('hands over what only the store has too, and keeps it until the other has stored it', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const earlier = createInbox(from);
      await earlier.accept(polled(incoming('1')));
      await earlier.accept(called({ body: '2' }));
      await earlier.journal.close();
      const later = createInbox(to);
      const node = attach(later, new Node('node'));
      await settle();
      to.failing.add('commit');
      await assert.rejects(handOver(earlier, later), { code: 'SMS_STORE' });
      await settle();
      assert.deepEqual([node.texts, from.disk.entries.size], [[], 2]);
      to.failing.delete('commit');
      mock.timers.tick(5_000);
      await settle();
      assert.equal(to.disk.entries.size, 0);
      await handOver(earlier, later);
      assert.deepEqual([from.disk.entries.size, to.disk.entries.size], [0, 2]);
      const callback = attach(later, new Node('callback'), 'callback');
      await settle();
      assert.deepEqual([node.texts, callback.texts], [['1'], ['2']]);
    });

    it('does not get back what it has handed over, when the power fails', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const [earlier, later] = [createInbox(from), createInbox(to)];
      await earlier.accept(polled(incoming('1')));
      await handOver(earlier, later);
      await settle();
      from.disk.loseUnflushed();
      assert.deepEqual([from.disk.entries.size, to.disk.entries.size], [0, 1]);
    });

    it('keeps anew what it is given, where its store loses that before it is its own', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const open = to.open.bind(to);
      let isReset = false;
      let lose = () => {};
      to.open = async (events) => {
        lose = () => events?.onFailure?.(new StoreLapse('lost'));
        return { ...(await open(events)), isReset };
      };
      const [earlier, later] = [createInbox(from), createInbox(to)];
      await earlier.accept(polled(incoming('1')));
      const isWanted = () => {
        if (to.disk.entries.size > 0 && !isReset) {
          isReset = true;
          to.disk.entries.clear();
          lose();
          // It is not all that there is to give.
          from.turns = 20;
          void earlier.accept(polled(incoming('2')));
        }
        return true;
      };
      await handOver(earlier, later, { isWanted });
      await settle();
      assert.equal(to.disk.entries.size, 2);
    });

    it('knows no more of what was called back and handed over, since the other may let go of it', async () => {
      for (const fields of [{}, { messageId: '1' }]) {
        const [one, two] = [createInbox(), createInbox()];
        const a = attach(one, new Node('callback'), 'callback');
        await one.accept(called(fields));
        one.detach('callback', a);
        await handOver(one, two);
        const b = attach(two, new Node('callback'), 'callback');
        await settle();
        await release(two, b.last);
        assert.deepEqual(outcomes(await one.accept(called(fields))), ['new']);
      }
    });

    it('hands over what neither could store, once, as soon as the other can', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const earlier = createInbox(from);
      const later = createInbox(to);
      const node = attach(later, new Node('node'));
      await settle();
      for (const store of [from, to]) store.failing.add('commit').add('open');
      await earlier.accept(polled(incoming('1'), incoming('2')));
      await assert.rejects(handOver(earlier, later), { code: 'SMS_STORE' });
      await settle();
      assert.deepEqual(node.texts, []);
      to.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      await handOver(earlier, later);
      await settle();
      assert.deepEqual([node.texts, to.disk.entries.size], [['1', '2'], 2]);
      from.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      await handOver(earlier, later);
      await settle();
      assert.deepEqual([node.texts, from.disk.entries.size], [['1', '2'], 0]);
      assert.ok(earlier.isSettled);
    });

    it('takes nothing twice after a crash, though it remembers no identifiers', async () => {
      dedupe = false;
      dedupeMs = 0;
      const [from, to] = [new FailingStore(), new FailingStore()];
      const earlier = createInbox(from);
      const later = createInbox(to);
      await earlier.accept(polled(incoming('1')));
      const before = copyDisk(from.disk);
      await handOver(earlier, later);
      const node = attach(later, new Node('node'));
      await settle();
      later.done(node.last, node);
      await later.journal.flush();
      for (const [key, text] of to.disk.remembered) {
        const { at, forMs } = parseRemembered(text);
        if (at + forMs < Date.now() + 24 * 3_600_000) to.disk.remembered.delete(key);
      }
      const next = createInbox(new FailingStore(copyDisk(to.disk)));
      const again = attach(next, new Node('node'));
      await handOver(createInbox(new FailingStore(before)), next);
      await settle();
      assert.deepEqual([node.texts, again.texts], [['1'], []]);
    });

    it('keeps what it is giving to another when those whom it is for come back', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const earlier = createInbox(from);
      const later = createInbox(to);
      await earlier.accept(polled(incoming('1')));
      let isWanted = true;
      to.turns = 100;
      const handing = handOver(earlier, later, { isWanted: () => isWanted });
      while (to.commits === 0) await settle();
      isWanted = false;
      await handing;
      await later.journal.flush();
      assert.deepEqual([from.disk.entries.size, to.disk.entries.size], [1, 0]);
      assert.ok(later.isSettled);
      const node = attach(earlier, new Node('node'));
      await settle();
      assert.deepEqual(node.texts, ['1']);
    });

    it('gives nothing away that the other has in its memory alone, though that was closed since it failed', async () => {
      const [from, to] = [new FailingStore(), new FailingStore()];
      const earlier = createInbox(from);
      const later = createInbox(to);
      await earlier.accept(polled(incoming('1')));
      to.failing.add('open').add('commit');
      await assert.rejects(handOver(earlier, later), { code: 'SMS_STORE' });
      await later.journal.close();
      await assert.rejects(handOver(earlier, later), { code: 'SMS_STORE' });
      await settle();
      assert.deepEqual([from.disk.entries.size, to.disk.entries.size], [1, 0]);
      to.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      await handOver(earlier, later);
      await settle();
      assert.deepEqual([from.disk.entries.size, to.disk.entries.size], [0, 1]);
    });

    it('new entries stay behind older ones even when the clock was set back', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      await before.accept(polled(incoming('1'), incoming('2')));
      await before.journal.close();
      mock.timers.reset();
      mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 2, 1, 9) });
      const between = createInbox(new FailingStore(disk));
      await between.accept(polled(incoming('3')));
      await between.journal.close();
      const a = attach(createInbox(new FailingStore(disk)), new Node('a'));
      await settle();
      assert.deepEqual(a.texts, ['1', '2', '3']);
    });
  });

  describe('release (the service keeps it and retries)', () => {
    it('makes a called-back record new again', async () => {
      for (const fields of [{}, { messageId: '1' }]) {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const node = attach(inbox, new Node('callback'), 'callback');
        await inbox.accept(called(fields));
        const ended = inbox.ended(node.last);
        await release(inbox, node.last);
        assert.equal(await ended, false);
        assert.equal(store.disk.entries.size, 0);
        // That it was sent into the flow is all that is known of it.
        assert.ok([...store.disk.remembered.keys()].every((key) => key.startsWith('answer:')));
        assert.deepEqual(outcomes(await inbox.accept(called(fields))), ['new']);
        assert.deepEqual(node.attempts, [1, 2]);
      }
    });

    for (const isStopped of [true, false]) {
      it(`comes marked also after ${isStopped ? 'a stop' : 'a crash'}, and again`, async () => {
        for (const fields of [{}, { messageId: '1' }]) {
          const disk = new FakeDisk();
          const attempts: number[] = [];
          for (let process = 0; process < 3; process++) {
            const store = new FailingStore(disk);
            const inbox = createInbox(store);
            const node = attach(inbox, new Node('callback'), 'callback');
            assert.deepEqual(outcomes(await inbox.accept(called(fields))), ['new']);
            attempts.push(...node.attempts);
            await release(inbox, node.last);
            if (isStopped) await inbox.journal.close();
            else {
              inboxes.pop();
              store.kill();
            }
          }
          assert.deepEqual(attempts, [1, 2, 3]);
        }
      });
    }

    for (const when of ['before', 'as'] as const) {
      it(`comes marked to a node that is taken away ${when} it is saved anew`, async () => {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const node = attach(inbox, new Node('callback'), 'callback');
        await inbox.accept(called());
        await release(inbox, node.last);
        if (when === 'before') inbox.detach('callback', node);
        const { ended: retry } = await beginCommit(store, () => inbox.accept(called()));
        if (when === 'as') inbox.detach('callback', node);
        const again = attach(inbox, new Node('callback'), 'callback');
        await retry;
        await settle();
        assert.deepEqual([node.attempts, again.attempts], [[1], [2]]);
      });
    }

    it('comes marked to a node that comes back when it is saved anew', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      await release(inbox, node.last);
      const { ended: retry } = await beginCommit(store, () => inbox.accept(called()));
      inbox.detach('callback', node);
      await retry;
      await settle();
      const again = attach(inbox, new Node('callback'), 'callback');
      await settle();
      assert.deepEqual([node.attempts, again.attempts], [[1], [2]]);
    });

    it('a retry that comes while the flow has it waits for the same end', async () => {
      const inbox = createInbox();
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      const [retry] = await inbox.accept(called());
      assert.equal(retry?.outcome, 'duplicate');
      assert.equal(retry.entry, node.last);
      const ended = inbox.ended(node.last);
      inbox.done(node.last, node);
      assert.equal(await ended, true);
      const [later] = await inbox.accept(called());
      assert.deepEqual(later, { outcome: 'duplicate' });
    });

    it('when its polled copy has come meanwhile, that stands in, once', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
      await inbox.accept(called({ body: '1' }));
      await inbox.accept(polled(incoming('1')));
      assert.equal(a.given.length, 0);
      await release(inbox, node.last);
      assert.deepEqual(a.texts, ['1']);
      assert.equal(a.last.record.messageId, '1');
      assert.equal(a.last.channel, 'incoming');
      assert.deepEqual(outcomes(await inbox.accept(called({ body: '1' }))), ['duplicate']);
      assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['repeated']);
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
      assert.equal(node.given.length, 1);
    });

    it('the stand-in is not given to a node that was taken away meanwhile', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
      await inbox.accept(called({ body: '1' }));
      await inbox.accept(polled(incoming('1')));
      const { ended: released } = await beginCommit(store, () => release(inbox, node.last));
      inbox.detach('incoming', a);
      const again = attach(inbox, new Node('a'));
      await released;
      await settle();
      assert.deepEqual([a.texts, again.texts], [[], ['1']]);
    });

    it('each of two equal texts of one second is known by its own instant', async () => {
      const inbox = createInbox();
      const [node, a] = [attach(inbox, new Node('callback'), 'callback'), attach(inbox, new Node('a'))];
      await settle();
      const early = { body: 'yes', messageDate: '2026-03-01T10:00:00.100Z' };
      const late = { body: 'yes', messageDate: '2026-03-01T10:00:00.900Z' };
      const [first] = await inbox.accept(called(early));
      const [second] = await inbox.accept(called(late));
      assert.deepEqual([first?.outcome, second?.outcome], ['new', 'new']);
      const [copy] = await inbox.accept(polled(incoming('early', early)));
      assert.equal(copy?.entry, first?.entry);
      const [retry] = await inbox.accept(called(early));
      assert.equal(retry?.entry, first?.entry);
      assert.ok(first?.entry && second?.entry);
      await release(inbox, second.entry);
      assert.equal(a.given.length, 0);
      await release(inbox, first.entry);
      assert.equal(a.last.record.messageId, 'early');
      assert.deepEqual(outcomes(await inbox.accept(called(late))), ['new']);
      assert.equal(node.given.length, 3);
    });

    it('the polled copy stands in also when it came in the same step, or before a restart', async () => {
      for (const isRestarted of [false, true]) {
        const disk = new FakeDisk();
        let inbox = createInbox(new FailingStore(disk));
        let node = attach(inbox, new Node('callback'), 'callback');
        await Promise.all([inbox.accept(called({ body: '1' })), inbox.accept(polled(incoming('1')))]);
        if (isRestarted) {
          await inbox.journal.close();
          inbox = createInbox(new FailingStore(disk));
          node = attach(inbox, new Node('callback'), 'callback');
          await settle();
        }
        const a = attach(inbox, new Node('a'));
        await release(inbox, node.last);
        await settle();
        assert.deepEqual(a.texts, ['1']);
      }
    });

    it('a retry in the step of the release is told that the flow did not take it', async () => {
      const inbox = createInbox();
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      const [[retry]] = await Promise.all([inbox.accept(called()), release(inbox, node.last)]);
      assert.ok(retry?.entry);
      assert.equal(await inbox.ended(retry.entry), false);
    });

    it('a callback whose inbox is closed meanwhile is not told that it was delivered', async () => {
      const inbox = createInbox();
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      const ended = inbox.ended(node.last);
      await inbox.journal.close();
      assert.equal(await ended, false);
      assert.equal(await inbox.ended(node.last), false);
    });

    it('of what a redeployed node is about to be given again leaves nothing for it, here or in the store', async () => {
      for (const turnsBefore of [0, 1, 3, 6]) {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const node = attach(inbox, new Node('callback'), 'callback');
        await inbox.accept(called());
        store.turns = 3;
        const released = release(inbox, node.last);
        for (let turn = 0; turn < turnsBefore; turn++) await new Promise(setImmediate);
        inbox.detach('callback', node);
        const successor = attach(inbox, new Node('callback'), 'callback');
        await released;
        store.turns = 0;
        await settle();
        assert.deepEqual([successor.texts, [...store.disk.entries]], [[], []]);
        await inbox.accept(called());
        assert.deepEqual(successor.attempts, [2]);
      }
    });

    it('when it is polled again in the same step, the stand-in alone is left', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      await inbox.accept(polled(incoming('1', { body: 'hello' })));
      await Promise.all([release(inbox, node.last), inbox.accept(polled(incoming('1', { body: 'hello' })))]);
      const a = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(a.texts, ['hello']);
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.deepEqual([...store.disk.entries], []);
    });

    it('twice, or after it was delivered, does nothing', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      const { last } = node;
      await Promise.all([release(inbox, last), release(inbox, last)]);
      await inbox.accept(called());
      inbox.done(node.last, node);
      await release(inbox, node.last);
      assert.deepEqual(outcomes(await inbox.accept(called())), ['duplicate']);
    });
  });

  describe('a callback whose node is gone before the flow has taken it', () => {
    const elsewhere = (fields: Partial<IncomingRecord> = {}) => called(fields, 'other', '/other');

    function attachOther(inbox: Inbox): Node {
      return attach(inbox, new Node('other', { path: '/other' }), 'callback');
    }

    /** Has one called back to a node, which is taken away for good then. */
    async function strand(inbox: Inbox, fields: Partial<IncomingRecord> = {}): Promise<Node> {
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(called(fields));
      inbox.detach('callback', node);
      return node;
    }

    it('goes to another node that is called with the same, marked, and is kept once', async () => {
      for (const fields of [{}, { messageId: '1' }]) {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const node = await strand(inbox, fields);
        const ended = inbox.ended(node.last);
        const other = attachOther(inbox);
        await settle();
        const { commits } = store;
        const [acceptance] = await inbox.accept(elsewhere(fields));
        assert.equal(store.commits, commits + 1);
        assert.deepEqual([...store.disk.entries.keys()], [other.last.id]);
        assert.equal(await ended, false);
        assert.deepEqual([acceptance?.outcome, acceptance?.entry, other.attempts], ['duplicate', other.last, [2]]);
        const retry = await inbox.accept(elsewhere(fields));
        assert.equal(retry[0]?.entry, other.last);
        inbox.done(other.last, other);
        await inbox.journal.flush();
        assert.deepEqual([...store.disk.entries], []);
        assert.deepEqual(await inbox.accept(elsewhere(fields)), [{ outcome: 'duplicate' }]);
      }
    });

    it('goes to the other also when both are called in one step', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const other = attachOther(inbox);
      await settle();
      const accepting = Promise.all([inbox.accept(called()), inbox.accept(elsewhere()), inbox.accept(elsewhere())]);
      const [[first], [second], [third]] = await accepting;
      await settle();
      assert.ok(first?.entry);
      assert.equal(await inbox.ended(first.entry), false);
      assert.deepEqual([other.attempts, [...store.disk.entries.keys()]], [[1], [other.last.id]]);
      assert.deepEqual([second?.entry, third?.entry], [other.last, other.last]);
    });

    it('counts its attempts once, though the service had been told before to bring it again', async () => {
      const inbox = createInbox();
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(called());
      await release(inbox, node.last);
      await inbox.accept(called());
      inbox.detach('callback', node);
      const other = attachOther(inbox);
      await settle();
      await inbox.accept(elsewhere());
      assert.deepEqual([node.attempts, other.attempts], [[1, 2], [3]]);
    });

    for (const isInOneStep of [false, true]) {
      const how = isInOneStep ? ', polled in the same step' : '';

      it(`takes its polled copy along to the other, which stands in when that refuses it, too${how}`, async () => {
        const store = new FailingStore();
        const inbox = createInbox(store);
        await strand(inbox, { body: '1' });
        const other = attachOther(inbox);
        await settle();
        const copied = inbox.accept(polled(incoming('1')));
        if (!isInOneStep) await copied;
        await inbox.accept(elsewhere({ body: '1' }));
        assert.equal(store.disk.entries.size, 1);
        await release(inbox, other.last);
        const a = attach(inbox, new Node('a'));
        await settle();
        assert.deepEqual([other.texts, a.texts, a.last.record.messageId], [['1'], ['1'], '1']);
        inbox.done(a.last, a);
        await inbox.journal.flush();
        assert.deepEqual([...store.disk.entries], []);
      });
    }

    it('goes to those who poll when they are brought it, marked, and is kept once', async () => {
      const disk = new FakeDisk();
      const store = new FailingStore(disk);
      const inbox = createInbox(store);
      const node = await strand(inbox, { body: '1' });
      const ended = inbox.ended(node.last);
      const a = attach(inbox, new Node('a'));
      await settle();
      const { commits } = store;
      const acceptances = await inbox.accept(polled(incoming('1'), incoming('1')));
      assert.equal(store.commits, commits + 1);
      assert.equal(await ended, false);
      assert.deepEqual(outcomes(acceptances), ['duplicate', 'repeated']);
      assert.deepEqual([a.texts, a.attempts, a.last.channel], [['1'], [2], 'incoming']);
      assert.equal(a.last.polledCopy, undefined);
      assert.deepEqual([...disk.entries.keys()], [a.last.id]);
      assert.deepEqual(await inbox.accept(called({ body: '1' })), [{ outcome: 'duplicate' }]);
      store.kill();
      inboxes.pop();
      const after = attach(createInbox(new FailingStore(disk)), new Node('a'));
      await settle();
      assert.deepEqual([after.texts, after.attempts], [['1'], [3]]);
    });

    for (const [who, id, channel] of [
      ['whoever polls next', 'a', 'incoming'],
      ['its node, should that come first', 'callback', 'callback'],
    ] as const) {
      it(`waits with its polled copy while nobody polls, and goes to ${who}`, async () => {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const node = await strand(inbox, { body: '1' });
        const other = attachOther(inbox);
        await settle();
        const [copy] = await inbox.accept(polled(incoming('1')));
        assert.equal(copy?.entry, node.last);
        attach(inbox, new Node('another', { path: '/another' }), 'callback');
        await settle();
        const comes = attach(inbox, new Node(id), channel);
        await settle();
        assert.deepEqual([comes.texts, other.texts, store.disk.entries.size], [['1'], [], 1]);
      });
    }

    it('goes to those who poll when they have been brought it already, in the next deployment', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await inbox.accept(called({ body: '1' }));
      await inbox.accept(polled(incoming('1')));
      const ended = inbox.ended(node.last);
      inbox.detach('callback', node);
      await settle();
      assert.deepEqual(a.texts, []);
      attachOther(inbox);
      await settle();
      assert.equal(await ended, false);
      assert.deepEqual(a.texts, ['1']);
    });

    it('goes to those who poll when its node stays away, though no other node comes', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await strand(inbox, { body: '1' });
      await inbox.accept(polled(incoming('1')));
      mock.timers.tick(19_999);
      await settle();
      assert.deepEqual(a.texts, []);
      mock.timers.tick(1);
      await settle();
      assert.deepEqual(a.texts, ['1']);
    });

    it('goes to those who poll when the next process has no such node', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      const node = attach(before, new Node('callback', { path: '/sms' }), 'callback');
      await before.accept(called({ body: '1' }));
      await before.accept(called({ body: '2' }));
      await before.accept(polled(incoming('1')));
      before.detach('callback', node);
      await before.journal.close();
      const inbox = createInbox(new FailingStore(disk));
      const a = attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(a.texts, ['1']);
      // The service may not bring it again.
      const back = attach(inbox, new Node('callback'), 'callback');
      await settle();
      assert.deepEqual([back.texts, back.attempts], [['2'], [2]]);
    });

    it('waits for its node while that is being redeployed, whoever is brought it meanwhile', async () => {
      for (const [id, path] of [
        ['callback', '/new'],
        ['successor', '/sms'],
      ] as const) {
        const inbox = createInbox();
        const [a, other] = [attach(inbox, new Node('a')), attachOther(inbox)];
        await settle();
        const node = await strand(inbox, { body: '1' });
        const [copy] = await inbox.accept(polled(incoming('1')));
        const [call] = await inbox.accept(elsewhere({ body: '1' }));
        assert.deepEqual([copy?.entry, call?.entry], [node.last, node.last]);
        const again = attach(inbox, new Node(id, { path }), 'callback');
        await settle();
        await inbox.accept(polled(incoming('1')));
        attach(inbox, new Node('another'));
        await settle();
        assert.deepEqual([again.texts, again.attempts, a.texts, other.texts], [['1'], [2], [], []]);
        inbox.done(again.last, again);
        assert.equal(await inbox.ended(again.last), true);
      }
    });

    it('waits for its node that was taken away for a redeploy as it was called', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await settle();
      inbox.detach('callback', node);
      await inbox.accept(called({ body: '1' }));
      await inbox.accept(polled(incoming('1')));
      const again = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await settle();
      assert.deepEqual([again.texts, again.attempts, a.texts], [['1'], [1], []]);
    });

    it('waits for its node while all are being redeployed', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      await settle();
      await strand(inbox, { body: '1' });
      inbox.detach('incoming', a);
      await inbox.accept(polled(incoming('1')));
      const back = attach(inbox, new Node('a'));
      const again = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
      await settle();
      assert.deepEqual([back.texts, again.texts], [[], ['1']]);
    });

    it('stays with whoever has it in hand, though that has another path by now', async () => {
      const inbox = createInbox();
      const a = attach(inbox, new Node('a'));
      const node = await strand(inbox, { body: '1' });
      const heir = attach(inbox, new Node('heir', { path: '/sms' }), 'callback');
      await settle();
      inbox.detach('callback', heir);
      const moved = attach(inbox, new Node('heir', { path: '/new' }), 'callback');
      await settle();
      const [copy] = await inbox.accept(polled(incoming('1')));
      attach(inbox, new Node('another'));
      await settle();
      assert.equal(copy?.entry, node.last);
      assert.deepEqual([heir.texts, moved.texts, a.texts], [['1'], ['1'], []]);
    });

    it('waits with its polled copy while the store fails, and goes to those who poll when that is back', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      await strand(inbox, { body: '1' });
      const a = attach(inbox, new Node('a'));
      await settle();
      store.failing.add('commit');
      await inbox.accept(polled(incoming('1')));
      await settle();
      assert.deepEqual(a.texts, []);
      store.failing.delete('commit');
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(a.texts, ['1']);
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.deepEqual([...store.disk.entries], []);
    });

    it('that comes while another inbox has not got the rest yet goes to those who poll: it may come twice', async () => {
      const [earlier, to] = [createInbox(), new FailingStore()];
      const later = createInbox(to);
      await earlier.accept(called({ body: '1' }));
      const node = attach(later, new Node('a'));
      await settle();
      const { ended } = await beginCommit(to, () => handOver(earlier, later));
      const accepting = later.accept(polled(incoming('1')));
      await Promise.all([ended, accepting]);
      await settle();
      assert.deepEqual(node.texts, ['1']);
    });

    it('is delivered by itself to each where duplicates are not left out', async () => {
      dedupe = false;
      const inbox = createInbox();
      await strand(inbox, { body: '1' });
      const [a, other] = [attach(inbox, new Node('a')), attachOther(inbox)];
      await settle();
      await inbox.accept(polled(incoming('1')));
      await inbox.accept(elsewhere({ body: '1' }));
      assert.deepEqual([a.attempts, other.attempts], [[1], [1]]);
      const again = attach(inbox, new Node('callback'), 'callback');
      await settle();
      assert.deepEqual(again.attempts, [2]);
    });
  });

  it('of two nodes at one path the one that was called gets again what it has not taken', async () => {
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

  it('of two nodes at the path of one that is gone the first gets what that has not taken', async () => {
    const inbox = createInbox();
    const node = attach(inbox, new Node('callback', { path: '/sms' }), 'callback');
    await inbox.accept(called());
    inbox.detach('callback', node);
    const heirs = ['first', 'second'].map((id) => attach(inbox, new Node(id, { path: '/sms' }), 'callback'));
    await settle();
    assert.deepEqual(
      heirs.map(({ texts }) => texts),
      [['hello'], []],
    );
  });

  describe('when the store fails (polling pauses, tries again by itself)', () => {
    for (const step of ['open', 'recall', 'commit'] as const) {
      it(`at ${step}: what was polled is delivered, what was called back is refused, and it recovers by itself`, async () => {
        const store = new FailingStore();
        const inbox = createInbox(store);
        const [a, node] = [attach(inbox, new Node('a')), attach(inbox, new Node('callback'), 'callback')];
        if (step !== 'open') await inbox.journal.ready();
        store.failing.add(step);
        await inbox.accept(polled(incoming('1')));
        assert.deepEqual(a.texts, ['1']);
        await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
        await assert.rejects(inbox.journal.ready(), { code: 'SMS_STORE' });
        assert.equal(inbox.journal.failure?.code, 'SMS_STORE');
        assert.match(inbox.journal.failure?.message ?? '', /ENOSPC/);
        for (let index = 0; index < 4; index++) {
          mock.timers.tick(5_000);
          await settle();
        }
        await inbox.accept(polled(incoming('2'), incoming('2')));
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
        assert.deepEqual(outcomes(await inbox.accept(polled(incoming('1')))), ['repeated']);
        assert.deepEqual(outcomes(await inbox.accept(called())), ['new']);
      });
    }

    it('at sweep: it is reported, and it recovers', async () => {
      const store = new FailingStore();
      store.failing.add('sweep');
      const inbox = createInbox(store);
      attach(inbox, new Node('a'));
      await settle();
      assert.deepEqual(storeStates, ['SMS_STORE']);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(storeStates, ['SMS_STORE', undefined]);
    });

    it('what a shared store has lost and could not be kept anew at once is kept anew when it can', async () => {
      class SharedStore extends FailingStore {
        readonly shared = true;
        isReset = false;

        override async open(): Promise<RecoveredState> {
          return { ...(await super.open()), isReset: this.isReset };
        }
      }
      const store = new SharedStore();
      const inbox = createInbox(store);
      const node = attach(inbox, new Node('node'));
      await inbox.accept(polled(incoming('1')));
      store.failing.add('commit');
      await inbox.accept(polled(incoming('2')));
      store.disk.entries.clear();
      store.isReset = true;
      mock.timers.tick(5_000);
      await settle();
      store.isReset = false;
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.equal(store.disk.entries.size, 2);
      assert.deepEqual(node.texts, ['1', '2']);
      inbox.done(node.given[0]?.entry as Entry, node);
      inbox.done(node.last, node);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('a commit that failed but was written after all delivers at most once more, marked', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.journal.ready();
      store.failsAfterwards = true;
      store.failing.add('commit');
      await inbox.accept(polled(incoming('1')));
      inbox.done(a.last, a);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.ok(a.given.length <= 2);
      assert.ok(
        a.attempts.slice(1).every((attempts) => attempts > 1),
        a.attempts.join(),
      );
      inbox.done(a.last, a);
      await inbox.journal.flush();
      assert.equal(store.disk.entries.size, 0);
    });

    it('what was delivered meanwhile is not delivered again', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await settle();
      await inbox.accept(polled(incoming('1')));
      const first = a.last;
      store.failing.add('commit');
      await inbox.accept(polled(incoming('2')));
      inbox.done(first, a);
      inbox.done(a.last, a);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(a.texts, ['1', '2']);
      assert.equal(store.disk.entries.size, 0);
    });

    describe('while something is remembered that a message may answer', () => {
      /** What the matching of a message has led to, and what it is given. */
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
            correlate(look) {
              const isKnown = look('sent') !== undefined;
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
        void inbox.accept(polled(incoming('1')));
        await settle();
        return { store, node };
      }

      async function pass(ms: number): Promise<void> {
        for (let passed = 0; passed < ms; passed += 5_000) {
          mock.timers.tick(5_000);
          await settle();
        }
      }

      it('what was polled waits for the store, and is matched', async () => {
        const { store, node } = await failAtMessage();
        await pass(30_000);
        assert.deepEqual(node.texts, []);
        store.failing.clear();
        await pass(5_000);
        assert.deepEqual([node.texts, node.attempts, matched], [['1'], [1], ['1']]);
        assert.ok((node.last.record as IncomingRecord).sent);
      });

      it('but no longer than 60 s: then it is delivered, and matched when the store is back', async () => {
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

    it('a release is done all the same, and the service brings it again', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const node = attach(inbox, new Node('callback'), 'callback');
      await inbox.accept(called());
      store.failing.add('commit');
      const ended = inbox.ended(node.last);
      await release(inbox, node.last);
      assert.equal(await ended, false);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual(outcomes(await inbox.accept(called())), ['new']);
      assert.equal(store.disk.entries.size, 1);
    });

    it('closed meanwhile, it gives the store free and keeps what it could not write', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      const a = attach(inbox, new Node('a'));
      await inbox.journal.ready();
      store.failing.add('commit');
      await inbox.accept(polled(incoming('1')));
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

    it('closed after a failure that left nothing unwritten, it gives the store free too', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      await inbox.journal.ready();
      store.failing.add('recall');
      await assert.rejects(inbox.accept(called()), { code: 'SMS_STORE' });
      await inbox.journal.close();
      assert.equal(store.isOpen, false);
      assert.equal(inbox.isSettled, true);
    });

    it('does not keep the process from ending once it is closed', async () => {
      const store = new FailingStore();
      store.failing.add('open');
      const inbox = createInbox(store);
      inbox.journal.open();
      await settle();
      await inbox.journal.close();
      store.failing.clear();
      mock.timers.tick(60_000);
      await settle();
      assert.equal(store.isOpen, false);
    });
  });

  describe('crash (kill -9)', () => {
    /** What was committed and delivered, and is still held. */
    async function leaveHeld(): Promise<FakeDisk> {
      const disk = await leaveDelivered();
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('1')] }));
      return disk;
    }

    it('finds what was polled even though it was not committed yet', async () => {
      const disk = new FakeDisk();
      const store = new FailingStore(disk);
      const inbox = createInbox(store);
      await inbox.journal.ready();
      store.turns = 1_000_000;
      void inbox.accept(polled(incoming('1')));
      inboxes.pop();
      store.kill();
      const after = createInbox(new FailingStore(disk));
      const a = attach(after, new Node('a'));
      await settle();
      assert.deepEqual([a.texts, a.attempts], [['1'], [1]]);
      assert.equal(disk.held.size, 0);
      assert.deepEqual(outcomes(await after.accept(polled(incoming('1')))), ['repeated']);
    });

    it('does not deliver again what was committed and delivered, though it is still held', async () => {
      const disk = await leaveHeld();
      const b = attach(createInbox(new FailingStore(disk)), new Node('a'));
      await settle();
      assert.equal(b.given.length, 0);
      assert.equal(disk.held.size, 0);
    });

    it('does not deliver again what is still held, though it was down for longer than it remembers', async () => {
      const disk = await leaveHeld();
      mock.timers.setTime(Date.now() + 20 * 24 * 3_600_000);
      const store = new FailingStore(disk);
      const b = attach(createInbox(store), new Node('a'));
      await settle();
      assert.deepEqual([b.given.length, disk.held.size, store.sweeps], [0, 0, 1]);
    });

    it('does not deliver again what is still held, though nobody can look up that it was committed', async () => {
      const disk = new FakeDisk();
      const before = createInbox(new FailingStore(disk));
      await before.accept(polled(incoming('1')));
      await before.journal.close();
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('1')] }));
      disk.hold(JSON.stringify({ kind: 'incoming', records: [incoming('2')] }));
      const store = new FailingStore(disk);
      store.failing.add('recall');
      const a = attach(createInbox(store), new Node('a'));
      await settle();
      for (const { entry } of [...a.given]) inboxes.at(-1)?.done(entry, a);
      for (let index = 0; index < 3; index++) {
        mock.timers.tick(5_000);
        await settle();
      }
      assert.deepEqual([a.texts, disk.held.size], [['1'], 2]);
      store.failing.clear();
      mock.timers.tick(5_000);
      await settle();
      assert.deepEqual([a.texts, a.attempts.at(-1), disk.held.size], [['1', '2'], 1, 0]);
    });
  });

  describe('sweep', () => {
    it('is done again and again while identifiers come, with the age of dedupeHours', async () => {
      const store = new FailingStore();
      const inbox = createInbox(store);
      attach(inbox, new Node('a'));
      for (let index = 0; index < 20; index++) {
        await inbox.accept(polled(...Array.from({ length: 100 }, (_, n) => incoming(`${index}-${n}`))));
      }
      await settle();
      assert.ok(store.sweeps >= 4);
      for (const text of store.disk.remembered.values()) assert.equal(parseRemembered(text).forMs, dedupeMs);
    });
  });
});
