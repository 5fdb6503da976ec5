import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import {
  beginSending,
  copyDisk,
  forever,
  SendingSide,
  type SendingSideOptions,
  sendText,
  type Turn,
} from './sending-side';

describe('Retry-After', () => {
  const keep = forever;

  const unavailable = (retryAfter?: string) => createError('serverError').with({ statusCode: 503, retryAfter });

  /** Sends one message per turn, all at the same time. The service answers each one after the `delayMs` of its turn. */
  async function underWay(turns: readonly [delayMs: number, turn: Turn][], options: SendingSideOptions = {}) {
    const { side, node } = beginSending(options);
    for (const [delayMs, turn] of turns) {
      side.service.script.push({
        ...turn,
        after: new Promise<void>((resolve) => void side.clock.after(delayMs, resolve)),
      });
    }
    for (const number of turns.keys()) sendText(node, `${number}`, { keep });
    await side.pass(1_000);
    assert.equal(side.service.tries, turns.length);
    return { side, node };
  }

  for (const [what, turn] of [
    ['accepted', { takes: true }],
    ['refused', { error: createError('badRequest') }],
  ] as const) {
    it(`still applies if another message is ${what} afterwards`, async () => {
      const { side, node } = await underWay([
        [50, { error: unavailable('4') }],
        [200, turn],
      ]);
      await side.pass(3_000);
      assert.equal(side.service.tries, 2);
      assert.equal(node.state?.outage?.statusCode, 503);
      await side.pass(100);
      assert.equal(side.service.tries, 3);
      assert.equal(node.ends.length, 2);
      assert.equal(node.outages.length, 1);
      assert.equal(node.state?.outage, undefined);
    });
  }

  it('is not needed for a 503 to count as an outage', async () => {
    const { node } = await underWay([
      [50, { error: unavailable() }],
      [200, { takes: true }],
    ]);
    assert.equal(node.state?.outage?.statusCode, 503);
  });

  it('delays even a message that a user sends manually', async () => {
    const { side, node } = await underWay([[50, { error: unavailable('60') }]]);
    await side.send(node, 'other', { keep });
    assert.equal(await side.act('kept', 'send'), 'done');
    await side.pass(50_000);
    assert.deepEqual([side.service.bodies, node.state?.outage?.statusCode], [['0'], 503]);
    await side.pass(10_000);
    assert.deepEqual(side.service.bodies, ['0', 'other']);
  });

  it('delays all stored messages until the latest requested time', async () => {
    const { side, node } = await underWay([
      [50, { error: unavailable() }],
      [100, { error: unavailable('60') }],
      [200, { error: unavailable('30') }],
    ]);
    await side.pass(59_000);
    assert.equal(side.service.tries, 3);
    await side.pass(200);
    assert.deepEqual(side.service.bodies, ['0', '1', '2']);
    assert.equal(node.outages.length, 1);
  });

  it('is reported as a single outage if one message succeeds every 4 s', async () => {
    const { side, node } = beginSending();
    let freeAt = 0;
    const { client } = node;
    const send = client.send.bind(client);
    client.send = (message, options) => {
      if (side.clock.elapsed() < freeAt) side.service.script.push({ error: unavailable('4') });
      else freeAt = side.clock.elapsed() + 4_000;
      return send(message, options);
    };
    for (const body of ['1', '2', '3', '4']) sendText(node, body, { keep });
    await side.pass(12_100);
    assert.deepEqual(side.service.bodies, ['1', '2', '3', '4']);
    assert.equal(node.outages.length, 1);
    assert.equal(node.state?.outage, undefined);
    await side.pass(600_000);
    side.service.script.push({ unreachable: true });
    await side.send(node, 'later', { keep }, 10_000);
    assert.equal(node.outages.length, 2);
  });

  it('still applies after a redeploy', async () => {
    const { side, node } = await underWay([[0, { error: unavailable('60') }]]);
    await Promise.all([side.close(), side.pass(1_000)]);
    const back = side.attach();
    await side.pass(1_000);
    assert.equal(back.state?.outage?.statusCode, 503);
    await side.send(back, 'another', { keep }, 56_000);
    assert.equal(side.service.tries, 1);
    await side.pass(1_100);
    assert.deepEqual(side.service.bodies, ['0', 'another']);
    assert.deepEqual([node.outages.length, back.outages.length], [1, 0]);
    assert.equal(back.state?.outage, undefined);
  });

  it('ends at a redeploy if it came with a 401', async () => {
    const refusal = createError('unauthorized');
    // A redeploy also ends the outage of a 401 without Retry-After, so that the next refusal is reported again.
    for (const error of [refusal.with({ retryAfter: '600' }), refusal]) {
      const { side, node } = await underWay([[0, { error }]]);
      await Promise.all([side.close(), side.pass(1_000)]);
      side.service.script.push({ error });
      const back = side.attach();
      await side.pass(100);
      assert.deepEqual([side.service.tries, node.outages.length, back.outages.length], [2, 1, 1]);
    }
  });

  describe('after a restart', () => {
    /** Crashes a process 1 s after the service asked it to wait a minute, and starts the next process. */
    async function restart({ setMs = 0 } = {}) {
      const { side } = await underWay([
        [0, { error: unavailable('60') }],
        [0, { error: unavailable() }],
      ]);
      side.clock.set(setMs);
      const disk = copyDisk((side.store as FailingStore).disk);
      return new SendingSide({ clock: side.clock, store: new FailingStore(disk) });
    }

    it('still delays the stored messages', async () => {
      const next = await restart();
      const node = next.attach();
      await next.pass(100);
      await next.send(node, 'another', { keep }, 58_000);
      assert.equal(next.service.tries, 0);
      assert.equal(node.state?.outage?.statusCode, 503);
      assert.equal(node.outages.length, 1);
      await next.pass(1_000);
      assert.deepEqual(next.service.bodies, ['0', '1', 'another']);
      assert.equal(node.state?.outage, undefined);
    });

    for (const [how, byMs, atMost] of [
      ['back a year', -365 * 24 * 3_600_000, 60_000],
      ['forward a year', 365 * 24 * 3_600_000, 0],
    ] as const) {
      it(`lasts at most 1 minute if the clock moves ${how}`, async () => {
        const next = await restart({ setMs: byMs });
        next.attach();
        await next.pass(atMost + 100);
        assert.deepEqual(next.service.bodies, ['0', '1']);
      });
    }
  });
});
