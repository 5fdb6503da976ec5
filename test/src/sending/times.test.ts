import assert from 'node:assert/strict';
import { QuietHours } from '../../../src/message/times';
import type { SendOptions } from '../../../src/outbox/message-item';
import { Messages } from '../../../src/outbox/messages';
import { VirtualClock } from '../../virtual-clock';
import { FailingStore } from '../store/failing-store';
import { beginSending, copyDisk, forever, type SendingSideOptions, sendText } from './sending-side';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const noon = Date.UTC(2026, 0, 1, 12);
const at = (time: number, keep: NonNullable<SendOptions['keep']> = { expireMs: hourMs }) => ({ at: { time, keep } });

/** Creates quiet hours of every day, from one full hour to another. */
const quiet = (from: number, to: number) => new QuietHours({ from: from * 60, to: to * 60, timeZone: 'UTC' });

function start(options: SendingSideOptions = {}) {
  const store = new FailingStore();
  const { side, node } = beginSending({ clock: new VirtualClock(noon), store, ...options });
  return { store, side, node };
}

describe('a scheduled message', () => {
  it('is sent at its time', async () => {
    const { side, node, store } = start();
    await side.send(node, 'later', at(noon + 2 * hourMs));
    assert.equal(store.disk.entries.size, 1);
    assert.deepEqual(side.outbox.admin.state.scheduled, 1);
    assert.deepEqual(side.outbox.admin.state.kept, 1);
    const { entries } = side.outbox.admin.entries('kept', { limit: 10 });
    assert.deepEqual(
      entries.map(({ body, dueAt }) => [body, dueAt]),
      [['later', noon + 2 * hourMs]],
    );
    assert.deepEqual([node.state?.waiting, node.state?.nextAt], [1, noon + 2 * hourMs]);
    await side.pass(2 * hourMs - 1_000);
    assert.equal(side.service.tries, 0);
    await side.pass(1_000);
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.deepEqual([node.state?.waiting, node.state?.nextAt], [0, undefined]);
    assert.equal(side.outbox.admin.state.scheduled, 0);
    assert.equal(node.outcomes[0]?.isKept, true);
  });

  it('is sent immediately if its time has passed', async () => {
    const { side, node, store } = start();
    await side.send(node, 'now', at(noon));
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.equal(store.commits, 0);
    assert.equal(node.outcomes[0]?.isKept, false);
  });

  it('is sent at startup if its time passed during downtime', async () => {
    const { side, node, store } = start();
    for (const hours of [1, 30]) sendText(node, `in ${hours} h`, at(noon + hours * hourMs, forever));
    await side.pass(100);
    const after = side.restart(copyDisk(store.disk));
    side.clock.set(2 * hourMs);
    const again = after.attach();
    await after.pass(1_000);
    assert.deepEqual(after.service.bodies, ['in 1 h']);
    assert.equal(again.outcomes[0]?.flowMessage, JSON.stringify({ payload: 'in 1 h' }));
    assert.equal(again.state?.nextAt, noon + 30 * hourMs);
  });

  it('is sent within a minute if the clock moves past its time', async () => {
    const { side, node } = start();
    await side.send(node, 'in a month', at(noon + 30 * dayMs), minuteMs);
    side.clock.set(30 * dayMs);
    await side.pass(minuteMs);
    assert.deepEqual(side.service.bodies, ['in a month']);
  });

  it('does not expire early if the clock moves back', async () => {
    const { side, node } = start();
    await side.send(node, 'in 1 h', at(noon + hourMs, { expireMs: 10 * minuteMs }));
    side.clock.set(-hourMs);
    await side.pass(2 * hourMs - 1_000);
    assert.deepEqual([node.ends, side.service.tries], [[], 0]);
    await side.pass(1_000 + minuteMs);
    assert.deepEqual([node.ends, side.service.bodies], [['to 6421555123'], ['in 1 h']]);
  });

  it('does not count towards queueLimit', async () => {
    const { side, node } = start({ queueLimit: 1, concurrency: 1 });
    for (let count = 0; count < 20; count++) sendText(node, `later ${count}`, at(noon + hourMs));
    await side.pass(100);
    assert.deepEqual(node.ends, []);
    sendText(node, 'kept', { keep: forever });
    await side.send(node, 'plain');
    assert.deepEqual(side.service.bodies.sort(), ['kept', 'plain']);
    await side.pass(hourMs);
    assert.equal(side.service.taken.length, 22);
  });

  it('is refused if 100,000 messages are already scheduled', async () => {
    const { countsOf } = Messages.prototype;
    let messages: Messages | undefined;
    Messages.prototype.countsOf = function (node) {
      messages = this;
      return countsOf.call(this, node);
    };
    const { side, node } = start();
    Messages.prototype.countsOf = countsOf;
    assert.ok(messages);
    messages.counts.scheduled = 99_999;
    await side.send(node, 'the last one', at(noon + hourMs));
    assert.equal(side.outbox.admin.state.scheduled, 100_000);
    sendText(node, 'one more', at(noon + hourMs));
    await side.send(node, 'now', { keep: forever });
    assert.deepEqual(node.ends, ['SMS_BUSY', 'to 6421555123']);
  });

  it('expires after its due time plus its time to live', async () => {
    const { side, node } = start();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'later', at(noon + 2 * hourMs, { expireMs: 10 * minuteMs }), 2 * hourMs + 9 * minuteMs);
    assert.deepEqual(node.ends, []);
    await side.pass(minuteMs + 1_000);
    assert.deepEqual(node.ends, ['SMS_EXPIRED']);
  });

  it('does not count as waiting in an outage before its time', async () => {
    const { side, node } = start();
    const other = side.attach('other');
    side.service.otherwise = { unreachable: true };
    for (const sender of [node, other]) sendText(sender, 'later', at(noon + 2 * dayMs));
    await side.send(node, 'kept', { keep: forever }, 1_000);
    assert.deepEqual(
      [node, other].map(({ outages, state }) => [outages.map(({ waiting }) => waiting), state?.outage?.code]),
      [
        [[1], 'SMS_UNREACHABLE'],
        [[], undefined],
      ],
    );
  });

  it('is dropped 7 days after its time if its node is missing', async () => {
    const { side, node } = start();
    const other = side.attach('other');
    sendText(node, 'soon', { keep: forever });
    sendText(node, 'later', at(noon + 2 * dayMs, forever));
    side.service.otherwise = { unreachable: true };
    await side.pass(100);
    await Promise.all([node.node.close(), side.pass(1_000)]);
    const waitingBodies = () => side.outbox.admin.entries('kept', { limit: 10 }).entries.map(({ body }) => body);
    await side.pass(7 * dayMs + minuteMs);
    assert.deepEqual(waitingBodies(), ['later']);
    await side.pass(2 * dayMs - 10 * minuteMs);
    assert.deepEqual(waitingBodies(), ['later']);
    await side.pass(11 * minuteMs);
    assert.deepEqual(waitingBodies(), []);
    assert.deepEqual(other.ends, []);
  });

  it('can be sent early by a user', async () => {
    const { side, node } = start();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'later', at(noon + 20 * dayMs), 2 * hourMs);
    assert.equal(await side.act('kept', 'send'), 'done');
    await side.pass(100);
    assert.equal(side.service.tries > 0, true);
    const { next: after, back: again } = side.crash();
    await after.pass(10 * minuteMs);
    await after.recover();
    assert.deepEqual(again.ends, ['to 6421555123 again']);
  });
});

