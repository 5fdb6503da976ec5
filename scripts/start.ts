import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../simulator';
import { readCommand, refuse } from './command-line';

const root = dirname(__dirname);
const packageName = '@messaging-service/node-red-sms';
const host = '127.0.0.1';
/** Address in the demo flow that is replaced by the address of the simulator's page. */
const placeholderUrl = 'http://127.0.0.1:8025/';

const flowFile = 'flows.json';

/** Editor preferences of a new user directory: the debug sidebar is open and shows the messages of the current tab. */
const firstPreferences = {
  _: {
    debug: { filter: 'filterCurrent' },
    editor: { sidebar: { order: ['debug', 'info', 'help', 'version-control'] } },
  },
};

const usage = `Usage: npm start -- [--port 1880] [--simulator-port 8025] [--user-dir .node-red]

Runs the simulator of the SMS service and Node-RED with flows to try, both on this machine only.

  --port            port of Node-RED
  --simulator-port  port of the simulator
  --user-dir        user directory of Node-RED`;

const { values } = readCommand(usage, {
  options: {
    port: { type: 'string', default: '1880' },
    'simulator-port': { type: 'string', default: '8025' },
    'user-dir': { type: 'string', default: join(root, '.node-red') },
  },
});
const port = readPort('port');
const simulatorPort = readPort('simulator-port');
const userDir = resolve(values['user-dir']);
const url = `http://${host}:${port}`;
const settingsFile = join(userDir, 'settings.js');

function readPort(name: 'port' | 'simulator-port'): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= 1 && number <= 65_535) return number;
  return refuse(usage, `--${name} must be a port from 1 to 65535, not "${values[name]}".`);
}

async function requireFree(port: number, user: string, option: string): Promise<void> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${code})`;
    throw new Error(
      `Port ${port}, for ${user}, ${problem}. Stop that program, or choose another port: npm start -- --${option} <number>`,
    );
  }
  server.close();
  await once(server, 'close');
}

/** Links the package into the user directory, and writes settings and preferences if they do not exist. */
function prepareUserDir(): void {
  const packageFolder = join(userDir, 'node_modules', packageName);
  mkdirSync(dirname(packageFolder), { recursive: true });
  // Replaces the link at each start, because the project might have been moved.
  rmSync(packageFolder, { recursive: true, force: true });
  symlinkSync(root, packageFolder, 'junction');
  if (!existsSync(settingsFile)) writeFileSync(settingsFile, createSettings(), { mode: 0o600 });
  const preferences = join(userDir, '.config.users.json');
  if (!existsSync(preferences)) writeFileSync(preferences, JSON.stringify(firstPreferences));
}

/** Creates the settings of Node-RED, with a new secret for its credentials. */
function createSettings(): string {
  return `module.exports = ${JSON.stringify(
    {
      uiHost: host,
      flowFile,
      credentialSecret: randomBytes(32).toString('hex'),
      telemetry: { enabled: false, updateNotification: false },
      diagnostics: { enabled: false },
      // Sets `projects`, because Node-RED otherwise warns at each start that projects are disabled.
      editorTheme: { tours: false, palette: { catalogues: [] }, projects: {} },
      contextStorage: {
        default: { module: 'memory' },
        file: { module: 'localfilesystem', config: { cache: false } },
      },
    },
    null,
    2,
  )};\n`;
}

function startNodeRed({ baseUrl }: Simulator): ChildProcess {
  const { NR_RED_JS: redJs = require.resolve('node-red/red.js'), NO_PROXY, no_proxy = NO_PROXY } = process.env;
  // Nodes must reach the simulator without a proxy.
  const noProxy = no_proxy ? `${no_proxy},${host}` : host;
  const program = [redJs, '--userDir', userDir, '--settings', settingsFile, '--port', String(port)];
  return spawn(process.execPath, program, {
    // Runs in the user directory, so that relative file names in a flow refer to it.
    cwd: userDir,
    env: { ...process.env, NO_PROXY: noProxy, no_proxy: noProxy, SMS_SIMULATOR_URL: baseUrl, SMS_NODE_RED_URL: url },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** Resolves to true when Node-RED has started its flows, or to false if Node-RED ends first. */
async function isStarted(nodeRed: ChildProcess): Promise<boolean> {
  while (nodeRed.exitCode === null) {
    const answer = await fetch(`${url}/flows/state`).catch(() => undefined);
    if (answer?.ok && ((await answer.json()) as { state?: string }).state === 'start') return true;
    await sleep(100);
  }
  return false;
}

/** Deploys the demo flow, with the credentials of the simulator. */
async function deployDemo({ pageUrl, credentials }: Simulator): Promise<void> {
  const source = readFileSync(join(__dirname, 'demo-flow.json'), 'utf8').replaceAll(placeholderUrl, pageUrl);
  const flows = (JSON.parse(source) as { type: string }[]).map((node) =>
    node.type === 'sms-account' ? { ...node, credentials } : node,
  );
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(`${url}/flows`, { method: 'POST', headers, body: JSON.stringify(flows) });
  if (!response.ok) throw new Error(`The demo flow cannot be deployed: ${await response.text()}`);
}

async function run(): Promise<void> {
  await requireFree(port, 'Node-RED', 'port');
  await requireFree(simulatorPort, 'the simulator', 'simulator-port');
  const whenStopped = new Promise<'stopped'>((stop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop('stopped'));
  });
  const simulator = await startSimulator({ port: simulatorPort, dataFolder: join(userDir, 'simulator') });
  const hadFlows = existsSync(join(userDir, flowFile));
  prepareUserDir();
  const nodeRed = startNodeRed(simulator);
  // Stops Node-RED even after an uncaught error in this process.
  process.once('exit', () => nodeRed.kill());
  const whenEnded = once(nodeRed, 'exit');
  try {
    if ((await Promise.race([isStarted(nodeRed), whenStopped])) === true) {
      if (!hadFlows) await deployDemo(simulator);
      printAddresses(simulator, hadFlows);
    }
    if ((await Promise.race([whenEnded, whenStopped])) !== 'stopped') {
      throw new Error('Node-RED ended, so the simulator was stopped too.');
    }
  } finally {
    nodeRed.kill('SIGTERM');
    await whenEnded;
    await simulator.close();
  }
}

function printAddresses({ pageUrl }: Simulator, hadFlows: boolean): void {
  const folder = relative(process.cwd(), userDir) || '.';
  const about = hadFlows
    ? `The flows are from the last start. For a fresh start, stop this program and delete the folder ${folder}.`
    : `The flows are new. Your changes are saved in the folder ${folder}.`;
  console.log(`\nNode-RED    ${url}\nSimulator   ${pageUrl}\n\n${about}\nStop both with Ctrl-C.\n`);
}

run().then(
  () => process.exit(),
  (error: Error) => {
    console.error(`\n${error.message}`);
    process.exit(1);
  },
);
