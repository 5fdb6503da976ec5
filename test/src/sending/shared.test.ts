import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { maxDeploymentMs, systemClock } from '../../../src/clock';
import { RedisStore, type RedisStoreOptions } from '../../../src/store/redis';
import { RedisServer } from '../../redis-server';
import { TcpProxy } from '../../tcp-proxy';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { FakeService, forever, SendingSide, type SendingSideOptions, sendText } from './sending-side';

const key = '0123456789abcdef0123456789abcdef';
const usual = { aliveMs: 400, heartbeatMs: 100, graceMs: 200, commandTimeoutMs: 500 };

/** The clock of the machine, for tests with a server that has its own clock. */
class RealClock extends VirtualClock {
  override now = systemClock.now;
  override elapsed = systemClock.elapsed;
  override after = systemClock.after;
  override nextTurn = systemClock.nextTurn;
  override random = systemClock.random;

  override async advance(byMs: number): Promise<void> {
    await sleep(byMs);
  }
}

/** A clock on which a deploy and all longer delays pass a hundred times as fast. */
class HastyClock extends RealClock {
  aheadMs = 0;
  override elapsed = () => systemClock.elapsed() * 100 + this.aheadMs;
  override after = (delayMs: number, callback: () => void, isIdle?: boolean) =>
    systemClock.after(delayMs < maxDeploymentMs / 2 ? delayMs : delayMs / 100, callback, isIdle);
}

/** A clock in the past, so that its messages have waited longer than messages wait for a removed node. */
class FormerClock extends HastyClock {
  override now = () => Date.now() - 8 * 24 * 3_600_000;
}

