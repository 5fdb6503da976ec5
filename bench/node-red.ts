import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createUserDir, type NodeRedProcess, startNodeRed } from '../test/node-red-process';
import { type ServiceProcess, startService } from './service-process';

const root = join(__dirname, '..');

/** The two processes of a benchmark, and the way to control the probe node in Node-RED. */
export interface Bench {
  service: ServiceProcess;
  nodeRed: NodeRedProcess;
  /** Sends a command to the probe node. `probe/bench-probe.js` defines the commands. */
  order<Result>(order: string, parameters?: object): Promise<Result>;
}

/** Runs `work` with a new service and a new Node-RED, and stops both afterwards. */
export async function withBench<T>(work: (bench: Bench) => Promise<T>): Promise<T> {
  const service = await startService();
  try {
    const nodeRed = await startNodeRed({
      userDir: createBenchUserDir(),
      // The editor gets a separate root. If both had the same root, Node-RED would parse requests before the HTTP nodes
      // get them.
      settings: { httpAdminRoot: '/admin', logging: { console: { level: 'info' } } },
    });
    try {
      const order = <Result>(name: string, parameters: object = {}) =>
        sendOrder<Result>(nodeRed, { order: name, ...parameters });
      await order('connect', { baseUrl: service.baseUrl });
      return await work({ service, nodeRed, order });
    } finally {
      await nodeRed.stop();
    }
  } finally {
    service.stop();
  }
}

/**
 * Creates a user directory with a link to the probe and a copy of the built package. A build during the run does not
 * change the copy.
 */
function createBenchUserDir(): string {
  const userDir = createUserDir();
  const modules = join(userDir, 'node_modules');
  const target = join(modules, '@messaging-service', 'node-red-sms');
  mkdirSync(target, { recursive: true });
  for (const part of ['package.json', 'dist']) cpSync(join(root, part), join(target, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'), 'junction');
  symlinkSync(join(root, 'bench', 'probe'), join(modules, 'bench-probe'), 'junction');
  return userDir;
}

async function sendOrder<Result>(nodeRed: NodeRedProcess, order: { order: string }): Promise<Result> {
  const response = await fetch(`${nodeRed.url}/admin/bench`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(order),
    signal: AbortSignal.timeout(900_000),
  });
  const result = (await response.json()) as Result & { error?: string };
  if (!response.ok) throw new Error(`The probe failed at ${order.order}: ${result.error}\n${nodeRed.log}`);
  return result;
}
