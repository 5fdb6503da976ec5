import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, startSimulator } from '../simulator';
import { readCommand, refuse } from './command-line';

const root = dirname(__dirname);
const packageName = '@messaging-service/node-red-sms';
const host = '127.0.0.1';
const startLimitMs = 60_000;
/** Node-RED gives its nodes 15 s to close. */
const stopLimitMs = 20_000;
/** Address in the demo flow that is replaced by the address of the simulator's page. */
const placeholderUrl = 'http://127.0.0.1:8025/';

/** Editor preferences of a new user directory: the debug sidebar is open and shows the messages of the current tab. */
const firstPreferences = {
  _: {
    debug: { filter: 'filterCurrent' },
    editor: { sidebar: { order: ['debug', 'info', 'help', 'version-control'] } },
  },
};

const usage = `Usage: npm start -- [--port 1880] [--simulator-port 8025] [--user-dir .node-red]

Builds the package, and runs the simulator of the SMS service and Node-RED with flows to try, both on this machine only.

  --port            port of Node-RED
  --simulator-port  port of the simulator
  --user-dir        user directory of Node-RED`;

/** An error that the user can fix. It is printed without a stack. */
class StartError extends Error {}

interface Options {
  build: boolean;
  port: number;
  simulatorPort: number;
  userDir: string;
}

function readOptions(): Options {
  const { values } = readCommand(usage, {
    options: {
      port: { type: 'string', default: '1880' },
      'simulator-port': { type: 'string', default: '8025' },
      'user-dir': { type: 'string', default: join(root, '.node-red') },
      build: { type: 'boolean', default: false },
    },
  });
  const readPort = (name: 'port' | 'simulator-port') => {
    const port = Number(values[name]);
    if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
    return refuse(usage, `--${name} must be a port from 1 to 65535, not "${values[name]}".`);
  };
  const { build, 'user-dir': userDir } = values;
  return { build, port: readPort('port'), simulatorPort: readPort('simulator-port'), userDir: resolve(userDir) };
}