describe('sending from several processes on one Redis', () => {
  const keep = forever;
  const closing = new Closing();
  let redis: RedisServer;

  before(async () => {
    redis = await RedisServer.start();
  });

  after(() => redis?.stop());

  beforeEach(() => redis.client.flushall());

  afterEach(() => closing.run());

  function create(
    service: FakeService,
    {
      url = redis.url,
      login = key,
      timing = usual,
      ...options
    }: SendingSideOptions & { login?: string } & Partial<Pick<RedisStoreOptions, 'url' | 'timing'>> = {},
  ): SendingSide {
    const store = new RedisStore({ url, key: login, timing });
    return closing.add(new SendingSide({ clock: new RealClock(), service, store, ...options }), (side) => side.close());
  }

  for (const [name, end] of [
    ['replaced', 'SMS_REPLACED'],
    ['withdrawn', 'SMS_WITHDRAWN'],
  ] as const) {
    it(`ends a message with ${end} if it is ${name} at another instance`, async () => {
      const service = new FakeService();
      service.otherwise = { unreachable: true };
      const [first, second] = [create(service), create(service)];
      const [node, other] = [first.attach(), second.attach()];
      sendText(node, 'one', { keep, replaceKey: 'a' });
      await until(() => first.outbox.admin.state.kept === 1);
      if (name === 'replaced') sendText(other, 'two', { keep, replaceKey: 'a' });
      else await other.node.withdraw('a');
      await until(() => node.ends.length === 1);
      service.otherwise = { takes: true };
      if (name === 'replaced') await until(() => other.ends.length === 1);
      assert.deepEqual([node.ends, service.bodies], [[end], name === 'replaced' ? ['two'] : []]);
    });
  }

  it('sends the messages of a dead instance at exactly one instance', async () => {
    const dead = new FakeService();
    dead.otherwise = { unreachable: true };
    const service = new FakeService();
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const first = create(dead, { url: `redis://127.0.0.1:${proxy.port}` });
    const node = first.attach();
    for (let n = 0; n < 50; n++) sendText(node, `text ${n}`, { keep });
    await until(() => node.outages.length === 1);
    await sleep(100);
    const others = [create(service), create(service)];
    const nodes = others.map((side) => side.attach());
    const stranger = create(service).attach('another');
    await sleep(300);
    assert.equal(service.taken.length, 0);
    await proxy.close();
    await until(() => service.taken.length === 50);
    await sleep(500);
    assert.equal(new Set(service.bodies).size, 50);
    assert.equal(service.taken.length + dead.taken.length, 50);
    assert.equal(nodes.flatMap(({ ends }) => ends).length, 50);
    assert.deepEqual(stranger.ends, []);
  });

  it('sends messages from memory that a new server does not have', async () => {
    const service = new FakeService();
    service.otherwise = { unreachable: true };
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const side = create(service, { url: `redis://127.0.0.1:${proxy.port}` });
    const node = side.attach();
    for (const text of ['first', 'last']) sendText(node, text, { keep });
    await until(() => node.outages.length === 1);
    proxy.cut();
    await until(() => side.journal.mode === 'failed');
    const [inbox = ''] = await redis.client.keys('*:inbox:*');
    const ids = (await redis.client.hkeys(inbox)).sort();
    await redis.client.hdel(inbox, ids.at(-1) ?? '');
    proxy.restore();
    // The journal reconnects automatically, but an earlier attempt can still fail.
    await until(() => side.journal.mode === 'open');
    service.otherwise = { takes: true };
    await until(() => node.ends.length === 2);
    assert.deepEqual(service.bodies, ['first', 'last']);
  });

  it('expires messages of a node without an instance, once', async () => {
    const service = new FakeService();
    service.otherwise = { unreachable: true };
    const nowhere = { ...usual, reservedMs: 1_000 };
    const createHasty = (clock = new HastyClock()) => create(service, { clock, timing: nowhere });
    const first = createHasty(new FormerClock());
    const [gone, back] = [first.attach('gone'), first.attach('back')];
    for (const keep of [{ expireMs: 600_000 }, forever]) sendText(gone, 'hello', { keep });
    sendText(back, 'wanted', { keep: forever });
    await until(() => gone.outages.length === 1 && back.outages.length === 1);
    await first.close();
    const clock = new HastyClock();
    const others = [createHasty(clock), createHasty(clock), createHasty(clock)];
    // The instances have been running for longer than they wait for a late node.
    clock.aheadMs = 2 * 3_600_000;
    const abandoned = () => others.flatMap((side) => side.abandoned);
    for (const side of others) side.attach('other');
    await sleep(800);
    assert.deepEqual(abandoned(), []);
    service.otherwise = { takes: true };
    const third = others[2]?.attach('back');
    await until(() => third?.ends.length === 1);
    await until(() => abandoned().length === 2);
    await sleep(500);
    assert.deepEqual(abandoned(), ['gone', 'gone']);
    assert.deepEqual(service.bodies, ['wanted']);
    const inboxes = await redis.client.keys(`sms:{${key}}:inbox:*`);
    for (const inbox of inboxes) assert.equal(await redis.client.hlen(inbox), 1);
  });

  it('sends a message once per key across instances', async () => {
    const service = new FakeService();
    const sides = [create(service), create(service), create(service)];
    const nodes = sides.map((side) => side.attach());
    await Promise.all(sides.map(({ journal }) => journal.ready()));
    for (let n = 0; n < 10; n++)
      for (const node of nodes) sendText(node, 'hello', { once: 'key', ...(n % 2 ? { keep } : {}) });
    await until(() => nodes.flatMap(({ ends }) => ends).length === 30);
    assert.equal(service.taken.length, 1);
    const ends = nodes.flatMap((node) => node.ends).sort();
    assert.deepEqual(ends, ['to 6421555123', ...Array(29).fill('to 6421555123 duplicate')]);
  });

  it('sends a stored message whose key the server had lost', async () => {
    const service = new FakeService();
    const node = create(service, { timing: { ...usual, heartbeatMs: 1e9, aliveMs: 1e9 } }).attach();
    sendText(node, 'first', { keep });
    await until(() => node.ends.length === 1);
    await redis.client.call('ACL', ['SETUSER', 'default', '-set']);
    sendText(node, 'hello', { keep, once: 'key' });
    await until(() => node.ends.length === 2);
    assert.match(node.ends[1] ?? '', /SMS_STORE/);
    await redis.client.call('ACL', ['SETUSER', 'default', '+set']);
    const hasLeft = () => {
      sendText(node, 'hello', { keep, once: 'key' });
      return service.bodies.length > 1;
    };
    await until(hasLeft);
    assert.deepEqual(service.bodies, ['first', 'hello']);
  });

  it('gives a reply that another instance polls to the instance that asked', async () => {
    const service = new FakeService();
    const [asking, polling] = [create(service), create(service)];
    const node = asking.attach();
    const other = polling.attach();
    polling.receive();
    await Promise.all([asking.journal.ready(), polling.journal.ready()]);
    const to = Array.from({ length: 20 }, (_, n) => String(6421555100 + n));
    sendText(node, 'well?', { to, waitMs: 60_000, messageId: 'm1' });
    await until(() => node.ends.length === 1);
    for (const [n, from] of to.entries())
      await polling.incoming(from, `answer ${n}`, n % 2 ? { inReplyToId: 'm1' } : {});
    await until(() => node.answers.length === 20);
    await sleep(700);
    assert.equal(node.answers.length, 20);
    assert.equal(other.answers.length, 0);
    assert.equal(asking.outbox.admin.state.awaitingReply, 0);
    assert.ok(polling.received.every((record) => 'awaited' in record && record.awaited === true));
  });

  it('delivers a reply of another instance after the outcome', async () => {
    const service = new FakeService();
    const [asking, polling] = [create(service), create(service)];
    const [node, other] = [asking.attach(), polling.attach()];
    polling.receive();
    await Promise.all([asking.journal.ready(), polling.journal.ready()]);
    const answer = service.holdNext();
    sendText(node, 'well?', { waitMs: 60_000, messageId: 'm1' });
    await until(() => service.taken.length === 1);
    // Nodes and their account close at the same time.
    const closed = Promise.all([node.node.close(), asking.outbox.close().then(() => asking.journal.close())]);
    await polling.incoming('6421555123', 'yes', { inReplyToId: 'm1' });
    await sleep(1_000);
    assert.deepEqual(other.replies, []);
    answer();
    await closed;
    assert.deepEqual(node.ends, ['to 6421555123']);
    await until(() => other.answers.length === 1);
    assert.deepEqual(other.replies, ['yes']);
  });

  it('ends a reply request of a dead instance by a reply of a third', async () => {
    const service = new FakeService();
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const first = create(service, { url: `redis://127.0.0.1:${proxy.port}` });
    const node = first.attach();
    sendText(node, 'well?', { to: ['6421555100', '6421555101'], waitMs: 2_000, messageId: 'm1', keep });
    await until(() => node.ends.length === 1);
    await sleep(100);
    await proxy.close();
    const third = create(service);
    third.receive();
    await third.journal.ready();
    await third.incoming('6421555100', 'yes', { inReplyToId: 'm1' });
    const second = create(service);
    const next = second.attach();
    await until(() => next.answers.length === 1);
    await sleep(2_000);
    assert.deepEqual(next.replies, ['yes'], 'the service may have another');
    second.outbox.replies.onDrained('incoming');
    await until(() => next.answers.length === 2);
    await sleep(700);
    assert.deepEqual(next.replies, ['yes', 'timeout']);
    assert.equal(next.answers[0]?.flowMessage, '{"payload":"well?"}');
  });

  it('ends a request by replies of another instance, with a second message', async () => {
    const service = new FakeService();
    const first = create(service);
    const node = first.attach();
    const answers = [{ value: 'YES', words: ['yes'] }];
    const again = { message: { to: [], body: 'YES or NO?' }, encoding: 'GSM-7', parts: 1 } as const;
    sendText(node, 'well?', { waitMs: 60_000, messageId: 'm1', answers, again });
    await until(() => node.ends.length === 1);
    const second = create(service);
    second.receive();
    await second.journal.ready();
    await second.incoming('6421555123', 'who?', { inReplyToId: 'm1' });
    await until(() => service.taken.length === 2);
    const inReplyToId = service.taken[1]?.messageId ?? '';
    await second.incoming('6421555123', 'Yes.', { inReplyToId });
    await until(() => node.answers.length === 1);
    assert.deepEqual(
      node.answers.map(({ result }) => 'answer' in result && result.answer),
      ['YES'],
    );
    assert.deepEqual(service.bodies, ['well?', 'YES or NO?']);
  });

  it('leaves a reply request to the instance that claimed it', async () => {
    const service = new FakeService();
    const first = create(service);
    const node = first.attach();
    sendText(node, 'well?', { waitMs: 60_000, messageId: 'm1', keep });
    await until(() => node.ends.length === 1);
    await first.close();
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const second = create(service, { url: `redis://127.0.0.1:${proxy.port}` });
    second.attach();
    await until(() => second.outbox.admin.state.awaitingReply === 1);
    proxy.cut();
    const third = create(service);
    third.attach();
    await until(() => third.outbox.admin.state.awaitingReply === 1);
    proxy.restore();
    await until(() => second.outbox.admin.state.awaitingReply === 0);
    assert.equal(third.outbox.admin.state.awaitingReply, 1);
  });

  it('creates a report from statuses that another instance polled', async () => {
    const service = new FakeService();
    const [reporting, polling] = [create(service), create(service)];
    const node = reporting.attach();
    const other = polling.attach();
    polling.receive();
    await Promise.all([reporting.journal.ready(), polling.journal.ready()]);
    const to = Array.from({ length: 20 }, (_, n) => String(6421555100 + n));
    sendText(node, 'hello', { to, reportMs: 60_000, messageId: 'm1' });
    await until(() => node.ends.length === 1);
    for (const [n, from] of to.entries()) await polling.status(from, n % 2 ? 'RCV' : 'EXP', 'm1');
    await until(() => node.reports.length === 1);
    await sleep(700);
    const { result, delivered, undelivered } = node.reports[0]?.report ?? {};
    assert.deepEqual([result, delivered?.length, undelivered?.length], ['partly', 10, 10]);
    assert.deepEqual([node.reports.length, other.reports.length], [1, 0]);
    assert.equal(reporting.outbox.admin.state.awaitingReport, 0);
    assert.equal(polling.received.length, 20);
  });

  it('ends a report of a dead instance by a status of a third', async () => {
    const service = new FakeService();
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const first = create(service, { url: `redis://127.0.0.1:${proxy.port}` });
    const node = first.attach();
    sendText(node, 'hello', { to: ['6421555100'], reportMs: 60_000, messageId: 'm1' });
    await until(() => node.ends.length === 1);
    await sleep(100);
    await proxy.close();
    const third = create(service);
    third.receive();
    await third.journal.ready();
    await third.status('6421555100', 'RCV', 'm1');
    const next = create(service).attach();
    await until(() => next.reports.length === 1);
    assert.equal(next.reports[0]?.report.result, 'delivered');
    assert.equal(next.reports[0]?.flowMessage, '{"payload":"hello"}');
  });

  it('sends five of a hundred messages of three instances, by a limit', async () => {
    const service = new FakeService();
    const limits = { perHandset: 5, perHandsetMs: 3_600_000 };
    const nodes = [0, 1, 2].map(() => create(service, { limits }).attach());
    for (let n = 0; n < 100; n++) sendText(nodes[n % 3] as (typeof nodes)[number], `text ${n}`, n % 2 ? { keep } : {});
    await until(() => nodes.flatMap(({ ends }) => ends).length === 100);
    assert.equal(service.taken.length, 5);
    assert.equal(nodes.flatMap((node) => node.ends).filter((end) => end === 'SMS_LIMIT').length, 95);
  });
});