describe('quiet hours', () => {
  it('delay stored and scheduled messages', async () => {
    const { side, node } = start({ quietHours: [quiet(11, 13)] });
    sendText(node, 'kept', { keep: { expireMs: minuteMs } });
    await side.send(node, 'at', at(noon - hourMs, { expireMs: minuteMs }), hourMs - 1_000);
    assert.equal(side.service.tries, 0);
    assert.equal(node.state?.nextAt, noon + hourMs);
    await side.pass(1_000);
    assert.deepEqual(node.ends, ['to 6421555123', 'to 6421555123']);
  });

  it('refuse a waiting message with SMS_QUIET if `keep` is off', async () => {
    const { side, node } = start({ quietHours: [quiet(13, 14)], concurrency: 1 });
    const answer = side.service.holdNext();
    await side.pass(hourMs - 1_000);
    sendText(node, 'first');
    sendText(node, 'plain');
    sendText(node, 'kept', { keep: forever });
    await side.send(node, 'at', at(noon, forever), 2_000);
    answer();
    await side.pass(1_000);
    assert.deepEqual(side.service.bodies, ['first']);
    assert.deepEqual(node.ends, ['to 6421555123', 'SMS_QUIET']);
    await side.pass(hourMs);
    assert.deepEqual(side.service.bodies, ['first', 'kept', 'at']);
  });

  it('stop a message if they begin while its connection opens', async () => {
    const { side, node } = start({ quietHours: [quiet(13, 14)] });
    const connects = [side.service.holdConnection(), side.service.holdConnection()];
    await side.pass(hourMs - 1_000);
    sendText(node, 'plain');
    await side.send(node, 'kept', { keep: forever }, 2_000);
    for (const connect of connects) connect();
    await side.pass(1_000);
    assert.deepEqual(side.service.bodies, []);
    assert.deepEqual(node.ends, ['SMS_QUIET']);
    await side.pass(hourMs);
    assert.deepEqual(side.service.bodies, ['kept']);
  });

  it('do not apply to `essential` messages', async () => {
    const { side, node } = start({ quietHours: [quiet(11, 13)] });
    await side.send(node, 'alarm', { essential: true });
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('apply to waiting messages as soon as the settings change', async () => {
    const quietHours = [quiet(11, 13)];
    const { side, node } = start({ quietHours });
    await side.send(node, 'kept', { keep: forever });
    quietHours.splice(0, 1, quiet(11, 14));
    side.outbox.quietHoursChanged();
    await side.pass(hourMs);
    assert.deepEqual(node.ends, []);
    assert.equal(node.state?.nextAt, noon + 2 * hourMs);
    quietHours.length = 0;
    side.outbox.quietHoursChanged();
    await side.pass(100);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('free the deduplication key of a refused message', async () => {
    const { side, node } = start({ quietHours: [quiet(11, 13)] });
    await side.send(node, 'once', { once: 'key' }, hourMs + 1_000);
    await side.send(node, 'once', { once: 'key' });
    assert.deepEqual(node.ends, ['SMS_QUIET', 'to 6421555123']);
  });
});
