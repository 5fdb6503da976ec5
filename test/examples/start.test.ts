import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OutboundMessage } from '../../simulator';
import { startBrowser } from '../editor/browser';
import { findFreePort } from '../free-port';
import { until } from '../until';

const root = join(__dirname, '..', '..');
const startLimitMs = 60_000;

interface FlowNode {
  id: string;
  type: string;
  name?: string;
  [property: string]: unknown;
}

const survey = ['How did you like your stay, from 1 to 5?', 'What did you like best?', 'Will you come again?'] as const;

/** What is sent when each example is tried, and nothing else. */
const tried = [
  '6421555011: Hello from Node-RED',
  '6421555021: Thank you for your message: Are you open today?. We will call you back.',
  '6421555031: We are open from Monday to Friday, 8 to 17.',
  '6421555041: Thank you for your message. We will call you back.',
  '6421555051 6421555052: We are open on Saturday. Answer STOP to end these messages.',
  '6421555061: Dear Anna, your appointment is on Monday at 10. Do you come? Answer YES or NO.',
  '6421555061: Thank you, Anna. See you on Monday at 10.',
  `6421555071 6421555072: ${survey[0]}`,
  ...['6421555071', '6421555072'].flatMap((to) => [
    `${to}: ${survey[1]}`,
    `${to}: ${survey[2]}`,
    `${to}: Thank you for your answers.`,
  ]),
  '6421555081: Do you want to sign in? Answer with the code on your screen within 5 minutes. If it is not you, do not answer.',
  '6421555091: 123456 is your code. It is valid for 5 minutes. We never ask you for it.',
  '6421555101: Pump 3 has stopped.',
  '6421555111: Water in the cellar.',
  '6421555121: Pump 3 has stopped. Answer OK to take the alarm.',
  '6421555121: 6421555121 has taken the alarm: Pump 3 has stopped.',
  '642155513*: Pump 3 has stopped. Answer OK to take the alarm.',
  '6421555141: Your order is ready.',
  '6421555151: Dear Anna, Your parcel is here.',
  '6421555152: Dear Ben, Your parcel is here, too.',
  '6421555153: Dear Carl, Your parcel comes tomorrow.',
  '6421555161: Dear Anna, Your parcel is here.',
  '6421555162: Dear Ben, Your parcel is here, too.',
  '6421555163: Dear Carl, Your parcel comes tomorrow.',
  '6421555191: Shall we come tomorrow? Answer YES or NO.',
  '6421555191: We have noted: YES',
  '6421555241: Dear Anna, your appointment is tomorrow at 10:00.',
  '6421555229: The SMS balance is 42 EUR. Please top it up.',
];

/** The button that the comment of a flow says to press first. */
function buttonOf(nodes: FlowNode[]): FlowNode | undefined {
  const names = nodes.flatMap(({ type, name }) =>
    type === 'comment' ? [/press "([^"]+)"/.exec(name ?? '')?.[1]] : [],
  );
  return nodes.find(({ type, name }) => type === 'inject' && names.includes(name));
}

function needsPackage(file: string): boolean {
  const nodes = JSON.parse(readFileSync(join(root, 'examples', file), 'utf8')) as FlowNode[];
  return nodes.some(({ type }) => type === 'global-config');
}

/** `npm start` without the build, on free ports and with a user directory of its own. */
class Start {
  readonly #child: ChildProcess;
  readonly ended: Promise<number | null>;
  output = '';

