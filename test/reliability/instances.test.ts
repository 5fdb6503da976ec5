import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { isLong, random } from '../long';
import type { FlowNode } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { Closing } from '../src/closing';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { createAccount, createNode } from './flows';
import { type Delivered, Instance, otherGeneration, readDeliveries, startBalancer } from './instances';
import { receive } from './machine';
import { createRecorder } from './recorder';

const messages = isLong ? 20_000 : 1_500;
const batch = 25;
const batchPauseMs = 500;
const kills = isLong ? 60 : 4;
/** Time until an instance claims the messages of a dead instance. */
const claimLimitMs = 60_000;

describe('instances on one Redis', function () {
  this.timeout(170_000 + kills * 8_000);
  const folder = createTemporaryFolder('sms-instances');
  const closing = new Closing();
  let holding: Promise<{ early: Delivered[]; late: Delivered[]; pids: number[] }>;

  before(() => {
    // `holdAndKill` mostly waits, so it runs while the other tests run.
    holding = holdAndKill(join(folder, 'held.txt'));
    holding.catch(() => {});
  });

  after(() => closing.run());

  const start = async (options: SimulatorOptions) => closing.add(await startSimulator(options), (it) => it.close());
  const startRedis = async () => closing.add(await RedisServer.start(), (it) => it.stop());

  /**
   * Sends one message that the flow never acknowledges, and kills the instance that delivered it. Returns the
   * deliveries in the 61 s before the kill (`early`), and all deliveries as soon as another instance has claimed the
   * message (`late`).
   */
  async function holdAndKill(file: string): Promise<{ early: Delivered[]; late: Delivered[]; pids: number[] }> {
    const simulator = await start({ waitMs: 2_000 });
    const redis = await startRedis();
    const createFlows = (redisUrl: string) => [
      ...createBasis(simulator, redisUrl),
      createNode('in', 'sms-in', [['record']], { acknowledge: 'flow', inputs: 1, ackTimeout: 600 }),
      createRecorder('record', file),
    ];
    const instances: Instance[] = [];
    for (let index = 0; index < 2; index++) instances.push(await Instance.run(closing, redis, createFlows));
    const pids = instances.map(({ pid }) => pid);
    receive({ simulator }, 'held');
    const delivered = () => readDeliveries(file).get('held') ?? [];
    await until(() => delivered().length > 0, 'the message is delivered');
    await sleep(61_000);
    const early = delivered();
    await instances.find(({ pid }) => pid === early[0]?.pid)?.kill();
    await until(() => delivered().length > 1, 'the other instance claims it', { limitMs: claimLimitMs });
    return { early, late: delivered(), pids };
  }

  it('lose no message if some are killed or cut off from Redis', async () => {
    const file = join(folder, 'chaos.txt');
    const retryCallbacksMs = { firstMs: 250, maxMs: 2_000 };
    const simulator = await start({ waitMs: 300, retryCallbacksMs, keepRequests: 1_000 });
    const redis = await startRedis();
    const instances: Instance[] = [];
    const balancer = await startBalancer(closing, () => instances.map(({ url }) => url));
    const createFlows = (redisUrl: string) => createChaosFlows(simulator, redisUrl, file);
    for (const generation of [undefined, undefined, otherGeneration()]) {
      instances.push(await Instance.run(closing, redis, createFlows, generation));
    }
    const [first, second, third] = instances as [Instance, Instance, Instance];
    const disturbed = new Set<number>();
    const statusIds: string[] = [];
    let sent = 0;
    const cut = { from: messages, to: 0 };
    const feed = async () => {
      for (; sent < messages; sent += batch) {
        // A third of the incoming messages come only by poll, the rest also by callback. Statuses are not polled.
        const url = { callbackUrl: sent % 3 === 0 ? undefined : `${balancer.baseUrl}/replies` };
        const callbackFormat = sent % 2 === 0 ? 'FORMv1' : 'XMLv3';
        simulator.setOrganisation({ ...url, callbackStatusUrl: `${balancer.baseUrl}/statuses`, callbackFormat });
        for (let index = sent; index < sent + batch; index++) {
          receive({ simulator }, `m${index}`);
          if (index % 5 > 0) continue;
          const update = { messageId: `sent-${index}`, msisdn: '64215550001', statusCode: 'RCV' };
          statusIds.push(simulator.status(update).messageId);
        }
        await sleep(batchPauseMs);
      }
    };
    const disturb = async () => {
      for (let kill = 0; kill < kills; kill++) {
        await sleep(random() * 1_500);
        const victim = kill % 2 === 0 ? second : third;
        disturbed.add(victim.pid);
        await victim.kill();
        await victim.start();
        if (kill !== 3) continue;
        cut.from = sent - batch;
        for (const { proxy } of instances) proxy.cut();
        await sleep(3_000);
        for (const { proxy } of [second, third]) proxy.restore();
        cut.to = sent + 2 * batch;
      }
    };
    const isolate = async () => {
      await sleep(1_000);
      disturbed.add(first.pid);
      // After a cut of 35 s, the other instances consider this instance dead, although it is alive.
      first.proxy.cut();
      await sleep(35_000);
      first.proxy.restore();
    };
    await Promise.all([feed(), disturb(), isolate()]);

    const isEmpty = async () => {
      const inboxes = await redis.client.keys('sms:*:inbox:*');
      const held = await Promise.all(inboxes.map((inbox) => redis.client.hkeys(inbox)));
      return inboxes.length > 0 && held.flat().every((id) => id === '-');
    };
    const expected = [...Array.from({ length: messages }, (_, index) => `m${index}`), ...statusIds];
    const findMissing = () => {
      const deliveries = readDeliveries(file);
      return expected.filter((id) => !deliveries.has(id));
    };
    await until(() => simulator.incoming.every(({ read }) => read), 'every message is polled', {
      limitMs: claimLimitMs,
    });
    const findLost = () => findMissing().filter((id) => !isPolledOnly(id));
    await until(() => findLost().length === 0, 'every message that is called back is delivered', {
      limitMs: claimLimitMs,
    });
    await until(isEmpty, 'the instances have delivered all items', { limitMs: claimLimitMs });

    const missing = findMissing();
    const all = [...readDeliveries(file).values()];
    const twice = all.filter((list) => list.length > 1);
    console.log(
      `      ${expected.length} sent, ${kills} kills, 2 cuts: 0 lost, ${missing.length} in answers to a killed ` +
        `process, ${twice.length} delivered twice, ${all.flat().filter(({ redelivered }) => redelivered).length} deliveries marked as redelivered, ` +
        `${all.flat().filter(({ via }) => via === 'callback').length} by callback`,
    );
    // Each kill can lose one poll answer that has not reached the instance.
    assert.ok(missing.length <= kills, `lost: ${missing.join(' ')}`);
    const unmarked = twice.filter((list) => list.filter(({ redelivered }) => !redelivered).length > 1);
    assert.deepEqual(unmarked, [], 'delivered twice, but not marked as redelivered');
    const byOthers = twice.filter((list) => list.every(({ pid }) => !disturbed.has(pid)));
    // Allows a redelivery by poll after a delivery by callback: a killed instance had polled the message, and another
    // instance claimed the message and marked it as redelivered.
    const isPolledByDead = ([first, ...copies]: Delivered[]) =>
      first?.via === 'callback' && copies.every(({ via, redelivered }) => via === 'poll' && redelivered);
    // Allows a second delivery of messages that the service received around the cut of all instances. If an instance
    // refused the callback of such a message and then polled the message, the service can repeat the callback.
    const isPolledInCut = (list: Delivered[]) => {
      const index = Number(list[0]?.id.replace(/^(m|sent-)/, ''));
      return index >= cut.from && index < cut.to && list.every(({ redelivered }) => redelivered);
    };
    const unexplained = byOthers.filter((list) => !isPolledByDead(list) && !isPolledInCut(list));
    assert.deepEqual(unexplained, [], 'delivered twice by instances that nothing had happened to');
    const byDead = byOthers.filter(isPolledByDead);
    assert.ok(byDead.length <= kills, `${byDead.length} polled by instances that were killed`);
  });

  it('claim unacknowledged messages only from a dead instance', async () => {
    const { early, late, pids } = await holding;
    assert.equal(early.length, 1);
    assert.equal(early[0]?.redelivered, false);
    assert.equal(late.length, 2);
    assert.equal(late[1]?.redelivered, true);
    assert.deepEqual(new Set(late.map(({ pid }) => pid)), new Set(pids));
  });
});

