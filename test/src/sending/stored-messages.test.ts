import assert from 'node:assert/strict';
import { SmsError } from '../../../src/errors';
import { createError } from '../some-error';
import { beginOutage, beginSending, copyDisk, forever, type SendTextOptions, sendText } from './sending-side';

describe('a stored message', () => {
  const keep = forever;

  /** Leaves a stored message that waits because the service is unreachable. */
  async function strand(options: SendTextOptions = { keep }, passMs = 1_000) {
    const sending = beginOutage();
    await sending.side.send(sending.node, 'hello', options, passMs);
    return sending;
  }

  it('is deleted from the store after its outcome', async () => {
    const { store, side, node } = beginSending();
    await side.send(node, 'hello', { keep });
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.deepEqual(node.outcomes[0]?.origin, { body: 'hello' });
    assert.equal(store.disk.entries.size, 0);
    assert.equal(side.outbox.isSettled, true);
  });

  it('is refused with SMS_STORE if it cannot be stored', async () => {
    const { store, side, node } = beginSending();
    await side.pass(10);
    store.failing.add('commit').add('open');
    await side.send(node, 'hello', { keep, messageId: 'm1' }, 1_000);
    assert.deepEqual(node.ends, ['SMS_STORE']);
    const { outcome } = node.outcomes[0] ?? {};
    assert.ok(outcome instanceof SmsError && outcome.messageId === 'm1');
    assert.equal(side.service.tries, 0);
  });

  it('is not sent after SMS_STORE even if the store did write it', async () => {
    const { store, side, node } = beginSending();
    await side.pass(10);
    store.failing.add('commit');
    store.failsAfterwards = true;
    await side.send(node, 'hello', { keep, once: 'key' });
    assert.deepEqual(node.ends, ['SMS_STORE']);
    assert.equal(store.disk.entries.size, 1);
    assert.equal(side.outbox.isSettled, false, 'a redeploy would forget that it was refused');
    store.failing.clear();
    await side.pass(60_000);
    assert.equal(side.outbox.isSettled, true);
    assert.equal(side.service.tries, 0);
    assert.equal(store.disk.entries.size, 0);
    await side.send(node, 'hello', { keep, once: 'key' }, 1_000);
    assert.deepEqual(side.service.bodies, ['hello']);
  });

  it('is sent in order after an outage', async () => {
    const { side, node } = beginOutage({ concurrency: 1 });
    for (const body of ['1', '2', '3']) sendText(node, body, { keep });
    await side.send(node, 'urgent', { keep, priority: 5 }, 600_000);
    assert.deepEqual(node.ends, []);
    // The pauses are 1, 2, 4, 8, 16, 32 and then always 48 s. The random number of this clock adds an eighth to each.
    assert.equal(side.service.tries, 16);
    assert.equal(node.outages.length, 1);
    assert.equal(node.outages[0]?.code, 'SMS_UNREACHABLE');
    assert.match(
      node.outages[0]?.message ?? '',
      /is stored and will be sent when the service is available again \(\d waiting\)/,
    );
    assert.equal(node.state?.waiting, 4);
    assert.equal(node.state?.outage?.code, 'SMS_UNREACHABLE');
    await side.recover(80_000);
    assert.deepEqual(side.service.bodies, ['urgent', '1', '2', '3']);
    assert.equal(node.ends.length, 4);
    assert.equal(node.state?.outage, undefined);
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'again', { keep }, 1_000);
    assert.equal(node.outages.length, 2);
  });

  for (const [what, error] of [
    ['401', createError('unauthorized')],
    ['429', createError('tooManyRequests').with({ statusCode: 429 })],
    ['503', new SmsError('serverError', { params: { status: 503 }, statusCode: 503 })],
  ] as const) {
    it(`is sent later if the service answers ${what}`, async () => {
      const { side, node } = beginSending();
      side.service.script.push({ error });
      await side.send(node, 'hello', { keep }, 45_000);
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.deepEqual(side.service.bodies, ['hello']);
      assert.equal(node.outages.length, 1);
    });
  }

  it('ends with SMS_FORBIDDEN after a 403', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ error: createError('forbidden') });
    await side.send(node, 'hello', { keep });
    assert.deepEqual(node.ends, ['SMS_FORBIDDEN']);
    assert.equal(side.outbox.isSettled, true);
  });

  it('names its time to live in the error SMS_EXPIRED', async () => {
    for (const [minutes, time] of [
      [0.001, '1 s'],
      [1.1, '66 s'],
      [60, '60 min'],
    ] as const) {
      const { node } = await strand({ keep: { expireMs: minutes * 60_000 } }, 3_700_000);
      const { outcome } = node.outcomes[0] ?? {};
      assert.match(String(outcome), new RegExp(`could not leave within ${time} and has expired`));
    }
  });

  it('expires on time although the clock moves 10 h back or forward', async () => {
    for (const hours of [-10, 10]) {
      const { side, node } = await strand({ keep: { expireMs: 60_000 } }, 30_000);
      side.clock.set(hours * 3_600_000);
      await side.pass(29_000);
      assert.deepEqual(node.ends, []);
      await side.pass(2_000);
      assert.deepEqual(node.ends, ['SMS_EXPIRED']);
    }
  });

  for (const queueLimit of [0, 1]) {
    it(`is refused beyond a queueLimit of ${queueLimit}`, async () => {
      const { side, node } = beginSending({ queueLimit, concurrency: 2 });
      await side.pass(10);
      for (let index = 0; index < 100; index++) sendText(node, String(index), { keep });
      await side.pass(100);
      assert.deepEqual(side.service.bodies, ['0', '1', '2'].slice(0, 2 + queueLimit));
      assert.equal(node.ends.filter((end) => end === 'SMS_BUSY').length, 98 - queueLimit);
    });
  }

  it('waits until its node is deployed again', async () => {
    const { side, node } = await strand();
    await side.detach(node);
    await side.recover(300_000);
    assert.deepEqual(side.service.bodies, []);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(node.ends, []);
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.deepEqual(back.outcomes[0]?.origin, { body: 'hello' });
  });

  it('keeps an outcome that arrived during a redeploy', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await side.send(node, 'hello', { keep });
    await side.closeInFlight(answer);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual([back.ends, side.outbox.isSettled], [['to 6421555123'], true]);
  });

  describe('with a large flow message', () => {
    const flowMessage = JSON.stringify({ payload: 'x'.repeat(250_000) });

    it('keeps the flow message across a restart', async () => {
      const { store, side } = await strand({ keep, flowMessage });
      const disk = copyDisk(store.disk);
      assert.deepEqual(
        [...disk.remembered.keys()].map((key) => key.replace(/[^:]+$/, '')),
        ['~flowMessage:'],
      );
      assert.ok([...disk.entries.values()].every(({ length }) => length < 1_000));
      side.service.otherwise = { takes: true };
      const next = side.restart(disk);
      const back = next.attach();
      await next.pass(100);
      assert.deepEqual(back.ends, ['to 6421555123']);
      assert.equal(back.outcomes[0]?.flowMessage, flowMessage);
      await next.close();
      assert.deepEqual([disk.entries.size, disk.remembered.size], [0, 0]);
    });

    it('deletes the flow message after its last use', async () => {
      const { side } = await strand({ keep, flowMessage, waitMs: 3_600_000 });
      side.service.otherwise = { takes: true };
      const { next, back } = side.crash();
      await next.pass(3_700_000);
      assert.deepEqual(
        back.answers.map((news) => news.flowMessage),
        [flowMessage],
      );
      const other = await strand({ keep, flowMessage });
      assert.equal(await other.side.act('kept', 'discard'), 'done');
      await other.side.pass(100);
      assert.equal(other.store.disk.remembered.size, 0);
    });
  });

  describe('after a crash', () => {
    it('is sent in order of priority, then arrival', async () => {
      const { side, node } = beginOutage({ concurrency: 1 });
      for (const body of ['reminder 1', 'reminder 2']) sendText(node, body, { keep });
      for (const body of ['alarm 1', 'alarm 2']) sendText(node, body, { keep, priority: 10 });
      await side.pass(1_000);
      side.service.otherwise = { takes: true };
      await side.crash().next.pass(100);
      assert.deepEqual(side.service.bodies, ['alarm 1', 'alarm 2', 'reminder 1', 'reminder 2']);
    });

    it('is sent although its node no longer stores messages', async () => {
      const { side } = await strand({ keep });
      side.service.otherwise = { takes: true };
      const next = side.restart();
      const back = next.attach('send', false);
      await next.pass(1_000);
      assert.deepEqual(back.ends, ['to 6421555123']);
    });

    it('expires if its time to live ended during the downtime', async () => {
      const { side } = await strand({ keep: { expireMs: 60_000 } });
      const { next, back } = await side.crashFor(100_000);
      await next.recover(1_000);
      assert.deepEqual([back.ends, side.service.bodies], [['SMS_EXPIRED'], []]);
    });

    /**
     * Crashes after this number of commits. Commit 1 stores the message, commit 2 that the message is being sent, and
     * commit 3 the outcome of the message.
     */
    async function crashAfter(commits: number) {
      const { store, side, node } = beginSending();
      store.unansweredCommit = commits;
      await side.send(node, 'hello', { keep });
      const { next, back } = side.crash();
      await next.pass(1_000);
      assert.deepEqual([node.ends, back.outcomes[0]?.origin], [[], undefined]);
      assert.equal(back.outcomes[0]?.flowMessage, '{"payload":"hello"}');
      return { next, back, bodies: side.service.bodies };
    }

    it('is sent if its send had not begun', async () => {
      const { back, bodies } = await crashAfter(1);
      assert.deepEqual([back.ends, bodies], [['to 6421555123'], ['hello']]);
    });

    it('ends with SMS_UNCERTAIN if its send had begun', async () => {
      const { next, back, bodies } = await crashAfter(2);
      assert.deepEqual([back.ends, bodies, next.outbox.admin.state.uncertain], [['SMS_UNCERTAIN'], [], 1]);
    });

    it('delivers its outcome again, marked as redelivered', async () => {
      const { back, bodies } = await crashAfter(3);
      assert.deepEqual([back.ends, bodies], [['to 6421555123 again'], ['hello']]);
    });
  });

  it('does not repeat its outcome after a failure of the store', async () => {
    const { store, side, node } = beginSending();
    const take = node.onOutcome.bind(node);
    node.onOutcome = (news) => {
      // From now on, the account cannot store that the outcome has entered the flow.
      store.failing.add('commit').add('open');
      return take(news);
    };
    await side.send(node, 'hello', { keep }, 3_000);
    assert.equal(store.disk.entries.size, 1);
    node.onOutcome = take;
    await side.send(node, 'refused', { keep }, 1_000);
    store.failing.clear();
    await side.pass(20_000);
    assert.deepEqual(node.ends, ['to 6421555123', 'SMS_STORE']);
    assert.deepEqual(side.service.bodies, ['hello']);
    assert.equal(store.disk.entries.size, 0);
  });

  it('is listed for 7 days if its outcome is unknown', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'hello', { keep, messageId: 'mine' });
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
    const [news] = node.outcomes;
    assert.ok(news?.outcome instanceof SmsError && news.outcome.messageId === 'mine');
    assert.equal(side.outbox.admin.entries('uncertain', { limit: 200 }).total, 1);
    await side.pass(7 * 24 * 3_600_000 + 1_000);
    assert.equal(side.outbox.admin.entries('uncertain', { limit: 200 }).total, 0);
    assert.equal(side.outbox.isSettled, true);
  });

  it('is not sent by an instance after another instance claims it', async () => {
    const { side, node } = await strand();
    const [entry] = side.outbox.admin.entries('kept', { limit: 1 }).entries;
    side.outbox.forget(entry?.id ?? '');
    assert.deepEqual([side.outbox.hasMessages, side.outbox.isSettled], [false, true]);
    await side.recover();
    assert.deepEqual([node.ends, side.service.bodies], [[], []]);
  });

  it('shows the error that delays it', async () => {
    const { side, node } = beginSending();
    const failing = () => side.outbox.admin.state.failing;
    assert.equal(failing(), undefined);
    side.service.otherwise = { unreachable: true };
    const before = side.clock.now();
    await side.send(node, 'hello', { keep });
    const { error, since = 0, nextTryAt = 0 } = failing() ?? {};
    assert.equal(error?.code, 'SMS_UNREACHABLE');
    assert.ok(since >= before && since <= before + 100);
    assert.ok(nextTryAt > side.clock.now() && nextTryAt <= side.clock.now() + 1_500);
    await side.pass(10_000);
    assert.equal(failing()?.since, since);
    await side.recover(70_000);
    assert.equal(failing(), undefined);
  });
});
