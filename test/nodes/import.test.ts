import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import helper from 'node-red-node-test-helper';
import { createUserDir, type FlowNode } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { until } from '../until';
import { bodiesOf, handset, RunningFlow, sendNode, sink, smsNode, stopLater, useService } from './running-flow';

const [disk, memory, redis] = ['disk', 'memory', 'redis'] as const;

describe('an account with a new store or login', () => {
  const sim = useService();
  let userDir: string;
  let redisUrl: string;

  beforeEach(async () => {
    userDir = createUserDir();
    redisUrl = '';
  });

  async function startRedis(...config: string[]): Promise<RedisServer> {
    const server = await RedisServer.start('redis-server', { config });
    stopLater(() => server.stop());
    redisUrl = server.url;
    return server;
  }

  function nodes(store: string, properties: Record<string, unknown> = {}): FlowNode[] {
    return [
      ...sendNode(
        sim,
        { keep: true, expire: '0' },
        { store, credentials: { ...sim.credentials, redisUrl }, ...properties },
      ),
      smsNode('in', { acknowledge: 'flow', inputs: 1, ackTimeout: '600' }),
      sink('got'),
    ];
  }

  const start = (flow: FlowNode[]) => RunningFlow.start(flow, { settings: { userDir } });

  /** Runs a flow until it has one unacknowledged message and, because the service is down, one stored message. */
  async function leave(flow: FlowNode[]): Promise<RunningFlow> {
    const running = await start(flow);
    sim.receive({ from: handset, to: '642100000001', body: 'unacknowledged' });
    await running.messages('got', 1);
    await sim.setOnline(false);
    running.send('send', { topic: handset, payload: 'stored' });
    await running.badge('send', { fill: 'red', shape: 'ring', text: 'unreachable, 1 waiting' });
    return running;
  }

  async function assertImported(running: RunningFlow, got: number): Promise<void> {
    const messages = await running.messages('got', got);
    assert.deepEqual([messages.at(-1)?.payload, messages.at(-1)?.sms?.redelivered], ['unacknowledged', true]);
    await sim.setOnline(true);
    await running.messages('sent', 1);
    assert.deepEqual(bodiesOf(sim), ['stored']);
  }

  const notedPlaces = () =>
    JSON.parse(readFileSync(join(userDir, 'sms-inbox', 'logins.json'), 'utf8')) as Record<string, string[]>;

  const postFormer = (body: object) => helper.request().post('/sms-account/account/former').send(body);

  for (const [from, to] of [
    [disk, memory],
    [disk, redis],
    [redis, disk],
    [memory, disk],
  ] as const) {
    it(`imports data from ${from} to ${to} during a deploy`, async () => {
      if ([from, to].some((store) => store === redis)) await startRedis();
      const running = await leave(nodes(from));
      await running.deploy(nodes(to));
      await assertImported(running, 2);
      // Completes the input of the stored message, because the process that received it still runs.
      await running.done('send', 1);
      assert.deepEqual(running.logged('account'), []);
    });

    if (from === memory) continue;
    it(`imports data from ${from} to ${to} after a restart`, async () => {
      if ([from, to].some((store) => store === redis)) await startRedis();
      const before = await leave(nodes(from));
      await before.stop();
      const running = await start(nodes(to));
      await assertImported(running, 1);
      assert.deepEqual(running.logged('account'), []);
    });
  }

  it('imports data if both login and store change', async () => {
    const running = await leave(nodes(disk));
    await running.deploy(nodes(memory, { authType: 'basic' }));
    await assertImported(running, 2);
    await until(() => JSON.stringify(notedPlaces()) === '{"account":[]}');
  });

  it('imports data from Redis after a deploy that removes its URL', async () => {
    await startRedis();
    const running = await leave(nodes(redis));
    redisUrl = '';
    await running.deploy(nodes(disk));
    await assertImported(running, 2);
  });

  it('imports data from Redis after its password has changed', async () => {
    await startRedis();
    const before = await leave(nodes(redis));
    await before.stop();
    redisUrl = redisUrl.replace('redis://', 'redis://default:@');
    const running = await start(nodes(disk));
    await assertImported(running, 1);
  });

  it('shows a failed import until the former Redis server is back', async () => {
    const server = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    const before = await leave(nodes(redis));
    await before.stop();
    await server.kill();
    const pollsBefore = sim.requests.filter(({ endpoint }) => endpoint === 'incoming').length;
    const plain = smsNode('send', { id: 'plain', wires: [['plainSent'], []] });
    const running = await start([...nodes(disk), plain, sink('plainSent')]);
    await until(() => running.logged('account').length > 0);
    assert.match(
      running.logged('account')[0] ?? '',
      /former login or store \(redis\).*not been imported: .*ECONNREFUSED/,
    );
    await running.badge('in', { fill: 'red', shape: 'ring', text: 'import: redis (Redis: ECONNREFUSED)' });
    const { ok, former } = (await running.readRoute('account/state')).store;
    assert.deepEqual([ok, former?.kind], [false, 'redis']);
    running.send('send', { topic: handset, payload: 'refused' });
    await until(() => running.received('caught').some(({ sms }) => sms?.error?.code === 'SMS_STORE'));
    await sim.setOnline(true);
    running.send('plain', { topic: handset, payload: 'plain' });
    await running.messages('plainSent', 1);
    assert.deepEqual(bodiesOf(sim), ['plain']);
    assert.equal(sim.requests.filter(({ endpoint }) => endpoint === 'incoming').length, pollsBefore);
    await server.run();
    await running.messages('got', 1);
    await running.messages('sent', 1);
    assert.deepEqual(bodiesOf(sim), ['plain', 'stored']);
    assert.equal(running.logged('account').filter((line) => line.includes('imported')).length, 1);
    const imported = 'The data of the former login or store (redis) has been imported.';
    await until(() => running.logged('account', 40).includes(imported));
  });

  it('logs that a message was refused if a deploy interrupts the import', async () => {
    const server = await startRedis();
    const before = await start(nodes(redis));
    await until(() => sim.polling('incoming') === 1);
    await before.stop();
    server.suspend();
    const running = await start(nodes(disk));
    running.send('send', { topic: handset, payload: 'refused' });
    const deployed = running.deploy(nodes(disk, { authType: 'form' }));
    await until(() => running.logged('send').length > 0);
    server.resume();
    await deployed;
    assert.match(running.logged('send')[0] ?? '', /^1 × The former login or store \(redis\) has not been imported/);
    const codes = running.completions.map(({ error }) => (error as { code?: string }).code);
    assert.deepEqual([codes, running.received('caught')], [['SMS_STORE'], []]);
    await until(() => sim.polling('incoming') === 1);
    assert.deepEqual(bodiesOf(sim), []);
  });

  it('logs the folder of a damaged former store', async () => {
    const before = await leave(nodes(disk));
    const [key] = Object.keys(notedPlaces());
    assert.equal(key, 'account');
    await before.stop();
    const [place = ''] = notedPlaces().account ?? [];
    const folder = join(userDir, 'sms-inbox', place.split(' ')[0] ?? '');
    writeFileSync(join(folder, 'CURRENT'), 'damaged');
    const running = await start(nodes(memory));
    await until(() => running.logged('account').length > 0);
    assert.ok(running.logged('account')[0]?.includes(folder), running.logged('account')[0]);
  });

  it('starts without the former data if a user abandons the import', async () => {
    await startRedis();
    const before = await start(nodes(redis));
    await until(() => sim.polling('incoming') === 1);
    await before.stop();
    redisUrl = '';
    const running = await start(nodes(disk));
    await until(() => running.logged('account').length > 0);
    assert.match(running.logged('account')[0] ?? '', /^The data of the account is on a Redis server whose URL/);
    await postFormer({}).expect(400);
    await postFormer({ action: 'forget' }).expect(200, { ok: true });
    await until(() => sim.polling('incoming') === 1);
    await postFormer({ action: 'forget' }).expect(404);
    assert.equal((await running.readRoute('account/state')).store.former, undefined);
    assert.equal(running.logged('account').length, 2);
    assert.match(running.logged('account')[1] ?? '', /starts without the data of its former login or store \(redis\)/);
    assert.deepEqual(notedPlaces(), { account: [notedPlaces().account?.[0]] });
  });

  it('copies deduplication keys from Redis without deleting them', async () => {
    const server = await startRedis();
    const once = (store: string) =>
      nodes(store).map((node) => (node.id === 'send' ? { ...node, once: 'a key', onceType: 'str' } : node));
    const keys = async () => (await server.client.keys('sms:*:seen:once:*')).length;
    const running = await start(once(redis));
    running.send('send', { topic: handset, payload: 'once' });
    await running.messages('sent', 1);
    assert.equal(await keys(), 1);
    await running.deploy(once(disk));
    running.send('send', { topic: handset, payload: 'once' });
    const [, again] = await running.messages('sent', 2);
    assert.deepEqual([again?.sms?.duplicate, sim.messages.length], [true, 1]);
    assert.equal(await keys(), 1);
  });

  it('writes no file about a former memory store', async () => {
    const running = await start(nodes(memory));
    await running.deploy(nodes(memory, { authType: 'basic' }));
    assert.throws(notedPlaces, /ENOENT/);
  });
});