/** Whether a message comes only by poll. It is then lost if the polling process dies before the answer arrives. */
function isPolledOnly(id: string): boolean {
  return id.startsWith('m') && (Number(id.slice(1)) - (Number(id.slice(1)) % batch)) % 3 === 0;
}

function createBasis(simulator: Simulator, redisUrl: string): FlowNode[] {
  const { apiKey } = simulator.credentials;
  return [
    createAccount(simulator, { store: 'redis', credentials: { apiKey, redisUrl } }),
    { id: 'tab', type: 'tab', label: 'flow' },
  ];
}

/** Creates flows that record every delivery. The flow acknowledges replies, and refuses some of them the first time. */
function createChaosFlows(simulator: Simulator, redisUrl: string, file: string): FlowNode[] {
  const flow = { acknowledge: 'flow', inputs: 1, ackTimeout: 5 };
  const refuse = `if (msg.sms.redelivered !== true && Math.random() < 0.2) { msg.error = { message: 'not now' }; return msg; }`;
  return [
    ...createBasis(simulator, redisUrl),
    createNode('in', 'sms-in', [['polled']]),
    createRecorder('polled', file),
    createNode('replies', 'sms-callback-in', [['called'], []], { path: '/replies', ...flow }),
    createRecorder('called', file, { wires: [['replies']] }, refuse),
    createNode('statuses', 'sms-callback-in', [[], ['status']], { path: '/statuses' }),
    createRecorder('status', file),
  ];
}
