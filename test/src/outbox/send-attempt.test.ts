import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import type { Sent } from '../../../src/outbox/message-item';
import { type FakeNode, forever, SendingSide, type SendingSideOptions, sendText } from '../sending/sending-side';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const [a, b, c] = ['6421555001', '6421555002', '6421555003'] as const;

function createSide(limits: { perHandset?: number; perDay?: number }, options: SendingSideOptions = {}) {
  const side = new SendingSide({ ...options, limits: { perHandsetMs: hourMs, ...limits } });
  return { side, node: side.attach(), service: side.service };
}

/** Outputs and errors of the node. */
function outcomesOf({ outcomes }: FakeNode): unknown[] {
  return outcomes.map(({ outcome }) =>
    outcome instanceof SmsError
      ? outcome.code
      : { to: outcome.accepted, not: outcome.failed.map(({ msisdn, errorCode }) => [msisdn, errorCode]) },
  );
}

const ways = {
  'with default options': {},
  'with `keep`': { keep: forever },
  'with `once`': { once: 'key' },
  'with `remember`': { remember: { value: 1 } },
} as const;

describe('a message to 5,000 recipients', () => {
  const to = Array.from({ length: 5_000 }, (_, index) => String(6_421_000_000 + index));

  for (const [name, limits, options] of [
    ['is sent if the account has limits', { perHandset: 3 }, {}],
    [
      'is sent if it has the options `keep` and `remember`',
      {},
      { keep: forever, messageId: 'm1', remember: { value: 1 } },
    ],
  ] as const) {
    it(name, async () => {
      const { side, node, service } = createSide(limits);
      await side.send(node, 'hello', { to, ...options });
      assert.equal(service.taken[0]?.to.length, to.length);
      assert.equal(node.ends.length, 1);
      assert.equal(side.journal.failure, undefined);
    });
  }
});

