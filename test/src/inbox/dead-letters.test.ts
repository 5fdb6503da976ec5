import assert from 'node:assert/strict';
import type { Inbox } from '../../../src/inbox/inbox';
import type { IncomingRecord } from '../../../src/model';
import { VirtualClock } from '../../virtual-clock';
import { RecordingNode } from '../delivery/recording-node';
import { FailingStore, FakeDisk } from '../store/failing-store';
import { incoming, polled } from './arrivals';
import { Inboxes } from './inbox-on';

const dayMs = 24 * 3_600_000;

/** Creates a message without a date, so that the account remembers only one key for it. */
function undated(messageId: string): IncomingRecord {
  const { messageDate: _, ...record } = incoming(messageId);
  return record;
}

describe('an unhandled message', () => {
  let clock: VirtualClock;
  let disk: FakeDisk;
  let store: FailingStore;
  let timesFull: number;
  let inbox: Inbox;
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    timesFull = 0;
    createInbox();
  });
  afterEach(() => inboxes.close());

  /** Creates the inbox of this process, or of the next one. */
  function createInbox(): void {
    store = new FailingStore(disk);
    inbox = inboxes.create({ store, clock, onDeadLettersFull: () => timesFull++ });
  }

  /** Closes the inbox, and opens the inbox of the next process. */
  async function restart(): Promise<void> {
    await inbox.journal.close();
    createInbox();
    await inbox.journal.ready();
  }

  /** Attaches a node with one attempt, whose flow does not acknowledge. */
  const attach = (id = 'node', ackTimeoutMs = 60_000) => new RecordingNode(inbox, { id, ackTimeoutMs, maxAttempts: 1 });

  const receive = (...ids: string[]) => inbox.accept(polled(...ids.map(undated)));

  /** Makes a message unhandled. */
  async function giveUp(): Promise<{ node: RecordingNode; id: string }> {
    const node = attach();
    await receive('hello');
    const { commits } = store;
    await clock.advance(60_000);
    await inbox.journal.flush();
    // One commit drops the undelivered message and stores the unhandled one, so that a crash cannot lose it.
    assert.deepEqual([store.commits, disk.entries.size], [commits + 1, 1]);
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.ok(item);
    return { node, id: item.id };
  }

  /** Asserts that the message is dropped within an hour after its 7 days. */
  async function assertEndsAfter(leftMs: number): Promise<void> {
    await clock.advance(leftMs - 3_600_000);
    assert.equal(inbox.state.unhandled, 1);
    await clock.advance(2 * 3_600_000);
    assert.equal(inbox.state.unhandled, 0);
  }

  it('is listed with its node and the time at which it became unhandled', async () => {
    await giveUp();
    const { kind, record, node, at, attempts } = inbox.deadLetters.page({ limit: 200 }).items[0] ?? {};
    assert.deepEqual([kind, record?.body, node, at, attempts], ['incoming', 'hello', 'node', clock.now(), 1]);
    assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 1 });
  });

  it('is redelivered only to its node, and its attempts start from zero', async () => {
    const { node, id } = await giveUp();
    const other = attach('other');
    await clock.advance(0);
    assert.equal(inbox.deadLetters.deliver(id), true);
    await clock.advance(0);
    assert.deepEqual(node.marks, [
      ['hello', false],
      ['hello', true],
    ]);
    assert.deepEqual([other.sent, inbox.state.undelivered, inbox.state.unhandled], [[], 1, 0]);
    await clock.advance(60_000);
    assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 1 });
    assert.equal(inbox.deadLetters.deliver(id), false);
  });

  it('cannot be redelivered while its node is not deployed', async () => {
    const { id } = await giveUp();
    await restart();
    attach('other');
    assert.equal(inbox.deadLetters.deliver(id), false);
    assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 1 });
    const node = attach();
    assert.equal(inbox.deadLetters.deliver(id), true);
    await clock.advance(0);
    assert.deepEqual(node.bodies, ['hello']);
  });

  it('becomes unhandled again if its node is removed before an acknowledgement', async () => {
    const { id } = await giveUp();
    assert.equal(inbox.deadLetters.deliver(id), true);
    await clock.advance(0);
    await restart();
    assert.deepEqual(inbox.state.undelivered, 1);
    const other = attach('other');
    await clock.advance(0);
    await inbox.journal.flush();
    assert.deepEqual([inbox.state, other.sent], [{ undelivered: 0, unhandled: 1 }, []]);
    await restart();
    const node = attach();
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, inbox.deadLetters.deliver(item?.id ?? '')], ['node', true]);
    await clock.advance(0);
    assert.deepEqual(node.marks, [['hello', true]]);
  });

  it('is no longer listed after it was discarded, even after a restart', async () => {
    const { id } = await giveUp();
    assert.equal(inbox.deadLetters.size, 1);
    inbox.deadLetters.discard([id]);
    assert.equal(inbox.deadLetters.size, 0);
    await inbox.journal.close();
    assert.equal(disk.entries.size, 0);
  });

  it('is listed by time, page by page, even if earlier pages were discarded', async () => {
    attach('a');
    attach('b', 10_000);
    await receive('one', 'two');
    await clock.advance(60_000);
    const listed: unknown[] = [];
    let next: string | undefined;
    do {
      const page = inbox.deadLetters.page({ limit: 1, after: next });
      for (const { id, node, record } of page.items) {
        listed.push(`${node} ${record.body}`);
        inbox.deadLetters.discard([id]);
      }
      next = page.next;
    } while (next !== undefined);
    assert.deepEqual(listed, ['b one', 'b two', 'a one', 'a two']);
  });

  it('is dropped after 7 days, also across a restart', async () => {
    await giveUp();
    await clock.advance(3 * dayMs);
    await restart();
    await assertEndsAfter(4 * dayMs);
    await inbox.journal.flush();
    assert.equal(disk.entries.size, 0);
  });

  it('is kept for 7 days if the clock is set later', async () => {
    clock = new VirtualClock(0);
    createInbox();
    await giveUp();
    clock.set(Date.UTC(2026, 0, 1));
    await assertEndsAfter(7 * dayMs);
  });

  it('is kept for 7 days if the clock is set forward before a restart', async () => {
    await giveUp();
    await clock.advance(dayMs);
    clock.set(8 * dayMs);
    await restart();
    await assertEndsAfter(6 * dayMs);
  });

  it('does not keep the process running', async () => {
    let isIdle: boolean | undefined;
    const after = clock.after.bind(clock);
    clock.after = (delayMs: number, callback: () => void, ...[idle]: boolean[]) => {
      if (delayMs === 3_600_000) isIdle = idle;
      return after(delayMs, callback);
    };
    await giveUp();
    assert.equal(isIdle, true);
  });

  it('is dropped as the oldest of more than 10,000, which is reported once', async () => {
    attach();
    await clock.advance(0);
    for (let start = 0; start < 10_000; start += 250) {
      await receive(...Array.from({ length: 250 }, (_, index) => String(start + index)));
    }
    // At most 100 are unacknowledged at a time.
    for (let round = 0; round < 100; round++) await clock.advance(60_000);
    assert.deepEqual([inbox.state.unhandled, timesFull], [10_000, 0]);
    await receive('more', 'and more');
    await clock.advance(60_000);
    await inbox.journal.flush();
    assert.deepEqual([inbox.state.unhandled, timesFull], [10_000, 1]);
    assert.equal(inbox.deadLetters.page({ limit: 1 }).items[0]?.record.body, '2');
    assert.equal(disk.entries.size, 10_000);
  });

  it('does not hide other unhandled messages if it cannot be read', async () => {
    await giveUp();
    await inbox.journal.close();
    for (const [key, text] of [...disk.entries]) {
      const item = JSON.parse(text);
      disk.entries.set(`${key}0`, JSON.stringify({ ...item, id: `${key}0`, record: 'none' }));
    }
    createInbox();
    await inbox.journal.ready();
    assert.equal(inbox.state.unhandled, 1);
  });
});
