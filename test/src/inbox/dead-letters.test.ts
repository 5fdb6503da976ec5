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
  const inboxes = new Inboxes();

  beforeEach(() => {
    clock = new VirtualClock();
    disk = new FakeDisk();
    timesFull = 0;
  });
  afterEach(() => inboxes.close());

  function createInbox(): Inbox {
    store = new FailingStore(disk);
    return inboxes.create({ store, clock, onDeadLettersFull: () => timesFull++ });
  }

  /** Attaches a node with one attempt, whose flow does not acknowledge. */
  const attach = (inbox: Inbox, id = 'node', ackTimeoutMs = 60_000) =>
    new RecordingNode(inbox, { id, ackTimeoutMs, maxAttempts: 1 });

  async function receive(inbox: Inbox, ...ids: string[]): Promise<void> {
    await inbox.accept(polled(...ids.map(undated)));
  }

  /** Creates an inbox with an unhandled message. */
  async function giveUp(): Promise<{ inbox: Inbox; node: RecordingNode; id: string }> {
    const inbox = createInbox();
    const node = attach(inbox);
    await receive(inbox, 'hello');
    await clock.advance(60_000);
    await inbox.journal.flush();
    const [item] = inbox.deadLetters.page({ limit: 1 }).items;
    assert.ok(item);
    return { inbox, node, id: item.id };
  }

  /** Closes the inbox and opens the inbox of the next process. */
  async function restart(inbox: Inbox): Promise<Inbox> {
    await inbox.journal.close();
    const next = createInbox();
    await next.journal.ready();
    return next;
  }

  /** Asserts that the message is dropped within an hour after its 7 days. */
  async function assertEndsAfter(inbox: Inbox, leftMs: number): Promise<void> {
    await clock.advance(leftMs - 3_600_000);
    assert.equal(inbox.state.unhandled, 1);
    await clock.advance(2 * 3_600_000);
    assert.equal(inbox.state.unhandled, 0);
  }

  it('is listed with its node and the time at which it became unhandled', async () => {
    const { inbox } = await giveUp();
    const { kind, record, node, at, attempts } = inbox.deadLetters.page({ limit: 200 }).items[0] ?? {};
    assert.deepEqual([kind, record?.body, node, at, attempts], ['incoming', 'hello', 'node', clock.now(), 1]);
    assert.deepEqual(inbox.state, { undelivered: 0, unhandled: 1 });
  });

  it('is redelivered only to its node, and its attempts start from zero', async () => {
    const { inbox, node, id } = await giveUp();
    const other = attach(inbox, 'other');
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
    const { inbox, id } = await giveUp();
    const next = await restart(inbox);
    attach(next, 'other');
    assert.equal(next.deadLetters.deliver(id), false);
    assert.deepEqual(next.state, { undelivered: 0, unhandled: 1 });
    const node = attach(next);
    assert.equal(next.deadLetters.deliver(id), true);
    await clock.advance(0);
    assert.deepEqual(node.bodies, ['hello']);
  });

  it('becomes unhandled again if its node is removed before an acknowledgement', async () => {
    const { inbox, id } = await giveUp();
    assert.equal(inbox.deadLetters.deliver(id), true);
    await clock.advance(0);
    const next = await restart(inbox);
    assert.deepEqual(next.state.undelivered, 1);
    const other = attach(next, 'other');
    await clock.advance(0);
    await next.journal.flush();
    assert.deepEqual([next.state, other.sent], [{ undelivered: 0, unhandled: 1 }, []]);
    const last = await restart(next);
    const node = attach(last);
    const [item] = last.deadLetters.page({ limit: 1 }).items;
    assert.deepEqual([item?.node, last.deadLetters.deliver(item?.id ?? '')], ['node', true]);
    await clock.advance(0);
    assert.deepEqual(node.marks, [['hello', true]]);
  });

  it('is no longer listed after it was discarded, even after a restart', async () => {
    const { inbox, id } = await giveUp();
    assert.equal(inbox.deadLetters.size, 1);
    inbox.deadLetters.discard([id]);
    assert.equal(inbox.deadLetters.size, 0);
    await inbox.journal.close();
    assert.equal(disk.entries.size, 0);
  });

  it('is stored in the commit that drops the undelivered message', async () => {
    const inbox = createInbox();
    attach(inbox);
    await receive(inbox, 'hello');
    const { commits } = store;
    await clock.advance(60_000);
    await inbox.journal.flush();
    assert.equal(store.commits, commits + 1);
    assert.equal(disk.entries.size, 1);
  });

  it('is written when the store has recovered from a failure', async () => {
    const inbox = createInbox();
    attach(inbox);
    await receive(inbox, 'hello');
    store.failing.add('commit');
    await clock.advance(60_000);
    assert.equal(inbox.state.unhandled, 1);
    store.failing.clear();
    await clock.advance(60_000);
    await inbox.journal.flush();
    assert.deepEqual(
      [...disk.entries.values()].map((text) => JSON.parse(text).part),
      ['deadLetter'],
    );
    assert.equal(inbox.state.unhandled, 1);
  });

  it('is listed by time, page by page, even if earlier pages were discarded', async () => {
    const inbox = createInbox();
    attach(inbox, 'a');
    attach(inbox, 'b', 10_000);
    await receive(inbox, 'one', 'two');
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
    const { inbox } = await giveUp();
    await clock.advance(3 * dayMs);
    const next = await restart(inbox);
    await assertEndsAfter(next, 4 * dayMs);
    await next.journal.flush();
    assert.equal(disk.entries.size, 0);
  });

  it('is kept for 7 days if the clock is set later', async () => {
    clock = new VirtualClock(0);
    const { inbox } = await giveUp();
    clock.set(Date.UTC(2026, 0, 1));
    await assertEndsAfter(inbox, 7 * dayMs);
  });

  it('is kept for 7 days if the clock is set forward before a restart', async () => {
    const { inbox } = await giveUp();
    await clock.advance(dayMs);
    clock.set(8 * dayMs);
    await assertEndsAfter(await restart(inbox), 6 * dayMs);
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
    const inbox = createInbox();
    attach(inbox);
    await clock.advance(0);
    for (let start = 0; start < 10_000; start += 250) {
      await receive(inbox, ...Array.from({ length: 250 }, (_, index) => String(start + index)));
    }
    // At most 100 are unacknowledged at a time.
    for (let round = 0; round < 100; round++) await clock.advance(60_000);
    assert.deepEqual([inbox.state.unhandled, timesFull], [10_000, 0]);
    await receive(inbox, 'more', 'and more');
    await clock.advance(60_000);
    await inbox.journal.flush();
    assert.deepEqual([inbox.state.unhandled, timesFull], [10_000, 1]);
    assert.equal(inbox.deadLetters.page({ limit: 1 }).items[0]?.record.body, '2');
    assert.equal(disk.entries.size, 10_000);
  });

  it('does not hide other unhandled messages if it cannot be read', async () => {
    const { inbox } = await giveUp();
    await inbox.journal.close();
    for (const [key, text] of [...disk.entries]) {
      const item = JSON.parse(text);
      disk.entries.set(`${key}0`, JSON.stringify({ ...item, id: `${key}0`, record: 'none' }));
    }
    const next = createInbox();
    await next.journal.ready();
    assert.equal(next.state.unhandled, 1);
  });
});
