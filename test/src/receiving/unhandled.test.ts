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
  let inbox: Inbox;
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    isPolled = true;
    reported = [];
    createInbox();
  });
  afterEach(() => inboxes.close());

  /** Creates the inbox of this process, or of the next one. */
  function createInbox(on: FailingStore = new FailingStore(disk)): void {
    store = on;
    inbox = inboxes.create({ store, clock, isPolled: () => isPolled, onUnreceived: (kind) => reported.push(kind) });
  }

  /** Attaches a node whose flow acknowledges everything. */
  const attach = (id = 'node', channel: Channel = 'incoming') =>
    new RecordingNode(inbox, { id, channel, path: '/sms', acknowledge: 'auto' });

  /** Attaches a node whose flow acknowledges nothing. */
  const attachDeaf = () => new RecordingNode(inbox, { id: 'deaf' });

  async function receive(...bodies: string[]): Promise<void> {
    const accepting = inbox.accept(polled(...bodies));
    await Promise.all([accepting, clock.advance(0)]);
    await clock.advance(0);
    await inbox.journal.flush();
  }

  async function callBack(body: string): Promise<void> {
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

  const unhandledBodies = () => inbox.deadLetters.page({ limit: 200 }).items.map(({ record }) => record.body);

  const nothingWaits = { undelivered: 0, unhandled: 0 };

  it('becomes an unhandled message with its arrival time and no node', async () => {
    await receive('one', 'two');
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, item?.at, item?.attempts], ['', clock.now(), 0]);
    assert.deepEqual([inbox.state, unhandledBodies()], [{ undelivered: 0, unhandled: 2 }, ['one', 'two']]);
    assert.equal(disk.entries.size, 2);
  });

  it('becomes unhandled even if polling has stopped', async () => {
    isPolled = false;
    await receive('one');
    assert.deepEqual([reported, unhandledBodies()], [['incoming'], ['one']]);
  });

  it('is reported once, and again after a node was deployed in between', async () => {
    await receive('one');
    await receive('two');
    assert.deepEqual(reported, ['incoming']);
    const node = attach();
    await settleAll();
    node.detach();
    await receive('three');
    assert.deepEqual([reported, inbox.state.unhandled], [['incoming'], 0]);
    await pass(20_000);
    assert.deepEqual([reported, unhandledBodies()], [['incoming', 'incoming'], ['three']]);
  });

  it('goes to the next deployed nodes once, in order, not marked redelivered', async () => {
    await receive('one', 'two');
    const nodes = [attach('a'), attach('b')];
    await settleAll();
    await receive('three');
    for (const { marks } of nodes) {
      assert.deepEqual(
        marks,
        ['one', 'two', 'three'].map((body) => [body, false]),
      );
    }
    const late = attach('late');
    await settleAll();
    assert.deepEqual([late.bodies, inbox.state, disk.entries.size], [[], nothingWaits, 0]);
  });

  it('waits 20 s for a node that is being redeployed', async () => {
    attach().detach();
    await receive('one');
    await clock.advance(19_999);
    assert.deepEqual([reported, inbox.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, inbox.state], [['incoming'], { undelivered: 0, unhandled: 1 }]);
  });

  it('waits 20 s for a node after a start', async () => {
    isPolled = false;
    const deaf = attachDeaf();
    await receive('one');
    deaf.detach();
    await inbox.journal.close();
    createInbox();
    await inbox.journal.ready();
    await clock.advance(19_999);
    assert.deepEqual([reported, inbox.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, inbox.state.unhandled], [['incoming'], 1]);
  });

  it('does not go to a node of another kind', async () => {
    await receive('one');
    const node = attach('status', 'status');
    await settleAll();
    assert.deepEqual([node.bodies, unhandledBodies()], [[], ['one']]);
  });

  it('is marked as redelivered if a node received it before', async () => {
    const deaf = attachDeaf();
    await receive('one');
    deaf.detach();
    await pass(20_000);
    assert.deepEqual(unhandledBodies(), ['one']);
    const node = attach();
    await settleAll();
    assert.deepEqual(node.marks, [['one', true]]);
  });

  it('goes to the node that receives its copy from a callback', async () => {
    const callbackNode = attach('callback', 'callback');
    await receive('one');
    assert.equal(inbox.state.unhandled, 1);
    await callBack('one');
    await inbox.journal.flush();
    assert.deepEqual([callbackNode.bodies, inbox.state, disk.entries.size], [['one'], nothingWaits, 0]);
    const node = attach();
    await settleAll();
    await callBack('one');
    assert.deepEqual([node.bodies, callbackNode.bodies], [[], ['one']]);
  });

  describe('a polled record that no node receives, if the process is killed', () => {
    it('is unhandled in the next process, and goes to the next deployed node', async () => {
      await receive('one');
      store.kill();
      createInbox();
      await inbox.journal.ready();
      assert.deepEqual(unhandledBodies(), ['one']);
      const node = attach();
      await settleAll();
      assert.deepEqual([node.marks, inbox.state], [[['one', false]], nothingWaits]);
    });

    it('is stored at every moment of its delivery', async () => {
      await receive('one');
      const node = attachDeaf();
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
        createInbox(new FailingServer(disk));
        await receive('one');
        items = disk.items;
        store.kill();
        server = new FailingServer(new FakeDisk());
      });

      it('is claimed by another process that polls', async () => {
        createInbox(server);
        await inbox.journal.ready();
        assert.deepEqual(server.wanted, ['incoming', 'status', 'outbox']);
        server.takeOver(items);
        await settleAll();
        assert.deepEqual(unhandledBodies(), ['one']);
      });

      it('goes to a node of another process', async () => {
        isPolled = false;
        createInbox(server);
        const node = attach();
        await inbox.journal.ready();
        server.takeOver(items);
        await settleAll();
        assert.deepEqual([node.bodies, inbox.state], [['one'], nothingWaits]);
      });
    });
  });
});
