import assert from 'node:assert/strict';
import { PollSubscription } from '../../../src/delivery/poll-subscription';
import type { Arrival, Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord, Kind } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { incoming, polled } from '../inbox/arrivals';
import { createInboxOn } from '../inbox/inbox-on';
import { copyDisk } from '../sending/sending-side';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';

describe('a polled record that no node receives', () => {
  let clock: VirtualClock;
  let disk: FakeDisk;
  let store: FailingStore;
  let inboxes: Inbox[];
  let isPolled: boolean;
  let reported: Kind[];

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    inboxes = [];
    isPolled = true;
    reported = [];
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
      isPolled: () => isPolled,
      onUnreceived: (kind) => reported.push(kind),
    });
    inboxes.push(inbox);
    return inbox;
  }

  /** Attaches a node whose flow acknowledges everything (`takes`) or nothing. */
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
    const accepting = inbox.accept(polled(...bodies));
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
    await inbox.journal.flush();
  }

  async function callBack(inbox: Inbox, body: string): Promise<void> {
    const records = [{ ...incoming(body), messageId: undefined, via: 'callback' } as unknown as IncomingRecord];
    const address = { node: 'callback', path: '/sms' };
    const accepting = inbox.accept({ kind: 'incoming', via: 'callback', records, address });
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
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

  const unhandledBodies = (inbox: Inbox) =>
    inbox.deadLetters.page({ limit: 200 }).items.map(({ record }) => record.body);

  it('becomes an unhandled message with its arrival time and no node', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one', 'two');
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, item?.at, item?.attempts], ['', clock.now(), 0]);
    assert.deepEqual([inbox.state, unhandledBodies(inbox)], [{ undelivered: 0, unhandled: 2 }, ['one', 'two']]);
    assert.equal(disk.entries.size, 2);
  });

  it('is reported once, and again after a node was deployed in between', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    await receive(inbox, 'two');
    assert.deepEqual(reported, ['incoming']);
    const node = attach(inbox);
    await come();
    node.detach();
    await receive(inbox, 'three');
    assert.deepEqual([reported, inbox.state.unhandled], [['incoming'], 0]);
    await clock.advance(20_000);
    await come();
    assert.deepEqual([reported, unhandledBodies(inbox)], [['incoming', 'incoming'], ['three']]);
  });

  it('goes to the next deployed nodes once, in order, not marked redelivered', async () => {
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

  for (const kind of ['incoming', 'status'] as const) {
    it(`becomes unhandled (${kind}) even if polling has stopped`, async () => {
      isPolled = false;
      const inbox = createInbox();
      const records = [{ messageId: '1', from: '6421555001', statusCode: 'RCV', body: 'one', via: 'poll' }];
      const arrival = { kind, via: 'poll', records } as unknown as Arrival;
      await Promise.all([inbox.accept(arrival), come()]);
      assert.deepEqual([reported, inbox.state], [[kind], { undelivered: 0, unhandled: 1 }]);
    });
  }

  it('waits 20 s for a node that is being redeployed', async () => {
    const inbox = createInbox();
    attach(inbox).detach();
    await receive(inbox, 'one');
    await clock.advance(19_999);
    assert.deepEqual([reported, inbox.state.undelivered], [[], 1]);
    await clock.advance(1);
    await come();
    assert.deepEqual([reported, inbox.state], [['incoming'], { undelivered: 0, unhandled: 1 }]);
  });

  it('waits 20 s for a node after a start', async () => {
    isPolled = false;
    const inbox = createInbox();
    const deaf = attach(inbox, 'node', 'incoming', false);
    await receive(inbox, 'one');
    deaf.detach();
    const next = await restart(inbox);
    await clock.advance(19_999);
    assert.deepEqual([reported, next.state.undelivered], [[], 1]);
    await clock.advance(1);
    await come();
    assert.deepEqual([reported, next.state.unhandled], [['incoming'], 1]);
  });

  it('does not go to a node of another kind', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    const node = attach(inbox, 'status', 'status');
    await come();
    assert.deepEqual([node.sent, unhandledBodies(inbox)], [[], ['one']]);
  });

  it('is marked as redelivered if a node received it before', async () => {
    const inbox = createInbox();
    const deaf = attach(inbox, 'deaf', 'incoming', false);
    await receive(inbox, 'one');
    deaf.detach();
    await clock.advance(20_000);
    await come();
    assert.deepEqual(unhandledBodies(inbox), ['one']);
    const node = attach(inbox);
    await come();
    assert.deepEqual(node.sent, ['one again']);
  });

  describe('a polled record without a node, across a restart', () => {
    for (const [name, isKilled] of [
      ['a kill', true],
      ['a restart', false],
    ] as const) {
      it(`is unhandled after ${name}, and goes to the next deployed node`, async () => {
        const inbox = createInbox();
        await receive(inbox, 'one');
        if (isKilled) {
          store.kill();
          inboxes = [];
        } else await inbox.journal.close();
        const next = createInbox();
        await next.journal.ready();
        assert.deepEqual(unhandledBodies(next), ['one']);
        const node = attach(next);
        await come();
        assert.deepEqual([node.sent, next.state], [['one'], { undelivered: 0, unhandled: 0 }]);
      });
    }

    it('is undelivered or unhandled at every moment of a kill', async () => {
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

  describe('a polled record without a node, on a shared store', () => {
    /** Returns the items of a dead process. */
    async function leave() {
      const inbox = createInbox(new FailingServer(disk));
      await receive(inbox, 'one');
      const items = [...disk.entries.values()].map((text) => JSON.parse(text));
      store.kill();
      inboxes = [];
      return items;
    }

    it('is claimed by another process that polls', async () => {
      const items = await leave();
      const server = new FailingServer(new FakeDisk());
      const next = createInbox(server);
      await next.journal.ready();
      assert.deepEqual(server.wanted, ['incoming', 'status', 'outbox']);
      server.takeOver(items);
      await come();
      assert.deepEqual(unhandledBodies(next), ['one']);
    });

    it('goes to a node of another process', async () => {
      const items = await leave();
      isPolled = false;
      const server = new FailingServer(new FakeDisk());
      const next = createInbox(server);
      const node = attach(next);
      await next.journal.ready();
      server.takeOver(items);
      await come();
      assert.deepEqual([node.sent, next.state], [['one'], { undelivered: 0, unhandled: 0 }]);
    });
  });

  describe('a polled record with a copy from a callback', () => {
    it('goes to the node that receives the callback', async () => {
      const inbox = createInbox();
      const called = attach(inbox, 'callback', 'callback');
      await receive(inbox, 'one');
      assert.equal(inbox.state.unhandled, 1);
      await callBack(inbox, 'one');
      await inbox.journal.flush();
      assert.deepEqual([called.sent, inbox.state, disk.entries.size], [['one'], { undelivered: 0, unhandled: 0 }, 0]);
      const node = attach(inbox);
      await come();
      await callBack(inbox, 'one');
      assert.deepEqual([node.sent, called.sent], [[], ['one']]);
    });
  });
});
