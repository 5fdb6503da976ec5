import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectSimulator } from '../../simulator';
import { startBrowser } from '../editor/browser';
import { findFreePort } from '../free-port';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';

const root = join(__dirname, '..', '..');
const startLimitMs = 60_000;

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
    await until(
      () => {
        assert.equal(this.#child.exitCode, null, this.output);
        return this.output.includes('Stop both with Ctrl-C') && this.output.includes('Started flows');
      },
      () => `both run: ${this.output}`,
      { limitMs: startLimitMs },
    );
    return this;
  }

  /** Ends the program with a signal, and returns its exit code. */
  stop(signal: 'SIGINT' | 'SIGTERM'): Promise<number | null> {
    this.#child.kill(signal);
    return this.ended;
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
    for (const start of started) await start.stop('SIGTERM');
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

  const post = (path: string, body: object = {}): Promise<Response> => {
    const headers = { 'Content-Type': 'application/json' };
    return fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  };

  const readFlows = async () => (await (await fetch(`http://127.0.0.1:${port}/flows`)).json()) as FlowNode[];

  /** Presses a button of the flow `Try it`. */
  async function press(name: string): Promise<void> {
    const flows = await readFlows();
    const tab = flows.find(({ type, label }) => type === 'tab' && label === 'Try it');
    const button = flows.find((node) => node.type === 'inject' && node.name === name && node.z === tab?.id);
    // The answer is 404 until the flows have started.
    await until(async () => (await post(`/inject/${button?.id}`)).ok, `${name} can be pressed`);
  }

  /** Waits until the flow has sent messages with these recipients and bodies. */
  async function untilSent(...expected: string[]): Promise<void> {
    const client = connectSimulator(`http://127.0.0.1:${simulatorPort}/`);
    const isSent = async () => {
      const { messages } = await client.state();
      const sent = messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
      return expected.every((text) => sent.filter((one) => one === text).length === 1);
    };
    await until(isSent, expected.join());
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
    assert.equal(await running.stop('SIGINT'), 0);
    for (const one of [port, simulatorPort]) await assert.rejects(fetch(`http://127.0.0.1:${one}/`));
  });

  it('keeps changed flows, credentials and messages if its ports change', async () => {
    const first = await start().ready();
    await press('Send a message');
    await untilSent('6421555001: Hello from Node-RED');
    const text = JSON.stringify(await readFlows());
    await post('/flows', JSON.parse(text.replaceAll('Hello from Node-RED', 'changed by hand')));
    await first.stop('SIGTERM');
    port = await findFreePort();
    simulatorPort = await findFreePort();
    const second = await start().ready();
    assert.match(second.output, /The flows are from the last start\. For a fresh start/);
    await press('Send a message');
    await untilSent('6421555001: Hello from Node-RED', '6421555001: changed by hand');
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
