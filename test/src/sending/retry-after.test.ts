import assert from 'node:assert/strict';
import { createError } from '../some-error';
import { FailingStore } from '../store/failing-store';
import { copyPlatter, forever, House, type HouseOptions, sendText, type Turn } from './sending-house';

describe('Retry-After, which holds for all kept texts of an account', () => {
  const keep = forever;

  const unavailable = (retryAfter?: string) => createError('serverError').with({ statusCode: 503, retryAfter });

  /** Some texts under way at once, answered after so many ms each, and what is answered then. */
  async function underWay(turns: readonly [delayMs: number, turn: Turn][], options: HouseOptions = {}) {
    const house = new House(options);
    const node = house.attach();
    for (const [delayMs, turn] of turns) {
      house.service.script.push({
        ...turn,
        after: new Promise<void>((resolve) => void house.clock.after(delayMs, resolve)),
      });
    }
    for (const number of turns.keys()) sendText(node, `${number}`, { keep });
    await house.pass(1_000);
    assert.equal(house.service.tries, turns.length);
    return { house, node };
  }

  for (const [what, turn] of [
    ['accepted', { takes: true }],
    ['refused', { error: createError('badRequest') }],
  ] as const) {
    it(`is kept to though a text that was under way already is ${what}`, async () => {
      const { house, node } = await underWay([
        [50, { error: unavailable('4') }],
        [200, turn],
      ]);
      await house.pass(3_000);
      assert.equal(house.service.tries, 2);
      assert.equal(node.state?.outage?.statusCode, 503);
      await house.pass(100);
      assert.equal(house.service.tries, 3);
      assert.equal(node.ends.length, 2);
      assert.equal(node.outages.length, 1);
      assert.equal(node.state?.outage, undefined);
    });
  }

  it('is kept to whichever text it was answered to, and of several the latest', async () => {
    const { house, node } = await underWay([
      [50, { error: unavailable() }],
      [100, { error: unavailable('60') }],
      [200, { error: unavailable('30') }],
    ]);
    await house.pass(59_000);
    assert.equal(house.service.tries, 3);
    await house.pass(200);
    assert.deepEqual(house.service.bodies, ['0', '1', '2']);
    assert.equal(node.outages.length, 1);
  });

  it('of a service that takes one text at a time is one outage', async () => {
    const house = new House();
    const node = house.attach();
    let freeAt = 0;
    const { client } = node;
    const send = client.send.bind(client);
    client.send = (message, options) => {
      if (house.clock.elapsed() < freeAt) house.service.script.push({ error: unavailable('4') });
      else freeAt = house.clock.elapsed() + 4_000;
      return send(message, options);
    };
    for (const body of ['1', '2', '3', '4']) sendText(node, body, { keep });
    await house.pass(12_100);
    assert.deepEqual(house.service.bodies, ['1', '2', '3', '4']);
    assert.equal(node.outages.length, 1);
    assert.equal(node.state?.outage, undefined);
    await house.pass(600_000);
    house.service.script.push({ unreachable: true });
    sendText(node, 'later', { keep });
    await house.pass(10_000);
    assert.equal(node.outages.length, 2);
  });

  it('is undercut by hand, for one text', async () => {
    const { house, node } = await underWay([
      [50, { error: unavailable('60') }],
      [60, { error: unavailable() }],
    ]);
    const [, second] = house.outbox.admin.entries('kept', 2).entries;
    assert.equal(await house.outbox.admin.act(second?.id ?? '', 'send'), 'done');
    await house.pass(10_000);
    assert.deepEqual(house.service.bodies, ['1']);
    await house.pass(60_000);
    assert.deepEqual(house.service.bodies, ['1', '0']);
    assert.equal(node.outages.length, 1);
  });

  it('longer than any timer is kept to all the same', async () => {
    const { house } = await underWay([[0, { error: unavailable('99999999') }]]);
    await house.pass(60 * 24 * 3_600_000);
    assert.equal(house.service.tries, 1);
  });

  for (const rubbish of ['foo 2099', 'in 2099 days', '-5', '1e9']) {
    it(`is none in "${rubbish}"`, async () => {
      const { house } = await underWay([[0, { error: unavailable(rubbish) }]]);
      await house.pass(10_000);
      assert.ok(house.service.tries > 1);
    });
  }

  it('is kept to after a redeploy, which tells of the same outage once', async () => {
    const store = new FailingStore();
    const { house, node } = await underWay([[0, { error: unavailable('60') }]], { store });
    const closed = house.close();
    await house.pass(1_000);
    await closed;
    const back = house.attach();
    await house.pass(1_000);
    assert.equal(back.state?.outage?.statusCode, 503);
    sendText(back, 'another', { keep });
    await house.pass(56_000);
    assert.equal(house.service.tries, 1);
    await house.pass(1_100);
    assert.deepEqual(house.service.bodies, ['0', 'another']);
    assert.deepEqual([node.outages.length, back.outages.length], [1, 0]);
    assert.equal(back.state?.outage, undefined);
  });

  it('that comes while the flow is being redeployed is kept to', async () => {
    const house = new House();
    const node = house.attach();
    const answer = house.service.holdNext({ takes: false, error: unavailable('60') });
    sendText(node, 'hello', { keep });
    await house.pass(100);
    await house.closeInFlight(answer);
    house.attach();
    await house.pass(59_000);
    assert.equal(house.service.tries, 1);
    await house.pass(1_100);
    assert.deepEqual(house.service.bodies, ['hello']);
  });

  it('of refused credentials ends with a redeploy: they may be others', async () => {
    const { house } = await underWay([[0, { error: createError('unauthorized').with({ retryAfter: '600' }) }]]);
    const closed = house.close();
    await house.pass(1_000);
    await closed;
    house.attach();
    await house.pass(100);
    assert.deepEqual(house.service.bodies, ['0']);
  });

  describe('and a process that ends', () => {
    /** The process after one with texts that the service wanted none of for a minute, and that was killed a second later. */
    async function restart({ error = unavailable('60'), setMs = 0, isFirstGone = false } = {}) {
      const store = new FailingStore();
      const { house } = await underWay(
        [
          [0, { error }],
          [0, { error: createError('serverError').with({ statusCode: 503 }) }],
        ],
        { store },
      );
      const left = copyPlatter(store.platter);
      if (isFirstGone) left.entries.delete([...left.entries.keys()][0] ?? '');
      house.clock.set(setMs);
      return new House({ clock: house.clock, store: new FailingStore(left) });
    }

    it('is kept to by the next one, which tells of the outage and why', async () => {
      const next = await restart();
      const node = next.attach();
      await next.pass(100);
      sendText(node, 'another', { keep });
      await next.pass(58_000);
      assert.equal(next.service.tries, 0);
      assert.equal(node.state?.outage?.statusCode, 503);
      assert.equal(node.outages.length, 1);
      await next.pass(1_000);
      assert.deepEqual(next.service.bodies, ['0', '1', 'another']);
      assert.equal(node.state?.outage, undefined);
    });

    it('is kept to though the text that it was answered to is gone', async () => {
      const next = await restart({ isFirstGone: true });
      next.attach();
      await next.pass(58_000);
      assert.equal(next.service.tries, 0);
      await next.pass(2_000);
      assert.deepEqual(next.service.bodies, ['1']);
    });

    for (const [how, byMs, atMost] of [
      ['back by a year', -365 * 24 * 3_600_000, 60_000],
      ['forward by a year', 365 * 24 * 3_600_000, 0],
    ] as const) {
      it(`holds no longer than was asked for where the clock was set ${how} meanwhile`, async () => {
        const next = await restart({ setMs: byMs });
        next.attach();
        await next.pass(atMost + 100);
        assert.deepEqual(next.service.bodies, ['0', '1']);
      });
    }

    it('of refused credentials does not hold for the next one: they may be others', async () => {
      const next = await restart({ error: createError('unauthorized').with({ retryAfter: '600' }) });
      next.attach();
      await next.pass(100);
      assert.deepEqual(next.service.bodies, ['0', '1']);
    });

    it('does not hold for another login that takes over from it, which may be at another service', async () => {
      const former = await restart();
      const heir = new House({ clock: former.clock });
      heir.attach();
      const handed = former.outbox.handOver(heir.outbox, { isLast: true });
      await heir.pass(1_000);
      await handed;
      await heir.pass(1_000);
      assert.deepEqual(heir.service.bodies, ['0', '1']);
    });
  });
});
