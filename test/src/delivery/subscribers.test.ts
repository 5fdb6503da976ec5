import assert from 'node:assert/strict';
import { type OutboxBatch, OutboxSubscription } from '../../../src/delivery/outbox-subscription';
import type { Entry } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { OutboxRecord } from '../../../src/model';
import { until } from '../../until';
import { settle, TurningClock } from '../../virtual-clock';
import { polled } from '../inbox/arrivals';
import { Inboxes } from '../inbox/inbox-on';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';
import { RecordingSubscriber } from './recording-subscriber';

const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index));

function createEntry(index: number): Entry {
  const record = {
    messageId: String(index),
    from: '6421555001',
    body: String(index),
    isReply: false,
    via: 'poll',
  } as const;
  const id = String(index).padStart(11, '0');
  return { id, part: 'inbox', subscribers: [], channel: 'incoming', kind: 'incoming', record, attempts: 0 };
}

describe('Subscribers', () => {
  let clock: TurningClock;
  let faults: unknown[];
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new TurningClock();
    faults = [];
  });
  afterEach(() => inboxes.close());

  const createInbox = (store = new FailingStore()) =>
    inboxes.create({ store, clock, onFault: (error) => faults.push(error) });

  /** Creates an inbox whose store has entries of an earlier process. */
  function createFull(count: number): { inbox: Inbox; disk: FakeDisk } {
    const disk = new FakeDisk();
    for (const index of ids(count).keys()) {
      const entry = createEntry(index);
      disk.entries.set(entry.id, JSON.stringify(entry));
    }
    return { inbox: createInbox(new FailingStore(disk)), disk };
  }

  it('delivers 30,000 entries in order, a few hundred per turn', async function () {
    this.timeout(120_000);
    const { inbox, disk } = createFull(30_000);
    const node = new RecordingSubscriber(inbox);
    node.onReceive = (entries) => setImmediate(() => node.acknowledge(entries));
    await until(() => node.received.length === 30_000, 'all delivered', { limitMs: 100_000 });
    await clock.advance(25);
    await until(() => disk.entries.size === 0, 'all forgotten', { limitMs: 100_000 });
    assert.deepEqual(node.messageIds, ids(30_000));
    assert.ok(node.calls.every(({ count }) => count <= 500));
    assert.ok(clock.turns >= 2 * (30_000 / 500), `${clock.turns} turns`);
  });

  it('delivers new entries after older entries', async () => {
    const { inbox } = createFull(2_000);
    const node = new RecordingSubscriber(inbox);
    let accepted: Promise<unknown>[] | undefined;
    node.onReceive = () => {
      accepted ??= ['x', 'y'].map((id) => inbox.accept(polled(id)));
    };
    await until(() => node.received.length === 2_002);
    await Promise.all(accepted ?? []);
    assert.deepEqual(node.messageIds, [...ids(2_000), 'x', 'y']);
  });

  it('delivers thousands of new entries in order, 250 per turn', async () => {
    const inbox = createInbox();
    const node = new RecordingSubscriber(inbox);
    await inbox.journal.ready();
    await inbox.accept(polled(...ids(250).map((id) => `earlier ${id}`)));
    await settle();
    let later: Promise<unknown> | undefined;
    node.onReceive = (entries) => {
      later ??= inbox.accept(polled('later'));
      node.acknowledge(entries);
    };
    const { turns } = clock;
    await inbox.accept(polled(...ids(2_000)));
    assert.ok(node.received.length >= 250 + 2_000, 'the next poll can begin before these entries are delivered');
    await later;
    assert.deepEqual(
      node.calls.map(({ count }) => count),
      [...Array(9).fill(250), 1],
    );
    assert.deepEqual(node.messageIds.slice(250), [...ids(2_000), 'later']);
    assert.ok(clock.turns - turns >= 8, `${clock.turns - turns} turns`);
  });

  it('reports which part of its batch each delivery contains', async () => {
    const inbox = createInbox();
    const node = new RecordingSubscriber(inbox);
    await inbox.journal.ready();
    await inbox.accept(polled('alone'));
    await settle();
    await inbox.accept(polled(...ids(600)));
    const [alone, ...slices] = node.calls.map(({ slice }) => slice);
    assert.equal(alone, undefined);
    const group = slices[0]?.group;
    assert.deepEqual(slices, [
      { group, index: 0, count: 600, isLast: false },
      { group, index: 250, count: 600, isLast: false },
      { group, index: 500, count: 600, isLast: true },
    ]);
  });

  describe('outgoing messages', () => {
    const records = (count: number): OutboxRecord[] =>
      ids(count).map((messageId) => ({ messageId, body: 'x', recipientsList: [] }));
    const accept = (inbox: Inbox, count: number) =>
      inbox.accept({ kind: 'outbox', via: 'poll', records: records(count), asker: 'a', context: 'asked' });

    /** Sends each batch in one turn, and records its messages. */
    function attach(inbox: Inbox, isList: boolean, onSend = (_batch: OutboxBatch) => true) {
      const sent: string[][] = [];
      const contexts = new Set<unknown>();
      const send = async (batch: OutboxBatch) => {
        if (!onSend(batch)) return false;
        sent.push(batch.records.map(({ messageId }) => String(messageId)));
        contexts.add(batch.context);
        await settle();
        return true;
      };
      const subscription = new OutboxSubscription(inbox, { id: 'a', onDemand: true, isList, send });
      return { subscription, sent, contexts };
    }

    it('are sent in order, a few hundred per turn, and not again with the next poll', async () => {
      const inbox = createInbox();
      const { sent, contexts } = attach(inbox, false);
      await inbox.journal.ready();
      const { turns } = clock;
      await accept(inbox, 2_000);
      assert.deepEqual([sent.flat(), [...contexts]], [ids(2_000), ['asked']]);
      assert.ok(sent.every(({ length }) => length <= 250));
      assert.ok(clock.turns - turns >= 8, `${clock.turns - turns} turns`);
      await until(() => inbox.state.undelivered === 0);
      assert.ok(!(await accept(inbox, 2_000)).includes('new'));
      assert.equal(sent.flat().length, 2_000);
    });

    it('reach the node as one list of 10,000, although they are stored in parts', async () => {
      const store = new FailingStore();
      const commit = store.commit.bind(store);
      let maxStored = 0;
      store.commit = (changes) => {
        maxStored = Math.max(maxStored, changes.keep.size);
        return commit(changes);
      };
      const inbox = createInbox(store);
      const { sent, contexts } = attach(inbox, true);
      await inbox.journal.ready();
      assert.equal((await accept(inbox, 9_000)).length, 9_000);
      assert.deepEqual([sent, maxStored, [...contexts]], [[ids(9_000)], 500, ['asked']]);
      await accept(inbox, 10_000);
      assert.deepEqual(sent.slice(1), [ids(10_000).slice(9_000)]);
      await until(() => inbox.state.undelivered === 0);
    });

    for (const isList of [false, true]) {
      it(`are sent once if their node is redeployed halfway (${isList ? 'as one list' : 'one by one'})`, async () => {
        const inbox = createInbox();
        const before = attach(inbox, isList, () => before.sent.length < 3);
        await inbox.journal.ready();
        const accepted = accept(inbox, 2_000);
        await until(() => before.sent.length === 3 || clock.turns > 3);
        before.subscription.detach();
        const after = attach(inbox, isList);
        await accepted;
        await until(() => inbox.state.undelivered === 0);
        assert.deepEqual([...before.sent, ...after.sent].flat().sort(), ids(2_000).sort());
      });
    }
  });

  it('delivers each entry once to a node redeployed while others receive it', async () => {
    const { inbox } = createFull(2_000);
    const [stays, leaves] = [new RecordingSubscriber(inbox, 'stays'), new RecordingSubscriber(inbox, 'leaves')];
    let returned: RecordingSubscriber | undefined;
    stays.onReceive = (entries) => {
      stays.acknowledge(entries);
      if (stays.calls.length === 2) leaves.detach();
      if (stays.calls.length === 4) returned = new RecordingSubscriber(inbox, 'leaves');
    };
    leaves.onReceive = (entries) => leaves.acknowledge(entries);
    const idsOfBoth = () => [...leaves.messageIds, ...(returned?.messageIds ?? [])];
    await until(() => idsOfBoth().length >= 2_000);
    await settle(50);
    assert.deepEqual(stays.messageIds, ids(2_000));
    assert.deepEqual(idsOfBoth(), ids(2_000));
  });

  it('does not deliver an entry again when other entries are claimed', async () => {
    const server = new FailingServer();
    const inbox = createInbox(server);
    const [stays, leaves] = [new RecordingSubscriber(inbox, 'stays'), new RecordingSubscriber(inbox, 'leaves')];
    await inbox.journal.ready();
    await settle();
    await inbox.accept(polled('1'));
    stays.acknowledge();
    leaves.detach();
    server.takeOver([createEntry(2)]);
    await settle(5);
    const returned = new RecordingSubscriber(inbox, 'leaves');
    await settle(5);
    assert.deepEqual([stays.messageIds, leaves.messageIds, returned.messageIds], [['1', '2'], ['1'], ['1', '2']]);
  });

  it('reports the error of a node that throws, and delivers to the other nodes', async () => {
    const fault = new TypeError('a fault of the node');
    const inbox = createInbox();
    const [faulty, other] = [new RecordingSubscriber(inbox, 'faulty'), new RecordingSubscriber(inbox, 'other')];
    faulty.onReceive = () => {
      throw fault;
    };
    await inbox.journal.ready();
    await inbox.accept(polled('1', '2'));
    assert.equal(inbox.journal.failure, undefined);
    assert.deepEqual(await inbox.accept(polled('1', '2')), ['repeated', 'repeated']);
    await settle(5);
    assert.deepEqual([faulty.messageIds, other.messageIds, faults], [['1', '2'], ['1', '2'], [fault]]);
  });
});
