/**
 * Measures draining a backlog with each kind of store, with one, two and three instances on one Redis, which is started for
 * it, and what that Redis spends on a message. Prints the rows of the table in docs/scaling.md. Needs the built package:
 * `npx tsx bench/redis.ts`, or with the names of stores to measure these alone: `npx tsx bench/redis.ts everysec always`.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { refuse } from '../scripts/command-line';
import { startSimulator } from '../simulator';
import { type NodeRedProcess, startNodeRed } from '../test/node-red-process';
import { RedisServer } from '../test/redis-server';
import { createAccount } from '../test/reliability/flows';

const messages = 6_000;
const messagesFar = 900;
const warmUp = 300;
/** How long each way to a server that is far takes. */
const farMs = 5;
const rounds = 3;

/** `appendfsync` of the server, one with the default that is {@link farMs} away, or a store that needs none. */
const stores = ['memory', 'disk', 'everysec', 'always', 'far'] as const;
type StoreName = (typeof stores)[number];

const usage = `Usage: npx tsx bench/redis.ts [store ...], with stores among ${stores.join(', ')}`;

interface Measured {
  perSecond: number;
  /** Milliseconds of its processor, for one message. */
  redisCpuMs: number;
}

async function main(): Promise<void> {
  const chosen = process.argv.slice(2);
  const unknown = chosen.find((name) => !stores.some((store) => store === name));
  if (unknown !== undefined) refuse(usage, `There is no store ${unknown}.`);
  console.log(
    '| store | instances | parallelPolls 1 | parallelPolls 8 | CPU of Redis per message, parallelPolls 1 | parallelPolls 8 |\n|---|---|---|---|---|---|',
  );
  for (const store of stores.filter((name) => chosen.length === 0 || chosen.includes(name))) {
    const isShared = store !== 'memory' && store !== 'disk';
    for (const instances of isShared && store !== 'far' ? [1, 2, 3] : [1]) {
      const measured: Measured[] = [];
      for (const parallelPolls of [1, 8]) measured.push(await measure(store, instances, parallelPolls));
      const rates = measured.map(({ perSecond }) => `${Math.round(perSecond).toLocaleString('en')}/s`);
      const costs = measured.map(({ redisCpuMs }) => (isShared ? `${redisCpuMs.toFixed(2)} ms` : ''));
      const fsync = store === 'far' ? `everysec\`, ${2 * farMs} ms there and back` : `${store}\``;
      const name = isShared ? `\`redis\`, \`appendfsync ${fsync}` : `\`${store}\``;
      console.log(`| ${[name, instances, ...rates, ...costs].join(' | ')} |`);
    }
  }
}

/** The median of the rounds. */
async function measure(name: StoreName, instances: number, parallelPolls: number): Promise<Measured> {
  const simulator = await startSimulator({ waitMs: 1_000, keepRequests: 10 });
  const fsync = name === 'always' ? 'always' : 'everysec';
  const store = name === 'memory' || name === 'disk' ? name : 'redis';
  const redis = await RedisServer.start('redis-server', { config: ['--appendonly', 'yes', '--appendfsync', fsync] });
  const far = name === 'far' ? await startFarAway(redis.port) : undefined;
  const count = far ? messagesFar : messages;
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
      const credentials = { apiKey, redisUrl: far?.url ?? redis.url };
      const flows = [
        createAccount(simulator, { store, parallelPolls, credentials }),
        { id: 'tab', type: 'tab', label: 'flow' },
        { id: 'in', type: 'sms-in', z: 'tab', x: 100, y: 100, account: 'account', wires: [[]] },
      ];
      processes.push(await startNodeRed({ flows }));
    }
    receive(warmUp);
    await drained();
    const rates: number[] = [];
    const cpuBefore = await readCpuMs(redis);
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now();
      receive(count / rounds);
      await drained();
      rates.push((count / rounds / (performance.now() - startedAt)) * 1_000);
    }
    const redisCpuMs = ((await readCpuMs(redis)) - cpuBefore) / count;
    return { perSecond: rates.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0, redisCpuMs };
  } finally {
    await Promise.all(processes.map((nodeRed) => nodeRed.kill()));
    await simulator.close();
    far?.close();
    await redis.stop();
  }
}

/** Stands before a server and has everything take its time, either way. */
async function startFarAway(port: number): Promise<{ url: string; close(): void }> {
  const sockets: Socket[] = [];
  const carry = (from: Socket, to: Socket) => {
    sockets.push(from);
    from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), farMs));
    from.on('error', () => {}).once('close', () => to.destroy());
  };
  const server = createServer((socket) => {
    const target = connect(port, '127.0.0.1');
    carry(socket.setNoDelay(), target);
    carry(target.setNoDelay(), socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** What the server has spent so far, writing its file included. */
async function readCpuMs({ client }: RedisServer): Promise<number> {
  const info = await client.info('cpu');
  return [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].reduce((sum, [, s]) => sum + Number(s) * 1_000, 0);
}

void main();
