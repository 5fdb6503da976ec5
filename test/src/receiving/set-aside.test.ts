import assert from 'node:assert/strict';
import { PollSubscription } from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import type { InboxRecord, IncomingRecord, Kind, StatusRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { createInboxOn, handOver } from '../inbox/inbox-on';
import { copyDisk } from '../sending/sending-side';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';

const dayMs = 24 * 3_600_000;
const messageDate = '2026-03-01T10:00:00.123Z';

function incoming(body: string): IncomingRecord {
  return { messageId: body, from: '6421555001', body, messageDate, isReply: false, via: 'poll' };
}

/** Messages are polled for somebody who asks, and no node takes them. */
describe('what is polled and no node takes', () => {
  let clock: VirtualClock;
  let disk: FakeDisk;
  let store: FailingStore;
  let inboxes: Inbox[];
  let isAsking: boolean;
  let told: Kind[];
  let timesFull: number;

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    inboxes = [];
    isAsking = true;
    told = [];
    timesFull = 0;
  });
  afterEach(async () => {
    for (const inbox of inboxes) await inbox.journal.close();
  });

  function createInbox(on: FailingStore = new FailingStore(disk)): Inbox {
    store = on;
    const inbox = createInboxOn({
      store,
      clock,
      dedupe: () => true,
      dedupeMs: () => 1_000_000_000,
      isPolled: () => isAsking,
      onUntaken: (kind) => told.push(kind),
      onDeadLettersFull: () => timesFull++,
    });
    inboxes.push(inbox);
    return inbox;
  }

  /** What a node gets that takes everything, unless its flow is not there. */
  function attach(inbox: Inbox, id = 'node', kind: 'incoming' | 'status' | 'callback' = 'incoming', takes = true) {
    const sent: string[] = [];
    const node = new PollSubscription(inbox, kind, {
      id,
      ...(kind === 'callback' && { path: '/sms' }),
      wants: () => true,
      acknowledge: 'flow',
      ackTimeoutMs: 60_000,
      maxAttempts: 9,
      send: async ({ record, redelivered, ackId = '' }) => {
        sent.push(String(record.body ?? record.statusCode) + (redelivered ? ' again' : ''));
        if (takes) node.acknowledge(ackId, false);
        return true;
      },
      onUndelivered: () => {},
    });
    return Object.assign(node, { sent });
  }

  async function receive(inbox: Inbox, ...bodies: string[]): Promise<void> {
    const accepting = inbox.accept({ kind: 'incoming', via: 'poll', records: bodies.map(incoming) });
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
    await inbox.journal.flush();
  }

  async function callBack(inbox: Inbox, body: string): Promise<boolean> {
    const records = [{ ...incoming(body), messageId: undefined, via: 'callback' } as unknown as IncomingRecord];
    const address = { node: 'callback', path: '/sms' };
    const accepting = inbox.accept({ kind: 'incoming', via: 'callback', records, address });
    const [[one]] = await Promise.all([accepting, clock.advance(0)]);
    const ended = one?.entry ? inbox.ended(one.entry) : Promise.resolve(!one?.heldElsewhere);
    await clock.advance(0);
    await clock.advance(60_000);
    return ended;
  }

  async function come(): Promise<void> {
    for (let turn = 0; turn < 4; turn++) await clock.advance(0);
  }

  async function restart(inbox: Inbox): Promise<Inbox> {
    await inbox.journal.close();
    const next = createInbox();
    await next.journal.ready();
    return next;
  }

  const bodiesAside = (inbox: Inbox) => inbox.deadLetters.page(200).items.map(({ record }) => record.body);

  it('is set aside, of no node and with its time, and is undelivered no more', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one', 'two');
    const [item] = inbox.deadLetters.page(1).items;
    assert.deepEqual([item?.node, item?.at, item?.attempts], ['', clock.now(), 0]);
    assert.deepEqual([inbox.state, bodiesAside(inbox)], [{ undelivered: 0, unhandled: 2 }, ['one', 'two']]);
    assert.equal(disk.entries.size, 2);
  });

  it('is told of once, and again when a node has been here since', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    await receive(inbox, 'two');
    assert.deepEqual(told, ['incoming']);
    const node = attach(inbox);
    await come();
    node.detach();
    await receive(inbox, 'three');
    assert.deepEqual([told, inbox.state.unhandled], [['incoming'], 0]);
    await clock.advance(20_000);
    await come();
    assert.deepEqual([told, bodiesAside(inbox)], [['incoming', 'incoming'], ['three']]);
  });

  it('goes to the nodes that come first, in its order, once, and as new', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one', 'two');
    const nodes = [attach(inbox, 'a'), attach(inbox, 'b')];
    await come();
    await receive(inbox, 'three');
    assert.deepEqual(
      nodes.map(({ sent }) => sent),
      [
        ['one', 'two', 'three'],
        ['one', 'two', 'three'],
      ],
    );
    const late = attach(inbox, 'late');
    await come();
    assert.deepEqual([late.sent, inbox.state, disk.entries.size], [[], { undelivered: 0, unhandled: 0 }, 0]);
  });

  it('goes to no node of another kind', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    const node = attach(inbox, 'status', 'status');
    await come();
    assert.deepEqual([node.sent, bodiesAside(inbox)], [[], ['one']]);
  });

  it('is the same with statuses', async () => {
    const inbox = createInbox();
    const records: StatusRecord[] = [
      { messageId: 's1', from: '6421555001', statusCode: 'RCV', final: true, via: 'poll' },
    ];
    await Promise.all([inbox.accept({ kind: 'status', via: 'poll', records }), clock.advance(0)]);
    assert.deepEqual([told, inbox.state.unhandled], [['status'], 1]);
    const node = attach(inbox, 'status', 'status');
    await come();
    assert.deepEqual(node.sent, ['RCV']);
  });

  it('waits for a node that is being redeployed', async () => {
    const inbox = createInbox();
    attach(inbox).detach();
    await receive(inbox, 'one');
    inbox.drained('incoming');
    await come();
    assert.deepEqual([told, inbox.state.undelivered], [[], 1]);
    const node = attach(inbox);
    await come();
    assert.deepEqual([node.sent, inbox.state], [['one'], { undelivered: 0, unhandled: 0 }]);
  });

  it('waits as undelivered while nobody asks, and is set aside when somebody does', async () => {
    isAsking = false;
    const inbox = createInbox();
    await receive(inbox, 'one');
    const next = await restart(inbox);
    await come();
    assert.deepEqual(next.state.undelivered, 1);
    isAsking = true;
    next.drained('incoming');
    await come();
    assert.deepEqual([told, next.state], [['incoming'], { undelivered: 0, unhandled: 1 }]);
  });

  it('may be given again when a node that had it is gone, marked', async () => {
    const inbox = createInbox();
    const deaf = attach(inbox, 'deaf', 'incoming', false);
    await receive(inbox, 'one');
    deaf.detach();
    await clock.advance(20_000);
    await come();
    assert.deepEqual(bodiesAside(inbox), ['one']);
    const node = attach(inbox);
    await come();
    assert.deepEqual(node.sent, ['one again']);
  });

  it('is forgotten after 7 days', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    await clock.advance(7 * dayMs - 3_600_000);
    assert.equal(inbox.state.unhandled, 1);
    await clock.advance(2 * 3_600_000);
    await inbox.journal.flush();
    assert.deepEqual([inbox.state.unhandled, disk.entries.size], [0, 0]);
  });

  it('is at most 10,000, of which the oldest goes, and says so once', async () => {
    const inbox = createInbox();
    for (let start = 0; start < 10_500; start += 500) {
      await receive(inbox, ...Array.from({ length: 500 }, (_, index) => String(start + index)));
    }
    await inbox.journal.flush();
    assert.deepEqual([inbox.state, timesFull, told], [{ undelivered: 0, unhandled: 10_000 }, 1, ['incoming']]);
    assert.equal(inbox.deadLetters.page(1).items[0]?.record.body, '500');
    assert.equal(disk.entries.size, 10_000);
    const node = attach(inbox);
    for (let turn = 0; turn < 100; turn++) await come();
    assert.deepEqual([node.sent.length, node.sent[0], inbox.state.unhandled], [10_000, '500', 0]);
  });

  it('can be discarded, and cannot be delivered to nobody', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    const id = inbox.deadLetters.page(1).items[0]?.id ?? '';
    assert.equal(inbox.deadLetters.deliver(id), false);
    assert.equal(inbox.deadLetters.size, 1);
    inbox.deadLetters.discard([id]);
    assert.equal(inbox.deadLetters.size, 0);
    await inbox.journal.flush();
    assert.equal(disk.entries.size, 0);
  });

  describe('over a restart', () => {
    for (const [name, isKilled] of [
      ['a kill', true],
      ['a restart', false],
    ] as const) {
      it(`is set aside after ${name}, and goes to the node that comes`, async () => {
        const inbox = createInbox();
        await receive(inbox, 'one');
        if (isKilled) {
          store.kill();
          inboxes = [];
        } else await inbox.journal.close();
        const next = createInbox();
        await next.journal.ready();
        assert.deepEqual(bodiesAside(next), ['one']);
        const node = attach(next);
        await come();
        assert.deepEqual([node.sent, next.state], [['one'], { undelivered: 0, unhandled: 0 }]);
      });
    }

    it('goes to a node that is there before the store is open', async () => {
      const inbox = createInbox();
      await receive(inbox, 'one');
      await inbox.journal.close();
      const node = attach(createInbox());
      await come();
      await come();
      assert.deepEqual(node.sent, ['one']);
    });

    it('is with the node or set aside at every moment, should the process be killed', async () => {
      const inbox = createInbox();
      await receive(inbox, 'one');
      const node = attach(inbox, 'node', 'incoming', false);
      const commits = store.commits;
      const seen = new Set<string>();
      for (let turn = 0; turn < 20; turn++) {
        const [item] = [...copyDisk(disk).entries.values()].map((text) => JSON.parse(text).part);
        seen.add(`${item} ${node.sent.length === 0 || item === 'inbox'}`);
        await clock.advance(0);
      }
      assert.deepEqual([...seen], ['deadLetter true', 'inbox true']);
      assert.ok(store.commits > commits);
    });
  });

  it('goes along to another login, and to a node there', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    const heir = createInbox(new FailingStore(new FakeDisk()));
    const node = attach(heir);
    await Promise.all([handOver(inbox, heir, { isLast: true }), come()]);
    await come();
    assert.deepEqual([node.sent, inbox.state.unhandled, disk.entries.size], [['one'], 0, 0]);
  });

  describe('on a store that others share', () => {
    /** What a dead process has left. */
    async function leave() {
      const inbox = createInbox(new FailingServer(disk));
      await receive(inbox, 'one');
      const items = [...disk.entries.values()].map((text) => JSON.parse(text));
      store.kill();
      inboxes = [];
      return items;
    }

    it('is taken over by another that polls, and set aside there', async () => {
      const items = await leave();
      const server = new FailingServer(new FakeDisk());
      const next = createInbox(server);
      await next.journal.ready();
      assert.deepEqual(server.wanted, ['incoming', 'status', 'outbox']);
      server.takeOver(items);
      await come();
      assert.deepEqual(bodiesAside(next), ['one']);
    });

    it('goes to a node of another', async () => {
      const items = await leave();
      isAsking = false;
      const server = new FailingServer(new FakeDisk());
      const next = createInbox(server);
      const node = attach(next);
      await next.journal.ready();
      server.takeOver(items);
      await come();
      assert.deepEqual([node.sent, next.state], [['one'], { undelivered: 0, unhandled: 0 }]);
    });
  });

  describe('and is called back as well', () => {
    it('goes to the node that is called, and is set aside no more', async () => {
      const inbox = createInbox();
      const called = attach(inbox, 'callback', 'callback');
      await receive(inbox, 'one');
      assert.equal(inbox.state.unhandled, 1);
      assert.equal(await callBack(inbox, 'one'), true);
      await inbox.journal.flush();
      assert.deepEqual([called.sent, inbox.state, disk.entries.size], [['one'], { undelivered: 0, unhandled: 0 }, 0]);
      const node = attach(inbox);
      await come();
      assert.deepEqual([node.sent, await callBack(inbox, 'one'), called.sent], [[], true, ['one']]);
    });

    it('is set aside when the node that was called lets go of it', async () => {
      const inbox = createInbox();
      const called = attach(inbox, 'callback', 'callback', false);
      const accepting = callBack(inbox, 'one');
      await receive(inbox, 'one');
      assert.equal(await accepting, false);
      await come();
      assert.deepEqual([called.sent, bodiesAside(inbox)], [['one'], ['one']]);
    });
  });

  it('is set aside while the store fails, and written when it is back', async () => {
    const inbox = createInbox();
    await inbox.journal.ready();
    store.failing.add('commit');
    const records: InboxRecord[] = [incoming('one')];
    await Promise.all([inbox.accept({ kind: 'incoming', via: 'poll', records: records as IncomingRecord[] }), come()]);
    await come();
    assert.equal(inbox.state.unhandled, 1);
    store.failing.clear();
    await clock.advance(60_000);
    await inbox.journal.flush();
    assert.deepEqual(
      [...disk.entries.values()].map((text) => JSON.parse(text).part),
      ['deadLetter'],
    );
  });
});