describe('a rate-limited message', () => {
  for (const [what, options] of Object.entries(ways)) {
    describe(what, () => {
      const send = (node: Parameters<typeof sendText>[0], to: string[], more: object = {}, key = to.join()) =>
        sendText(node, key, { to, ...options, ...('once' in options ? { once: key } : undefined), ...more });

      it('ends with SMS_LIMIT if no recipient is within the limit', async () => {
        const { side, node, service } = createSide({ perHandset: 2 });
        const startedAt = side.clock.now();
        for (const key of ['1', '2', '3']) send(node, [a], {}, key);
        await side.pass(0);
        assert.deepEqual(outcomesOf(node), [{ to: [a], not: [] }, { to: [a], not: [] }, 'SMS_LIMIT']);
        const error = node.outcomes[2]?.outcome as SmsError;
        const until = new Date(startedAt + hourMs).toISOString().replace('.000', '');
        assert.deepEqual([error.reason, error.params], ['limitHandset', { limit: 2, minutes: 60, until }]);
        await side.pass(hourMs);
        send(node, [a], {}, '3');
        await side.pass(0);
        assert.equal(service.taken.length, 3);
        assert.equal(side.outbox.admin.counts.limited, 1);
      });

      describe('during a retry', () => {
        const again = { retries: 1, retryUncertain: true };
        /** Sends a message. Its first try has an unknown outcome, and uses up the limit of the first recipient. */
        async function begin(more: object = {}, kept: readonly string[] = []) {
          const limitedSide = createSide({ perHandset: 2 });
          for (const to of [a, ...kept, ...kept]) sendText(limitedSide.node, 'before', { to: [to] });
          await limitedSide.side.pass(0);
          limitedSide.node.outcomes.length = 0;
          limitedSide.service.script.push({ takes: true, error: createError('uncertain') });
          send(limitedSide.node, [a, b, c], { ...again, ...more });
          return limitedSide;
        }

        it('reports SMS_UNCERTAIN for a recipient over the limit', async () => {
          const { side, node, service } = await begin({}, [c]);
          await side.pass(10_000);
          assert.deepEqual(service.taken.at(-2)?.to, [a, b]);
          assert.deepEqual(service.taken.at(-1)?.to, [b]);
          const not = [
            [a, 'SMS_UNCERTAIN'],
            [c, 'SMS_LIMIT'],
          ];
          assert.deepEqual(outcomesOf(node), [{ to: [b], not }]);
          const { failed, limited, sent } = side.outbox.admin.counts;
          assert.deepEqual([failed, limited, sent], [1, 1, 4]);
        });

        it('still ends with SMS_UNCERTAIN if the service now refuses every recipient', async () => {
          const { side, node, service } = await begin({ resolveMs: 5_000, messageId: 'm1' });
          const failed = [b, c].map((msisdn) => ({ msisdn, errorCode: '400', errorMessage: 'Unknown' }));
          service.otherwise = { failed };
          await side.pass(20_000);
          assert.deepEqual(outcomesOf(node), ['SMS_UNCERTAIN']);
          const error = node.outcomes[0]?.outcome as SmsError;
          assert.deepEqual(error.searched, ['feed', 'status']);
        });
      });

      it('goes only to the recipients within the limit', async () => {
        const { side, node, service } = createSide({ perDay: 2 });
        send(node, [a, b, c]);
        await side.pass(0);
        assert.deepEqual(outcomesOf(node), [{ to: [a, b], not: [[c, 'SMS_LIMIT']] }]);
        const sent = node.outcomes[0]?.outcome as Sent;
        assert.match(sent.failed[0]?.errorMessage ?? '', /messages in 24 hours \(2\) .*2026-01-02T00:00:00Z/);
        const errors = sent.recipients.map(({ msisdn, isError }) => `${msisdn} ${isError}`);
        assert.deepEqual(errors, [`${a} false`, `${b} false`, `${c} true`]);
        assert.deepEqual([sent.withheld?.[0]?.msisdn, sent.withheld?.[0]?.reason], [c, 'limitDay']);
        assert.deepEqual(service.taken[0]?.to, [a, b]);
        const { sent: sentCount, failed, limited } = side.outbox.admin.counts;
        assert.deepEqual({ sentCount, failed, limited }, { sentCount: 2, failed: 0, limited: 1 });
      });

      it('does not count a refused recipient towards the limit', async () => {
        const { side, node, service } = createSide({ perDay: 2 });
        service.script.push(
          { failed: [{ msisdn: a, errorCode: 403 }], takes: true },
          { error: createError('forbidden') },
          { error: createError('uncertain'), takes: true },
        );
        send(node, [a, b]);
        await side.pass(0);
        send(node, [a]);
        await side.pass(0);
        send(node, [c]);
        await side.pass(0);
        send(node, [a], {}, 'again');
        await side.pass(0);
        assert.deepEqual(outcomesOf(node), [
          { to: [b], not: [[a, 403]] },
          'SMS_FORBIDDEN',
          'SMS_UNCERTAIN',
          'SMS_LIMIT',
        ]);
      });

      it('counts towards the limit even if its node is `unlimited`', async () => {
        const { side, node, service } = createSide({ perHandset: 1 });
        send(node, [a], { unlimited: true }, '1');
        send(node, [a], { unlimited: true }, '2');
        await side.pass(0);
        send(node, [a], {}, '3');
        await side.pass(0);
        assert.equal(service.taken.length, 2);
        assert.equal(outcomesOf(node)[2], 'SMS_LIMIT');
      });

      it('is refused beyond the limit if 100 messages arrive together', async () => {
        const { side, node, service } = createSide({ perHandset: 5 });
        for (let key = 0; key < 100; key++) send(node, [a], {}, `${key}`);
        await side.pass(0);
        assert.equal(service.taken.length, 5);
        assert.equal(outcomesOf(node).filter((outcome) => outcome === 'SMS_LIMIT').length, 95);
      });

      it('still counts towards the limit after a restart', async () => {
        const { side, node } = createSide({ perHandset: 2 });
        send(node, [a], {}, '1');
        send(node, [a], {}, '2');
        await side.pass(50);
        const { next: later, back: laterNode } = side.crash();
        send(laterNode, [a], {}, '3');
        await later.pass(0);
        assert.deepEqual(outcomesOf(laterNode), ['SMS_LIMIT']);
      });
    });
  }

  it('counts once towards the limit despite several tries', async () => {
    const { side, node, service } = createSide({ perHandset: 2 });
    const unavailable = new SmsError('unexpected', { statusCode: 503 });
    service.script.push({ error: createError('unauthorized') }, { unreachable: true }, { error: unavailable });
    await side.send(node, 'kept', { to: [a], keep: forever }, 10 * minuteMs);
    assert.deepEqual(outcomesOf(node), [{ to: [a], not: [] }]);
    sendText(node, 'second', { to: [a] });
    await side.send(node, 'third', { to: [a] }, 0);
    assert.deepEqual(outcomesOf(node).slice(1), [{ to: [a], not: [] }, 'SMS_LIMIT']);
  });

  it('counts twice towards the limit if it may have been sent twice', async () => {
    const { side, node, service } = createSide({ perHandset: 3 });
    service.script.push({ error: createError('uncertain'), takes: true });
    await side.send(node, 'kept', { to: [a], keep: forever, retryUncertain: true }, 10 * minuteMs);
    service.script.push({ error: createError('uncertain'), takes: true });
    await side.send(node, 'plain', { to: [b], retries: 1, retryUncertain: true }, 10 * minuteMs);
    for (const to of [a, b]) for (const key of ['1', '2']) sendText(node, key, { to: [to] });
    await side.pass(0);
    assert.deepEqual(node.ends, [`to ${a}`, `to ${b}`, `to ${a}`, `to ${b}`, 'SMS_LIMIT', 'SMS_LIMIT']);
  });

  it('ends with SMS_UNCERTAIN if the retry is over the limit', async () => {
    const { side, node, service } = createSide({ perHandset: 1 });
    service.script.push({ error: createError('uncertain'), takes: true });
    await side.send(node, 'text', { to: [a], retries: 3, retryUncertain: true }, minuteMs);
    assert.deepEqual(outcomesOf(node), ['SMS_UNCERTAIN']);
    assert.equal(service.taken.length, 1);
  });

  it('opens reply requests only for recipients within the limit', async () => {
    const { side, node } = createSide({ perDay: 1 });
    await side.send(node, 'replyRequest', { to: [a, b], waitMs: hourMs, messageId: 'm' }, 0);
    assert.equal(side.outbox.admin.state.awaitingReply, 1);
    await side.pass(hourMs);
    assert.deepEqual(
      node.answers.map(({ recipient, result }) => [recipient, 'reason' in result && result.reason]),
      [
        [b, 'failed'],
        [a, 'timeout'],
      ],
    );
  });

  it('takes no perSecond slot if the per-handset limit refuses it', async () => {
    for (const options of [{}, { keep: forever }]) {
      const { side, node, service } = createSide({ perHandset: 1 }, { perSecond: 1 });
      for (let index = 0; index < 50; index++) sendText(node, `${index}`, { to: [a], ...options });
      await side.send(node, 'other', { to: [b], ...options }, 1_000);
      assert.deepEqual(service.bodies, ['0', 'other']);
    }
  });

  it('leaves an outage unchanged if it is refused with SMS_LIMIT', async () => {
    const { side, node, service } = createSide({ perHandset: 1 });
    await side.send(node, 'first', { to: [a] }, 0);
    service.otherwise = { unreachable: true };
    await side.send(node, 'waits', { to: [b], keep: forever }, 0);
    await side.send(node, 'second', { to: [a], keep: forever, priority: 10 }, 10 * minuteMs);
    assert.deepEqual(outcomesOf(node), [{ to: [a], not: [] }, 'SMS_LIMIT']);
    assert.equal(node.outages.length, 1);
  });

  it('obeys the limit while the store fails', async () => {
    const store = new FailingStore();
    const { side, node } = createSide({ perHandset: 2 }, { store });
    await side.send(node, '0', { to: [b] }, 0);
    store.failing.add('commit');
    for (const key of ['1', '2', '3']) {
      await side.send(node, key, { to: [a] }, 0);
    }
    assert.deepEqual(outcomesOf(node).slice(1), [{ to: [a], not: [] }, { to: [a], not: [] }, 'SMS_LIMIT']);
    store.failing.clear();
  });

  it('gives its duplicate the same outcome for recipients over the limit', async () => {
    const { side, node, service } = createSide({ perDay: 1 });
    await side.send(node, 'text', { to: [a, b], once: 'key' }, 0);
    await side.send(node, 'text', { to: [b, a], once: 'key' }, 0);
    const expected = { to: [a], not: [[b, 'SMS_LIMIT']] };
    assert.deepEqual(outcomesOf(node), [expected, expected]);
    assert.equal(node.outcomes[1]?.duplicate, true);
    assert.equal(service.taken.length, 1);
  });

  it('does not count a try that sends nothing towards the limit', async () => {
    const { side, node, service } = createSide({ perHandset: 1 });
    service.script.push({ error: createError('unreachable') });
    await side.send(node, 'text', { to: [a], retries: 1 }, minuteMs);
    assert.deepEqual(outcomesOf(node), [{ to: [a], not: [] }]);
  });
});
