import assert from 'node:assert/strict';
import type { Timer } from '../../../src/clock';
import {
  type FlowDelivery,
  maxUnacknowledged,
  PollSubscription,
  type PollSubscriptionOptions,
} from '../../../src/delivery/poll-subscription';
import type { Inbox } from '../../../src/inbox/inbox';
import { VirtualClock } from '../../virtual-clock';
import { polled } from '../inbox/arrivals';
import { createInboxOn } from '../inbox/inbox-on';
import { FailingStore, FakeDisk } from '../store/failing-store';

/** Waits for everything that happens without a timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

/** A clock whose turns of the event loop take no time. */
class TurningClock extends VirtualClock {
  override nextTurn(callback: () => void): Timer {
    const immediate = setImmediate(callback);
    return { cancel: () => clearImmediate(immediate) };
  }
}

/** A node, and the deliveries that its flow has received. */
class Bench {
  readonly sent: (FlowDelivery & { body: unknown })[] = [];
  readonly undelivered: { body: unknown; attempts: number }[] = [];
  roomChanges = 0;
  gotThere = true;
  readonly receiver: PollSubscription;

  constructor(
    readonly inbox: Inbox,
    options: Partial<PollSubscriptionOptions> = {},
  ) {
    this.receiver = new PollSubscription(
      inbox,
      'incoming',
      {
        id: 'node',
        wants: () => true,
        acknowledge: 'flow',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        send: (delivery) => {
          this.sent.push({ ...delivery, body: delivery.record.body });
          return Promise.resolve(this.gotThere);
        },
        onUndelivered: ({ record: { body } }, attempts) => this.undelivered.push({ body, attempts }),
        ...options,
      },
      () => this.roomChanges++,
    );
  }

  get bodies(): unknown[] {
    return this.sent.map(({ body }) => body);
  }

  /** Id with which the flow acknowledges the last delivery. */
  get lastAckId(): string {
    const ackId = this.sent.at(-1)?.ackId;
    assert.ok(ackId !== undefined);
    return ackId;
  }

  async receive(...ids: string[]): Promise<void> {
    await this.inbox.accept(polled(...ids));
    await settle();
  }
}

