import assert from 'node:assert/strict';
import { VirtualClock } from '../../virtual-clock';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyDisk, forever, SendingSide, sendText, type Turn } from './sending-side';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** A clock that advances with each read, as a real clock does. */
class FineClock extends VirtualClock {
  override elapsed(): number {
    this.stall(0.001);
    return super.elapsed();
  }
}

/** Creates a sending side whose service is unreachable. */
function createSide(clock = new VirtualClock(), store = new FailingStore()): SendingSide {
  const side = new SendingSide({ clock, store });
  side.service.otherwise = { unreachable: true };
  return side;
}

/** @param minutes time until the message expires. By default, it never expires. */
function keep(node: Parameters<typeof sendText>[0], body: string, minutes?: number): void {
  sendText(node, body, { keep: minutes === undefined ? forever : { expireMs: minutes * minuteMs } });
}

describe('a message of a removed node', () => {
  it('does not expire in the first 20 s after the removal', async () => {
    for (const isBack of [false, true]) {
      const side = createSide();
      const node = side.attach();
      side.attach('other');
      keep(node, 'hello', 1);
      keep(node, 'hello', 2);
      await side.pass(59_000);
      await Promise.all([node.node.close(), side.pass(0)]);
      await side.pass(19_000);
      assert.deepEqual([side.abandoned, side.outbox.admin.state.kept], [[], 2]);
      if (!isBack) {
        await side.pass(2_000);
        assert.deepEqual([side.abandoned, side.outbox.admin.state.kept], [['send'], 1]);
      } else {
        const back = side.attach();
        await side.pass(1_000);
        assert.deepEqual([side.abandoned, back.ends, side.outbox.admin.state.kept], [[], ['SMS_EXPIRED'], 1]);
      }
      await side.pass(2 * minuteMs);
      assert.equal(side.outbox.admin.state.kept, 0);
    }
  });

  it('is dropped after exactly 7 days', async () => {
    const side = createSide(new FineClock());
    const node = side.attach();
    side.attach('other');
    keep(node, 'hello');
    await side.pass(minuteMs);
    await Promise.all([node.node.close(), side.pass(0)]);
    await side.pass(7 * 24 * 60 * minuteMs - 60_000);
    assert.deepEqual(side.abandoned, []);
    await side.pass(2 * minuteMs);
    assert.deepEqual(side.abandoned, ['send']);
    assert.deepEqual([side.outbox.hasMessages, side.outbox.isSettled], [false, true]);
  });
});

describe('the 7-day wait for a removed node', () => {
  /**
   * Stores a message that cannot be sent. Then removes its node for `goneMs`, and after that stops the process for
   * `downMs`.
   */
  async function leave(goneMs: number, downMs: number) {
    const store = new FailingStore();
    const side = createSide(new VirtualClock(), store);
    const node = side.attach();
    await side.send(node, 'hello', { keep: forever }, 1_000);
    const other = side.attach('other');
    await side.detach(node, goneMs);
    const disk = copyDisk(store.disk);
    await Promise.all([other.node.close(), side.close(), side.pass(11_000)]);
    await side.pass(downMs);
    const next = side.restart(disk);
    next.attach('other');
    await next.pass(100);
    return { next, disk };
  }

  it('ends 1 h after the start if the process was down for 8 days', async () => {
    const { next } = await leave(3_600_000, 8 * dayMs);
    assert.equal(next.outbox.admin.state.kept, 1, 'its node may be late');
    await next.pass(3_601_000);
    assert.deepEqual([next.abandoned, next.outbox.isSettled], [['send'], true]);
  });

  it('continues after a restart', async () => {
    const { next } = await leave(2 * dayMs, 3 * dayMs);
    await next.pass(2 * dayMs - 60_000);
    assert.deepEqual(next.abandoned, []);
    await next.pass(61_000);
    assert.deepEqual(next.abandoned, ['send']);
  });

  it('starts over if the node returns and is removed again', async () => {
    const { next } = await leave(2 * dayMs, 3 * dayMs);
    const back = next.attach();
    await next.pass(100);
    next.service.otherwise = { unreachable: true };
    await Promise.all([back.node.close(), next.pass(100)]);
    await next.pass(6 * dayMs);
    assert.deepEqual(next.abandoned, []);
    await next.pass(dayMs);
    assert.deepEqual(next.abandoned, ['send']);
  });
});

describe('the outcome for a removed node', () => {
  /** Removes a node while its message is in flight. */
  async function strand(turn: Turn): Promise<{ side: SendingSide; store: FailingStore }> {
    const store = new FailingStore();
    const side = new SendingSide({ store });
    const [node] = [side.attach(), side.attach('stays')];
    const answer = side.service.holdNext(turn);
    await side.send(node, 'hello', { keep: forever });
    void node.node.close();
    await side.pass(10);
    answer();
    await side.pass(1_000);
    assert.equal(store.disk.entries.size, 1);
    return { side, store };
  }

  const undecided = (side: SendingSide) => side.outbox.admin.entries('uncertain', { limit: 9 }).total;

  it('is dropped after 7 days', async () => {
    const { side, store } = await strand({});
    await side.pass(6.9 * dayMs);
    assert.deepEqual([store.disk.entries.size, side.abandoned], [1, []]);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([store.disk.entries.size, side.abandoned], [0, ['send']]);
    assert.deepEqual([side.outbox.isSettled, undecided(side)], [true, 0]);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(back.ends, []);
  });

  it('stays listed for another 7 days if it is unknown', async () => {
    const { side, store } = await strand({ error: createError('uncertain') });
    await side.pass(6.9 * dayMs);
    assert.equal(undecided(side), 0);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([undecided(side), side.abandoned, store.disk.entries.size], [1, [], 1]);
    await side.pass(6.8 * dayMs);
    assert.equal(undecided(side), 1);
    await side.pass(0.2 * dayMs);
    assert.deepEqual([undecided(side), store.disk.entries.size, side.outbox.isSettled], [0, 0, true]);
  });
});
