import assert from 'node:assert/strict';
import { TurningClock } from '../../virtual-clock';
import type { RecordingNode } from '../delivery/recording-node';
import { incoming } from './arrivals';
import { useInbox } from './use-inbox';

const dayMs = 24 * 3_600_000;

describe('an unhandled message', () => {
  let timesFull = 0;
  const bench = useInbox(() => ({ onDeadLettersFull: () => timesFull++ }));
  const { pass, restart, storedParts } = bench;

  /** Attaches a node with one attempt, whose flow does not acknowledge. */
  const attach = (id = 'node', ackTimeoutMs = 60_000) => bench.attach({ id, ackTimeoutMs, maxAttempts: 1 });

  /** Receives messages without a date, so that the store keeps only one key for each. */
  const receive = (...ids: string[]) => bench.receive(...ids.map((id) => incoming(id, { messageDate: '' })));

  const list = () => bench.inbox.deadLetters.page({ limit: 200 }).items;
  const deliver = (id: string) => bench.inbox.deadLetters.deliver(id);

  /** Makes a message unhandled. */
  async function giveUp(): Promise<{ node: RecordingNode; id: string }> {
    const node = attach();
    await receive('hello');
    const { commits } = bench.store;
    await pass(60_000);
    // One commit drops the undelivered message and stores the unhandled one, so that a crash cannot lose it.
    assert.deepEqual([await storedParts(), bench.store.commits], [['deadLetter'], commits + 1]);
    return { node, id: list()[0]?.id ?? assert.fail() };
  }

  /** Asserts that the message is dropped after `leftMs`, at most an hour earlier or later. */
  async function assertEndsAfter(leftMs: number): Promise<void> {
    await pass(leftMs - 3_600_000);
    assert.equal(bench.state.unhandled, 1);
    await pass(2 * 3_600_000);
    assert.equal(bench.state.unhandled, 0);
  }

  it('is redelivered only to the node that did not handle it', async () => {
    const { node, id } = await giveUp();
    const other = attach('other');
    await pass();
    assert.equal(deliver(id), true);
    await pass();
    assert.deepEqual(node.marks, [
      ['hello', false],
      ['hello', true],
    ]);
    assert.deepEqual([other.sent, bench.state.undelivered, bench.state.unhandled], [[], 1, 0]);
    await pass(60_000);
    assert.deepEqual(bench.state, { undelivered: 0, unhandled: 1 });
    assert.equal(deliver(id), false);
  });

  it('cannot be redelivered while its node is not deployed', async () => {
    const { id } = await giveUp();
    await restart();
    attach('other');
    assert.equal(deliver(id), false);
    assert.deepEqual(bench.state, { undelivered: 0, unhandled: 1 });
    const node = attach();
    assert.equal(deliver(id), true);
    await pass();
    assert.deepEqual(node.bodies, ['hello']);
  });

  it('becomes unhandled again if its node is removed after redelivery', async () => {
    const { id } = await giveUp();
    assert.equal(deliver(id), true);
    await pass();
    await restart();
    assert.deepEqual(bench.state.undelivered, 1);
    const other = attach('other');
    await pass();
    await bench.inbox.journal.flush();
    assert.deepEqual([bench.state, other.sent], [{ undelivered: 0, unhandled: 1 }, []]);
    await restart();
    const node = attach();
    const [item] = list();
    assert.deepEqual([item?.node, deliver(item?.id ?? '')], ['node', true]);
    await pass();
    assert.deepEqual(node.marks, [['hello', true]]);
  });

  it('is listed in the order in which messages became unhandled', async () => {
    attach('slow');
    attach('fast', 10_000);
    await receive('one', 'two');
    await pass(60_000);
    const listed = list().map(({ node, record }) => `${node} ${record.body}`);
    assert.deepEqual(listed, ['fast one', 'fast two', 'slow one', 'slow two']);
  });

  it('is dropped after 7 days, even across restarts', async () => {
    await giveUp();
    await pass(3 * dayMs);
    await restart();
    await assertEndsAfter(4 * dayMs);
    await bench.inbox.journal.flush();
    assert.equal(bench.disk.entries.size, 0);
  });

  it('is kept for 7 days if the clock jumps from 1970 to 2026', async () => {
    bench.clock = new TurningClock(0);
    bench.start();
    await giveUp();
    bench.clock.set(Date.UTC(2026, 0, 1));
    await assertEndsAfter(7 * dayMs);
  });

  it('is kept for 7 days if the clock moves forward before a restart', async () => {
    await giveUp();
    await pass(dayMs);
    bench.clock.set(8 * dayMs);
    await restart();
    await assertEndsAfter(6 * dayMs);
  });

  it('does not prevent the process from exiting', async () => {
    let isIdle: boolean | undefined;
    const after = bench.clock.after.bind(bench.clock);
    bench.clock.after = (delayMs: number, callback: () => void, ...[idle]: boolean[]) => {
      if (delayMs === 3_600_000) isIdle = idle;
      return after(delayMs, callback);
    };
    await giveUp();
    assert.equal(isIdle, true);
  });

  it('is dropped if 10,000 newer unhandled messages exist', async () => {
    attach();
    await pass();
    for (let start = 0; start < 10_000; start += 250) {
      await receive(...Array.from({ length: 250 }, (_, index) => String(start + index)));
    }
    // At most 100 messages are unacknowledged at a time, so only 100 become unhandled per minute.
    for (let round = 0; round < 100; round++) await pass(60_000);
    assert.deepEqual([bench.state.unhandled, timesFull], [10_000, 0]);
    await receive('more', 'and more');
    await pass(60_000);
    await bench.inbox.journal.flush();
    assert.deepEqual([bench.state.unhandled, timesFull], [10_000, 1]);
    assert.equal(list()[0]?.record.body, '2');
    assert.equal(bench.disk.entries.size, 10_000);
  });

  it('is skipped after a restart if it cannot be read', async () => {
    await giveUp();
    await bench.inbox.journal.close();
    for (const [key, text] of [...bench.disk.entries]) {
      const item = JSON.parse(text);
      bench.disk.entries.set(`${key}0`, JSON.stringify({ ...item, id: `${key}0`, record: 'none' }));
    }
    bench.start();
    await bench.inbox.journal.ready();
    assert.equal(bench.state.unhandled, 1);
  });
});
