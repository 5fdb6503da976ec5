import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { VirtualClock } from '../../virtual-clock';
import { FailingStore } from '../store/failing-store';
import { copyDisk, forever, SendingSide, sendText } from './sending-side';

const minuteMs = 60_000;

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

describe('the time of stored messages', () => {
  it('ends for each message, in any order of arrival', async () => {
    const side = createSide();
    const node = side.attach();
    const over: string[] = [];
    node.onOutcome = async ({ outcome, message }) => {
      const code = outcome instanceof SmsError ? outcome.code : '';
      over.push(`${message.body} ${code} ${Math.round(side.clock.elapsed() / minuteMs)}`);
      return true;
    };
    for (const [body, minutes] of [['c', 3], ['a', 1], ['never'], ['b', 2]] as const) keep(node, body, minutes);
    await side.pass(10 * minuteMs);
    assert.deepEqual(over, ['a SMS_EXPIRED 1', 'b SMS_EXPIRED 2', 'c SMS_EXPIRED 3']);
  });

  it('uses one timer for any number of messages', async () => {
    const timers: number[] = [];
    for (const count of [10, 1_000]) {
      const side = createSide();
      const node = side.attach();
      side.attach('other');
      for (let index = 0; index < count; index++) keep(node, 'hello', 5 + (index % 10));
      await side.pass(minuteMs);
      timers.push(side.clock.timers);
      await Promise.all([node.node.close(), side.pass(0)]);
      side.attach();
      await side.pass(1_000);
      timers.push(side.clock.timers);
    }
    assert.deepEqual(timers.slice(2), timers.slice(0, 2));
  });

  it('does not end before a redeployed node can return', async () => {
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

  it('ends after exactly 7 days without their node', async () => {
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
  });

  it('does not end in the first hour after a restart without their node', async () => {
    const dayMs = 24 * 60 * minuteMs;
    const store = new FailingStore();
    const side = createSide(new VirtualClock(), store);
    keep(side.attach(), 'hello');
    await side.pass(8 * dayMs);
    const clock = new VirtualClock(side.clock.now());
    const later = createSide(clock, new FailingStore(copyDisk(store.disk)));
    later.attach('other');
    await later.pass(59 * minuteMs);
    assert.deepEqual([later.abandoned, later.outbox.admin.state.kept], [[], 1]);
    await later.pass(2 * minuteMs);
    assert.deepEqual([later.abandoned, later.outbox.admin.state.kept], [['send'], 0]);
  });
});