describe('PollSubscription', () => {
  let disk: FakeDisk;
  let clock: VirtualClock;
  let inboxes: Inbox[];
  const parts = () => [...disk.entries.values()].map((text) => JSON.parse(text).part);
  beforeEach(() => {
    clock = new TurningClock();
    disk = new FakeDisk();
    inboxes = [];
  });
  afterEach(async () => {
    for (const inbox of inboxes) await inbox.journal.close();
  });

  function createInbox(): Inbox {
    const inbox = createInboxOn({
      store: new FailingStore(disk),
      clock,
      dedupe: () => true,
      dedupeMs: () => 1_000_000_000,
      onStore: () => {},
    });
    inboxes.push(inbox);
    return inbox;
  }

  function createBench(options: Partial<PollSubscriptionOptions> = {}, inbox = createInbox()): Bench {
    return new Bench(inbox, options);
  }

  async function tick(ms: number): Promise<void> {
    await clock.advance(ms);
    await settle();
  }

  describe('PollSubscription with acknowledge auto', () => {
    it('counts a message as delivered when it was sent', async () => {
      const bench = createBench({ acknowledge: 'auto' });
      await bench.receive('1', '2', '3');
      assert.deepEqual(bench.bodies, ['1', '2', '3']);
      assert.ok(bench.sent.every(({ ackId, redelivered }) => ackId === undefined && !redelivered));
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
      assert.equal(bench.receiver.unacknowledgedCount, 0);
    });

    it('redelivers a message that a stopped flow missed, marked as redelivered', async () => {
      const bench = createBench({ acknowledge: 'auto' });
      bench.gotThere = false;
      await bench.receive('1');
      assert.equal(disk.entries.size, 1);
      bench.receiver.detach();
      const next = createBench({ acknowledge: 'auto' }, bench.inbox);
      await settle();
      assert.deepEqual(
        next.sent.map(({ body, redelivered }) => [body, redelivered]),
        [['1', true]],
      );
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
    });

    it('does not send a message that the filter leaves out', async () => {
      for (const acknowledge of ['auto', 'flow'] as const) {
        const bench = createBench({ acknowledge, wants: ({ body }) => body === 'wanted' });
        await bench.receive(`unwanted ${acknowledge}`);
        assert.deepEqual(bench.bodies, []);
        await bench.inbox.journal.flush();
        assert.equal(disk.entries.size, 0);
        bench.receiver.detach();
        await bench.inbox.journal.close();
      }
    });
  });

  describe('PollSubscription with acknowledge flow', () => {
    it('keeps a message until it is acknowledged', async () => {
      const bench = createBench();
      await bench.receive('1');
      assert.equal(disk.entries.size, 1);
      assert.equal(bench.receiver.unacknowledgedCount, 1);
      assert.equal(bench.receiver.acknowledge(bench.lastAckId, false), true);
      await settle();
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
      assert.equal(bench.receiver.unacknowledgedCount, 0);
      await tick(600_000);
      assert.equal(bench.sent.length, 1);
    });

    it('redelivers after ackTimeout, marked as redelivered, with another ackId', async () => {
      const bench = createBench();
      await bench.receive('1');
      await tick(59_999);
      assert.equal(bench.sent.length, 1);
      await tick(1);
      assert.equal(bench.sent.length, 2);
      assert.deepEqual(
        bench.sent.map(({ redelivered }) => redelivered),
        [false, true],
      );
      assert.notEqual(bench.sent[0]?.ackId, bench.sent[1]?.ackId);
    });

    it('starts ackTimeout when the message enters the flow', async () => {
      let getThere = () => {};
      let tries = 0;
      const bench = createBench({
        send: () => {
          tries++;
          return new Promise((resolve) => {
            getThere = () => resolve(true);
          });
        },
      });
      await bench.receive('1');
      await tick(200_000);
      getThere();
      await tick(59_999);
      assert.equal(tries, 1);
      await tick(1);
      assert.equal(tries, 2);
    });

    it('redelivers a message after msg.error with a doubling delay', async () => {
      const bench = createBench();
      await bench.receive('1');
      for (const [tries, delayMs] of [
        [1, 250],
        [2, 500],
        [3, 1_000],
        [4, 2_000],
      ] as const) {
        assert.equal(bench.receiver.acknowledge(bench.lastAckId, true), true);
        await tick(delayMs - 1);
        assert.equal(bench.sent.length, tries);
        await tick(1);
        assert.equal(bench.sent.length, tries + 1);
      }
    });

    it('does not delay a redelivery beyond ackTimeout', async () => {
      const bench = createBench({ ackTimeoutMs: 100 });
      await bench.receive('1');
      bench.receiver.acknowledge(bench.lastAckId, true);
      await tick(100);
      assert.equal(bench.sent.length, 2);
    });

    it('counts the same failure once', async () => {
      const bench = createBench();
      await bench.receive('1');
      const ackId = bench.lastAckId;
      bench.receiver.acknowledge(ackId, true);
      bench.receiver.acknowledge(ackId, true);
      await tick(250);
      bench.receiver.acknowledge(ackId, true);
      await tick(10_000);
      assert.equal(bench.sent.length, 2);
    });

    it('stops redelivering a message after maxAttempts', async () => {
      const bench = createBench({ maxAttempts: 3 });
      await bench.receive('by time');
      await tick(60_000);
      await tick(60_000);
      assert.deepEqual(bench.undelivered, []);
      await tick(60_000);
      assert.deepEqual(bench.undelivered, [{ body: 'by time', attempts: 3 }]);
      assert.equal(bench.sent.length, 3);
      await bench.receive('by failure');
      for (let round = 0; round < 3; round++) {
        bench.receiver.acknowledge(bench.lastAckId, true);
        await tick(1_000);
      }
      assert.deepEqual(bench.undelivered.slice(1), [{ body: 'by failure', attempts: 3 }]);
      assert.equal(bench.sent.length, 6);
      assert.deepEqual(parts(), ['deadLetter', 'deadLetter']);
      assert.equal(bench.receiver.unacknowledgedCount, 0);
    });

    it('accepts a late acknowledgement, but ignores a late failure', async () => {
      const bench = createBench();
      await bench.receive('1');
      const early = bench.lastAckId;
      await tick(60_000);
      assert.equal(bench.receiver.acknowledge(early, true), true);
      await tick(10_000);
      assert.equal(bench.sent.length, 2);
      assert.equal(bench.receiver.acknowledge(early, false), true);
      await settle();
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
      await tick(600_000);
      assert.equal(bench.sent.length, 2);
    });

    it('accepts an acknowledgement before a redelivery', async () => {
      const bench = createBench();
      await bench.receive('1');
      const ackId = bench.lastAckId;
      bench.receiver.acknowledge(ackId, true);
      bench.receiver.acknowledge(ackId, false);
      await tick(600_000);
      assert.equal(bench.sent.length, 1);
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
    });

    it('ignores unknown and repeated acknowledgements', async () => {
      const bench = createBench();
      await bench.receive('1');
      const ackId = bench.lastAckId;
      for (const unknown of ['', '.', 'x.1', ackId.slice(1), '__proto__', `${ackId.split('.')[0]}x`]) {
        assert.equal(bench.receiver.acknowledge(unknown, false), false, unknown);
      }
      assert.equal(bench.receiver.acknowledge(ackId, false), true);
      assert.equal(bench.receiver.acknowledge(ackId, false), false);
    });

    it('has at most 100 unacknowledged messages, and sends others in order', async () => {
      const bench = createBench();
      const ids = Array.from({ length: 250 }, (_, index) => String(index));
      await bench.receive(...ids);
      assert.equal(bench.sent.length, maxUnacknowledged);
      assert.equal(bench.receiver.unacknowledgedCount, 100);
      for (let index = 0; index < 250; index++) {
        const ackId = bench.sent[index]?.ackId ?? '';
        assert.equal(bench.receiver.acknowledge(ackId, false), true);
      }
      await settle();
      assert.deepEqual(bench.bodies, ids);
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
      assert.equal(bench.roomChanges, 2);
    });
  });

  describe('a redeploy with unacknowledged messages', () => {
    it('redelivers the messages and continues to count their attempts', async () => {
      const bench = createBench();
      await bench.receive('1', '2');
      bench.receiver.acknowledge(bench.lastAckId, true);
      await tick(250);
      const late = bench.lastAckId;
      bench.receiver.detach();
      assert.equal(bench.receiver.acknowledge(late, false), false);
      assert.equal(bench.receiver.unacknowledgedCount, 0);
      await tick(600_000);
      assert.equal(bench.sent.length, 3);
      await bench.inbox.journal.close();
      const next = createBench();
      await settle();
      assert.deepEqual(
        next.sent.map(({ body, redelivered, ackId }) => [body, redelivered, ackId?.split('.')[1]]),
        [
          ['1', true, '2'],
          ['2', true, '3'],
        ],
      );
    });

    it('marks messages as redelivered for a node that is deployed later', async () => {
      const before = createBench();
      await before.receive('1');
      before.receiver.detach();
      await before.inbox.journal.close();
      const other = createBench({ id: 'other' });
      createBench({}, other.inbox).receiver.detach();
      await settle();
      const next = createBench({}, other.inbox);
      await settle();
      for (const { sent } of [other, next]) {
        assert.deepEqual(
          sent.map(({ body, redelivered, ackId }) => [body, redelivered, ackId?.split('.')[1]]),
          [['1', true, '2']],
        );
      }
    });

    it('leaves no timer behind', async () => {
      const bench = createBench();
      await bench.receive('1', '2');
      bench.receiver.acknowledge(bench.lastAckId, true);
      assert.equal(clock.timers, 2);
      bench.receiver.detach();
      // The inbox waits, because the node might return.
      assert.equal(clock.timers, 1);
    });

    it('does not count an attempt for a message that waited', async () => {
      let bench = createBench({ maxAttempts: 2 });
      const bodies = Array.from({ length: maxUnacknowledged + 1 }, (_, index) => `m${index}`);
      await bench.receive(...bodies);
      const last = bodies.at(-1);
      for (let restart = 0; restart < 4; restart++) {
        bench.receiver.detach();
        await bench.inbox.journal.close();
        bench = createBench({ maxAttempts: 100 });
        await settle();
        assert.ok(!bench.bodies.includes(last));
      }
      for (const { ackId = '' } of [...bench.sent]) bench.receiver.acknowledge(ackId, false);
      await settle();
      assert.equal(bench.sent.at(-1)?.body, last);
      assert.equal(bench.lastAckId.split('.')[1], '2');
    });

    it('stops redelivering a message after maxAttempts across restarts', async () => {
      const undelivered: unknown[] = [];
      let sent = 0;
      for (let restart = 0; restart < 7; restart++) {
        const bench = createBench();
        if (restart === 0) await bench.receive('1');
        await settle();
        sent += bench.sent.length;
        undelivered.push(...bench.undelivered);
        bench.receiver.detach();
        await bench.inbox.journal.close();
      }
      assert.equal(sent, 5);
      assert.deepEqual(undelivered, [{ body: '1', attempts: 5 }]);
    });

    for (const how of ['redeploy', 'restart'] as const) {
      it(`counts the attempts of each node across a ${how}`, async () => {
        const failing = createBench({ id: 'failing' });
        let slow = createBench({ id: 'slow', ackTimeoutMs: 3_600_000 }, failing.inbox);
        await failing.receive('1');
        for (let attempt = 1; attempt <= 5; attempt++) {
          failing.receiver.acknowledge(failing.lastAckId, true);
          await tick(60_000);
        }
        assert.deepEqual([failing.sent.length, failing.undelivered.length, slow.sent.length], [5, 1, 1]);
        for (let attempt = 2; attempt <= 5; attempt++) {
          slow.receiver.detach();
          if (how === 'restart') await slow.inbox.journal.close();
          slow = createBench({ id: 'slow' }, how === 'restart' ? createInbox() : slow.inbox);
          await settle();
          assert.deepEqual([slow.sent.map(({ redelivered }) => redelivered), slow.undelivered], [[true], []]);
        }
        slow.receiver.acknowledge(slow.lastAckId, true);
        await settle();
        assert.deepEqual(slow.undelivered, [{ body: '1', attempts: 5 }]);
      });
    }

    it('accepts an acknowledgement of a delivery before the redeploy', async () => {
      const bench = createBench();
      await bench.receive('1');
      const before = bench.lastAckId;
      bench.receiver.detach();
      const next = createBench({}, bench.inbox);
      await settle();
      assert.equal(next.receiver.acknowledge(before, false), true);
      await settle();
      await bench.inbox.journal.flush();
      assert.equal(disk.entries.size, 0);
    });
  });
});
