import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { findFreePort } from './free-port';
import { findProgram, requireProgram } from './installed-program';
import { until } from './until';

const startLimitMs = 20_000;

/** Programs that implement the protocol. Their Debian packages have the same names. */
export type RedisProgram = 'redis-server' | 'valkey-server';

const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Checks whether a program is installed. */
export function hasProgram(program: RedisProgram): boolean {
  return findProgram(program) !== undefined;
}

/** A separate server on loopback with its own folder, and a client with which the test inspects it. */
export class RedisServer {
  readonly url: string;
  readonly client: Redis;
  #child: ChildProcess | undefined;

  private constructor(
    readonly path: string,
    readonly port: number,
    readonly folder: string,
    readonly config: readonly string[],
    password: string,
  ) {
    this.url = `redis://${password && `:${password}@`}127.0.0.1:${port}`;
    this.client = new Redis(this.url, { lazyConnect: true, retryStrategy: () => 100, maxRetriesPerRequest: null });
    this.client.on('error', () => {});
  }

  /** @param config further options from `redis.conf` as arguments: `['--maxmemory', '10mb']` */
  static async start(
    program: RedisProgram = 'redis-server',
    { config = [], password = '' }: { config?: readonly string[]; password?: string } = {},
  ): Promise<RedisServer> {
    const path = requireProgram(program);
    const folder = mkdtempSync(join(tmpdir(), 'sms-redis-'));
    folders.add(folder);
    const further = password ? [...config, '--requirepass', password] : config;
    const server = new RedisServer(path, await findFreePort(), folder, further, password);
    await server.run();
    await server.client.connect();
    return server;
  }

  /** Starts the process, also after {@link kill}. The new process has none of the former data. */
  async run(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''];
    const child = spawn(this.path, [...args, ...this.config], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    running.add(child);
    child.once('exit', () => running.delete(child));
    let log = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
    }
    const isReady = () => {
      if (!running.has(child)) throw new Error(`${this.path} ended:\n${log}`);
      return log.includes('Ready to accept connections');
    };
    await until(isReady, () => `${this.path} accepts connections:\n${log}`, { limitMs: startLimitMs });
  }

  /** Suspends the server: until {@link resume}, it does not answer, but keeps its connections. */
  suspend(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || !running.has(child)) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
    folders.delete(this.folder);
  }
}
