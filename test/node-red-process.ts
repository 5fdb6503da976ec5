import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from './free-port';
import { failForWarningsIn } from './process-warnings';

const root = join(__dirname, '..');
const packageName = '@messaging-service/node-red-sms';
const startLimitMs = 60_000;
const deployLimitMs = 30_000;
const stopLimitMs = 30_000;
const redJs = process.env.NR_RED_JS ?? require.resolve('node-red/red.js');

/** Major version of the Node-RED that {@link startNodeRed} starts by default, such as 4. */
export const nodeRedGeneration = Number.parseInt(
  (JSON.parse(readFileSync(join(dirname(redJs), 'package.json'), 'utf8')) as { version: string }).version,
  10,
);

/** A node of a flow, as the admin API expects it. `credentials` are plain text, and Node-RED encrypts them. */
export interface FlowNode {
  id: string;
  type: string;
  credentials?: Record<string, string>;
  [property: string]: unknown;
}

/** The values of the header `Node-RED-Deployment-Type`. */
export type DeploymentType = 'full' | 'nodes' | 'flows' | 'reload';

export interface NodeRedOptions {
  /** An existing user directory, which is kept. By default, creates one that loads the built package from `dist/`. */
  userDir?: string;
  /** Further settings, JSON values only. */
  settings?: Record<string, unknown>;
  /** Flows to deploy as soon as the admin API answers. */
  flows?: FlowNode[];
  env?: NodeJS.ProcessEnv;
  /** Node.js and the `red.js` of a Node-RED of another major version than that of this run. */
  generation?: { node: string; redJs: string };
  /** Port to listen on, for example that of a killed process. By default, a free one. */
  port?: number;
}

/** The end of a process: an exit code or a signal. */
export interface NodeRedExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export type NodeRedProcess = Awaited<ReturnType<typeof startNodeRed>>;

const running = new Set<ChildProcess>();
const madeFolders = new Set<string>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of madeFolders) rmSync(folder, { recursive: true, force: true });
});

/** Editor settings of a user. Tips are off, because they throw in Node-RED 5 if the sidebar appears slowly. */
const userSettings = { _: { editor: { view: { 'view-show-tips': false } } } };

/** Creates an empty user directory. It exists until the test process ends, so that Node-RED can restart on it. */
export function createUserDir(): string {
  const userDir = mkdtempSync(join(tmpdir(), 'sms-node-red-'));
  writeFileSync(join(userDir, '.config.users.json'), JSON.stringify(userSettings));
  madeFolders.add(userDir);
  return userDir;
}

/** Creates a user directory with a link to this checkout or another folder. Node-RED loads `dist/` of that folder. */
export function createLinkedUserDir(folder = root): string {
  const userDir = createUserDir();
  const packageFolder = join(userDir, 'node_modules', packageName);
  mkdirSync(join(packageFolder, '..'), { recursive: true });
  symlinkSync(folder, packageFolder, 'junction');
  return userDir;
}

/**
 * Starts Node-RED in a separate process on loopback, and waits until its flows run. By default, it uses this Node.js
 * and the Node-RED of the development dependencies. `NR_NODE` and `NR_RED_JS` select others.
 */
