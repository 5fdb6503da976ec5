/**
 * Measures draining a backlog with each kind of store, and with one, two and three instances on one Redis, which is
 * started for it. Prints the rows of the table in docs/scaling.md. Needs the built package: `npx tsx bench/redis.ts`.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSimulator } from '../simulator';
import { type NodeRedProcess, startNodeRed } from '../test/node-red-process';
import { RedisServer } from '../test/redis-server';
import { createAccount } from '../test/reliability/flows';

const messages = 6_000;
const warmUp = 1_000;
const rounds = 3;

async function main(): Promise<void> {
  console.log('| store | instances | drain 1 | drain 8 |\n|---|---|---|---|');
  for (const [store, instances] of [
    ['memory', 1],
    ['disk', 1],
    ['redis', 1],
    ['redis', 2],
    ['redis', 3],
  ] as const) {
    const rates: string[] = [];
    for (const drain of [1, 8]) rates.push(`${Math.round(await measure(store, instances, drain))}/s`);
    console.log(`| \`${store}\` | ${instances} | ${rates.join(' | ')} |`);
  }
}

/** The median of the rounds, in messages per second. */
async function measure(store: string, instances: number, drain: number): Promise<number> {
  const simulator = await startSimulator({ waitMs: 1_000, keepRequests: 10 });
  const redis = await RedisServer.start('redis-server', { config: ['--appendonly', 'yes'] });
  const { apiKey } = simulator.credentials;
  const processes: NodeRedProcess[] = [];
  const receive = (count: number) => {
    for (let index = 0; index < count; index++) {
      simulator.receive({ from: '64215550001', to: '64215559999', body: `message ${index}` });
    }
  };
  const drained = async () => {
    while (simulator.incoming.at(-1)?.read !== true) await sleep(1);
  };
  try {
    for (let index = 0; index < instances; index++) {
      const credentials = { apiKey, redisUrl: redis.url };
      const flows = [
        createAccount(simulator, { store, drain, credentials }),
        { id: 'tab', type: 'tab', label: 'flow' },
        { id: 'in', type: 'sms-in', z: 'tab', x: 100, y: 100, account: 'account', wires: [[]] },
      ];
      processes.push(await startNodeRed({ flows }));
    }
    receive(warmUp);
    await drained();
    const rates: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now();
      receive(messages / rounds);
      await drained();
      rates.push((messages / rounds / (performance.now() - startedAt)) * 1_000);
    }
    return rates.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
  } finally {
    await Promise.all(processes.map((nodeRed) => nodeRed.kill()));
    await simulator.close();
    await redis.stop();
  }
}

void main();
