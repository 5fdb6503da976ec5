import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findFreePort } from './free-port';
import { failForWarningsIn } from './process-warnings';
import { Program, type ProgramExit } from './program';
import { createTemporaryFolder } from './temporary-folder';

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
  /** Paths of Node.js and `red.js` for a Node-RED whose major version differs from that of this test run. */
  generation?: { node: string; redJs: string };
  /** Port to listen on. By default, a free one. */
  port?: number;
}

type StartOptions = Pick<NodeRedOptions, 'flows' | 'env' | 'port'>;

/** Editor settings of a user. Tips are off, because they throw in Node-RED 5 if the sidebar appears slowly. */
const userSettings = { _: { editor: { view: { 'view-show-tips': false } } } };

/** Creates an empty user directory. It exists until the test process ends, so that Node-RED can restart on it. */
export function createUserDir(): string {
  const userDir = createTemporaryFolder('sms-node-red');
  writeFileSync(join(userDir, '.config.users.json'), JSON.stringify(userSettings));
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
 * Node-RED in a separate process on loopback. If a test ends it and starts it again, it keeps its port and its user
 * directory, which contains its flows. By default, it uses this Node.js and the Node-RED of the development
 * dependencies. The environment variables `NR_NODE` and `NR_RED_JS` select others.
 */
export class NodeRedProcess {
  readonly userDir: string;
  readonly #options: NodeRedOptions;
  #port: number;
  #program: Program | undefined;
  #earlierLog = '';
  #isKilled = false;

  constructor(options: Omit<NodeRedOptions, 'flows'> = {}) {
    this.userDir = options.userDir ?? createLinkedUserDir();
    this.#options = options;
    this.#port = options.port ?? 0;
  }

  /** Starts the process, and waits until its flows run. Without `flows`, it runs the flows that were deployed last. */
  async start({ flows, env = this.#options.env, port = this.#port }: StartOptions = {}): Promise<void> {
    this.#earlierLog = this.log;
    this.#isKilled = false;
    this.#port = port || (await findFreePort());
    const settingsFile = join(this.userDir, 'settings.js');
    const settings = {
      uiHost: '127.0.0.1',
      uiPort: this.#port,
      flowFile: 'flows.json',
      credentialSecret: 'a secret of the tests',
      lang: 'en-US',
      telemetry: { enabled: false, updateNotification: false },
      diagnostics: { enabled: false },
      editorTheme: { tours: false, palette: { catalogues: [] } },
      ...this.#options.settings,
    };
    writeFileSync(settingsFile, `module.exports = ${JSON.stringify(settings, null, 2)};\n`);
    const { node = process.env.NR_NODE ?? process.execPath, redJs: file = redJs } = this.#options.generation ?? {};
    const program = new Program(node, [file, '-u', this.userDir, '-s', settingsFile], { cwd: this.userDir, env });
    this.#program = program;
    void program.exited.then(() => failForWarningsIn(program.output));
    try {
      await program.printed(/Server now running at/);
      await this.#untilFlowsRun(0, startLimitMs);
      if (flows) await this.deploy(flows);
    } catch (error) {
      await program.end();
      throw error;
    }
  }

  /** Root URL of the nodes' HTTP routes, and of the admin API unless `httpAdminRoot` moves it. No trailing slash. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Address of the editor and of the admin API, without a trailing slash. */
  get editorUrl(): string {
    const { httpAdminRoot, httpRoot } = this.#options.settings ?? {};
    const path = httpAdminRoot ?? httpRoot ?? '';
    return this.url + (typeof path === 'string' ? path.replace(/\/+$/, '') : '');
  }

  get pid(): number {
    return this.#program?.child.pid ?? 0;
  }

  /** Everything that all processes have written so far to stdout and stderr. */
  get log(): string {
    return this.#earlierLog + (this.#program?.output ?? '');
  }

  /** Resolves when the current process has ended for any reason. */
  get exited(): Promise<ProgramExit> {
    return this.#current.exited;
  }

  get #current(): Program {
    if (!this.#program) throw new Error('Node-RED was not started.');
    return this.#program;
  }

  /** Deploys and waits until the flows run. Rejects if they do not start, for example because of an unknown type. */
  async deploy(flows: FlowNode[], type: DeploymentType = 'full'): Promise<void> {
    const from = this.#current.output.length;
    const response = await fetch(`${this.editorUrl}/flows`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Node-RED-Deployment-Type': type },
      body: JSON.stringify(flows),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`The deployment was refused with ${response.status}: ${answer}`);
    await this.#untilFlowsRun(from, deployLimitMs);
  }

  /** Returns the flows of the runtime, without secrets. */
  async readFlows(): Promise<FlowNode[]> {
    return (await (await fetch(`${this.editorUrl}/flows`)).json()) as FlowNode[];
  }

  /** Waits until the log of the current process matches. Resolves immediately if it already does. */
  async waitForLog(pattern: RegExp, limitMs = startLimitMs): Promise<void> {
    await this.#current.printed(pattern, { limitMs });
  }

  /** Ends the process as Ctrl-C does, and waits for its end. */
  async stop(): Promise<void> {
    const late = setTimeout(() => this.#program?.end(), stopLimitMs);
    const exit = await this.#program?.end('SIGTERM');
    clearTimeout(late);
    if (exit?.signal === 'SIGKILL' && !this.#isKilled)
      throw new Error(`Node-RED did not stop in ${stopLimitMs} ms:\n${this.log}`);
  }

  /** Kills the process (`kill -9`), and waits for its end. */
  async kill(): Promise<void> {
    this.#isKilled = true;
    await this.#program?.end();
  }

  /** Waits for the log line that reports started flows, because the admin API answers earlier. */
  async #untilFlowsRun(from: number, limitMs: number): Promise<void> {
    const pattern = /Started (modified )?(flows|nodes)|Waiting for missing types/;
    const [line] = await this.#current.printed(pattern, { from, limitMs });
    if (line.startsWith('Waiting')) throw new Error(`The flows have a node of an unknown type:\n${this.log}`);
  }
}

/** Starts Node-RED, and waits until its flows run. */
export async function startNodeRed(options: NodeRedOptions = {}): Promise<NodeRedProcess> {
  const nodeRed = new NodeRedProcess(options);
  await nodeRed.start(options);
  return nodeRed;
}
