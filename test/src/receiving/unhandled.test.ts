import assert from 'node:assert/strict';
import type { Channel } from '../../../src/inbox/entries';
import type { Inbox } from '../../../src/inbox/inbox';
import type { Kind } from '../../../src/model';
import type { Item } from '../../../src/store/store';
import { VirtualClock } from '../../virtual-clock';
import { RecordingNode } from '../delivery/recording-node';
import { calledBack, incoming, polled } from '../inbox/arrivals';
import { Inboxes } from '../inbox/inbox-on';
import { copyDisk } from '../sending/sending-side';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';

describe('a polled record that no node receives', () => {
  let clock: VirtualClock;
  let disk: FakeDisk;
  let store: FailingStore;
  let isPolled: boolean;
  let reported: Kind[];
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    isPolled = true;
    reported = [];
  });
  afterEach(() => inboxes.close());

  function createInbox(on: FailingStore = new FailingStore(disk)): Inbox {
    store = on;
    return inboxes.create({ store, clock, isPolled: () => isPolled, onUnreceived: (kind) => reported.push(kind) });
  }

  /** Attaches a node whose flow acknowledges everything. */
  const attach = (inbox: Inbox, id = 'node', channel: Channel = 'incoming') =>
    new RecordingNode(inbox, { id, channel, path: '/sms', acknowledge: 'auto' });

  /** Attaches a node whose flow acknowledges nothing. */
  const attachDeaf = (inbox: Inbox) => new RecordingNode(inbox, { id: 'deaf' });

  async function receive(inbox: Inbox, ...bodies: string[]): Promise<void> {
    const accepting = inbox.accept(polled(...bodies));
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
    await inbox.journal.flush();
  }

  async function callBack(inbox: Inbox, body: string): Promise<void> {
    const accepting = inbox.accept(calledBack(incoming(undefined, { body })));
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
  }

  async function settleAll(): Promise<void> {
    for (let turn = 0; turn < 4; turn++) await clock.advance(0);
  }

  async function pass(ms: number): Promise<void> {
    await clock.advance(ms);
    await settleAll();
  }

  const unhandledBodies = (inbox: Inbox) =>
    inbox.deadLetters.page({ limit: 200 }).items.map(({ record }) => record.body);

  const nothingWaits = { undelivered: 0, unhandled: 0 };

  it('becomes an unhandled message with its arrival time and no node', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one', 'two');
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, item?.at, item?.attempts], ['', clock.now(), 0]);
    assert.deepEqual([inbox.state, unhandledBodies(inbox)], [{ undelivered: 0, unhandled: 2 }, ['one', 'two']]);
    assert.equal(disk.entries.size, 2);
  });

  it('becomes unhandled even if polling has stopped', async () => {
    isPolled = false;
    const inbox = createInbox();
    await receive(inbox, 'one');
    assert.deepEqual([reported, unhandledBodies(inbox)], [['incoming'], ['one']]);
  });

  it('is reported once, and again after a node was deployed in between', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    await receive(inbox, 'two');
    assert.deepEqual(reported, ['incoming']);
    const node = attach(inbox);
    await settleAll();
    node.detach();
    await receive(inbox, 'three');
    assert.deepEqual([reported, inbox.state.unhandled], [['incoming'], 0]);
    await pass(20_000);
    assert.deepEqual([reported, unhandledBodies(inbox)], [['incoming', 'incoming'], ['three']]);
  });

  it('goes to the next deployed nodes once, in order, not marked redelivered', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one', 'two');
    const nodes = [attach(inbox, 'a'), attach(inbox, 'b')];
    await settleAll();
    await receive(inbox, 'three');
    for (const { marks } of nodes) {
      assert.deepEqual(
        marks,
        ['one', 'two', 'three'].map((body) => [body, false]),
      );
    }
    const late = attach(inbox, 'late');
    await settleAll();
    assert.deepEqual([late.bodies, inbox.state, disk.entries.size], [[], nothingWaits, 0]);
  });

  it('waits 20 s for a node that is being redeployed', async () => {
    const inbox = createInbox();
    attach(inbox).detach();
    await receive(inbox, 'one');
    await clock.advance(19_999);
    assert.deepEqual([reported, inbox.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, inbox.state], [['incoming'], { undelivered: 0, unhandled: 1 }]);
  });

  it('waits 20 s for a node after a start', async () => {
    isPolled = false;
    const inbox = createInbox();
    const deaf = attachDeaf(inbox);
    await receive(inbox, 'one');
    deaf.detach();
    await inbox.journal.close();
    const next = createInbox();
    await next.journal.ready();
    await clock.advance(19_999);
    assert.deepEqual([reported, next.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, next.state.unhandled], [['incoming'], 1]);
  });

  it('does not go to a node of another kind', async () => {
    const inbox = createInbox();
    await receive(inbox, 'one');
    const node = attach(inbox, 'status', 'status');
    await settleAll();
    assert.deepEqual([node.bodies, unhandledBodies(inbox)], [[], ['one']]);
  });

  it('is marked as redelivered if a node received it before', async () => {
    const inbox = createInbox();
    const deaf = attachDeaf(inbox);
    await receive(inbox, 'one');
    deaf.detach();
    await pass(20_000);
    assert.deepEqual(unhandledBodies(inbox), ['one']);
    const node = attach(inbox);
    await settleAll();
    assert.deepEqual(node.marks, [['one', true]]);
  });

  it('goes to the node that receives its copy from a callback', async () => {
    const inbox = createInbox();
    const callbackNode = attach(inbox, 'callback', 'callback');
    await receive(inbox, 'one');
    assert.equal(inbox.state.unhandled, 1);
    await callBack(inbox, 'one');
    await inbox.journal.flush();
    assert.deepEqual([callbackNode.bodies, inbox.state, disk.entries.size], [['one'], nothingWaits, 0]);
    const node = attach(inbox);
    await settleAll();
    await callBack(inbox, 'one');
    assert.deepEqual([node.bodies, callbackNode.bodies], [[], ['one']]);
  });

  describe('a polled record that no node receives, if the process is killed', () => {
    it('is unhandled in the next process, and goes to the next deployed node', async () => {
      await receive(createInbox(), 'one');
      store.kill();
      const next = createInbox();
      await next.journal.ready();
      assert.deepEqual(unhandledBodies(next), ['one']);
      const node = attach(next);
      await settleAll();
      assert.deepEqual([node.marks, next.state], [[['one', false]], nothingWaits]);
    });

    it('is stored at every moment of its delivery', async () => {
      const inbox = createInbox();
      await receive(inbox, 'one');
      const node = attachDeaf(inbox);
      const moments = new Set<string>();
      for (let turn = 0; turn < 20; turn++) {
        const [part] = [...copyDisk(disk).entries.values()].map((text) => JSON.parse(text).part);
        moments.add(`${part} ${node.sent.length === 0 || part === 'inbox'}`);
        await clock.advance(0);
      }
      assert.deepEqual([...moments], ['deadLetter true', 'inbox true']);
    });

    describe('with a shared store', () => {
      let items: Item[];
      let server: FailingServer;

      beforeEach(async () => {
        await receive(createInbox(new FailingServer(disk)), 'one');
        items = disk.items;
        store.kill();
        server = new FailingServer(new FakeDisk());
      });

      it('is claimed by another process that polls', async () => {
        const next = createInbox(server);
        await next.journal.ready();
        assert.deepEqual(server.wanted, ['incoming', 'status', 'outbox']);
        server.takeOver(items);
        await settleAll();
        assert.deepEqual(unhandledBodies(next), ['one']);
      });

      it('goes to a node of another process', async () => {
        isPolled = false;
        const next = createInbox(server);
        const node = attach(next);
        await next.journal.ready();
        server.takeOver(items);
        await settleAll();
        assert.deepEqual([node.bodies, next.state], [['one'], nothingWaits]);
      });
    });
  });
});
