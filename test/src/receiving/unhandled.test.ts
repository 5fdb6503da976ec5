import assert from 'node:assert/strict';
import type { Channel } from '../../../src/inbox/entries';
import type { Kind } from '../../../src/model';
import type { Item } from '../../../src/store/store';
import { settle } from '../../virtual-clock';
import { incoming } from '../inbox/arrivals';
import { useInbox } from '../inbox/use-inbox';
import { FailingServer } from '../store/failing-store';

describe('a polled record without a node', () => {
  let isPolled: boolean;
  let reported: Kind[];
  const bench = useInbox(() => ({ isPolled: () => isPolled, onUnreceived: (kind) => reported.push(kind) }));
  const { receive, callBack, pass, start, storedParts } = bench;

  beforeEach(() => {
    isPolled = true;
    reported = [];
  });

  /** Attaches a node whose flow acknowledges everything. */
  const attach = (id = 'node', channel: Channel = 'incoming') =>
    bench.attach({ id, channel, path: '/sms', acknowledge: 'auto' });

  /** Attaches a node whose flow acknowledges nothing. */
  const attachDeaf = () => bench.attach({ id: 'deaf' });

  const unhandledBodies = () => bench.inbox.deadLetters.page({ limit: 200 }).items.map(({ record }) => record.body);

  const nothingWaits = { undelivered: 0, unhandled: 0 };

  it('becomes an unhandled message', async () => {
    await receive('one', 'two');
    const [item] = bench.inbox.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, item?.at, item?.attempts], ['', bench.clock.now(), 0]);
    assert.deepEqual([bench.state, unhandledBodies()], [{ undelivered: 0, unhandled: 2 }, ['one', 'two']]);
    assert.equal(bench.disk.entries.size, 2);
  });

  it('is reported only once until the next deploy', async () => {
    await receive('one');
    await receive('two');
    assert.deepEqual(reported, ['incoming']);
    const node = attach();
    await pass();
    node.detach();
    await receive('three');
    assert.deepEqual([reported, bench.state.unhandled], [['incoming'], 0]);
    await pass(20_000);
    assert.deepEqual([reported, unhandledBodies()], [['incoming', 'incoming'], ['three']]);
  });

  it('goes once to each node of the next deploy', async () => {
    await receive('one', 'two');
    const nodes = [attach('a'), attach('b')];
    await pass();
    await receive('three');
    for (const { marks } of nodes) {
      assert.deepEqual(
        marks,
        ['one', 'two', 'three'].map((body) => [body, false]),
      );
    }
    const late = attach('late');
    await pass();
    assert.deepEqual([late.bodies, bench.state, bench.disk.entries.size], [[], nothingWaits, 0]);
  });

  it('waits 20 s for a node that is being redeployed', async () => {
    attach().detach();
    await receive('one');
    await pass(19_999);
    assert.deepEqual([reported, bench.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, bench.state], [['incoming'], { undelivered: 0, unhandled: 1 }]);
  });

  it('waits 20 s for a node after Node-RED starts', async () => {
    isPolled = false;
    const deaf = attachDeaf();
    await receive('one');
    deaf.detach();
    await bench.inbox.journal.close();
    start();
    await bench.inbox.journal.ready();
    await pass(19_999);
    assert.deepEqual([reported, bench.state.undelivered], [[], 1]);
    await pass(1);
    assert.deepEqual([reported, bench.state.unhandled], [['incoming'], 1]);
  });

  it('does not go to a node for another kind of record', async () => {
    await receive('one');
    const node = attach('status', 'status');
    await pass();
    assert.deepEqual([node.bodies, unhandledBodies()], [[], ['one']]);
  });

  it('is marked as redelivered if a node had received it', async () => {
    const deaf = attachDeaf();
    await receive('one');
    deaf.detach();
    await pass(20_000);
    assert.deepEqual(unhandledBodies(), ['one']);
    const node = attach();
    await pass();
    assert.deepEqual(node.marks, [['one', true]]);
  });

  it('goes to the callback node when its callback comes', async () => {
    const callbackNode = attach('callback', 'callback');
    await receive('one');
    assert.equal(bench.state.unhandled, 1);
    await callBack(incoming(undefined, { body: 'one' }));
    await bench.inbox.journal.flush();
    assert.deepEqual([callbackNode.bodies, bench.state, bench.disk.entries.size], [['one'], nothingWaits, 0]);
    const node = attach();
    await pass();
    await callBack(incoming(undefined, { body: 'one' }));
    assert.deepEqual([node.bodies, callbackNode.bodies], [[], ['one']]);
  });

  describe('after a crash', () => {
    it('is still unhandled in the next process', async () => {
      await receive('one');
      bench.store.kill();
      start();
      await bench.inbox.journal.ready();
      assert.deepEqual(unhandledBodies(), ['one']);
      const node = attach();
      await pass();
      assert.deepEqual([node.marks, bench.state], [[['one', false]], nothingWaits]);
    });

    it('is always in the store while it is delivered', async () => {
      await receive('one');
      await storedParts();
      const node = attachDeaf();
      const moments = new Set<string>();
      for (let turn = 0; turn < 20; turn++) {
        const [part] = bench.disk.items.map((item) => item.part);
        moments.add(`${part} ${node.sent.length === 0 || part === 'inbox'}`);
        await settle();
      }
      assert.deepEqual([...moments], ['deadLetter true', 'inbox true']);
    });

    describe('on a shared store', () => {
      let items: Item[];
      let server: FailingServer;

      beforeEach(async () => {
        start({ store: new FailingServer(bench.disk) });
        await receive('one');
        items = bench.disk.items;
        bench.store.kill();
        server = new FailingServer();
      });

      it('becomes unhandled if the claiming process has no node', async () => {
        start({ store: server });
        await bench.inbox.journal.ready();
        assert.deepEqual(server.wanted, ['incoming', 'status', 'outbox']);
        server.takeOver(items);
        await pass();
        assert.deepEqual(unhandledBodies(), ['one']);
      });

      it('goes to a node of the claiming process', async () => {
        isPolled = false;
        start({ store: server });
        const node = attach();
        await bench.inbox.journal.ready();
        server.takeOver(items);
        await pass();
        assert.deepEqual([node.bodies, bench.state], [['one'], nothingWaits]);
      });
    });
  });
});
