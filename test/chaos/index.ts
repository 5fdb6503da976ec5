import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasProgram, RedisServer } from '../redis-server';
import { Random } from '../simulation/random';
import { TcpProxy } from '../tcp-proxy';
import { disturb } from './faults';
import { NodeRed } from './node-red';
import { type Disturbance, now, readOutputs, type Story } from './record';
import { countWork, judge, type RunReport } from './rules';
import { Service } from './service';
import { Traffic } from './traffic';

export interface ChaosOptions {
  seed: number;
  minutes: number;
  /** Receives a line for each step of the run. */
  log?: (line: string) => void;
}

/**
 * After the faults, a run ends if this time passes without an observation, in ms. Longer than the longest pause between
 * two polls.
 */
const restLimitMs = 180_000;
/** After the faults, a run ends at the latest after this time, in ms, even if observations continue to arrive. */
const maxRestMs = 900_000;
/** Upper bound of the time until an instance claims the items of a dead instance in Redis, in ms. */
const maxClaimMs = 75_000;
/** Minimum time without an observation before a run can be at rest. */
const quietMs = 4_000;

/** Runs Node-RED against a service, causes the faults that the seed selects, and checks the observations. */
export async function runChaos({ seed, minutes, log = () => {} }: ChaosOptions): Promise<RunReport> {
  const random = new Random(seed, 'chaos');
  const folder = mkdtempSync(join(tmpdir(), 'sms-chaos-'));
  const observationsFile = join(folder, 'observations');
  const startedAt = now();
  const logWithTime = (line: string) => log(`${((now() - startedAt) / 1_000).toFixed(1).padStart(7)}  ${line}`);
  const service = await Service.start(random.fork('service'));
  const redis = hasProgram('redis-server') ? await startRedis() : undefined;
  const startsOnRedis = redis !== undefined && random.chance(0.4);
  // A third of the seeds allow opt-outs. Sending a message then includes a step of the store, so these seeds test other
  // code paths.
  const optOut = seed % 3 === 0;
  const nodeRed = new NodeRed(
    service,
    { redisUrl: redis ? `redis://127.0.0.1:${redis.proxy.port}` : '', observationsFile },
    { sender: 0, receiver: 0, account: 0, login: 'first key', store: startsOnRedis ? 'redis' : 'disk', optOut },
  );
  const disturbances: Disturbance[] = [];
  let traffic: Traffic | undefined;
  try {
    await nodeRed.start();
    service.callbackUrl = nodeRed.callbackUrl;
    logWithTime(`Node-RED runs, with the store ${nodeRed.setup.store}`);
    const { url } = nodeRed;
    traffic = new Traffic(service, () => url, random.fork('traffic'));
    traffic.begin();
    if (optOut) traffic.beginWords();
    const maxStopMs = Math.min(40_000, minutes * 10_000);
    await disturb(
      {
        service,
        nodeRed,
        redis,
        random: random.fork('faults'),
        disturbances,
        maxStopMs,
        log: logWithTime,
      },
      minutes * 60_000,
    );
    await traffic.end();
    const wasOnRedis = startsOnRedis || disturbances.some(({ description }) => description.includes('store: redis'));
    logWithTime('all faults are repaired, and the traffic has stopped');
    const findLastObservation = () => readOutputs(observationsFile).at(-1)?.at ?? startedAt;
    const calmAt = now();
    const hasTime = () => now() < Math.min(calmAt + maxRestMs, Math.max(calmAt, findLastObservation()) + restLimitMs);
    const lastEnd = nodeRed.pids.at(-2)?.to;
    // Measures the time for the claim from the end of the last suspension or Redis fault, because an instance can claim
    // items only while Redis works.
    const lastMute = Math.max(0, ...disturbances.filter(({ kind }) => /redis|suspend/.test(kind)).map(({ to }) => to));
    const isClaimed = () =>
      lastEnd === undefined || !wasOnRedis || now() - Math.max(lastEnd, lastMute) > 2 * maxClaimMs;
    const isAtRest = async () =>
      isClaimed() &&
      now() - findLastObservation() > quietMs &&
      service.unread === 0 &&
      service.uncalled === 0 &&
      Object.values(countWork((await nodeRed.readState()) ?? {})).every((count) => count === 0);
    while (hasTime() && !(await isAtRest())) await sleep(500);
    logWithTime(hasTime() ? 'no work is left' : 'work is left although the time is over');
    const state = await nodeRed.readState();
    await nodeRed.stop();
    const story: Story = {
      seed,
      minutes,
      startsOnRedis,
      begun: startedAt,
      ended: now(),
      observations: readOutputs(observationsFile),
      disturbances,
      inputs: traffic.inputs,
      loggedRefusals: nodeRed.loggedRefusals,
      log: nodeRed.log,
      state,
      pids: nodeRed.pids,
      endedBy: nodeRed.endedBy,
    };
    return judge(story, service);
  } finally {
    traffic?.close();
    await service.close();
    await nodeRed.kill();
    await redis?.proxy.close();
    await redis?.server.stop();
    rmSync(folder, { recursive: true, force: true });
    nodeRed.remove();
  }
}

async function startRedis(): Promise<{ server: RedisServer; proxy: TcpProxy }> {
  const server = await RedisServer.start();
  return { server, proxy: await TcpProxy.start(server.port) };
}
