import assert from 'node:assert/strict';
import { type OutboxBatch, OutboxSubscription } from '../../../src/delivery/outbox-subscription';
import type { Entry } from '../../../src/inbox/entries';
import { until } from '../../until';
import { settle } from '../../virtual-clock';
import { incoming, polled } from '../inbox/arrivals';
import { useInbox } from '../inbox/use-inbox';
import { FailingServer } from '../store/failing-store';
import type { RecordingSubscriber } from './recording-subscriber';

const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index));

function createEntry(index: number): Entry {
  const record = incoming(String(index));
  const id = String(index).padStart(11, '0');
  return { id, part: 'inbox', subscribers: [], channel: 'incoming', kind: 'incoming', record, attempts: 0 };
}

describe('Subscribers', () => {
  const faults: unknown[] = [];
  const bench = useInbox(() => ({ onFault: (error) => faults.push(error) }));
  const { subscribe } = bench;

  /** Fills the store with entries of an earlier process. */
  function fill(count: number): void {
    for (const index of ids(count).keys()) {
      const entry = createEntry(index);
      bench.disk.entries.set(entry.id, JSON.stringify(entry));
    }
  }

  it('delivers 30,000 stored entries in order', async function () {
    this.timeout(120_000);
    fill(30_000);
    const node = subscribe();
    node.onReceive = (entries) => setImmediate(() => node.acknowledge(entries));
    await until(() => node.received.length === 30_000, 'all delivered', { limitMs: 100_000 });
    await bench.clock.advance(25);
    await until(() => bench.disk.entries.size === 0, 'all forgotten', { limitMs: 100_000 });
    assert.deepEqual(node.bodies, ids(30_000));
    assert.ok(node.calls.every(({ count }) => count <= 500));
    assert.ok(bench.clock.turns >= 2 * (30_000 / 500), `${bench.clock.turns} turns`);
  });

  it('delivers stored entries before new entries', async () => {
    fill(2_000);
    const node = subscribe();
    let accepted: Promise<unknown>[] | undefined;
    node.onReceive = () => {
      accepted ??= ['x', 'y'].map((id) => bench.inbox.accept(polled(id)));
    };
    await until(() => node.received.length === 2_002);
    await Promise.all(accepted ?? []);
    assert.deepEqual(node.bodies, [...ids(2_000), 'x', 'y']);
  });

  it('delivers new entries in order, at most 250 per event loop turn', async () => {
    const node = subscribe();
    await bench.inbox.journal.ready();
    await bench.inbox.accept(polled(...ids(250).map((id) => `earlier ${id}`)));
    await settle();
    let later: Promise<unknown> | undefined;
    node.onReceive = (entries) => {
      later ??= bench.inbox.accept(polled('later'));
      node.acknowledge(entries);
    };
    const { turns } = bench.clock;
    await bench.inbox.accept(polled(...ids(2_000)));
    assert.ok(node.received.length >= 250 + 2_000, 'the next poll can begin before these entries are delivered');
    await later;
    assert.deepEqual(
      node.calls.map(({ count }) => count),
      [...Array(9).fill(250), 1],
    );
    assert.deepEqual(node.bodies.slice(250), [...ids(2_000), 'later']);
    assert.ok(bench.clock.turns - turns >= 8, `${bench.clock.turns - turns} turns`);
  });

  it('marks each delivery with its position in the batch', async () => {
    const node = subscribe();
    await bench.inbox.journal.ready();
    await bench.inbox.accept(polled('alone'));
    await settle();
    await bench.inbox.accept(polled(...ids(600)));
    const [alone, ...slices] = node.calls.map(({ slice }) => slice);
    assert.equal(alone, undefined);
    const group = slices[0]?.group;
    assert.deepEqual(slices, [
      { group, index: 0, count: 600, isLast: false },
      { group, index: 250, count: 600, isLast: false },
      { group, index: 500, count: 600, isLast: true },
    ]);
  });

  describe('with outgoing messages', () => {
    /** Receives messages that the node requested. */
    function accept(count: number, firstId = 0) {
      const records = ids(count).map((id) => ({
        messageId: String(firstId + Number(id)),
        body: 'x',
        recipientsList: [],
      }));
      return bench.inbox.accept({ kind: 'outbox', via: 'poll', records, asker: 'a', context: 'asked' });
    }

    /**
     * Attaches a node that needs one turn of the event loop to send a batch. Records the messages and contexts of the
     * batches.
     */
    function attach(isList: boolean, onSend = (_batch: OutboxBatch) => true) {
      const sent: string[][] = [];
      const contexts = new Set<unknown>();
      const send = async (batch: OutboxBatch) => {
        if (!onSend(batch)) return false;
        sent.push(batch.records.map(({ messageId }) => String(messageId)));
        contexts.add(batch.context);
        await settle();
        return true;
      };
      const subscription = new OutboxSubscription(bench.inbox, { id: 'a', onDemand: true, isList, send });
      return { subscription, sent, contexts };
    }

    it('delivers 2,000 messages once and in order', async () => {
      const { sent, contexts } = attach(false);
      await bench.inbox.journal.ready();
      const { turns } = bench.clock;
      await accept(2_000);
      assert.deepEqual([sent.flat(), [...contexts]], [ids(2_000), ['asked']]);
      assert.ok(sent.every(({ length }) => length <= 250));
      assert.ok(bench.clock.turns - turns >= 8, `${bench.clock.turns - turns} turns`);
      await until(() => bench.state.undelivered === 0);
      assert.ok(!(await accept(2_000)).includes('new'));
      assert.equal(sent.flat().length, 2_000);
    });

    it('delivers one list although the store writes it in parts', async () => {
      let maxStored = 0;
      bench.store.beforeCommit = ({ keep }) => {
        maxStored = Math.max(maxStored, keep.size);
      };
      const { sent, contexts } = attach(true);
      await bench.inbox.journal.ready();
      assert.equal((await accept(9_000)).length, 9_000);
      assert.deepEqual([sent, maxStored, [...contexts]], [[ids(9_000)], 500, ['asked']]);
      await accept(10_000);
      await accept(1, 10_000);
      assert.deepEqual(sent.slice(1), [ids(10_000).slice(9_000), ['10000']]);
      await until(() => bench.state.undelivered === 0);
    });

    for (const isList of [false, true]) {
      it(`delivers each ${isList ? 'message of a list' : 'single message'} once despite a redeploy`, async () => {
        const before = attach(isList, () => before.sent.length < 3);
        await bench.inbox.journal.ready();
        const accepted = accept(2_000);
        await until(() => before.sent.length === 3 || bench.clock.turns > 3);
        before.subscription.detach();
        const after = attach(isList);
        await accepted;
        await until(() => bench.state.undelivered === 0);
        assert.deepEqual([...before.sent, ...after.sent].flat().sort(), ids(2_000).sort());
      });
    }
  });

  it('delivers each entry once to a node that is redeployed', async () => {
    fill(2_000);
    const [stays, leaves] = [subscribe('stays'), subscribe('leaves')];
    let returned: RecordingSubscriber | undefined;
    stays.onReceive = (entries) => {
      stays.acknowledge(entries);
      if (stays.calls.length === 2) leaves.detach();
      if (stays.calls.length === 4) returned = subscribe('leaves');
    };
    leaves.onReceive = (entries) => leaves.acknowledge(entries);
    const idsOfBoth = () => [...leaves.bodies, ...(returned?.bodies ?? [])];
    await until(() => idsOfBoth().length >= 2_000);
    await settle(50);
    assert.deepEqual(stays.bodies, ids(2_000));
    assert.deepEqual(idsOfBoth(), ids(2_000));
  });

  it('does not redeliver an acknowledged entry when it claims another', async () => {
    const server = new FailingServer();
    bench.start({ store: server });
    const [stays, leaves] = [subscribe('stays'), subscribe('leaves')];
    await bench.inbox.journal.ready();
    await settle();
    await bench.inbox.accept(polled('1'));
    stays.acknowledge();
    leaves.detach();
    server.takeOver([createEntry(2)]);
    await settle(5);
    const returned = subscribe('leaves');
    await settle(5);
    assert.deepEqual([stays.bodies, leaves.bodies, returned.bodies], [['1', '2'], ['1'], ['1', '2']]);
  });

  it('delivers to the other nodes if one node throws', async () => {
    const fault = new TypeError('a fault of the node');
    const [faulty, other] = [subscribe('faulty'), subscribe('other')];
    faulty.onReceive = () => {
      throw fault;
    };
    await bench.inbox.journal.ready();
    await bench.inbox.accept(polled('1', '2'));
    assert.equal(bench.inbox.journal.failure, undefined);
    assert.deepEqual(await bench.inbox.accept(polled('1', '2')), ['repeated', 'repeated']);
    await settle(5);
    assert.deepEqual([faulty.bodies, other.bodies, faults], [['1', '2'], ['1', '2'], [fault]]);
  });
});
