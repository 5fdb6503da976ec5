import assert from 'node:assert/strict';
import { CallbackSubscription } from '../../../src/delivery/callback-subscription';
import { type FlowDelivery, maxCalledBack } from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import { Journal } from '../../../src/journal/journal';
import type { IncomingRecord } from '../../../src/model';
import { settle, VirtualClock } from '../../virtual-clock';
import { createInbox } from '../inbox/inbox-on';
import { FailingServer, FailingStore, FakeDisk } from '../store/failing-store';

const ackTimeoutMs = 20_000;

function incoming(messageId: string): IncomingRecord {
  return { messageId, from: '6421555001', body: messageId, isReply: true, via: 'callback' };
}

/** A node that is called back, and its flow. */
class Bench {
  readonly sent: FlowDelivery[] = [];
  readonly receiver: CallbackSubscription;
  readonly answers: (boolean | string)[] = [];

  constructor(
    readonly inbox: Inbox,
    readonly clock: VirtualClock,
    { acknowledge = 'flow', gotThere = true }: { acknowledge?: 'auto' | 'flow'; gotThere?: boolean } = {},
  ) {
    const send = (delivery: FlowDelivery) => {
      this.sent.push(delivery);
      return Promise.resolve(gotThere);
    };
    this.receiver = new CallbackSubscription(inbox, { id: 'node', path: '/sms', acknowledge, ackTimeoutMs, send });
  }

  get ackIds(): string[] {
    return this.sent.map(({ ackId = '' }) => ackId);
  }

  /** The service calls; what it is told is noted when it is. */
  async call(...called: (string | IncomingRecord)[]): Promise<void> {
    for (const one of called) {
      const records = [typeof one === 'string' ? incoming(one) : one];
      this.receiver.accept({ kind: 'incoming', records }).then(
        (isTaken) => this.answers.push(isTaken),
        ({ code }) => this.answers.push(code),
      );
    }
    await this.clock.advance(1);
    await settle();
  }
}

