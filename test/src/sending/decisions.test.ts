import assert from 'node:assert/strict';
import { isFlushed } from '../../../src/store/store';
import { createError } from '../some-error';
import { beginOutage, beginSending, forever, type SendingSide, type SendTextOptions, sendText } from './sending-side';

const minuteMs = 60_000;
const keep = forever;

/** Sends a message whose outcome is unknown. */
async function beginUncertain(options: SendTextOptions = { keep }) {
  const sending = beginSending();
  sending.side.service.script.push({ takes: true, error: createError('uncertain') });
  await sending.side.send(sending.node, 'hello', options);
  return sending;
}

/** Sends messages that wait, because the service is unreachable. */
async function beginWaiting(bodies: readonly string[], options: SendTextOptions = { keep }) {
  const sending = beginOutage();
  for (const body of bodies) sendText(sending.node, body, options);
  await sending.side.pass(100);
  return sending;
}

describe('a pending message', () => {
  it('can be discarded or sent by a user', async () => {
    const { side, node } = await beginWaiting(['1', '2', '3']);
    await side.pass(20_000);
    assert.equal(await side.act('kept', 'discard'), 'done');
    assert.deepEqual(node.discarded, [{ body: '1' }]);
    side.service.otherwise = { takes: true };
    assert.equal(await side.act('kept', 'send'), 'done');
    await side.pass(10);
    assert.deepEqual(side.service.bodies, ['2', '3']);
  });

  it('gets an outcome marked as redelivered after a user sends it', async () => {
    const { side, node } = beginOutage();
    sendText(node, 'late', { keep: { expireMs: minuteMs } });
    await side.send(node, 'in time', { keep: { expireMs: 2 * minuteMs } }, 40_000);
    for (const { id } of side.outbox.admin.entries('kept', { limit: 2 }).entries) {
      assert.equal(await side.outbox.admin.act(id, 'send'), 'done');
    }
    await side.pass(30_000);
    await side.recover(minuteMs);
    assert.deepEqual(node.ends, ['SMS_EXPIRED again', 'to 6421555123 again']);
  });

  for (const [what, waits] of [
    ['delayed by perSecond', { perSecond: 0.1 }],
    ['delayed by concurrency', { concurrency: 1 }],
  ] as const) {
    it(`overtakes messages ${what} when a user sends it manually`, async () => {
      const { side, node } = beginSending(waits);
      const answer = side.service.holdNext();
      sendText(node, 'first');
      for (const body of ['1', '2']) sendText(node, body, { keep });
      await side.send(node, 'alarm', { keep, priority: 10 });
      const [, second] = side.outbox.admin.entries('kept', { limit: 2 }).entries;
      assert.equal(await side.outbox.admin.act(second?.id ?? '', 'send'), 'done');
      // Attaches the node again, which must not send the message a second time.
      side.attach();
      answer();
      await side.pass(minuteMs);
      assert.deepEqual(side.service.bodies, ['first', '2', 'alarm', '1']);
    });
  }

  it('cannot be sent by a user while it is in flight', async () => {
    const { side, node } = beginSending();
    const fail = side.service.holdConnection({ takes: false, unreachable: true });
    side.service.script.push({ unreachable: true });
    sendText(node, 'slow', { keep });
    await side.send(node, 'fast', { keep });
    assert.ok(node.state?.outage);
    assert.equal(await side.act('kept', 'send'), 'unfit');
    await side.pass(minuteMs);
    assert.deepEqual(side.service.bodies, ['fast']);
    fail();
    await side.pass(minuteMs);
    assert.deepEqual([side.service.bodies, node.ends.length], [['fast', 'slow'], 2]);
  });

  it('cannot be discarded while the store records the send', async () => {
    const { store, side, node } = beginSending();
    await side.pass(100);
    const { admin } = side.outbox;
    const decisions: Promise<unknown>[] = [];
    store.beforeCommit = (changes) => {
      const isLeaving = [...changes.keep.values()].some((item) => 'state' in item && item.state === 'leaving');
      if (isLeaving) decisions.push(admin.act(admin.entries('kept', { limit: 1 }).entries[0]?.id ?? '', 'discard'));
    };
    await side.send(node, 'hello', { keep });
    assert.deepEqual([await Promise.all(decisions), node.ends], [['unfit'], ['to 6421555123']]);
    assert.deepEqual([node.discarded, store.disk.entries.size], [[], 0]);
  });

  it('cannot be sent or discarded while the node checks if it was sent', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext({ takes: false, error: createError('uncertain') });
    await side.send(node, 'hello', { keep, messageId: 'id', resolveMs: minuteMs, retryUncertain: true });
    const [entry] = side.outbox.admin.entries('kept', { limit: 1 }).entries;
    answer();
    await side.pass(10_000);
    assert.equal(side.outbox.admin.entries('kept', { limit: 1 }).total, 0);
    for (const action of ['send', 'discard'] as const) {
      assert.equal(await side.outbox.admin.act(entry?.id ?? '', action), 'unfit');
    }
    await side.pass(2 * minuteMs);
    assert.deepEqual([node.ends, side.service.tries], [['to 6421555123'], 2]);
  });

  it('can be discarded but not sent if its node is not deployed', async () => {
    const { side, node } = await beginWaiting(['1', '2']);
    const { failing, ...before } = side.outbox.admin.state;
    assert.equal(failing?.error.code, 'SMS_UNREACHABLE');
    await Promise.all([side.outbox.close(), side.detach(node, 100)]);
    // The account no longer retries, so its state no longer has `failing`.
    assert.deepEqual(side.outbox.admin.state, before);
    assert.deepEqual([before.kept, before.waiting], [2, 2]);
    assert.deepEqual([await side.act('kept', 'send'), await side.act('kept', 'markSent')], ['unfit', 'unfit']);
    assert.deepEqual([await side.act('kept', 'discard'), side.outbox.admin.state.kept], ['done', 1]);
    side.service.otherwise = { takes: true };
    side.attach();
    await side.pass(2 * minuteMs);
    assert.deepEqual(side.service.bodies, ['2']);
  });

  it('is not discarded if the store cannot write', async () => {
    const { store, side, node } = await beginWaiting(['hello'], { keep, once: 'key' });
    store.failing.add('commit').add('open');
    await assert.rejects(side.act('kept', 'discard'), { code: 'SMS_STORE' });
    store.failing.clear();
    await side.pass(2 * minuteMs);
    assert.deepEqual([side.outbox.admin.state.kept, node.discarded], [1, []]);
    const flushed: boolean[] = [];
    store.beforeCommit = (changes) => flushed.push(isFlushed(changes));
    assert.deepEqual([await side.act('kept', 'discard'), flushed, store.disk.entries.size], ['done', [true], 0]);
    side.service.otherwise = { takes: true };
    await side.send(node, 'hello', { keep, once: 'key' }, 2 * minuteMs);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });
});

