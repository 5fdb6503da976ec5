import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { until } from '../until';
import { account, catcher, RunningFlow, sink, startService, stopEverything, stopLater } from './running-flow';

const handset = '64215551234';
const [disk, memory, redis] = ['disk', 'memory', 'redis'] as const;

describe('an account node that is kept in another store than before', () => {
  let sim: Simulator;
  let userDir: string;
  let redisUrl: string;

  beforeEach(async () => {
    sim = await startService();
    userDir = mkdtempSync(join(tmpdir(), 'sms-store-'));
    stopLater(async () => rmSync(userDir, { recursive: true, force: true }));
    redisUrl = '';
  });

  afterEach(stopEverything);

  async function startRedis(): Promise<string> {
    const server = await RedisServer.start();
    stopLater(() => server.stop());
    return server.url;
  }

  function nodes(store: string, properties: Record<string, unknown> = {}): FlowNode[] {
    return [
      account(sim, { store, credentials: { ...sim.credentials, redisUrl }, ...properties }),
      {
        id: 'in',
        type: 'sms-in',
        account: 'account',
        acknowledge: 'flow',
        inputs: 1,
        ackTimeout: '600',
        wires: [['got']],
      },
      { id: 'send', type: 'sms-send', account: 'account', keep: true, expire: '0', wires: [['sent'], []] },
      ...['got', 'sent'].map(sink),
      ...catcher(),
    ];
  }

  const start = (flow: FlowNode[]) => RunningFlow.start(flow, { settings: { userDir } });

  /** Runs until a message is unacknowledged and a text waits for the service, which is gone then. */
  async function leave(flow: FlowNode[]): Promise<RunningFlow> {
    const running = await start(flow);
    sim.receive({ from: handset, to: '642100000001', body: 'unacknowledged' });
    await running.messages('got', 1);
    await sim.setOnline(false);
    running.send('send', { topic: handset, payload: 'kept' });
    await running.badge('send', { fill: 'red', shape: 'ring', text: 'unreachable, 1 waiting' });
    return running;
  }

  async function assertTakenOver(running: RunningFlow, got: number): Promise<void> {
    const messages = await running.messages('got', got);
    assert.deepEqual([messages.at(-1)?.payload, messages.at(-1)?.sms?.redelivered], ['unacknowledged', true]);
    await sim.setOnline(true);
    await running.messages('sent', 1);
    assert.deepEqual(
      sim.messages.map(({ body }) => body),
      ['kept'],
    );
  }

  const warnings = (running: RunningFlow) =>
    running.log.filter(({ id, level }) => id === 'account' && level <= 30).map(({ msg }) => String(msg));

  const noted = () => JSON.parse(readFileSync(join(userDir, 'sms-inbox', 'logins.json'), 'utf8')) as object;

  for (const [from, to] of [
    [disk, memory],
    [disk, redis],
    [redis, disk],
    [redis, memory],
    [memory, disk],
  ] as const) {
    it(`delivers what it held, from ${from} to ${to}, by a redeploy`, async () => {
      if ([from, to].some((store) => store === redis)) redisUrl = await startRedis();
      const running = await leave(nodes(from));
      await running.deploy(nodes(to));
      await assertTakenOver(running, 2);
      assert.deepEqual(warnings(running), []);
    });

    if (from === memory) continue;
    it(`delivers what it held, from ${from} to ${to}, after a restart`, async () => {
      if ([from, to].some((store) => store === redis)) redisUrl = await startRedis();
      const before = await leave(nodes(from));
      await before.stop();
      const running = await start(nodes(to));
      await assertTakenOver(running, 1);
      assert.deepEqual(warnings(running), []);
    });
  }

  it('delivers it where it goes back and forth', async () => {
    const running = await leave(nodes(disk));
    for (const [index, store] of [memory, disk, memory].entries()) {
      await running.deploy(nodes(store));
      await running.messages('got', index + 2);
    }
    await assertTakenOver(running, 4);
    await running.deploy(nodes(disk));
    await running.messages('got', 5);
    assert.equal(running.received('sent').length, 1);
  });

  it('delivers it where its login is another, too', async () => {
    const running = await leave(nodes(disk));
    await running.deploy(nodes(memory, { authType: 'basic' }));
    await assertTakenOver(running, 2);
    await until(() => JSON.stringify(noted()) === '{"account":[]}');
  });

  it('says once that it was kept with a Redis URL that it does not have any more', async () => {
    redisUrl = await startRedis();
    const url = redisUrl;
    const running = await leave(nodes(redis));
    redisUrl = '';
    await running.deploy(nodes(disk));
    await until(() => warnings(running).length > 0);
    assert.match(warnings(running)[0] ?? '', /^The account was kept on a Redis server whose URL it does not have/);
    await running.deploy(nodes(memory));
    redisUrl = url;
    await running.deploy(nodes(redis));
    await assertTakenOver(running, 2);
    assert.equal(warnings(running).length, 1);
  });

  it('knows the server again where the password in its URL is another', async () => {
    redisUrl = await startRedis();
    const before = await leave(nodes(redis));
    await before.stop();
    redisUrl = redisUrl.replace('redis://', 'redis://default:@');
    const running = await start(nodes(disk));
    await assertTakenOver(running, 1);
  });

  it('says why what is on its Redis server cannot be read, and delivers it when it can', async function () {
    this.timeout(40_000);
    const server = await RedisServer.start('redis-server', {
      config: ['--appendonly', 'yes', '--appendfsync', 'always'],
    });
    stopLater(() => server.stop());
    redisUrl = server.url;
    const before = await leave(nodes(redis));
    await before.stop();
    await server.kill();
    const running = await start(nodes(disk));
    await until(() => warnings(running).length > 0);
    assert.match(
      warnings(running)[0] ?? '',
      /in the former store cannot be read \(.*ECONNREFUSED.*\)\. It is safe there/,
    );
    await server.run();
    await assertTakenOver(running, 1);
  });

  it('brings along which keys of once are taken, which other instances on Redis know as before', async () => {
    const server = await RedisServer.start();
    stopLater(() => server.stop());
    redisUrl = server.url;
    const once = (store: string) =>
      nodes(store).map((node) => (node.id === 'send' ? { ...node, once: 'a key', onceType: 'str' } : node));
    const guards = async () => (await server.client.keys('sms:*:seen:once:*')).length;
    const running = await start(once(redis));
    running.send('send', { topic: handset, payload: 'once' });
    await running.messages('sent', 1);
    assert.equal(await guards(), 1);
    await running.deploy(once(disk));
    running.send('send', { topic: handset, payload: 'once' });
    const [, again] = await running.messages('sent', 2);
    assert.deepEqual([again?.sms?.duplicate, sim.messages.length], [true, 1]);
    assert.equal(await guards(), 1);
  });

  it('waits for the reply to its question', async () => {
    const asking = (store: string): FlowNode[] => [
      account(sim, { store }),
      {
        id: 'send',
        type: 'sms-send',
        account: 'account',
        wait: '5',
        waitType: 'num',
        outputs: 4,
        wires: [['sent'], [], ['reply'], []],
      },
      ...['sent', 'reply'].map(sink),
    ];
    const running = await start(asking(disk));
    running.send('send', { topic: handset, payload: 'question' });
    await running.messages('sent', 1);
    await running.deploy(asking(memory));
    await running.badge('send', { fill: 'blue', shape: 'ring', text: 'awaiting 1 replies' });
    sim.receive({ from: handset, to: '642100000001', body: 'answer' });
    const [reply] = await running.messages('reply', 1);
    assert.equal(reply?.payload, 'answer');
  });

  it('notes nothing on disk where it has been in memory alone', async () => {
    const running = await start(nodes(memory));
    await running.deploy(nodes(memory, { authType: 'basic' }));
    assert.throws(noted, /ENOENT/);
  });
});
