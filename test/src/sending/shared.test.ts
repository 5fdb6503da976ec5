import assert from 'node:assert/strict';
import { systemClock } from '../../../src/clock';
import { RedisStore } from '../../../src/store/redis';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { key, RedisBench } from '../store/redis-bench';
import { FakeService, forever, SendingSide, type SendingSideOptions, sendText } from './sending-side';

const timing = { aliveMs: 400, heartbeatMs: 100, graceMs: 200, commandTimeoutMs: 500 };

/** The clock of the machine, for tests with a server that has its own clock. */
class RealClock extends VirtualClock {
  override now = systemClock.now;
  override elapsed = systemClock.elapsed;
  override after = systemClock.after;
  override nextTurn = systemClock.nextTurn;
  override random = systemClock.random;

  override advance(byMs: number): Promise<void> {
    return new Promise((resolve) => void systemClock.after(byMs, resolve));
  }
}

describe('sending with a shared Redis', () => {
  const keep = forever;
  const bench = new RedisBench();
  const { closing } = bench;
  let service: FakeService;

  beforeEach(() => {
    service = new FakeService();
  });

  function create(options: SendingSideOptions = {}, url = bench.server.url): SendingSide {
    const store = new RedisStore({ url, key, timing });
    const side = new SendingSide({ clock: new RealClock(), service, store, ...options });
    return closing.add(side, (it) => it.close());
  }

  /** Creates an instance whose connection to Redis a test can cut. */
  async function createBehindProxy(options: SendingSideOptions = {}) {
    const { proxy, url } = await bench.startProxy();
    return { proxy, side: create(options, url) };
  }

  for (const [name, end] of [
    ['replaces', 'SMS_REPLACED'],
    ['withdraws', 'SMS_WITHDRAWN'],
  ] as const) {
    it(`ends a message with ${end} if another instance ${name} it`, async () => {
      service.otherwise = { unreachable: true };
      const [first, second] = [create(), create()];
      const [node, other] = [first.attach(), second.attach()];
      sendText(node, 'one', { keep, replaceKey: 'a' });
      await until(() => first.outbox.admin.state.kept === 1);
      if (name === 'replaces') sendText(other, 'two', { keep, replaceKey: 'a' });
      else await other.node.withdraw('a');
      await until(() => node.ends.length === 1);
      service.otherwise = { takes: true };
      if (name === 'replaces') await until(() => other.ends.length === 1);
      assert.deepEqual([node.ends, service.bodies], [[end], name === 'replaces' ? ['two'] : []]);
    });
  }

  it('sends each message of a dead instance exactly once', async () => {
    const dead = new FakeService();
    dead.otherwise = { unreachable: true };
    const { proxy, side: first } = await createBehindProxy({ service: dead });
    const node = first.attach();
    for (let n = 0; n < 50; n++) sendText(node, `text ${n}`, { keep });
    await until(() => node.outages.length === 1 && first.outbox.admin.state.kept === 50);
    const heirs = [create(), create()];
    const nodes = heirs.map((side) => side.attach());
    const stranger = create().attach('another');
    await Promise.all(heirs.map(({ journal }) => journal.ready()));
    assert.equal(service.taken.length, 0);
    await proxy.close();
    await until(() => nodes.flatMap(({ ends }) => ends).length === 50);
    await closing.run();
    assert.deepEqual([service.taken.length, new Set(service.bodies).size, dead.taken.length], [50, 50, 0]);
    assert.deepEqual([nodes.flatMap(({ ends }) => ends).length, stranger.ends], [50, []]);
  });

  it('sends one message per `once` key across instances', async () => {
    const sides = [create(), create(), create()];
    const nodes = sides.map((side) => side.attach());
    await Promise.all(sides.map(({ journal }) => journal.ready()));
    for (let n = 0; n < 10; n++)
      for (const node of nodes) sendText(node, 'hello', { once: 'key', ...(n % 2 ? { keep } : {}) });
    await until(() => nodes.flatMap(({ ends }) => ends).length === 30);
    const ends = nodes.flatMap((node) => node.ends).sort();
    assert.deepEqual(ends, ['to 6421555123', ...Array(29).fill('to 6421555123 duplicate')]);
    assert.equal(service.taken.length, 1);
  });

  it('delivers a reply although the requesting instance has died', async () => {
    const { proxy, side: first } = await createBehindProxy();
    const node = first.attach();
    sendText(node, 'well?', { to: ['6421555100', '6421555101'], waitMs: 2_000, messageId: 'm1', keep });
    await until(() => node.ends.length === 1 && first.outbox.admin.state.awaitingReply === 2);
    await proxy.close();
    const third = create();
    third.receive();
    await third.journal.ready();
    await third.incoming('6421555100', 'yes', { inReplyToId: 'm1' });
    const second = create();
    const next = second.attach();
    await until(() => next.answers.length === 1);
    second.outbox.replies.onDrained('incoming');
    await until(() => next.answers.length === 2);
    assert.deepEqual(next.replies, ['yes', 'timeout']);
    assert.equal(next.answers[0]?.flowMessage, '{"payload":"well?"}');
  });

  it('counts the messages of all instances towards one limit', async () => {
    const limits = { perHandset: 5, perHandsetMs: 3_600_000 };
    const nodes = [0, 1, 2].map(() => create({ limits }).attach());
    for (let n = 0; n < 100; n++) sendText(nodes[n % 3] as (typeof nodes)[number], `text ${n}`, n % 2 ? { keep } : {});
    await until(() => nodes.flatMap(({ ends }) => ends).length === 100);
    assert.equal(service.taken.length, 5);
    assert.equal(nodes.flatMap((node) => node.ends).filter((end) => end === 'SMS_LIMIT').length, 95);
  });
});
