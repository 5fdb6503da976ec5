import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../test/node-red-process';
import { copyVersion, type Version } from './version';

const root = join(__dirname, '..');

/** What a number of messages have cost the process of Node-RED. */
export interface Cost {
  count: number;
  /** CPU time of the whole process: every thread, user and system. */
  cpuMs: number;
  wallMs: number;
  /** From the service's answer to the message in the flow, where that was asked for. */
  delaysMs: number[];
  /** Memory after a garbage collection, where that was asked for. */
  samples: (Memory & { count: number })[];
}

/** Memory after a garbage collection, in bytes. */
export interface Memory {
  rss: number;
  heapUsed: number;
  external: number;
  arrayBuffers: number;
}

/** A Node-RED with the built package and the probe. */
export interface BenchNodeRed {
  readonly process: NodeRedProcess;
  deploy(flows: FlowNode[]): Promise<void>;
  /** Gives the probe an order; see `probe/bench-probe.js`. */
  order<Result = object>(order: string, parameters?: object): Promise<Result>;
  stop(): Promise<void>;
}

/** What is slower than usual. */
export interface BenchNodeRedOptions {
  /** By how much each flush of the store takes longer. */
  flushDelayMs?: number;
}

/**
 * Starts Node-RED on a copy of a built version. The editor has a root of its own, so that every HTTP node gets its
 * requests unparsed.
 */
export async function startBenchNodeRed(
  version: Version,
  { flushDelayMs }: BenchNodeRedOptions = {},
): Promise<BenchNodeRed> {
  const userDir = createUserDir();
  const modules = join(userDir, 'node_modules');
  copyVersion(version, join(modules, '@messaging-service', 'node-red-sms'));
  symlinkSync(join(root, 'bench', 'probe'), join(modules, 'bench-probe'), 'junction');
  const nodeRed = await startNodeRed({
    userDir,
    settings: { httpAdminRoot: '/admin', logging: { console: { level: 'info' } } },
    ...(flushDelayMs === undefined ? undefined : { env: delayFlushes(version, flushDelayMs) }),
  });
  return {
    process: nodeRed,
    deploy: (flows) => nodeRed.deploy(flows),
    async order<Result>(order: string, parameters: object = {}) {
      const response = await fetch(`${nodeRed.url}/admin/bench`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ order, ...parameters }),
        signal: AbortSignal.timeout(900_000),
      });
      const result = (await response.json()) as Result & { error?: string };
      if (!response.ok) throw new Error(`The probe could not do ${order}: ${result.error}\n${nodeRed.log}`);
      return result;
    },
    stop: () => nodeRed.stop(),
  };
}

function delayFlushes({ folder }: Version, flushDelayMs: number): NodeJS.ProcessEnv {
  const preload = join(root, 'bench', 'probe', 'delayed-flush.js');
  return {
    BENCH_FLUSH_DELAY_MS: String(flushDelayMs),
    BENCH_PACKAGE: join(folder, 'package.json'),
    NODE_OPTIONS: `--require ${JSON.stringify(preload)}`,
  };
}
