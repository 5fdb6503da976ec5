import assert from 'node:assert/strict';
import { wait } from '../../../src/clock';
import { SmsError } from '../../../src/errors';
import type { SendOptions } from '../../../src/outbox/text';
import { MemoryStore } from '../../../src/store/memory';
import { settle } from '../../virtual-clock';
import { createError } from '../some-error';
import { FailingServer, FailingStore } from '../store/failing-store';
import { beginSending, copyDisk, forever, SendingSide, sendText } from './sending-side';

describe('stored messages', () => {
  const keep = forever;

  /** Leaves a stored message that waits because the service is unreachable. */
  async function strand() {
    const { store, side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { keep }, 1_000);
    return { store, side, node };
  }

  it('are stored before they are sent, and dropped after their outcome', async () => {
    const { store, side, node } = beginSending();
    await side.send(node, 'hello', { keep });
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.deepEqual(node.outcomes[0]?.origin, { body: 'hello' });
    assert.equal(store.disk.entries.size, 0);
    assert.equal(side.outbox.isSettled, true);
  });

  it('write nothing without keep and once', async () => {
    const { store, side, node } = beginSending();
    await side.send(node, 'hello');
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.equal(store.commits, 0);
  });

  it('refuse a message that cannot be stored, and send nothing', async () => {
    const { store, side, node } = beginSending();
    await side.pass(10);
    store.failing.add('commit').add('open');
    await side.send(node, 'hello', { keep }, 1_000);
    assert.deepEqual(node.ends, ['SMS_STORE']);
    assert.equal(side.service.tries, 0);
  });

  it('have the messageId set by the flow in the error if they are not stored', async () => {
    const { store, side, node } = beginSending({ concurrency: 1, queueLimit: 1 });
    await side.pass(10);
    side.service.holdNext();
    for (const messageId of ['taken', 'waits']) sendText(node, messageId, { keep, messageId, once: messageId });
    await side.pass(10);
    sendText(node, 'kept', { keep, messageId: 'kept' });
    sendText(node, 'plain', { messageId: 'plain' });
    await side.send(node, 'another text', { messageId: 'guarded', once: 'taken' }, 10);
    store.failing.add('commit').add('open');
    await side.send(node, 'unwritten', { messageId: 'unwritten', once: 'unwritten' }, 1_000);
    const errors = node.outcomes.map(({ outcome }) => outcome instanceof SmsError && [outcome.code, outcome.messageId]);
    assert.deepEqual(errors, [
      ['SMS_BUSY', 'kept'],
      ['SMS_BUSY', 'plain'],
      ['SMS_INPUT', undefined],
      ['SMS_STORE', 'unwritten'],
    ]);
  });

  it('are not sent if they were refused although the store wrote them', async () => {
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

  it('leave no trace if they are refused before the store is used', async () => {
    const { store, side, node } = beginSending();
    store.failing.add('open');
    for (let number = 0; number < 1_000; number++) sendText(node, `text ${number}`, { keep, once: `key ${number}` });
    await side.pass(1_000);
    assert.deepEqual(new Set(node.ends), new Set(['SMS_STORE']));
    assert.equal(node.ends.length, 1_000);
    assert.equal(side.outbox.isSettled, true);
  });

  it('wait in an outage, report it once, and then leave in order', async () => {
    const { side, node } = beginSending({ concurrency: 1 });
    side.service.otherwise = { unreachable: true };
    for (const body of ['1', '2', '3']) sendText(node, body, { keep });
    await side.send(node, 'urgent', { keep, priority: 5 }, 600_000);
    assert.deepEqual(node.ends, []);
    assert.equal(node.outages.length, 1);
    assert.equal(node.outages[0]?.code, 'SMS_UNREACHABLE');
    assert.match(
      node.outages[0]?.message ?? '',
      /is stored and will be sent when the service is available again \(\d waiting\)/,
    );
    assert.equal(node.state?.waiting, 4);
    assert.equal(node.state?.outage?.code, 'SMS_UNREACHABLE');
    side.service.otherwise = { takes: true };
    await side.pass(80_000);
    assert.deepEqual(side.service.bodies, ['urgent', '1', '2', '3']);
    assert.equal(node.ends.length, 4);
    assert.equal(node.state?.outage, undefined);
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'again', { keep }, 1_000);
    assert.equal(node.outages.length, 2);
  });

  it('report each outage, even if the clock was set back in between', async () => {
    const { side, node } = beginSending();
    for (const body of ['1', '2']) {
      side.service.otherwise = { unreachable: true };
      await side.send(node, body, { keep }, 5_000);
      side.service.otherwise = { takes: true };
      await side.pass(120_000);
      side.clock.set(-5 * 3_600_000);
    }
    assert.deepEqual([side.service.bodies, node.outages.length], [['1', '2'], 2]);
  });

  it('report an outage to a node whose messages are behind others', async () => {
    const side = new SendingSide({ concurrency: 1 });
    const [one, two] = [side.attach('one'), side.attach('two')];
    const fail = side.service.holdNext({ takes: false, error: createError('unreachable') });
    sendText(one, '1', { keep });
    await side.send(two, '2', { keep }, 1_000);
    side.service.otherwise = { unreachable: true };
    fail();
    await side.pass(600_000);
    assert.deepEqual([one.outages.length, two.outages.length], [1, 1]);
  });

  it('report the number of waiting messages of a node', async () => {
    const side = new SendingSide();
    const [one, two] = [side.attach('one'), side.attach('two')];
    side.service.otherwise = { unreachable: true };
    sendText(one, '1', { keep });
    sendText(one, '2', { keep });
    await side.send(two, '3', { keep }, 1_000);
    assert.deepEqual([one.outages[0]?.waiting, two.outages[0]?.waiting], [2, 1]);
  });

  for (const [what, error] of [
    ['401', createError('unauthorized')],
    ['429', createError('tooManyRequests').with({ statusCode: 429 })],
    ['503', new SmsError('serverError', { params: { status: 503 }, statusCode: 503 })],
  ] as const) {
    it(`continue to wait after ${what}, although the request had left`, async () => {
      const { side, node } = beginSending();
      side.service.script.push({ error });
      await side.send(node, 'hello', { keep }, 45_000);
      assert.deepEqual(node.ends, ['to 6421555123']);
      assert.deepEqual(side.service.bodies, ['hello']);
      assert.equal(node.outages.length, 1);
    });
  }

  it('honour Retry-After, in seconds and as a date', async () => {
    for (const asDate of [false, true]) {
      const { side, node } = beginSending();
      const retryAfter = asDate ? new Date(side.clock.now() + 120_000).toUTCString() : '120';
      side.service.script.push({ error: createError('serverError').with({ statusCode: 503, retryAfter }) });
      await side.send(node, 'hello', { keep }, 118_000);
      assert.equal(side.service.tries, 1);
      await side.send(node, 'another', { keep }, 500);
      assert.equal(side.service.tries, 1);
      await side.pass(3_000);
      assert.deepEqual(side.service.bodies, ['hello', 'another']);
    }
  });

  it('end with 403 as an outcome', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ error: createError('forbidden') });
    await side.send(node, 'hello', { keep });
    assert.deepEqual(node.ends, ['SMS_FORBIDDEN']);
    assert.equal(side.outbox.isSettled, true);
  });

  it('expire if their time ends while they are being written', async () => {
    const { store, side, node } = beginSending();
    side.service.otherwise = { error: createError('serverError').with({ statusCode: 503, retryAfter: '3600' }) };
    await side.send(node, 'first', { keep });
    const commit = store.commit.bind(store);
    store.commit = async (...changes) => {
      await wait(side.clock, 1_500);
      return commit(...changes);
    };
    await side.send(node, 'second', { keep: { expireMs: 1_000 } }, 10_000);
    assert.deepEqual(node.ends, ['SMS_EXPIRED']);
    await Promise.all([side.close(), side.pass(10_000)]);
  });

  it('expire during an outage and during Retry-After', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = {
      error: createError('serverError').with({ statusCode: 503, retryAfter: '99999' }),
    };
    await side.send(node, 'hello', { keep: { expireMs: 60_000 } }, 59_000);
    assert.deepEqual(node.ends, []);
    await side.pass(2_000);
    assert.deepEqual(node.ends, ['SMS_EXPIRED']);
    assert.deepEqual(side.service.bodies, []);
    assert.equal(side.outbox.isSettled, true);
  });

  it('name the time in the error SMS_EXPIRED, also in seconds', async () => {
    for (const [minutes, time] of [
      [0.05, '3 s'],
      [0.001, '1 s'],
      [1.5, '90 s'],
      [1.1, '66 s'],
      [1, '1 min'],
      [60, '60 min'],
    ] as const) {
      const { side, node } = beginSending();
      side.service.otherwise = { unreachable: true };
      await side.send(node, 'hello', { keep: { expireMs: minutes * 60_000 } }, 3_700_000);
      const { outcome } = node.outcomes[0] ?? {};
      assert.match(String(outcome), new RegExp(`could not leave within ${time} and has expired`));
    }
  });

  it('expire after their time even if the clock is set by hours', async () => {
    for (const hours of [-10, 10]) {
      const { side, node } = beginSending();
      side.service.otherwise = { unreachable: true };
      await side.send(node, 'hello', { keep: { expireMs: 60_000 } }, 30_000);
      side.clock.set(hours * 3_600_000);
      await side.pass(29_000);
      assert.deepEqual(node.ends, []);
      await side.pass(2_000);
      assert.deepEqual(node.ends, ['SMS_EXPIRED']);
    }
  });

  it('are refused beyond the queue limit', async () => {
    const { side, node } = beginSending({ queueLimit: 3 });
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'first', { keep });
    for (let index = 0; index < 4; index++) sendText(node, String(index), { keep });
    await side.pass(1_000);
    assert.deepEqual(node.ends, ['SMS_BUSY', 'SMS_BUSY']);
  });

  for (const queueLimit of [0, 1]) {
    it(`do not count as waiting while they are sent, limit ${queueLimit}`, async () => {
      const { side, node } = beginSending({ queueLimit, concurrency: 2 });
      const answers = [side.service.holdNext(), side.service.holdNext()];
      for (const body of ['1', '2', '3', '4']) {
        await side.send(node, body, { keep });
      }
      assert.deepEqual(side.service.bodies, ['1', '2']);
      assert.deepEqual(node.ends, Array(2 - queueLimit).fill('SMS_BUSY'));
      for (const answer of answers) answer();
      await side.pass(100);
      await side.send(node, '5', { keep });
      assert.deepEqual(side.service.bodies, ['1', '2', '3', '4'].slice(0, 2 + queueLimit).concat('5'));
    });

    it(`are refused beyond free places and queue, limit ${queueLimit}`, async () => {
      const { side, node } = beginSending({ queueLimit, concurrency: 2 });
      await side.pass(10);
      for (let index = 0; index < 100; index++) sendText(node, String(index), { keep });
      await side.pass(100);
      assert.deepEqual(side.service.bodies, ['0', '1', '2'].slice(0, 2 + queueLimit));
      assert.equal(node.ends.filter((end) => end === 'SMS_BUSY').length, 98 - queueLimit);
    });
  }

  it('are refused beyond one and the queue limit if the account has a pace', async () => {
    const { side, node } = beginSending({ queueLimit: 2, perSecond: 1 });
    for (let index = 0; index < 10; index++) sendText(node, String(index), { keep });
    await side.pass(5_000);
    assert.deepEqual(side.service.bodies, ['0', '1', '2']);
  });

  it('leave after a redeploy that came while they were written', async () => {
    const { store, side, node } = beginSending();
    await side.pass(10);
    store.turns = 20;
    sendText(node, 'hello', { keep });
    await settle();
    await Promise.all([side.outbox.close(), side.pass(0)]);
    assert.equal(store.commits, 1);
    await Promise.all([node.node.close(), side.journal.close(), side.pass(20_000)]);
    assert.equal(store.isOpen, false);
    const again = side.attach();
    for (let turn = 0; turn < 100; turn++) await side.pass(10);
    assert.deepEqual(side.service.bodies, ['hello']);
    assert.deepEqual(again.ends, ['to 6421555123']);
  });

  it('are not resumed if their end is being written at a redeploy', async () => {
    const { store, side, node } = beginSending({ limits: { perHandset: 1, perHandsetMs: 1_000 } });
    await side.send(node, '1', { keep });
    store.turns = 20;
    const before = store.commits;
    sendText(node, '2', { keep });
    // The account stores the message, and then its end, because the limit is reached.
    while (store.commits < before + 2) await side.pass(0);
    const closed = [side.outbox.close(), node.node.close()];
    side.clock.stall(2_000);
    const again = side.attach();
    for (let turn = 0; turn < 100; turn++) await side.pass(10);
    await Promise.all(closed);
    assert.deepEqual([...node.ends, ...again.ends], ['to 6421555123', 'SMS_LIMIT']);
    assert.deepEqual(side.service.bodies, ['1']);
  });

  it('are sent once if a send continues over a redeploy', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await side.send(node, 'hello', { keep });
    const closed = side.outbox.close();
    await node.node.close();
    const again = side.attach();
    await side.pass(100);
    answer();
    await Promise.all([closed, side.pass(1_000)]);
    assert.deepEqual(again.ends, ['to 6421555123']);
    assert.equal(side.service.tries, 1);
  });

  it('are counted once if they wait behind a send over a redeploy', async () => {
    const { side, node } = beginSending({ concurrency: 1 });
    const answer = side.service.holdNext();
    for (const body of ['leaving', 'waiting']) sendText(node, body, { keep });
    await side.pass(100);
    const closed = side.outbox.close();
    await node.node.close();
    const again = side.attach();
    await side.pass(100);
    assert.deepEqual([again.state?.sending, again.state?.waiting], [1, 1]);
    answer();
    await Promise.all([closed, side.pass(1_000)]);
    assert.deepEqual(side.service.bodies, ['leaving', 'waiting']);
    assert.deepEqual([again.state?.sending, again.state?.waiting], [0, 0]);
  });

  it('are not sent after another instance has claimed them', async () => {
    const { store, side, node } = beginSending({ store: new FailingServer(), concurrency: 1 });
    const answer = side.service.holdNext();
    for (const body of ['taken', 'waiting']) sendText(node, body, { keep });
    await side.pass(100);
    store.failing.add('commit');
    await side.send(node, 'refused', { keep }, 3_000);
    const { entries } = store.disk;
    const [elsewhere] = [...entries].filter(([, text]) => text.includes('"body":"waiting"'));
    entries.delete(elsewhere?.[0] ?? '');
    store.failing.clear();
    await side.pass(10_000);
    answer();
    await side.pass(1_000);
    assert.deepEqual(node.ends, ['SMS_STORE', 'to 6421555123']);
    assert.deepEqual(side.service.bodies, ['taken']);
    assert.equal(side.queue.waiting, 0);
    assert.equal(node.state?.waiting, 0);
  });

  it('wait over a redeploy, and leave when their node is back', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { keep }, 10_000);
    await Promise.all([node.node.close(), side.pass(0)]);
    side.service.otherwise = { takes: true };
    await side.pass(300_000);
    assert.deepEqual(side.service.bodies, []);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(node.ends, []);
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.deepEqual(back.outcomes[0]?.origin, { body: 'hello' });
  });

  for (const Store of [MemoryStore, FailingStore]) {
    it(`deliver an outcome of a closing account later, with ${Store.name}`, async () => {
      const side = new SendingSide({ store: new Store() });
      const answer = side.service.holdNext();
      await side.send(side.attach(), 'hello', { keep });
      await side.closeInFlight(answer);
      const back = side.attach();
      await side.pass(100);
      assert.deepEqual(back.ends, ['to 6421555123']);
      assert.equal(side.outbox.isSettled, true);
    });
  }

  it('deliver a missed outcome when the node is back', async () => {
    const { side, node } = beginSending();
    node.isFlowing = false;
    await side.send(node, 'hello', { keep });
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.deepEqual(side.service.bodies, ['hello']);
  });

  it('are not sent without their node, and expire', async () => {
    const side = new SendingSide();
    const [other, node] = [side.attach('other'), side.attach()];
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { keep }, 1_000);
    await Promise.all([node.node.close(), side.pass(0)]);
    side.service.otherwise = { takes: true };
    await side.pass(6 * 24 * 3_600_000);
    assert.deepEqual(side.abandoned, []);
    await side.pass(2 * 24 * 3_600_000);
    assert.deepEqual(side.abandoned, ['send']);
    assert.equal(side.outbox.hasMessages, false);
    assert.deepEqual([...side.service.bodies, ...node.ends, ...other.ends], []);
    assert.equal(side.outbox.isSettled, true);
  });

  describe('leave by priority and arrival', () => {
    /** Returns three reminders and two later alarms in the order in which they left. */
    const due = ['alarm 1', 'alarm 2', 'reminder 1', 'reminder 2', 'reminder 3'];
    function sendAll(node: Parameters<typeof sendText>[0]): void {
      for (const body of ['reminder 1', 'reminder 2', 'reminder 3']) sendText(node, body, { keep });
      for (const body of ['alarm 1', 'alarm 2']) sendText(node, body, { keep, priority: 10 });
    }

    it('after a restart', async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store, concurrency: 1 });
      side.service.otherwise = { unreachable: true };
      sendAll(side.attach());
      await side.pass(1_000);
      side.service.otherwise = { takes: true };
      const next = side.restart(copyDisk(store.disk));
      next.attach();
      await next.pass(100);
      assert.deepEqual(side.service.bodies, due);
    });

    it('after an outage, however many may be sent at once', async () => {
      const { side, node } = beginSending({ concurrency: 3 });
      side.service.otherwise = { unreachable: true };
      sendAll(node);
      await side.pass(1_000);
      side.service.otherwise = { takes: true };
      await side.pass(60_000);
      assert.deepEqual(side.service.bodies, due);
    });

    it('after a redeploy, in any order of nodes', async () => {
      const side = new SendingSide({ concurrency: 1 });
      side.service.otherwise = { unreachable: true };
      const former = [side.attach('calm'), side.attach('hasty')] as const;
      for (const index of [1, 2, 3]) {
        sendText(former[0], `calm ${index}`, { keep });
        sendText(former[1], `hasty ${index}`, { keep, priority: index === 2 ? 5 : 0 });
      }
      await side.pass(1_000);
      for (const { node } of former) await node.close();
      await Promise.all([side.outbox.close(), side.pass(0)]);
      side.service.otherwise = { takes: true };
      side.attach('calm');
      side.attach('hasty');
      await side.pass(100);
      assert.deepEqual(side.service.bodies, ['hasty 2', 'calm 1', 'hasty 1', 'calm 2', 'calm 3', 'hasty 3']);
    });

    it('for a later node, in order of arrival', async () => {
      const side = new SendingSide({ concurrency: 1 });
      side.service.otherwise = { unreachable: true };
      const former = [side.attach('early'), side.attach('late')] as const;
      for (const index of [1, 2, 3]) for (const node of former) sendText(node, `${node.id} ${index}`, { keep });
      await side.pass(1_000);
      for (const { node } of former) await node.close();
      await Promise.all([side.outbox.close(), side.pass(0)]);
      const answer = side.service.holdNext();
      side.service.otherwise = { takes: true };
      side.attach('early');
      await side.pass(100);
      side.attach('late');
      await side.pass(100);
      answer();
      await side.pass(100);
      assert.deepEqual(side.service.bodies, ['early 1', 'late 1', 'early 2', 'late 2', 'early 3', 'late 3']);
    });
  });

  describe('the 7 days of waiting for a removed node', () => {
    const dayMs = 24 * 3_600_000;

    /** Leaves a message whose node is removed for a time before the process stops for another. */
    async function leave(goneMs: number, downMs: number) {
      const { store, side, node } = await strand();
      const other = side.attach('other');
      await Promise.all([node.node.close(), side.pass(0)]);
      await side.pass(goneMs);
      const disk = copyDisk(store.disk);
      await Promise.all([other.node.close(), side.close(), side.pass(11_000)]);
      await side.pass(downMs);
      const next = side.restart(disk);
      next.attach('other');
      await next.pass(100);
      return { next, disk };
    }

    it('pass while the process is down, but end at least an hour after its start', async () => {
      const { next } = await leave(3_600_000, 8 * dayMs);
      assert.equal(next.outbox.admin.state.kept, 1, 'its node may be late');
      await next.pass(3_601_000);
      assert.deepEqual([next.abandoned, next.outbox.isSettled], [['send'], true]);
    });

    it('begin when the process ends if the node was removed before', async () => {
      const { store, side } = await strand();
      await Promise.all([side.close(), side.pass(100)]);
      await side.pass(8 * dayMs);
      const next = side.restart(copyDisk(store.disk));
      next.attach('other');
      await next.pass(3_601_000);
      assert.deepEqual(next.abandoned, ['send']);
    });

    it('continue after a restart', async () => {
      const { next } = await leave(2 * dayMs, 3 * dayMs);
      await next.pass(2 * dayMs - 60_000);
      assert.deepEqual(next.abandoned, []);
      await next.pass(61_000);
      assert.deepEqual(next.abandoned, ['send']);
    });

    it('begin again after the node has been back', async () => {
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

    it('do not begin at a redeploy, and write nothing to the store', async () => {
      const { store, side, node } = await strand();
      side.attach('other');
      const before = store.commits;
      await Promise.all([node.node.close(), side.pass(15_000)]);
      side.attach();
      await side.pass(60_000);
      assert.deepEqual([store.commits, store.disk.remembered.size], [before, 0]);
    });
  });

  describe('with a large flow message', () => {
    const flowMessage = JSON.stringify({ payload: 'x'.repeat(250_000) });

    async function strandLong(options: Partial<SendOptions> = {}) {
      const { store, side, node } = beginSending();
      side.service.otherwise = { unreachable: true };
      await side.send(node, 'hello', { keep: forever, flowMessage, ...options }, 60_000);
      return { store, side, node };
    }

    it('writes it once, and delivers it with the outcome after a restart', async () => {
      const { store, side } = await strandLong();
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

    it('drops it with the reply request, or if the message is discarded', async () => {
      const { store, side } = await strandLong({ waitMs: 3_600_000 });
      const disk = copyDisk(store.disk);
      side.service.otherwise = { takes: true };
      const next = side.restart(disk);
      const back = next.attach();
      await next.pass(60_000);
      await next.pass(3_600_000);
      assert.deepEqual(
        back.answers.map((news) => news.flowMessage),
        [flowMessage],
      );
      const other = await strandLong();
      const [entry] = other.side.outbox.admin.entries('kept', 1).entries;
      assert.equal(await other.side.outbox.admin.act(entry?.id ?? '', 'discard'), 'done');
      await other.side.pass(100);
      assert.equal(other.store.disk.remembered.size, 0);
    });
  });

  describe('after a crash', () => {
    it('sends a waiting message once', async () => {
      const { side } = await strand();
      side.service.otherwise = { takes: true };
      const { next, back } = side.crash();
      await next.pass(100);
      assert.deepEqual(back.ends, ['to 6421555123']);
      assert.equal(back.outcomes[0]?.origin, undefined);
      assert.equal(back.outcomes[0]?.flowMessage, '{"payload":"hello"}');
      assert.deepEqual(side.service.bodies, ['hello']);
    });

    it('ends a message that had left with SMS_UNCERTAIN, and does not resend it', async () => {
      const { side, node } = beginSending();
      side.service.script.push({ takes: true, after: new Promise(() => {}) });
      await side.send(node, 'hello', { keep });
      const { next, back } = side.crash();
      await next.pass(1_000);
      assert.deepEqual(back.ends, ['SMS_UNCERTAIN']);
      assert.deepEqual(side.service.bodies, ['hello']);
      assert.equal(next.outbox.admin.state.uncertain, 1);
    });

    it('waits for a node in a closed account', async () => {
      const { store, side } = await strand();
      side.service.otherwise = { takes: true };
      const next = side.restart(copyDisk(store.disk));
      await next.outbox.close();
      next.journal.open();
      await next.pass(8 * 24 * 3_600_000);
      assert.deepEqual([next.outbox.isSettled, next.abandoned], [false, []]);
      const back = next.attach();
      await next.pass(1_000);
      assert.deepEqual(back.ends, ['to 6421555123']);
    });

    it('delivers an outcome again, marked as redelivered', async () => {
      const { side, node } = beginSending();
      node.isFlowing = false;
      await side.send(node, 'hello', { keep });
      const { next, back } = side.crash();
      await next.pass(100);
      assert.deepEqual(back.ends, ['to 6421555123 again']);
      assert.deepEqual(side.service.bodies, ['hello']);
    });

    it('expires a message whose time is over', async () => {
      const store = new FailingStore();
      const side = new SendingSide({ store });
      side.service.otherwise = { unreachable: true };
      await side.send(side.attach(), 'hello', { keep: { expireMs: 60_000 } }, 1_000);
      const disk = copyDisk(store.disk);
      await side.clock.advance(100_000);
      side.service.otherwise = { takes: true };
      const next = side.restart(disk);
      const back = next.attach();
      await next.pass(1_000);
      assert.deepEqual(back.ends, ['SMS_EXPIRED']);
      assert.deepEqual(side.service.bodies, []);
    });

    for (const [commits, what, sent, end] of [
      [1, 'stored, it is sent', 1, 'to 6421555123'],
      [2, 'marked as leaving, its outcome is unknown', 0, 'SMS_UNCERTAIN'],
      [3, 'stored with its outcome, the outcome enters the flow again', 1, 'to 6421555123 again'],
    ] as const) {
      it(`if it comes as soon as the message is ${what}`, async () => {
        const { store, side, node } = beginSending();
        const commit = store.commit.bind(store);
        let count = 0;
        store.commit = async (...step) => {
          await commit(...step);
          if (++count === commits) await new Promise(() => {});
        };
        await side.send(node, 'hello', { keep });
        const { next, back } = side.crash();
        await next.pass(1_000);
        assert.deepEqual([node.ends, back.ends], [[], [end]]);
        assert.equal(side.service.bodies.length, sent);
      });
    }
  });

  it('does not repeat a delivered outcome after a failure of the store', async () => {
    const { store, side, node } = beginSending();
    const take = node.onOutcome.bind(node);
    node.onOutcome = (news) => {
      // The account can no longer write that the outcome has entered the flow.
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

  it('stay for the next account if an account ends', async () => {
    const { store, side, node } = await strand();
    const closed = side.close();
    await side.pass(11_000);
    await closed;
    assert.equal(store.isOpen, false);
    assert.deepEqual(node.ends, []);
    side.service.otherwise = { takes: true };
    const back = side.attach();
    await side.pass(1_000);
    assert.deepEqual(back.ends, ['to 6421555123']);
  });

  it('are followed to their outcome if the account ends', async () => {
    const { side, node } = beginSending();
    const answer = side.service.holdNext();
    await side.send(node, 'hello', { keep });
    await side.closeInFlight(answer);
    const back = side.attach();
    await side.pass(100);
    assert.deepEqual(back.ends, ['to 6421555123']);
    assert.deepEqual(side.service.bodies, ['hello']);
  });

  it('raise SMS_UNCERTAIN, and are listed for 7 days', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'hello', { keep, messageId: 'mine' });
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN']);
    const [news] = node.outcomes;
    assert.ok(news?.outcome instanceof SmsError && news.outcome.messageId === 'mine');
    assert.equal(side.outbox.admin.entries('uncertain', 200).total, 1);
    await side.pass(7 * 24 * 3_600_000 + 1_000);
    assert.equal(side.outbox.admin.entries('uncertain', 200).total, 0);
    assert.equal(side.outbox.isSettled, true);
  });

  it('with retryUncertain are sent again, after a growing delay', async () => {
    const { side, node } = beginSending();
    const error = createError('serverError').with({ statusCode: 500 });
    side.service.script.push({ takes: true, error }, { takes: true, error });
    await side.send(node, 'hello', { keep, retryUncertain: true }, 900);
    assert.equal(side.service.tries, 1);
    await side.pass(10_000);
    assert.deepEqual(node.ends, ['to 6421555123']);
    assert.equal(side.service.tries, 3);
  });

  it('with retryUncertain are retried even if the clock is set back', async () => {
    const { side, node } = beginSending();
    side.service.script.push({ takes: true, error: createError('uncertain') });
    await side.send(node, 'hello', { keep, retryUncertain: true });
    const { scheduled, waiting } = side.outbox.admin.state;
    assert.deepEqual([scheduled, waiting, node.state?.nextAt], [0, 1, undefined]);
    assert.equal(side.outbox.admin.entries('kept', 10).entries[0]?.dueAt, undefined);
    side.clock.set(-5 * 3_600_000);
    await side.pass(10_000);
    assert.deepEqual(node.ends, ['to 6421555123']);
  });

  it('cause no warning about listeners in a dozen accounts', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    try {
      for (let count = 0; count < 12; count++) {
        const { side, node } = beginSending({ concurrency: 1 });
        side.service.otherwise = { connects: new Promise(() => {}) };
        for (const body of ['1', '2']) sendText(node, body, { keep });
        await side.pass(100);
      }
      await new Promise(setImmediate);
      assert.deepEqual(warnings, []);
    } finally {
      process.off('warning', onWarning);
    }
  });

  it('let a user resend or discard a message with an unknown outcome', async () => {
    const { side, node } = beginSending();
    for (const body of ['1', '2']) {
      side.service.script.push({ error: createError('uncertain') });
      await side.send(node, body, { keep });
    }
    const { entries } = side.outbox.admin.entries('uncertain', 200);
    assert.deepEqual(
      entries.map(({ body, error }) => [body, error?.code]),
      [
        ['1', 'SMS_UNCERTAIN'],
        ['2', 'SMS_UNCERTAIN'],
      ],
    );
    const sent = side.outbox.admin.act(entries[0]?.id ?? '', 'send');
    const { admin } = side.outbox;
    assert.equal(admin.state.uncertain, admin.entries('uncertain', 200).total, 'the number is that of the list');
    assert.equal(await sent, 'done');
    assert.equal(await side.outbox.admin.act(entries[1]?.id ?? '', 'discard'), 'done');
    await side.pass(100);
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'SMS_UNCERTAIN', 'to 6421555123 again']);
    assert.equal(await side.outbox.admin.act(entries[1]?.id ?? '', 'send'), 'gone');
    assert.deepEqual(side.service.bodies, ['1']);
  });

  it('report a send by a user, and expire as before', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    sendText(node, 'late', { keep: { expireMs: 60_000 } });
    await side.send(node, 'in time', { keep: { expireMs: 120_000 } }, 40_000);
    for (const { id } of side.outbox.admin.entries('kept', 2).entries) {
      assert.equal(await side.outbox.admin.act(id, 'send'), 'done');
    }
    await side.pass(30_000);
    side.service.otherwise = { takes: true };
    await side.pass(60_000);
    assert.deepEqual(node.ends, ['SMS_EXPIRED again', 'to 6421555123 again']);
  });

  it('let a user mark a message with an unknown outcome as sent', async () => {
    const { store, side, node } = beginSending();
    side.service.script.push({ error: createError('uncertain') });
    await side.send(node, 'hello', { keep, once: 'k', to: ['6421555123', '6421555124'] });
    const { admin } = side.outbox;
    const [entry] = admin.entries('uncertain', 1).entries;
    const confirmed = admin.act(entry?.id ?? '', 'markSent');
    await side.pass(100);
    assert.equal(await confirmed, 'done');
    assert.deepEqual(node.ends, ['SMS_UNCERTAIN', 'to 6421555123 6421555124 again']);
    const { outcome } = node.outcomes[1] ?? {};
    assert.equal(outcome && 'resolvedBy' in outcome && outcome.resolvedBy, 'person');
    const { uncertain, resolved, sent } = admin.counts;
    assert.deepEqual([admin.state.uncertain, uncertain, resolved, sent], [0, 1, 1, 2]);
    assert.equal(store.disk.entries.size, 0, 'nothing is left in the store');
    // The deduplication key is known, so the node gets the same outcome again and sends nothing.
    await side.send(node, 'hello', { keep, once: 'k', to: ['6421555123', '6421555124'] });
    assert.deepEqual(node.ends.slice(2), ['to 6421555123 6421555124 duplicate']);
    assert.equal(side.service.tries, 1);
    // A week later, the account has nothing to discard.
    await side.pass(8 * 24 * 3_600_000);
    assert.deepEqual([side.abandoned, side.faults], [[], []]);
  });

  it('do not let a user mark a waiting message as sent', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    await side.send(node, 'hello', { keep });
    const { admin } = side.outbox;
    assert.equal(await admin.act(admin.entries('kept', 1).entries[0]?.id ?? '', 'markSent'), 'unfit');
  });

  it('show why they wait, since when, and when the next one tries', async () => {
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
    side.service.otherwise = { takes: true };
    await side.pass(70_000);
    assert.equal(failing(), undefined);
  });

  it('let a user discard a waiting message, or send it now', async () => {
    const { side, node } = beginSending();
    side.service.otherwise = { unreachable: true };
    for (const body of ['1', '2', '3']) sendText(node, body, { keep });
    await side.pass(20_000);
    const [first, second] = side.outbox.admin.entries('kept', 2).entries;
    const discarded = side.outbox.admin.act(first?.id ?? '', 'discard');
    await side.pass(0);
    assert.equal(await discarded, 'done');
    assert.deepEqual(node.discarded, [{ body: '1' }]);
    side.service.otherwise = { takes: true };
    assert.equal(await side.outbox.admin.act(second?.id ?? '', 'send'), 'done');
    await side.pass(10);
    assert.deepEqual(side.service.bodies, ['2', '3']);
  });
});
