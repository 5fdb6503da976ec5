import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
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

/** The program of `npm start`, on free ports and with a new user directory. */
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

  /** Waits until both addresses are printed and the flows run. */
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

  /** Presses a button of a flow. The flow `Try it` is the first. */
  async function press(name: string, label = 'Try it'): Promise<void> {
    const flows = await readFlows();
    const tab = flows.find((node) => node.type === 'tab' && node.label === label);
    const button = flows.find((node) => node.type === 'inject' && node.name === name && node.z === tab?.id);
    assert.ok(button, name);
    // 404 until the flows have started.
    await waitUntil(
      async () => (await fetch(`http://127.0.0.1:${port}/inject/${button.id}`, { method: 'POST' })).status === 200,
      `${name} can be pressed`,
    );
  }

  async function readSent(): Promise<string[]> {
    const state = await (await fetch(`http://127.0.0.1:${simulatorPort}/control/state`)).json();
    const { messages } = state as { messages: OutboundMessage[] };
    return messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
  }

  async function untilSent(...bodies: string[]): Promise<void> {
    let sent: string[] = [];
    await waitUntil(
      async () => {
        sent = await readSent();
        return bodies.every((body) => sent.some((one) => one.endsWith(body)));
      },
      () => `not among ${JSON.stringify(sent)}: ${JSON.stringify(bodies.filter((body) => !sent.includes(body)))}`,
    );
  }

  it('runs a demo flow beside the debug sidebar, until Ctrl-C stops it', async () => {
    const running = await start().ready();
    assert.match(
      running.output,
      new RegExp(`http://127\\.0\\.0\\.1:${port}\\n.*http://127\\.0\\.0\\.1:${simulatorPort}/\\n`, 's'),
    );
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
    await press('Send a message');
    await untilSent('6421555001: Hello from Node-RED');
    await press('A handset writes');
    await untilSent('6421555002: Thank you. You wrote: Are you open today?');
    running.interrupt();
    assert.equal(await running.ended, 0);
    assert.deepEqual([await isListening(port), await isListening(simulatorPort)], [false, false]);
  });

  it('keeps changed flows, credentials and messages on other ports', async () => {
    const first = await start().ready();
    await press('Send a message');
    await untilSent('Hello from Node-RED');
    const flows = await readFlows();
    await deploy(
      flows.map((node) =>
        node.name === 'Send a message' ? { ...node, props: replaceBody(node.props, 'changed by hand') } : node,
      ),
    );
    await first.kill();
    port = await findFreePort();
    simulatorPort = await findFreePort();
    const second = await start().ready();
    assert.match(second.output, /The flows are from the last start\. For a fresh start/);
    await untilSent('Hello from Node-RED');
    await press('Send a message');
    await untilSent('changed by hand');
  });

  it('names a port in use and the option to change it, or a wrong option', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: taken } = server.address() as AddressInfo;
    try {
      const onNodeRed = start({ port: taken });
      assert.equal(await onNodeRed.ended, 1);
      const words = `Port ${taken}, for Node-RED, is in use by another program\\. .*-- --port <number>`;
      assert.match(onNodeRed.output, new RegExp(words));
      const onSimulator = start({ simulatorPort: taken });
      assert.equal(await onSimulator.ended, 1);
      assert.match(onSimulator.output, new RegExp(`Port ${taken}, for the simulator, .*--simulator-port <number>`));
      assert.doesNotMatch(onNodeRed.output + onSimulator.output, /Welcome to Node-RED/);
    } finally {
      server.close();
    }
    const wrongPort = start({ port: 70_000 });
    assert.equal(await wrongPort.ended, 2);
    assert.match(wrongPort.output, /^--port must be a port from 1 to 65535, not "70000"\.\nUsage: npm start/);
    const wrongOption = new Start('--colour', 'red');
    assert.equal(await wrongOption.ended, 2);
    assert.match(wrongOption.output, /^Unknown option '--colour'.*\nUsage: npm start/);
  });
});

function replaceBody(props: unknown, text: string): unknown {
  assert.ok(Array.isArray(props));
  return props.map((prop: { p: string }) => (prop.p === 'payload' ? { ...prop, v: text } : prop));
}
