import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeploymentType, type FlowNode, NodeRedProcess } from '../node-red-process';
import { type LoggedRefusal, now, recorderOf, recordOutput, type Story } from './record';
import type { Service } from './service';

/** Settings that a deploy can change. */
export interface Setup {
  /** Version of the sending node. A deploy that changes the node increments it. */
  sender: number;
  receiver: number;
  account: number;
  login: 'first key' | 'second key' | 'basic' | 'form';
  store: 'disk' | 'redis';
  /** True if handsets can opt out with STOP. */
  optOut: boolean;
}

export const logins: readonly Setup['login'][] = ['first key', 'second key', 'basic', 'form'];

/** Address of the Redis server, and the file for the observations. */
export interface Surroundings {
  redisUrl: string;
  observationsFile: string;
}

export const waitSeconds = 12;
export const reportSeconds = 10;
/** Time for the flow to acknowledge a message before the node redelivers it. */
export const ackSeconds = 6;
export const timeoutSeconds = 6;
/** Template of the body of the node `replace`. Its curly quotes and its dash have look-alikes in GSM 03.38. */
export const template = '“{{payload.body}}” – {{payload.key}}{{payload.nothing}}';
const filler = 'filler';
const token = 'token-of-the-test';

/** A line of the log with the number of inputs that a sending node could not store when a deploy stopped the node. */
const refusalLine = /\[sms-(?:send|ask):(\w+) \d+\] (\d+) × The (?:former login or store|message could not be stored)/g;

/** A Node-RED that tests can kill, suspend, deploy and restart. */
export class NodeRed extends NodeRedProcess {
  /** True if the store is on a separate small disk. Mounting one needs special rights. */
  readonly hasOwnDisk: boolean;
  readonly pids: Story['pids'] = [];
  /** Unexpected ends of the process. */
  readonly endedBy: Story['endedBy'] = [];
  readonly loggedRefusals: LoggedRefusal[] = [];
  #isEnding = false;

  constructor(
    private readonly service: Service,
    private readonly surroundings: Surroundings,
    readonly setup: Setup,
  ) {
    super();
    mkdirSync(this.storeFolder);
    this.hasOwnDisk = tryToMount(this.storeFolder);
  }

  get storeFolder(): string {
    return join(this.userDir, 'sms-inbox');
  }

  get callbackUrl(): string {
    return `${this.url}/callback?token=${token}`;
  }