  constructor(...options: string[]) {
    this.#child = spawn(process.execPath, ['--require', 'tsx/cjs', 'scripts/start.ts', ...options], {
      cwd: root,
      env: { ...process.env, http_proxy: 'http://127.0.0.1:9', LANG: 'en_US.UTF-8', LC_ALL: '', LANGUAGE: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.ended = once(this.#child, 'close').then(([code]) => code as number | null);
  }

  /** Waits until both addresses are told and the flows run. */
  async ready(): Promise<this> {
    await waitUntil(
      () => {
        assert.equal(this.#child.exitCode, null, this.output);
        return this.output.includes('Stop both with Ctrl-C') && this.output.includes('Started flows');
      },
      () => `both run: ${this.output}`,
    );
    return this;
  }

  interrupt(): void {
    this.#child.kill('SIGINT');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.ended;
  }
}

function waitUntil(isTrue: () => boolean | Promise<boolean>, what: string | (() => string)): Promise<void> {
  return until(isTrue, what, { limitMs: startLimitMs });
}

async function isListening(port: number): Promise<boolean> {
  try {
    await fetch(`http://127.0.0.1:${port}/`);
    return true;
  } catch {
    return false;
  }
}

describe('npm start', function () {
  this.timeout(120_000);
  let userDir: string;
  let port: number;
  let simulatorPort: number;
  let started: Start[];

  beforeEach(async () => {
    userDir = mkdtempSync(join(tmpdir(), 'sms-start-'));
    port = await findFreePort();
    simulatorPort = await findFreePort();
    started = [];
  });

  afterEach(async () => {
    for (const start of started) await start.kill();
    rmSync(userDir, { recursive: true, force: true, maxRetries: 3 });
  });

  function start(ports: { port?: number; simulatorPort?: number; build?: boolean } = {}): Start {
    const made = new Start(
      '--port',
      String(ports.port ?? port),
      '--simulator-port',
      String(ports.simulatorPort ?? simulatorPort),
      '--user-dir',
      userDir,
      ...(ports.build ? ['--build'] : []),
    );
    started.push(made);
    return made;
  }

  async function readFlows(): Promise<FlowNode[]> {
    return (await (await fetch(`http://127.0.0.1:${port}/flows`)).json()) as FlowNode[];
  }

  async function deploy(flows: FlowNode[]): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${port}/flows`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(flows),
    });
    assert.ok(response.ok, await response.text());
  }

  async function press(name: string): Promise<void> {
    const button = (await readFlows()).find((node) => node.type === 'inject' && node.name === name);
    assert.ok(button, name);
    await pressNode(button.id);
  }

  async function pressNode(id: string): Promise<void> {
    // 404 until the flows have started.
    await waitUntil(
      async () => (await fetch(`http://127.0.0.1:${port}/inject/${id}`, { method: 'POST' })).status === 200,
      `${id} can be pressed`,
    );
  }

  /** What was sent so far, without what differs from one time to the next: a code, the balance, a time, who is on duty today. */
  async function readSent(): Promise<string[]> {
    const state = await (await fetch(`http://127.0.0.1:${simulatorPort}/control/state`)).json();
    const { messages } = state as { messages: OutboundMessage[] };
    return messages.map(({ to, body }) =>
      `${to.join(' ')}: ${body}`
        .replace(/\b\d{6} is/, '123456 is')
        .replace(/is \d+ EUR/, 'is 42 EUR')
        .replace(/tomorrow at \d+:\d\d/, 'tomorrow at 10:00')
        .replace(/^(642155513)\d/, '$1*'),
    );
  }

  async function untilSent(...texts: string[]): Promise<void> {
    let sent: string[] = [];
    await waitUntil(
      async () => {
        sent = await readSent();
        return texts.every((text) => sent.some((one) => one.endsWith(text)));
      },
      () => `not among ${JSON.stringify(sent)}: ${JSON.stringify(texts.filter((text) => !sent.includes(text)))}`,
    );
  }

  it('runs flows that send a text, and answer a handset that writes and one that replies', async () => {
    const { output } = await start().ready();
    assert.ok(output.includes(`http://127.0.0.1:${port}\n`), output);
    assert.ok(output.includes(`http://127.0.0.1:${simulatorPort}/\n`), output);
    const { handsets } = (await (await fetch(`http://127.0.0.1:${simulatorPort}/control/handsets`)).json()) as {
      handsets: { msisdn: string }[];
    };
    assert.deepEqual(
      handsets.map(({ msisdn }) => msisdn),
      ['6421555001'],
    );
    await press('Send a text');
    await untilSent('Hello from Node-RED');
    await press('A handset writes');
    await press('The handset answers');
    await untilSent(
      '6421555002: Thank you. You wrote: Are you open today?',
      '6421555001: Thank you. You wrote: Hello Node-RED',
    );
  });

  it('loads every example as a tab at the simulator, each with a button and handsets of its own', async () => {
    await start().ready();
    const flows = await readFlows();
    const accounts = flows.filter(({ type }) => type === 'sms-account').map(({ id }) => id);
    const users = flows.filter(({ account }) => account !== undefined);
    assert.deepEqual(new Set(users.map(({ account }) => account)), new Set(accounts));
    const [tryIt, ...tabs] = flows.filter(({ type }) => type === 'tab');
    assert.equal(tryIt?.label, 'Try it');
    const examples = readdirSync(join(root, 'examples')).filter((file) => !needsPackage(file));
    assert.equal(tabs.length, examples.length);
    for (const [index, tab] of tabs.entries()) {
      const nodes = flows.filter(({ id, z }) => id === tab.id || z === tab.id);
      assert.equal(tab.disabled, false);
      assert.ok(buttonOf(nodes), `${tab.label} does not say how it is tried`);
      const numbers = JSON.stringify(nodes).match(/6421555\d{3}/g) ?? [];
      for (const number of numbers) assert.equal(number.slice(7, 9), examples[index]?.slice(0, 2), String(tab.label));
    }
  });

  it('has every example tried by one click, none of which answers the handset of another, with nothing to warn of', async () => {
    const running = await start().ready();
    const flows = await readFlows();
    for (const { id } of flows.filter(({ type }) => type === 'tab').slice(1)) {
      const button = buttonOf(flows.filter(({ z }) => z === id));
      assert.ok(button);
      await pressNode(button.id);
    }
    await untilSent(...tried);
    for (const file of ['sms-received', 'sms-sent.csv', 'sms-report.csv']) {
      await waitUntil(() => existsSync(join(userDir, file)), `there is ${file}`);
    }
    assert.deepEqual(new Set(await readSent()), new Set(tried));
    assert.doesNotMatch(running.output, /\[(warn|error)\]/);
  });

  it('opens at the first flow, with its debug messages beside it', async () => {
    await start().ready();
    const browser = await startBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${port}/`);
      await page.locator('.red-ui-debug-content-list').waitFor();
      await page.locator('#red-ui-sidebar-debug-filter', { hasText: 'current flow' }).waitFor();
      await page.locator('#red-ui-workspace-tabs li.active', { hasText: 'Try it' }).waitFor();
    } finally {
      await browser.close();
    }
  });

  it('stops Node-RED and the simulator on Ctrl-C, without an error', async () => {
    const running = await start().ready();
    assert.ok((await isListening(port)) && (await isListening(simulatorPort)));
    running.interrupt();
    assert.equal(await running.ended, 0);
    assert.deepEqual([await isListening(port), await isListening(simulatorPort)], [false, false]);
  });

  it('stops the simulator and says so when Node-RED dies', async () => {
    const running = await start().ready();
    await deploy([
      { id: 'tab', type: 'tab', label: 'end' },
      { id: 'now', type: 'inject', z: 'tab', name: 'end', props: [], wires: [['kill']] },
      {
        id: 'kill',
        type: 'exec',
        z: 'tab',
        command: 'kill -9 $PPID',
        addpay: '',
        append: '',
        useSpawn: 'false',
        wires: [],
      },
    ]);
    await press('end');
    assert.equal(await running.ended, 1);
    assert.match(running.output, /Node-RED has ended by itself/);
    assert.equal(await isListening(simulatorPort), false);
  });

  it('keeps the flows and the credentials that were changed, and the texts, also on other ports', async () => {
    const first = await start().ready();
    await press('Send a text');
    await untilSent('Hello from Node-RED');
    const flows = await readFlows();
    await deploy(
      flows.map((node) =>
        node.name === 'Send a text' ? { ...node, props: replaceText(node.props, 'changed by hand') } : node,
      ),
    );
    await first.kill();
    port = await findFreePort();
    simulatorPort = await findFreePort();
    const second = await start().ready();
    assert.match(second.output, /The flows are those of last time\. To start afresh/);
    await untilSent('Hello from Node-RED');
    await press('Send a text');
    await untilSent('changed by hand');
  });

  it('says which port is taken and how to choose another, and builds and starts nothing', async () => {
    const built = join(root, 'dist', 'nodes', 'sms-send.js');
    const { mtimeMs } = statSync(built);
    const taken = await findFreePort();
    const server = createServer().listen(taken, '127.0.0.1');
    await once(server, 'listening');
    try {
      const onNodeRed = start({ port: taken, build: true });
      assert.equal(await onNodeRed.ended, 1);
      assert.match(
        onNodeRed.output,
        new RegExp(`Port ${taken}, for Node-RED, is in use by another program\\. .*-- --port <number>`),
      );
      const onSimulator = start({ simulatorPort: taken, build: true });
      assert.equal(await onSimulator.ended, 1);
      assert.match(onSimulator.output, new RegExp(`Port ${taken}, for the simulator, .*--simulator-port <number>`));
      assert.doesNotMatch(onNodeRed.output + onSimulator.output, /Welcome to Node-RED/);
      assert.equal(statSync(built).mtimeMs, mtimeMs);
    } finally {
      server.close();
    }
  });

  it('refuses an option that it does not know, and a port that is none, in one line', async () => {
    const wrongPort = start({ port: 70_000 });
    assert.equal(await wrongPort.ended, 1);
    assert.match(wrongPort.output, /^\n--port must be a port from 1 to 65535, not "70000"\.\n$/);
    const wrongOption = new Start('--colour', 'red');
    assert.equal(await wrongOption.ended, 1);
    assert.match(wrongOption.output, /^\nUnknown option '--colour'.*\n$/);
  });
});

function replaceText(props: unknown, text: string): unknown {
  assert.ok(Array.isArray(props));
  return props.map((prop: { p: string }) => (prop.p === 'payload' ? { ...prop, v: text } : prop));
}
