import assert from 'node:assert/strict';
import type { Timer } from '../../../src/clock';
import { type OutboxBatch, OutboxSubscription } from '../../../src/delivery/outbox-subscription';
import type { BatchSlice, EntryDelivery, InboxSubscriber } from '../../../src/delivery/subscribers';
import type { Correlator } from '../../../src/inbox/context';
import type { Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { OutboxRecord } from '../../../src/model';
import type { Changes, RecoveredState, StoreEvents } from '../../../src/store/store';
import { until } from '../../until';
import { settle, VirtualClock } from '../../virtual-clock';
import { incoming as createIncoming, polled as createPolled } from '../inbox/arrivals';
import { createInboxOn } from '../inbox/inbox-on';
import { FailingStore, FakeDisk } from '../store/failing-store';

const same = { body: 'the same', messageDate: '2026-03-01T10:00:00Z' };
const incoming = (messageId: string) => createIncoming(messageId, same);
const polled = (...ids: string[]) => createPolled(...ids.map(incoming));

function entry(index: number, called: boolean): Entry {
  return {
    id: String(index).padStart(11, '0'),
    part: 'inbox',
    subscribers: [],
    channel: called ? 'callback' : 'incoming',
    kind: 'incoming',
    record: incoming(String(index)),
    ...(called ? { address: { node: 'a', path: '/sms' } } : undefined),
    attempts: 0,
  };
}

/** A store that measures its commits. */
class MeasuredStore extends FailingStore {
  /** Largest number of items that one commit stored. */
  largest = 0;
  events: Partial<StoreEvents> | undefined;

  override open(events?: Partial<StoreEvents>): Promise<RecoveredState> {
    this.events = events;
    return super.open(events);
  }

  override commit(changes: Changes): Promise<void> {
    this.largest = Math.max(this.largest, changes.keep.size);
    return super.commit(changes);
  }
}

/** A clock that uses the real event loop, and counts its turns. */
class TurningClock extends VirtualClock {
  turns = 0;

  override nextTurn(callback: () => void): Timer {
    const immediate = setImmediate(() => {
      this.turns++;
      callback();
    });
    return { cancel: () => clearImmediate(immediate) };
  }
}

/** Receives entries, and acknowledges them one turn later. */
class Node implements InboxSubscriber {
  readonly taken: string[] = [];
  /** Number of entries in each call of `take`. */
  readonly gifts: number[] = [];
  readonly slices: (BatchSlice | undefined)[] = [];
  onTake: (taken: readonly Entry[]) => void = () => {};

  constructor(
    readonly id: string,
    readonly path = '/sms',
  ) {}

  receive(given: readonly EntryDelivery[], _context?: unknown, slice?: BatchSlice): void {
    const entries = given.map(({ entry }) => entry);
    this.slices.push(slice);
    this.gifts.push(entries.length);
    for (const { record } of entries) this.taken.push(String(record.messageId));
    this.onTake(entries);
  }
}

describe('Subscribers', () => {
  let clock: TurningClock;
  let inboxes: Inbox[];
  let faults: unknown[];

  beforeEach(() => {
    clock = new TurningClock();
    inboxes = [];
    faults = [];
  });
  afterEach(async () => {
    for (const inbox of inboxes) await inbox.journal.close();
  });

  function createInbox(
    left: number,
    { called = false, correlator }: { called?: boolean; correlator?: Correlator } = {},
  ): { inbox: Inbox; store: MeasuredStore } {
    const disk = new FakeDisk();
    for (let index = 0; index < left; index++) {
      const stored = entry(index, called);
      disk.entries.set(stored.id, JSON.stringify(stored));
    }
    const store = new MeasuredStore(disk);
    const onFault = (error: unknown) => void faults.push(error);
    const options = { dedupe: () => true, dedupeMs: () => 1e9, onFault, ...(correlator ? { correlator } : undefined) };
    const inbox = createInboxOn({ store, clock, ...options });
    inboxes.push(inbox);
    return { inbox, store };
  }

  const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index));

  for (const [what, called] of [
    ['from polls', false],
    ['from callbacks', true],
  ] as const) {
    it(`delivers 30,000 entries ${what} in order, a few hundred per turn`, async function () {
      this.timeout(120_000);
      const { inbox, store } = createInbox(30_000, { called });
      const node = new Node('a');
      node.onTake = (entries) =>
        setImmediate(() => {
          for (const one of entries) inbox.acknowledge(one, node);
        });
      inbox.attach(called ? 'callback' : 'incoming', node);
      await until(() => node.taken.length === 30_000, 'all is given', { limitMs: 100_000 });
      await clock.advance(25);
      await until(() => store.disk.entries.size === 0, 'all is forgotten', { limitMs: 100_000 });
      assert.deepEqual(node.taken, ids(30_000));
      assert.ok(node.gifts.every((count) => count <= 500));
      assert.ok(clock.turns >= 2 * (30_000 / 500), `${clock.turns} turns`);
    });
  }

  it('delivers new entries after older entries', async () => {
    const { inbox } = createInbox(2_000);
    const node = new Node('a');
    let accepted: Promise<unknown>[] | undefined;
    node.onTake = () => {
      accepted ??= ['x', 'y'].map((id) => inbox.accept(polled(id)));
    };
    inbox.attach('incoming', node);
    await until(() => node.taken.length === 2_002);
    await Promise.all(accepted ?? []);
    assert.deepEqual(node.taken, [...ids(2_000), 'x', 'y']);
  });

  it('delivers thousands of entries in order, a few hundred per turn', async () => {
    const { inbox } = createInbox(0);
    const node = new Node('a');
    inbox.attach('incoming', node);
    await inbox.journal.ready();
    for (const count of [1, 250]) {
      await inbox.accept(polled(...ids(count).map((id) => `${count} ${id}`)));
      assert.equal(node.gifts.at(-1), count);
      await settle();
    }
    let later: Promise<unknown> | undefined;
    node.onTake = (entries) => {
      later ??= inbox.accept(polled('later'));
      for (const one of entries) inbox.acknowledge(one, node);
    };
    const { turns } = clock;
    await inbox.accept(polled(...ids(2_000)));
    assert.ok(node.taken.length >= 251 + 2_000, 'more may be asked for before they are given');
    await later;
    assert.deepEqual(node.gifts.slice(2), [...Array(8).fill(250), 1]);
    assert.deepEqual(node.taken.slice(251), [...ids(2_000), 'later']);
    assert.ok(clock.turns - turns >= 8, `${clock.turns - turns} turns`);
  });

  it('reports which part of its batch each delivery contains', async () => {
    const { inbox } = createInbox(0);
    const node = new Node('a');
    inbox.attach('incoming', node);
    await inbox.journal.ready();
    await inbox.accept(polled('alone'));
    await settle();
    await inbox.accept(polled(...ids(600)));
    const [alone, ...slices] = node.slices;
    assert.equal(alone, undefined);
    assert.deepEqual(
      slices.map((slice) => [slice?.index, slice?.count, slice?.isLast]),
      [
        [0, 600, false],
        [250, 600, false],
        [500, 600, true],
      ],
    );
    assert.equal(new Set(slices.map((slice) => slice?.group)).size, 1);
  });

  describe('outgoing messages', () => {
    const records = (count: number): OutboxRecord[] =>
      ids(count).map((messageId) => ({ messageId, body: 'x', recipientsList: [] }));

    /** Sends each batch one turn after its arrival, and records its size. */
    function receive(inbox: Inbox, isList: boolean, onSend = (_batch: OutboxBatch) => true) {
      const sent: string[][] = [];
      const contexts = new Set<unknown>();
      const send = async (batch: OutboxBatch) => {
        if (!onSend(batch)) return false;
        sent.push(batch.records.map(({ messageId }) => String(messageId)));
        contexts.add(batch.context);
        await settle();
        return true;
      };
      const receiver = new OutboxSubscription(inbox, { id: 'a', onDemand: true, isList, send });
      return { receiver, sent, contexts };
    }

    it('are sent in order, a few hundred per turn', async () => {
      const { inbox } = createInbox(0);
      const { sent, contexts } = receive(inbox, false);
      await inbox.journal.ready();
      const { turns } = clock;
      const arrival = { kind: 'outbox', via: 'poll', records: records(2_000), asker: 'a', context: 'asked' } as const;
      await inbox.accept(arrival);
      assert.deepEqual(sent.flat(), ids(2_000));
      assert.ok(sent.every(({ length }) => length <= 250));
      assert.ok(clock.turns - turns >= 8, `${clock.turns - turns} turns`);
      assert.deepEqual([...contexts], ['asked']);
      await until(() => inbox.state.undelivered === 0);
      assert.deepEqual(
        (await inbox.accept(arrival)).filter((verdict) => verdict === 'new'),
        [],
      );
      assert.equal(sent.flat().length, 2_000);
    });

    it('are sent as one list if the node wants a list', async () => {
      const { inbox } = createInbox(0);
      const { sent, contexts } = receive(inbox, true);
      await inbox.journal.ready();
      await inbox.accept({ kind: 'outbox', via: 'poll', records: records(2_000), asker: 'a', context: 'asked' });
      await inbox.accept({ kind: 'outbox', via: 'poll', records: [{ messageId: 'x' }] as never, asker: 'a' });
      assert.deepEqual(sent, [ids(2_000), ['x']]);
      assert.deepEqual([...contexts], ['asked', undefined]);
    });

    it('reach the node as one list of 10,000, although they are stored in parts', async () => {
      const { inbox, store } = createInbox(0);
      const { sent } = receive(inbox, true);
      await inbox.journal.ready();
      const given = await inbox.accept({ kind: 'outbox', via: 'poll', records: records(9_000), asker: 'a' });
      assert.deepEqual([given.length, store.largest], [9_000, 500]);
      assert.deepEqual(sent, [ids(9_000)]);
      await inbox.accept({ kind: 'outbox', via: 'poll', records: records(10_000), asker: 'a' });
      assert.deepEqual(sent.slice(1), [ids(10_000).slice(9_000)]);
      await until(() => inbox.state.undelivered === 0);
    });

    it('wait for their node if the flow was stopped', async () => {
      const { inbox } = createInbox(0);
      const stopped = receive(inbox, false, () => false);
      await inbox.journal.ready();
      await inbox.accept({ kind: 'outbox', via: 'poll', records: records(2), asker: 'a' });
      await settle();
      stopped.receiver.detach();
      assert.equal(inbox.state.undelivered, 2);
      const { sent } = receive(inbox, false);
      await until(() => inbox.state.undelivered === 0);
      assert.deepEqual(sent.flat(), ids(2));
    });

    it('are sent once if their node is redeployed halfway through a batch', async () => {
      for (const isList of [false, true]) {
        const { inbox } = createInbox(0);
        const leaves = receive(inbox, isList, () => leaves.sent.length < 3);
        await inbox.journal.ready();
        const accepted = inbox.accept({ kind: 'outbox', via: 'poll', records: records(2_000), asker: 'a' });
        await until(() => leaves.sent.length === 3 || clock.turns > 3);
        leaves.receiver.detach();
        const returns = receive(inbox, isList);
        await accepted;
        await until(() => inbox.state.undelivered === 0);
        const all = [...leaves.sent, ...returns.sent].flat();
        assert.deepEqual(all.sort(), ids(2_000).sort(), isList ? 'list' : 'each');
        clock.turns = 0;
      }
    });
  });

  it('delivers each entry once to a node redeployed while others receive it', async () => {
    const { inbox } = createInbox(2_000);
    const [stays, leaves, returns] = [new Node('stays'), new Node('leaves'), new Node('leaves')];
    stays.onTake = (entries) => {
      for (const one of entries) inbox.acknowledge(one, stays);
      if (stays.gifts.length === 2) inbox.detach('incoming', leaves);
      if (stays.gifts.length === 4) inbox.attach('incoming', returns);
    };
    leaves.onTake = (entries) => {
      for (const one of entries) inbox.acknowledge(one, leaves);
    };
    inbox.attach('incoming', stays);
    inbox.attach('incoming', leaves);
    await until(() => leaves.taken.length + returns.taken.length >= 2_000);
    for (let turn = 0; turn < 50; turn++) await settle();
    assert.deepEqual(stays.taken, ids(2_000));
    assert.deepEqual([...leaves.taken, ...returns.taken], ids(2_000));
  });

  it('does not deliver an entry again when other entries are claimed', async () => {
    const { inbox, store } = createInbox(0);
    const [stays, leaves] = [new Node('stays'), new Node('leaves')];
    inbox.attach('incoming', stays);
    inbox.attach('incoming', leaves);
    await inbox.journal.ready();
    await settle();
    let given: readonly Entry[] = [];
    stays.onTake = (entries) => {
      given = entries;
    };
    await inbox.accept(polled('1'));
    for (const one of given) inbox.acknowledge(one, stays);
    inbox.detach('incoming', leaves);
    store.events?.onTakenOver?.([entry(2, false)]);
    for (let turn = 0; turn < 5; turn++) await settle();
    const returns = new Node('leaves');
    inbox.attach('incoming', returns);
    for (let turn = 0; turn < 5; turn++) await settle();
    assert.deepEqual([stays.taken, leaves.taken, returns.taken], [['1', '2'], ['1'], ['1', '2']]);
  });

  describe('a node that throws when it receives an entry', () => {
    const fault = new TypeError('a fault of the node');

    it('is reported, and the other nodes receive the entry', async () => {
      const { inbox } = createInbox(0);
      const [faulty, other] = [new Node('faulty'), new Node('other')];
      faulty.onTake = () => {
        throw fault;
      };
      inbox.attach('incoming', faulty);
      inbox.attach('incoming', other);
      await inbox.journal.ready();
      const arrival = polled('1', '2');
      await inbox.accept(arrival);
      assert.equal(inbox.journal.failure, undefined);
      const again = await inbox.accept(arrival);
      assert.deepEqual(again, ['repeated', 'repeated']);
      for (let turn = 0; turn < 5; turn++) await settle();
      assert.deepEqual([faulty.taken, other.taken, faults], [['1', '2'], ['1', '2'], [fault]]);
    });
  });
});