  override async start(): Promise<void> {
    const from = now();
    await super.start(this.pids.length === 0 ? { flows: this.#flows() } : {});
    const { pid, exited } = this;
    void exited.then(({ code, signal }) => {
      if (this.pid === pid && !this.#isEnding) this.endedBy.push({ at: now(), how: `${signal ?? code}` });
    });
    this.pids.push({ pid: this.pid, from, to: Number.POSITIVE_INFINITY, listening: now() });
  }

  async change(change: Partial<Setup>, type: DeploymentType): Promise<void> {
    const [at, loggedBefore] = [now(), this.log.length];
    Object.assign(this.setup, change);
    await this.deploy(this.#flows(), type);
    // Only a full deploy stops the Catch node. During any other deploy, the Catch node records the errors.
    if (type !== 'full') return;
    for (const [, node = '', count] of this.log.slice(loggedBefore).matchAll(refusalLine))
      this.loggedRefusals.push({ node, count: Number(count), at });
  }

  override async kill(): Promise<void> {
    this.#isEnding = true;
    await super.kill();
    this.#end();
  }

  override async stop(): Promise<void> {
    this.#isEnding = true;
    await super.stop();
    this.#end();
  }

  suspend(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Fills the disk of the store. */
  fillDisk(): void {
    const file = join(this.storeFolder, filler);
    for (const size of [1 << 20, 1 << 12, 1 << 8]) {
      try {
        for (;;) appendFileSync(file, Buffer.alloc(size, 0x66));
      } catch {
        // Expected: the write fails when the disk is full.
      }
    }
  }

  freeDisk(): void {
    rmSync(join(this.storeFolder, filler), { force: true });
  }

  /** Makes the disk of the store read-only or writable. The store must be closed. */
  protectDisk(isReadOnly: boolean): void {
    execFileSync('mount', ['-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, this.storeFolder]);
  }

  /** Unmounts the disk and removes the user directory. */
  remove(): void {
    if (this.hasOwnDisk) execFileSync('umount', ['-l', this.storeFolder]);
    rmSync(this.userDir, { recursive: true, force: true });
  }

  /** Deletes the store, and waits up to 20 s until the process creates a new one. */
  async deleteStore(): Promise<void> {
    const folders = () =>
      readdirSync(this.storeFolder, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? one.name : []));
    for (const name of folders()) deleteInUse(join(this.storeFolder, name));
    for (const end = now() + 20_000; now() < end && folders().length === 0; ) await sleep(100);
  }

  async readState(): Promise<Record<string, unknown> | undefined> {
    const response = await fetch(`${this.url}/sms-account/account/state`).catch(() => undefined);
    return response?.ok ? ((await response.json()) as Record<string, unknown>) : undefined;
  }

  #end(): void {
    const last = this.pids.at(-1);
    if (last) last.to = now();
    this.#isEnding = false;
  }

  #account(): FlowNode {
    const { baseUrl, apiKeys, userId, password } = this.service;
    const { redisUrl } = this.surroundings;
    const { login, store, account, optOut } = this.setup;
    const [first = '', second = ''] = apiKeys;
    const secrets: Record<Setup['login'], Record<string, string>> = {
      'first key': { apiKey: first },
      'second key': { apiKey: second },
      basic: { userId, password },
      form: { userId, password },
    };
    return {
      id: 'account',
      type: 'sms-account',
      name: `account ${account}`,
      baseUrl,
      authType: login.endsWith('key') ? 'bearer' : login,
      timeout: timeoutSeconds,
      pause: 0,
      store,
      concurrency: 4 + (account % 3),
      optOut,
      credentials: { ...secrets[login], redisUrl },
    };
  }

  #flows(): FlowNode[] {
    const { observationsFile } = this.surroundings;
    const { sender, receiver } = this.setup;
    const account = 'account';
    const place = { z: 'tab', x: 100, y: 100 };
    const receives = { ...place, account, name: `receiver ${receiver}` };
    const flow = { acknowledge: 'flow', inputs: 1, ackTimeout: ackSeconds };
    const send = (node: string, properties: Partial<FlowNode> = {}): FlowNode[] => {
      const outputs = Array.from({ length: Number(properties.outputs ?? 2) }, (_, index) => index + 1);
      return [
        {
          ...place,
          id: `post-${node}`,
          type: 'http in',
          url: `/input/${node}`,
          method: 'post',
          wires: [[`input-${node}`]],
        },
        {
          ...place,
          id: `input-${node}`,
          type: 'function',
          func: 'msg.inputId = msg.payload.inputId; if (msg.payload.isReset) msg.reset = true; return msg;',
          wires: [[node, 'answer']],
        },
        {
          ...place,
          id: node,
          type: 'sms-send',
          name: `${node} ${sender}`,
          account,
          to: 'payload.to',
          toType: 'msg',
          body: 'payload.body',
          bodyType: 'msg',
          messageIdType: 'uuid',
          wires: outputs.map((output) => [recorderOf(node, output)]),
          ...properties,
        },
        ...outputs.map((output) => recordOutput(observationsFile, node, output)),
      ];
    };
    return [
      this.#account(),
      { id: 'tab', type: 'tab', label: 'flow' },
      { ...place, id: 'answer', type: 'http response', statusCode: '200', wires: [] },
      ...send('plain'),
      ...send('kept', { keep: true, expire: 0 }),
      ...send('once', { keep: true, expire: 0, once: 'payload.key', onceType: 'msg' }),
      ...send('replace', {
        keep: true,
        expire: 0,
        replace: 'payload.key',
        replaceType: 'msg',
        body: template,
        bodyType: 'template',
        contentType: '',
        contentTypeType: 'gsm',
      }),
      ...send('ask', { type: 'sms-ask', keep: true, expire: 0, wait: String(waitSeconds / 60), waitType: 'num' }),
      ...send('report', {
        keep: true,
        expire: 0,
        report: String(reportSeconds / 3_600),
        reportType: 'num',
        outputs: 3,
      }),
      { ...receives, id: 'in', type: 'sms-in', wires: [[recorderOf('in', 1)]] },
      recordOutput(observationsFile, 'in', 1),
      { ...receives, ...flow, id: 'asked', type: 'sms-in', wires: [[recorderOf('asked', 1)]] },
      recordOutput(observationsFile, 'asked', 1, { wires: [['habit']] }),
      { ...place, id: 'habit', type: 'function', func: habit, outputs: 1, wires: [['asked']] },
      { ...receives, id: 'status', type: 'sms-status', wires: [[recorderOf('status', 1)]] },
      recordOutput(observationsFile, 'status', 1),
      {
        ...receives,
        id: 'callback',
        type: 'sms-callback-in',
        path: '/callback',
        credentials: { token },
        wires: [[recorderOf('callback', 1)], [recorderOf('callback', 2)]],
      },
      recordOutput(observationsFile, 'callback', 1),
      recordOutput(observationsFile, 'callback', 2),
      { ...place, id: 'catch', type: 'catch', scope: null, uncaught: false, wires: [[recorderOf('catch', 0)]] },
      recordOutput(observationsFile, 'catch', 0),
    ];
  }
}

function tryToMount(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Code of a function node that acknowledges most messages immediately and some late. It does not acknowledge the first
 * delivery of some messages, and answers the first delivery of some others with an error.
 */
const habit = `const first = !msg.sms.redelivered;
const kind = [...String(msg.payload)].reduce((sum, one) => sum + one.charCodeAt(0), 0) % 20;
if (kind === 0 && first) return;
if (kind === 1 && first) { msg.error = { message: 'the flow could not' }; return msg; }
if (kind < 6) { setTimeout(() => node.send(msg), kind * 150); return; }
return msg;`;

/** Deletes a folder repeatedly, because another process can still write files into it. */
function deleteInUse(folder: string): void {
  for (let tries = 1; existsSync(folder); tries++) {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY' || tries === 100) throw error;
    }
  }
}
