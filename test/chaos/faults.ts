import { setTimeout as sleep } from 'node:timers/promises';
import type { DeploymentType } from '../node-red-process';
import type { RedisServer } from '../redis-server';
import type { Random } from '../simulation/random';
import type { TcpProxy } from '../tcp-proxy';
import { logins, type NodeRed, type Setup } from './node-red';
import { type Disturbance, now } from './record';
import { type Endpoint, type Service, troubles } from './service';

/** The parts that a fault can break. */
export interface Machine {
  service: Service;
  nodeRed: NodeRed;
  /** Undefined if no Redis is installed. */
  redis: { server: RedisServer; proxy: TcpProxy } | undefined;
  /** Maximum time for which a process is suspended, in ms. */
  maxStopMs: number;
  random: Random;
  disturbances: Disturbance[];
  log(line: string): void;
}

interface Fault {
  kind: string;
  weight: number;
  isPossible?(machine: Machine): boolean;
  /** Causes the fault, and resolves when it is repaired. Calls `begin` with a description just before the fault. */
  cause(machine: Machine, begin: (description: string) => void): Promise<void>;
}

const deployments: readonly DeploymentType[] = ['full', 'flows', 'nodes'];

const faults: readonly Fault[] = [
  {
    kind: 'service',
    weight: 8,
    async cause({ service, random }, begin) {
      const trouble = random.pick(troubles);
      const endpoints: readonly Endpoint[] = random.pick([['send'], ['in'], ['status'], ['send', 'in', 'status']]);
      const ms = random.between(300, random.chance(0.15) ? 12_000 : 3_000);
      begin(`the service (${endpoints.join(', ')}): ${trouble}, for ${ms} ms`);
      service.disturb(trouble, endpoints);
      await sleep(ms);
      service.calm();
    },
  },
  {
    kind: 'refused',
    weight: 2,
    async cause({ service, random }, begin) {
      const ms = random.between(100, random.chance(0.2) ? 10_000 : 2_500);
      begin(`the service refuses connections, for ${ms} ms`);
      await service.refuse();
      await sleep(ms);
      await service.listen();
    },
  },
  {
    kind: 'deploy',
    weight: 10,
    async cause({ nodeRed, random, redis }, begin) {
      const { setup } = nodeRed;
      const changes: [string, Partial<Setup>, number][] = [
        ['nothing', {}, 1],
        ['the sender', { sender: setup.sender + 1 }, 3],
        ['the receiver', { receiver: setup.receiver + 1 }, 3],
        ['the account', { account: setup.account + 1 }, 3],
        ['the login', { login: random.pick(logins.filter((one) => one !== setup.login)) }, 2],
        ...(redis
          ? [['the store', { store: setup.store === 'disk' ? 'redis' : 'disk' }, 1] as [string, Partial<Setup>, number]]
          : []),
      ];
      const [name, change] = random.weigh(changes.map(([one, with_, weight]) => [[one, with_] as const, weight]));
      const type = random.pick(deployments);
      const now = Object.entries(change).map(([property, value]) => `${property}: ${value}`);
      begin(`a deployment (${type}) that changes ${name} (${now.join()})`);
      await nodeRed.change(change, type);
    },
  },
  {
    kind: 'kill',
    weight: 4,
    async cause({ nodeRed, random }, begin) {
      const ms = random.between(0, 1_500);
      begin(`kill -9, and a start ${ms} ms later`);
      await nodeRed.kill();
      await sleep(ms);
      await nodeRed.start();
    },
  },
  {
    kind: 'stop',
    weight: 1,
    async cause({ nodeRed }, begin) {
      begin('a stop, and a start');
      await nodeRed.stop();
      await nodeRed.start();
    },
  },
  {
    kind: 'suspend',
    weight: 3,
    async cause({ nodeRed, random, maxStopMs }, begin) {
      const ms = random.chance(0.3) ? random.between(1_000, maxStopMs) : random.between(50, 3_000);
      begin(`SIGSTOP, and SIGCONT ${ms} ms later`);
      nodeRed.suspend();
      await sleep(ms);
      nodeRed.resume();
    },
  },
  {
    kind: 'disk',
    weight: 2,
    isPossible: ({ nodeRed }) => nodeRed.hasOwnDisk && nodeRed.setup.store === 'disk',
    async cause({ nodeRed, random }, begin) {
      const ms = random.between(500, random.chance(0.2) ? 12_000 : 4_000);
      begin(`the disk of the store is full, for ${ms} ms`);
      nodeRed.fillDisk();
      await sleep(ms);
      nodeRed.freeDisk();
    },
  },
  {
    kind: 'disk and kill',
    weight: 1,
    isPossible: ({ nodeRed }) => nodeRed.hasOwnDisk && nodeRed.setup.store === 'disk',
    async cause({ nodeRed, random }, begin) {
      const ms = random.between(500, 6_000);
      begin(`kill -9, and a start with a disk that is read-only for ${ms} ms`);
      await nodeRed.kill();
      nodeRed.protectDisk(true);
      await nodeRed.start();
      await sleep(ms);
      nodeRed.protectDisk(false);
    },
  },
  {
    kind: 'disk deleted',
    weight: 1,
    isPossible: ({ nodeRed }) => nodeRed.setup.store === 'disk',
    async cause({ nodeRed }, begin) {
      begin('the files of the store are deleted, until the account has created new ones');
      await nodeRed.deleteStore();
    },
  },
  {
    kind: 'redis',
    weight: 3,
    isPossible: ({ nodeRed, redis }) => redis !== undefined && nodeRed.setup.store === 'redis',
    async cause({ redis, random, maxStopMs }, begin) {
      if (!redis) return;
      const way = random.pick(['cut off', 'suspended', 'mute']);
      const ms = random.chance(0.2) ? random.between(1_000, maxStopMs) : random.between(100, 3_000);
      begin(`Redis is ${way}, for ${ms} ms`);
      if (way === 'cut off') redis.proxy.cut();
      if (way === 'mute') redis.proxy.mute();
      if (way === 'suspended') redis.server.suspend();
      await sleep(ms);
      if (way === 'suspended') redis.server.resume();
      redis.proxy.restore();
    },
  },
];

/** Causes faults one after another, sometimes two at a time, until the time is up. */
export async function disturb(machine: Machine, ms: number): Promise<void> {
  const end = now() + ms;
  const { random } = machine;
  await sleep(random.between(500, 2_000));
  while (now() < end) {
    const possible = faults.filter(({ isPossible }) => isPossible?.(machine) ?? true);
    const first = random.weigh(possible.map((one) => [one, one.weight]));
    // If the first fault is one of the service, a fault of another part can overlap it. No other faults overlap.
    const second = outsideFaults.has(first.kind) ? random.weigh(possible.map((one) => [one, one.weight])) : undefined;
    const both = second && !outsideFaults.has(second.kind) && random.chance(0.5);
    await Promise.all([
      run(first, machine),
      ...(both ? [sleep(random.below(500)).then(() => run(second, machine))] : []),
    ]);
    await sleep(random.chance(0.3) ? random.below(100) : random.between(200, 3_000));
  }
}

const outsideFaults = new Set(['service', 'refused']);

async function run({ kind, cause }: Fault, machine: Machine): Promise<void> {
  const disturbance: Disturbance = { kind, description: kind, from: now(), to: Number.POSITIVE_INFINITY };
  await cause(machine, (description) => {
    disturbance.description = description;
    machine.disturbances.push(disturbance);
    machine.log(description);
  });
  disturbance.to = now();
}
