import { Redis } from 'ioredis';
import { findFreePort } from './free-port';
import { findProgram, requireProgram } from './installed-program';
import { Program } from './program';
import { createTemporaryFolder } from './temporary-folder';

const startLimitMs = 20_000;

/** Programs that implement the protocol. Their Debian packages have the same names. */
export type RedisProgram = 'redis-server' | 'valkey-server';

/** Checks whether a program is installed. */
export function hasProgram(program: RedisProgram): boolean {
  return findProgram(program) !== undefined;
}

/** A separate server on loopback with its own folder, and a client with which the test inspects it. */
export class RedisServer {
  readonly url: string;
  readonly client: Redis;
  #program: Program | undefined;

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
    const folder = createTemporaryFolder('sms-redis');
    const further = password ? [...config, '--requirepass', password] : config;
    const server = new RedisServer(path, await findFreePort(), folder, further, password);
    await server.run();
    await server.client.connect();
    return server;
  }

  /** Starts the process, also after {@link kill}. The new process has none of the former data. */
  async run(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder, '--save', ''];
    this.#program = new Program(this.path, [...args, ...this.config]);
    await this.#program.printed(/Ready to accept connections/, { limitMs: startLimitMs });
  }

  /** Suspends the server: until {@link resume}, it does not answer, but keeps its connections. */
  suspend(): void {
    this.#program?.child.kill('SIGSTOP');
  }

  resume(): void {
    this.#program?.child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    await this.#program?.end();
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.kill();
  }
}