describe('CallbackSubscription', () => {
  let clock: VirtualClock;
  let disk: FakeDisk;
  let store: FailingStore;
  let inbox: Inbox;
  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    store = new FailingStore(disk);
    const journal = new Journal({ store, clock, onStore: () => {} });
    inbox = createInbox({ journal, clock });
  });
  afterEach(async () => {
    const closed = inbox.journal.close();
    await clock.advance(0);
    await closed;
  });

  it('says that a callback was taken when its flow has acknowledged it, and not before', async () => {
    const bench = new Bench(inbox, clock);
    await bench.call('1');
    assert.deepEqual(bench.answers, []);
    assert.equal(bench.receiver.acknowledge(bench.ackIds[0] ?? '', false), true);
    await clock.advance(1);
    assert.deepEqual(bench.answers, [true]);
    await inbox.journal.flush();
    assert.equal(disk.entries.size, 0);
    assert.equal(clock.timers, 0);
  });

  it('says at once that it was not when the flow has failed, and takes it as new when it comes again, marked', async () => {
    const bench = new Bench(inbox, clock);
    await bench.call('1');
    bench.receiver.acknowledge(bench.ackIds[0] ?? '', true);
    await clock.advance(1);
    assert.deepEqual(bench.answers, [false]);
    await bench.call('1');
    assert.deepEqual(
      bench.sent.map(({ redelivered }) => redelivered),
      [false, true],
    );
    bench.receiver.acknowledge(bench.ackIds[1] ?? '', false);
    await clock.advance(1);
    assert.deepEqual(bench.answers, [false, true]);
  });

  it('waits no longer than it may, and knows what is acknowledged late when the service brings it again', async () => {
    const bench = new Bench(inbox, clock);
    await bench.call('1');
    await clock.advance(ackTimeoutMs + 1);
    assert.deepEqual(bench.answers, [false]);
    assert.equal(bench.receiver.acknowledge(bench.ackIds[0] ?? '', false), false);
    await clock.advance(1);
    await bench.call('1');
    assert.deepEqual(bench.answers, [false, true]);
    assert.equal(bench.sent.length, 1);
  });

  for (const [title, fields] of [
    ['without an identifier', { messageId: '' }],
    ['with its identifier', {}],
  ] as const) {
    it(`brings to the flow again what another process has let go of, called back ${title} and polled here as commits failed`, async () => {
      const disk = new FakeDisk();
      const createOn = (store: FailingServer) => {
        const journal = new Journal({ store, clock, onStore: () => {} });
        return new Bench(createInbox({ journal, clock }), clock);
      };
      const record: IncomingRecord = { ...incoming('1'), messageDate: '2026-03-01T10:00:00.123Z' };
      const holder = new FailingServer(disk);
      const other = createOn(holder);
      await other.call({ ...record, ...fields });
      assert.equal(other.sent.length, 1);
      holder.kill();
      disk.entries.clear();
      const server = new FailingServer(disk);
      const bench = createOn(server);
      await bench.inbox.journal.ready();
      server.failing.add('commit');
      const polled = await bench.inbox.accept({ kind: 'incoming', via: 'poll', records: [{ ...record, via: 'poll' }] });
      assert.deepEqual(polled, [{ outcome: 'duplicate' }]);
      // The other lets go of it.
      disk.remembered.clear();
      server.failing.clear();
      await clock.advance(10_000);
      await bench.call({ ...record, ...fields });
      assert.equal(bench.sent.length, 1);
      assert.deepEqual(bench.answers, []);
      await bench.inbox.journal.close();
    });
  }

  describe('of a message that was polled too, for nobody', () => {
    async function poll(...ids: string[]): Promise<void> {
      const records = ids.map((id) => ({ ...incoming(id), via: 'poll' as const }));
      await inbox.accept({ kind: 'incoming', via: 'poll', records });
    }

    for (const isPolledFirst of [true, false]) {
      const when = isPolledFirst ? 'before it was called' : 'while its flow had it';

      it(`marks what comes again after its flow has failed, polled ${when}`, async () => {
        const bench = new Bench(inbox, clock);
        if (isPolledFirst) await poll('1');
        await bench.call('1');
        if (!isPolledFirst) await poll('1');
        bench.receiver.acknowledge(bench.ackIds[0] ?? '', true);
        await clock.advance(1);
        await bench.call('1');
        assert.deepEqual(
          bench.sent.map(({ redelivered }) => redelivered),
          [false, true],
        );
        bench.receiver.acknowledge(bench.ackIds[1] ?? '', false);
        await clock.advance(1);
        assert.deepEqual(bench.answers, [false, true]);
        await clock.advance(30);
        assert.equal(disk.entries.size, 0);
      });
    }
  });

  it('sends nothing again by itself', async () => {
    const bench = new Bench(inbox, clock);
    await bench.call('1', '2');
    bench.receiver.acknowledge(bench.ackIds[0] ?? '', true);
    await clock.advance(86_400_000);
    assert.equal(bench.sent.length, 2);
  });

  it('counts sending as taking when nobody acknowledges, and not getting there as not taking', async () => {
    const bench = new Bench(inbox, clock, { acknowledge: 'auto' });
    await bench.call('1');
    assert.deepEqual(bench.answers, [true]);
    bench.receiver.close();
    const stopped = new Bench(inbox, clock, { acknowledge: 'auto', gotThere: false });
    await stopped.call('2');
    assert.deepEqual(stopped.answers, []);
    await clock.advance(ackTimeoutMs);
    assert.deepEqual(stopped.answers, [false]);
  });

  it('answers all that are under way when it is closed, and keeps what they brought', async () => {
    const bench = new Bench(inbox, clock);
    const ids = Array.from({ length: 30 }, (_, index) => String(index));
    await bench.call(...ids);
    bench.receiver.close();
    await clock.advance(1);
    assert.deepEqual(
      bench.answers,
      ids.map(() => false),
    );
    assert.equal(disk.entries.size, 30);
    await bench.call('late');
    assert.equal(bench.answers.at(-1), false);
    const next = new Bench(inbox, clock);
    await clock.advance(1);
    assert.deepEqual(
      next.sent.map(({ record, redelivered }) => [record.body, redelivered]),
      ids.map((id) => [id, true]),
    );
  });

  it('takes no more when a thousand are out, and further ones as soon as one is acknowledged', async () => {
    const bench = new Bench(inbox, clock);
    await bench.call(...Array.from({ length: maxCalledBack }, (_, index) => String(index)));
    assert.equal(bench.sent.length, maxCalledBack);
    await bench.call('one more');
    assert.deepEqual(bench.answers, [false]);
    assert.equal(bench.sent.length, maxCalledBack);
    bench.receiver.acknowledge(bench.ackIds[0] ?? '', false);
    await bench.call('one more');
    assert.equal(bench.sent.length, maxCalledBack + 1);
  });

  it('sends a thousand of what was left, and the rest in order as it is acknowledged', async () => {
    const ids = Array.from({ length: maxCalledBack + 2 }, (_, index) => String(index));
    const address = { node: 'node', path: '/sms' };
    const kept = inbox.accept({ kind: 'incoming', via: 'callback', records: ids.map(incoming), address });
    await clock.advance(1);
    await kept;
    const bench = new Bench(inbox, clock);
    await clock.advance(1_000);
    assert.equal(bench.sent.length, maxCalledBack);
    await bench.call('one more');
    assert.deepEqual(bench.answers, [false]);
    for (const index of [0, 1]) bench.receiver.acknowledge(bench.ackIds[index] ?? '', false);
    assert.deepEqual(
      bench.sent.map(({ record }) => record.body),
      ids,
    );
  });

  it('refuses what cannot be kept, since the service keeps it', async () => {
    const bench = new Bench(inbox, clock);
    await inbox.journal.ready();
    store.failing.add('commit');
    await bench.call('1');
    assert.deepEqual(bench.answers, ['SMS_STORE']);
    assert.deepEqual(bench.sent, []);
  });
});
