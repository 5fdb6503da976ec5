import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { createError } from '../some-error';
import { beginOutage, beginSending, copyDisk, forever, SendingSide, sendText } from './sending-side';

const never = new Promise<never>(() => {});
const minuteMs = 60_000;

describe('Outbox', () => {
  const keep = forever;

  it('tries the next message if the first message expires in an outage', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ unreachable: true }, { connects: never });
    await side.send(node, 'first', { keep: { expireMs: minuteMs } }, 10);
    await side.send(node, 'second', { keep }, 2 * minuteMs);
    assert.deepEqual(node.ends, ['SMS_EXPIRED', 'to 6421555123']);
    assert.equal(node.state?.outage, undefined);
  });

  it('reports an unknown outcome, not SMS_EXPIRED, if a retry expires', async () => {
    const failed = createError('serverError').with({ statusCode: 500 });
    const { store, side, node } = beginOutage();
    side.service.script.push({ takes: true, error: failed });
    const options = { keep: { expireMs: minuteMs }, retryUncertain: true, resolveMs: 1_000, messageId: 'message-1' };
    await side.send(node, 'hello', options, 10_000);
    const disk = copyDisk(store.disk);
    await side.pass(minuteMs);
    const back = side.restart(disk).attach();
    await side.pass(minuteMs);
    const { code, message } = failed;
    const expected = { code, message, statusCode: 500, messageId: 'message-1', searched: ['feed', 'status'] };
    for (const { outcomes } of [node, back]) {
      assert.deepEqual(
        outcomes.map(({ outcome }) => outcome instanceof SmsError && outcome.toJSON()),
        [expected],
      );
    }
  });

  it('redelivers an outcome if the node threw an error', async () => {
    const side = new SendingSide();
    const [bad, good] = [side.attach('bad'), side.attach('good')];
    bad.fault = new Error('made to fail');
    sendText(bad, 'kept', { keep });
    sendText(bad, 'plain');
    sendText(bad, 'asked', { keep, waitMs: minuteMs, messageId: 'm1' });
    await side.send(good, 'good', { keep }, 1_000);
    assert.deepEqual(good.ends, ['to 6421555123']);
    assert.deepEqual(side.faults, Array(3).fill(bad.fault));
    const next = side.attach('bad');
    await side.pass(100);
    assert.deepEqual(next.ends, ['to 6421555123', 'to 6421555123']);
    next.fault = bad.fault;
    await side.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
    assert.equal(side.faults.length, 4);
    const last = side.attach('bad');
    await side.pass(100);
    assert.equal(last.answers.length, 1);
  });

  it('sends a message that expires while the store records the send', async () => {
    const { store, side, node } = beginSending();
    await side.pass(100);
    store.beforeCommit = async (changes) => {
      const isLeaving = [...changes.keep.values()].some((item) => 'state' in item && item.state === 'leaving');
      if (isLeaving) await side.clock.advance(minuteMs);
    };
    await side.send(node, 'hello', { keep: { expireMs: minuteMs } });
    await side.pass(2 * minuteMs);
    assert.deepEqual([node.ends, side.service.bodies], [['to 6421555123'], ['hello']]);
    assert.equal(store.disk.entries.size, 0);
  });

  it('expires a message if a 503 arrives after its time to live', async () => {
    const side = new SendingSide();
    const [node, other] = [side.attach(), side.attach('other')];
    const answer = side.service.holdNext({ takes: false, error: createError('serverError').with({ statusCode: 503 }) });
    side.service.otherwise = { connects: never };
    sendText(node, 'hello', { keep: { expireMs: minuteMs } });
    await side.send(other, 'tries', { keep }, 2 * minuteMs);
    answer();
    await side.pass(10);
    assert.deepEqual([node.ends, node.state?.waiting], [['SMS_EXPIRED'], 0]);
  });
});
