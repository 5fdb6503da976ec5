import assert from 'node:assert/strict';
import type { SmsError, SmsErrorReason } from '../../../src/errors';
import type { SendOptions } from '../../../src/outbox/message-item';
import { createError } from '../some-error';
import { beginSending, type SendingSideOptions, sendText } from './sending-side';

type Ending = 'unreachable' | SmsErrorReason | SmsError;

/** Creates an account. Each try fails with the next error of `script`. Tries after the last error succeed. */
function begin(script: readonly Ending[], options: SendingSideOptions = {}) {
  const sending = beginSending({ concurrency: 1, queueLimit: 0, ...options });
  for (const one of script) {
    const error = typeof one === 'string' ? createError(one) : one;
    sending.side.service.script.push(one === 'unreachable' ? { unreachable: true } : { takes: true, error });
  }
  return sending;
}

const retried = { messageId: 'fixed-id', retries: 3 };

/** Sends a message to a scripted service. Returns the outcome and the number of tries. */
async function run(script: readonly Ending[], options: Partial<SendOptions> = {}) {
  const { side, node } = begin(script);
  await side.send(node, 'hello', { ...retried, ...options }, 600_000);
  return [...node.ends, side.service.tries];
}

describe('a message without `keep`', () => {
  it('is tried up to 4 times if `retries` is 3', async () => {
    const { side, node } = begin(['unreachable', 'unreachable', 'unreachable']);
    await side.send(node, 'hello', retried, 10_000);
    assert.deepEqual([node.ends, side.service.tries], [['to 6421555123'], 4]);
    assert.equal(side.service.taken[0]?.messageId, 'fixed-id');
    assert.deepEqual(await run(Array(9).fill('unreachable')), ['SMS_UNREACHABLE', 4]);
  });

  it('doubles its wait before each retry from 0.2 s up to 30 s', async () => {
    const { side, node } = begin(Array(12).fill('unreachable'));
    await side.send(node, 'hello', { ...retried, retries: 11 }, 0);
    const waits: number[] = [];
    for (let tries = 1; tries < 12; tries++) {
      let waitedMs = 0;
      for (; side.service.tries === tries; waitedMs += 100) {
        assert.ok(waitedMs < 30_000, 'waited too long');
        await side.pass(100);
      }
      waits.push(waitedMs);
    }
    assert.deepEqual(node.ends, ['SMS_UNREACHABLE']);
    assert.deepEqual(waits, [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]);
  });

  for (const [answer, reason] of [
    ['400', 'badRequestBare'],
    ['401', 'unauthorized'],
    ['403', 'forbidden'],
    ['redirect', 'redirect'],
  ] as const) {
    it(`is not retried after a ${answer}`, async () => {
      assert.deepEqual(await run([reason], { retryUncertain: true }), [createError(reason).code, 1]);
    });
  }

  it('is retried after an unknown outcome only if retryUncertain is set', async () => {
    assert.deepEqual(await run(['uncertain']), ['SMS_UNCERTAIN', 1]);
    const ended = await run(['uncertain', 'unreachable', 'uncertain'], { retryUncertain: true });
    assert.deepEqual(ended, ['to 6421555123', 4]);
  });

  it('has an unknown outcome after a 500 or an oversized answer', async () => {
    for (const [error, tries] of [
      [createError('responseTooLarge'), 2],
      [createError('serverError').with({ statusCode: 500 }), 2],
      [createError('serverError').with({ statusCode: 503 }), 1],
    ] as const) {
      assert.equal((await run([error], { retryUncertain: true })).at(-1), tries);
      assert.deepEqual(await run([error]), [error.code, 1]);
    }
  });

  it('ends with SMS_CLOSED or SMS_UNCERTAIN if its node closes', async () => {
    for (const [script, end] of [
      [['unreachable'], 'SMS_CLOSED'],
      [['uncertain'], 'SMS_UNCERTAIN'],
      [['uncertain', 'unreachable'], 'SMS_UNCERTAIN'],
    ] as const) {
      const { side, node } = begin(script);
      await side.send(node, 'hello', { ...retried, retryUncertain: true }, (script.length - 1) * 200);
      await side.detach(node);
      assert.deepEqual([node.ends, side.service.tries], [[end], script.length]);
    }
  });

  it('obeys perSecond when it is retried', async () => {
    const { side, node } = begin(['uncertain', 'uncertain', 'uncertain'], {
      concurrency: 8,
      queueLimit: 10,
      perSecond: 0.5,
    });
    for (const body of ['1', '2']) sendText(node, body, { ...retried, retryUncertain: true });
    const tries: number[] = [];
    for (let second = 0; second <= 8; second += 2) {
      await side.pass(second === 0 ? 1_000 : 2_000);
      tries.push(side.service.tries);
    }
    assert.deepEqual([tries, node.ends.length], [[1, 2, 3, 4, 5], 2]);
  });

  it('keeps its place in the queue when it is retried', async () => {
    const { side, node } = begin(['uncertain'], { concurrency: 1, queueLimit: 2 });
    const answer = side.service.holdNext();
    sendText(node, 'again', { retries: 3, retryUncertain: true });
    sendText(node, 'one');
    await side.send(node, 'two', {}, 0);
    await side.send(node, 'three', {}, 1_000);
    assert.deepEqual([side.service.bodies, side.outbox.admin.state.waiting], [['again', 'one'], 3]);
    answer();
    await side.pass(0);
    assert.deepEqual(side.service.bodies, ['again', 'one', 'again', 'two', 'three']);
  });
});