async function requireFree(port: number, user: string, option: string): Promise<void> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${code})`;
    throw new StartError(
      `Port ${port}, for ${user}, ${why}. Stop that program, or choose another port: npm start -- --${option} <number>`,
    );
  }
  server.close();
  await once(server, 'close');
}

function buildPackage(): void {
  const { status } = spawnSync(process.execPath, [join(__dirname, 'build.mjs')], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new StartError('The build failed; see above.');
}

/** Prepares the user directory without changing existing flows. Returns true if flows existed. */
function prepareUserDir(userDir: string, simulator: Simulator): boolean {
  const packageFolder = join(userDir, 'node_modules', packageName);
  mkdirSync(dirname(packageFolder), { recursive: true });
  // The link is replaced at each start, because the project might have been moved.
  rmSync(packageFolder, { recursive: true, force: true });
  symlinkSync(root, packageFolder, 'junction');
  const flows = join(userDir, 'flows.json');
  if (existsSync(flows)) return true;
  const settings = join(userDir, 'settings.js');
  if (!existsSync(settings)) {
    writeFileSync(settings, formatSettings(randomBytes(32).toString('hex')), { mode: 0o600 });
  }
  const { credentialSecret = '' } = createRequire(__filename)(settings) as { credentialSecret?: string };
  const source = readFileSync(join(__dirname, 'demo-flow.json'), 'utf8').replaceAll(placeholderUrl, simulator.pageUrl);
  const nodes = JSON.parse(source) as { id: string; type: string }[];
  const accounts = nodes.filter(({ type }) => type === 'sms-account');
  const logins = Object.fromEntries(accounts.map(({ id }) => [id, simulator.credentials]));
  const credentials = encryptCredentials(logins, credentialSecret);
  writeFileSync(join(userDir, 'flows_cred.json'), JSON.stringify(credentials), { mode: 0o600 });
  const preferences = join(userDir, '.config.users.json');
  if (!existsSync(preferences)) writeFileSync(preferences, JSON.stringify(firstPreferences));
  writeFileSync(flows, source);
  return false;
}

function formatSettings(credentialSecret: string): string {
  return `module.exports = ${JSON.stringify(
    {
      uiHost: host,
      flowFile: 'flows.json',
      credentialSecret,
      telemetry: { enabled: false, updateNotification: false },
      diagnostics: { enabled: false },
      // Without `projects`, Node-RED warns at each start that projects are disabled.
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

/** Encrypts credentials as Node-RED does, because Node-RED warns about plain ones. */
function encryptCredentials(credentials: object, secret: string): { $: string } {
  const vector = randomBytes(16);
  const cipher = createCipheriv('aes-256-ctr', createHash('sha256').update(secret).digest(), vector);
  const encrypted = cipher.update(JSON.stringify(credentials), 'utf8', 'base64') + cipher.final('base64');
  return { $: vector.toString('hex') + encrypted };
}

function startNodeRed({ port, userDir }: Options, simulator: Simulator, url: string): ChildProcess {
  const redJs = process.env.NR_RED_JS ?? createRequire(__filename).resolve('node-red/red.js');
  const settings = join(userDir, 'settings.js');
  return spawn(process.execPath, [redJs, '--userDir', userDir, '--settings', settings, '--port', String(port)], {
    // A flow's relative file names refer to this folder.
    cwd: userDir,
    env: { ...withoutProxyTo(host), SMS_SIMULATOR_URL: simulator.baseUrl, SMS_NODE_RED_URL: url },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** Returns the environment, changed so that no proxy is used for `address`. */
function withoutProxyTo(address: string): NodeJS.ProcessEnv {
  const { NO_PROXY, no_proxy: noProxy = NO_PROXY, ...others } = process.env;
  const both = noProxy ? `${noProxy},${address}` : address;
  return { ...others, NO_PROXY: both, no_proxy: both };
}

/** Resolves when the editor answers, or with `undefined` if `ended` resolves first. */
async function untilReady(url: string, ended: Promise<unknown>): Promise<true | undefined> {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  const deadline = Date.now() + startLimitMs;
  while (!over) {
    // Requests the settings instead of the flows, because Node-RED logs an error for flows that it has not read yet.
    const answer = await fetch(`${url}/settings`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer) return true;
    if (Date.now() > deadline) throw new StartError(`Node-RED did not answer within ${startLimitMs / 1000} s.`);
    await sleep(100);
  }
  return undefined;
}

async function stopNodeRed(nodeRed: ChildProcess, ended: Promise<unknown>): Promise<void> {
  nodeRed.kill('SIGTERM');
  const late = setTimeout(() => nodeRed.kill('SIGKILL'), stopLimitMs);
  await ended;
  clearTimeout(late);
}

async function run(options: Options): Promise<void> {
  const { build, port, simulatorPort, userDir } = options;
  await requireFree(port, 'Node-RED', 'port');
  await requireFree(simulatorPort, 'the simulator', 'simulator-port');
  if (build) buildPackage();
  const stopped = new Promise<void>((stop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop());
  });
  const simulator = await startSimulator({
    port: simulatorPort,
    dataFolder: join(userDir, 'simulator'),
  }).catch((error: Error) => {
    throw new StartError(error.message);
  });
  const url = `http://${host}:${port}`;
  const hadFlows = prepareUserDir(userDir, simulator);
  const nodeRed = startNodeRed(options, simulator, url);
  // An uncaught error here must not leave Node-RED running.
  process.once('exit', () => nodeRed.kill());
  const ended = once(nodeRed, 'exit');
  try {
    const ready = await Promise.race([untilReady(url, ended), stopped]);
    if (ready) printAddresses(options, url, simulator, hadFlows);
    if ((await Promise.race([ended, stopped])) !== undefined) {
      throw new StartError('Node-RED ended, so the simulator was stopped too.');
    }
  } finally {
    await stopNodeRed(nodeRed, ended);
    await simulator.close();
  }
}

function printAddresses({ userDir }: Options, url: string, simulator: Simulator, hadFlows: boolean): void {
  const folder = relative(process.cwd(), userDir) || '.';
  process.stdout.write(
    `${[
      '',
      `Node-RED    ${url}`,
      `Simulator   ${simulator.pageUrl}`,
      '',
      hadFlows
        ? `The flows are from the last start. For a fresh start, stop this program and delete the folder ${folder}.`
        : `The flows are new. Your changes are saved in the folder ${folder}.`,
      'Stop both with Ctrl-C.',
      '',
    ].join('\n')}\n`,
  );
}

run(readOptions()).then(
  () => process.exit(),
  (error: unknown) => {
    process.stderr.write(`\n${error instanceof StartError ? error.message : String((error as Error).stack)}\n`);
    process.exit(1);
  },
);