export async function startNodeRed(options: NodeRedOptions = {}) {
  const userDir = options.userDir ?? createLinkedUserDir();
  const port = options.port ?? (await findFreePort());
  const url = `http://127.0.0.1:${port}`;
  const settingsFile = join(userDir, 'settings.js');
  const settings = {
    uiHost: '127.0.0.1',
    uiPort: port,
    flowFile: 'flows.json',
    credentialSecret: 'a secret of the tests',
    lang: 'en-US',
    telemetry: { enabled: false, updateNotification: false },
    diagnostics: { enabled: false },
    editorTheme: { tours: false, palette: { catalogues: [] } },
    ...options.settings,
  };
  const editorUrl = `${url}${adminRoot(settings)}`;
  writeFileSync(settingsFile, `module.exports = ${JSON.stringify(settings, null, 2)};\n`);

  // Only the test process measures coverage, because the coverage of this process cannot be mapped to the sources.
  const { NODE_V8_COVERAGE: _, ...inherited } = process.env;
  const child = spawn(
    options.generation?.node ?? process.env.NR_NODE ?? process.execPath,
    [options.generation?.redJs ?? redJs, '-u', userDir, '-s', settingsFile],
    { cwd: userDir, env: { ...inherited, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  running.add(child);
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
  }
  let ended = false;
  let killed = false;
  const exited = new Promise<NodeRedExit>((resolve) => {
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      ended = true;
      running.delete(child);
      failForWarningsIn(log);
      resolve({ code, signal });
    };
    child.once('error', (error) => {
      log += `${error.message}\n`;
      end(null, null);
    });
    child.once('close', end);
  });

  /** Waits for `pattern` in the log after the position `from`. */
  async function logged(pattern: RegExp, from: number, limitMs: number): Promise<string> {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const text = pattern.exec(log.slice(from))?.[0];
      if (text !== undefined) return text;
      if (ended) throw new Error(`Node-RED ended before it logged ${pattern}:\n${log}`);
      if (Date.now() > deadline) throw new Error(`Node-RED did not log ${pattern} in ${limitMs} ms:\n${log}`);
      await sleep(20);
    }
  }

  const nodeRed = {
    /** Root URL of the nodes' HTTP routes, and of the admin API unless `httpAdminRoot` moves it. No trailing slash. */
    url,
    /** Address of the editor and of the admin API, without a trailing slash. */
    editorUrl,
    port,
    userDir,
    pid: child.pid ?? 0,
    /** Everything written so far to stdout and stderr. */
    get log(): string {
      return log;
    },
    /** Resolves when the process has ended for any reason. */
    exited,
    /** Deploys and waits until the flows run. Rejects if they do not start, for example because of an unknown type. */
    async deploy(flows: FlowNode[], type: DeploymentType = 'full'): Promise<void> {
      const from = log.length;
      const response = await fetch(`${editorUrl}/flows`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Node-RED-Deployment-Type': type },
        body: JSON.stringify(flows),
      });
      const answer = await response.text();
      if (!response.ok) throw new Error(`The deployment was refused with ${response.status}: ${answer}`);
      await flowsRun(from, deployLimitMs);
    },
    /** Returns the flows of the runtime, without secrets. */
    async readFlows(): Promise<FlowNode[]> {
      const response = await fetch(`${editorUrl}/flows`);
      return (await response.json()) as FlowNode[];
    },
    /** Waits until the log matches. Resolves immediately if it already does. */
    async waitForLog(pattern: RegExp, limitMs = startLimitMs): Promise<void> {
      await logged(pattern, 0, limitMs);
    },
    /** Ends the process as Ctrl-C does, and waits for its end. */
    async stop(): Promise<void> {
      if (!ended) child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
      const { signal } = await exited;
      clearTimeout(late);
      if (signal === 'SIGKILL' && !killed) throw new Error(`Node-RED did not stop in ${stopLimitMs} ms:\n${log}`);
    },
    /** Kills the process (`kill -9`), and waits for its end. */
    async kill(): Promise<void> {
      killed = true;
      child.kill('SIGKILL');
      await exited;
    },
  };

  /** Waits for the line of the log that reports started flows. The admin API answers before that. */
  async function flowsRun(from: number, limitMs: number): Promise<void> {
    const line = await logged(/Started (modified )?(flows|nodes)|Waiting for missing types/, from, limitMs);
    if (line.startsWith('Waiting')) throw new Error(`The flows have a node of an unknown type:\n${log.slice(from)}`);
  }

  try {
    await logged(/Server now running at/, 0, startLimitMs);
    await flowsRun(0, startLimitMs);
    if (options.flows) await nodeRed.deploy(options.flows);
  } catch (error) {
    await nodeRed.kill();
    throw error;
  }
  return nodeRed;
}

function adminRoot(settings: Record<string, unknown>): string {
  const path = settings.httpAdminRoot ?? settings.httpRoot ?? '';
  return typeof path === 'string' ? path.replace(/\/+$/, '') : '';
}