describe('a message with an unknown outcome', () => {
  const count = ({ outbox: { admin } }: SendingSide) => [
    admin.state.uncertain,
    admin.entries('uncertain', { limit: 1 }).total,
  ];

  it('can be sent again or discarded by a user', async () => {
    const { side, node } = await beginUncertain();
    side.service.script.push({ error: createError('uncertain') });
    await side.send(node, 'other', { keep });
    const { admin } = side.outbox;
    const { entries } = admin.entries('uncertain', { limit: 200 });
    assert.deepEqual(
      entries.map(({ body, error }) => `${body} ${error?.code}`),
      ['hello SMS_UNCERTAIN', 'other SMS_UNCERTAIN'],
    );
    const [first = '', second = ''] = entries.map(({ id }) => id);
    const sent = admin.act(first, 'send');
    assert.equal(
      admin.state.uncertain,
      admin.entries('uncertain', { limit: 200 }).total,
      'the number is that of the list',
    );
    assert.deepEqual([await sent, await admin.act(second, 'discard')], ['done', 'done']);
    await side.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'SMS_UNCERTAIN', 'to 6421555123 again']);
    assert.deepEqual([await admin.act(second, 'send'), side.service.bodies], ['gone', ['hello', 'hello']]);
    const { next, back } = side.crash();
    await next.pass(100);
    assert.deepEqual([count(side), count(next), back.ends], [[0, 0], [0, 0], []]);
  });

  it('can be marked as sent by a user', async () => {
    const options = { keep, once: 'k', to: ['6421555123', '6421555124'] };
    const { store, side, node } = await beginUncertain(options);
    assert.equal(await side.act('uncertain', 'markSent'), 'done');
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'to 6421555123 6421555124 again']);
    const { outcome } = node.outcomes[1] ?? {};
    assert.equal(outcome && 'resolvedBy' in outcome && outcome.resolvedBy, 'person');
    const { uncertain, resolved, sent } = side.outbox.admin.counts;
    assert.deepEqual([side.outbox.admin.state.uncertain, uncertain, resolved, sent], [0, 1, 1, 2]);
    assert.equal(store.disk.entries.size, 0, 'nothing is left in the store');
    // The deduplication key is known, so the node gets the same outcome again and sends nothing.
    await side.send(node, 'hello', options);
    assert.deepEqual(node.ends.slice(2), ['to 6421555123 6421555124 duplicate']);
    assert.equal(side.service.tries, 1);
    // A week later, the account has nothing to discard.
    await side.pass(8 * 24 * 60 * minuteMs);
    assert.deepEqual([side.abandoned, side.faults], [[], []]);
  });

  it('is sent once if two users decide at the same time', async () => {
    const { store, side, node } = await beginUncertain();
    const { admin } = side.outbox;
    const id = admin.entries('uncertain', { limit: 1 }).entries[0]?.id ?? '';
    store.turns = 2;
    const first = admin.act(id, 'send');
    await new Promise(setImmediate);
    const second = Promise.all([admin.act(id, 'send'), admin.act(id, 'discard')]);
    await Promise.all([first, second, side.pass(100)]);
    assert.deepEqual([await first, await second], ['done', ['unfit', 'unfit']]);
    await side.pass(100);
    assert.deepEqual([node.ends, side.service.taken.length], [['SMS_UNCERTAIN', 'to 6421555123 again'], 2]);
  });

  it('keeps its deduplication key if a user sends it again', async () => {
    const { side } = await beginUncertain({ once: 'key' });
    side.service.otherwise = { unreachable: true };
    assert.equal(await side.act('uncertain', 'send'), 'done');
    await side.pass(100);
    const next = side.restart();
    await Promise.all([side.close(), side.pass(100)]);
    const node = next.attach();
    await next.pass(100);
    assert.equal(await next.act('kept', 'discard'), 'done');
    next.service.otherwise = { takes: true };
    await next.send(node, 'hello', { once: 'key' }, 2 * minuteMs);
    assert.deepEqual([next.service.taken.length, node.ends], [1, ['SMS_UNCERTAIN duplicate']]);
  });
});
