import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OutboundMessage } from '../../simulator';
import { findFreePort } from '../free-port';

const root = join(__dirname, '..', '..');
const startLimitMs = 60_000;

interface FlowNode {
  id: string;
  type: string;
  name?: string;
  [property: string]: unknown;
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

  /** Waits until both addresses are told. */
  async ready(): Promise<this> {
    await waitUntil(() => {
      assert.equal(this.#child.exitCode, null, this.output);
      return this.output.includes('Stop both with Ctrl-C');
    });
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

async function waitUntil(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + startLimitMs;
  while (!(await isTrue())) {
    assert.ok(Date.now() < deadline, 'waited too long');
    await sleep(50);
  }
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

  function start(ports: { port?: number; simulatorPort?: number } = {}): Start {
    const made = new Start(
      '--port',
      String(ports.port ?? port),
      '--simulator-port',
      String(ports.simulatorPort ?? simulatorPort),
      '--user-dir',
      userDir,
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
    // 404 until the flows have started.
    await waitUntil(
      async () => (await fetch(`http://127.0.0.1:${port}/inject/${button.id}`, { method: 'POST' })).status === 200,
    );
  }

  async function untilSent(...bodies: string[]): Promise<void> {
    await waitUntil(async () => {
      const state = await (await fetch(`http://127.0.0.1:${simulatorPort}/control/state`)).json();
      const { messages } = state as { messages: OutboundMessage[] };
      return bodies.every((body) => messages.some((message) => message.body === body));
    });
  }

  it('runs flows that send a text, and answer a handset that writes and one that replies', async () => {
    const { output } = await start().ready();
    assert.ok(output.includes(`http://127.0.0.1:${port}\n`), output);
    assert.ok(output.includes(`http://127.0.0.1:${simulatorPort}/\n`), output);
    await press('Send a text');
    await untilSent('Hello from Node-RED');
    await press('A handset writes');
    await press('The handset answers');
    await untilSent('Thank you. You wrote: Are you open today?', 'Thank you. You wrote: Hello Node-RED');
  });

  it('loads every example as a tab on the account of the simulator, with only one that reads by itself switched on', async () => {
    await start().ready();
    const flows = await readFlows();
    const accounts = flows.filter(({ type }) => type === 'sms-account');
    assert.equal(accounts.length, 1);
    const users = flows.filter(({ account }) => account !== undefined);
    assert.ok(users.length > 10);
    assert.deepEqual(new Set(users.map(({ account }) => account)), new Set([accounts[0]?.id]));
    const tabs = flows.filter(({ type }) => type === 'tab');
    assert.equal(tabs[0]?.label, 'Try it');
    assert.ok(tabs.length > 9);
    const reading = tabs.filter(
      ({ id, disabled }) =>
        disabled !== true && flows.some(({ z, type }) => z === id && /^sms-(?!send|account)/.test(type)),
    );
    assert.deepEqual(
      reading.map(({ label }) => label),
      ['Try it'],
    );
    assert.equal(tabs[1]?.disabled, false);
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

  it('keeps the flows and the credentials that were changed, also on other ports', async () => {
    const first = await start().ready();
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
    await press('Send a text');
    await untilSent('changed by hand');
  });

  it('says which port is taken and how to choose another, and starts nothing', async () => {
    const taken = await findFreePort();
    const server = createServer().listen(taken, '127.0.0.1');
    await once(server, 'listening');
    try {
      const onNodeRed = start({ port: taken });
      assert.equal(await onNodeRed.ended, 1);
      assert.match(
        onNodeRed.output,
        new RegExp(`Port ${taken}, for Node-RED, is in use by another program\\. .*-- --port <number>`),
      );
      const onSimulator = start({ simulatorPort: taken });
      assert.equal(await onSimulator.ended, 1);
      assert.match(onSimulator.output, new RegExp(`Port ${taken}, for the simulator, .*--simulator-port <number>`));
      assert.doesNotMatch(onNodeRed.output + onSimulator.output, /Welcome to Node-RED/);
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
