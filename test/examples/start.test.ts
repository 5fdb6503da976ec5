import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { connectSimulator } from '../../simulator';
import { startBrowser } from '../editor/browser';
import { findFreePort } from '../free-port';
import type { FlowNode } from '../node-red-process';
import { Program } from '../program';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';

const root = join(__dirname, '..', '..');

/** Runs the program of `npm start`. */
function runStart(...options: string[]): Program {
  const env = { http_proxy: 'http://127.0.0.1:9', LANG: 'en_US.UTF-8', LC_ALL: '', LANGUAGE: '' };
  return new Program(process.execPath, ['--require', 'tsx/cjs', 'scripts/start.ts', ...options], { cwd: root, env });
}

describe('npm start', function () {
  this.timeout(120_000);
  let userDir: string;
  let port: number;
  let simulatorPort: number;
  let started: Program[];

  beforeEach(async () => {
    userDir = createTemporaryFolder('sms-start');
    port = await findFreePort();
    simulatorPort = await findFreePort();
    started = [];
  });

  afterEach(async () => {
    for (const program of started) await program.end('SIGTERM');
  });

  /** Runs the program with the user directory and the ports of the test. `ports` can replace these ports. */
  function start(ports: { port?: number; simulatorPort?: number } = {}): Program {
    const all = { port, simulatorPort, ...ports };
    const options = ['--port', all.port, '--simulator-port', all.simulatorPort, '--user-dir', userDir];
    const program = runStart(...options.map(String));
    started.push(program);
    return program;
  }

  /** Starts the program, and waits until both addresses are printed and the flows run. */
  async function startBoth(): Promise<Program> {
    const program = start();
    await program.printed(/Stop both with Ctrl-C/);
    await program.printed(/Started flows/);
    return program;
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
    // Waits until the flows have started. Before that, the answer is 404.
    await until(async () => (await post(`/inject/${button?.id}`)).ok, `${name} can be pressed`);
  }

  /** Waits until the flow has sent messages with these recipients and bodies. */
  async function untilSent(...expected: string[]): Promise<void> {
    const client = connectSimulator(`http://127.0.0.1:${simulatorPort}/`);
    const isSent = async () => {
      const { messages } = await client.read('state');
      const sent = messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
      return expected.every((text) => sent.filter((one) => one === text).length === 1);
    };
    await until(isSent, expected.join());
  }

  it('runs a demo flow until Ctrl-C', async () => {
    const running = await startBoth();
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
    assert.deepEqual(await running.end('SIGINT'), { code: 0, signal: null });
    for (const one of [port, simulatorPort]) await assert.rejects(fetch(`http://127.0.0.1:${one}/`));
  });

  it('keeps flows and messages after a restart on other ports', async () => {
    const first = await startBoth();
    await press('Send a message');
    await untilSent('6421555001: Hello from Node-RED');
    const text = JSON.stringify(await readFlows());
    await post('/flows', JSON.parse(text.replaceAll('Hello from Node-RED', 'changed by hand')));
    await first.end('SIGTERM');
    port = await findFreePort();
    simulatorPort = await findFreePort();
    const second = await startBoth();
    assert.match(second.output, /The flows are from the last start\. For a fresh start/);
    await press('Send a message');
    await untilSent('6421555001: Hello from Node-RED', '6421555001: changed by hand');
  });

  it('refuses a port in use or a wrong option', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port: taken } = server.address() as AddressInfo;
    try {
      const onNodeRed = start({ port: taken });
      assert.equal((await onNodeRed.exited).code, 1);
      const words = `Port ${taken}, for Node-RED, is in use by another program\\. .*-- --port <number>`;
      assert.match(onNodeRed.output, new RegExp(words));
      const onSimulator = start({ simulatorPort: taken });
      assert.equal((await onSimulator.exited).code, 1);
      assert.match(onSimulator.output, new RegExp(`Port ${taken}, for the simulator, .*--simulator-port <number>`));
      assert.doesNotMatch(onNodeRed.output + onSimulator.output, /Welcome to Node-RED/);
    } finally {
      server.close();
    }
    const wrongPort = start({ port: 70_000 });
    assert.equal((await wrongPort.exited).code, 2);
    assert.match(wrongPort.output, /^--port must be a port from 1 to 65535, not "70000"\.\nUsage: npm start/);
    const wrongOption = runStart('--colour', 'red');
    assert.equal((await wrongOption.exited).code, 2);
    assert.match(wrongOption.output, /^Unknown option '--colour'.*\nUsage: npm start/);
  });
});
