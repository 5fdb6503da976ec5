import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';
import type { FlowNode, NodeRedOptions } from '../node-red-process';
import type { RedisServer } from '../redis-server';
import { RestartableNodeRed } from '../restartable-node-red';
import { TcpProxy } from '../tcp-proxy';
import { readObservations } from './recorder';

/** One delivery to a flow, as the flow recorded it. */
export interface Delivered {
  id: string;
  redelivered: boolean;
  via: string;
  /** Id of the process that delivered it. */
  pid: number;
}

/** An instance of Node-RED, with a connection to Redis that a test can cut. */
export class Instance extends RestartableNodeRed {
  private constructor(
    readonly proxy: TcpProxy,
    generation: NodeRedOptions['generation'],
  ) {
    super(generation);
  }

  /** @param createFlows creates the flows to deploy from the Redis URL of this instance */
  static async run(
    redis: RedisServer,
    createFlows: (redisUrl: string) => FlowNode[],
    generation?: NodeRedOptions['generation'],
  ): Promise<Instance> {
    const proxy = await TcpProxy.start(redis.port);
    const instance = new Instance(proxy, generation);
    await instance.start({ flows: createFlows(`redis://127.0.0.1:${proxy.port}`) });
    return instance;
  }

  async close(): Promise<void> {
    await this.kill();
    await this.proxy.close();
  }
}

/** A load balancer that passes each request to the next instance, and answers 502 if that instance is down. */
export class RoundRobin {
  readonly #server: Server;
  #next = 0;

  private constructor(targets: () => readonly string[]) {
    this.#server = createServer((incoming, outgoing) => {
      const all = targets();
      const target = all[this.#next++ % all.length] ?? '';
      const forwarded = request(
        `${target}${incoming.url}`,
        { method: incoming.method, headers: incoming.headers, agent: false },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502);
          answer.pipe(outgoing);
          answer.on('error', () => outgoing.destroy());
        },
      );
      forwarded.on('error', () => {
        if (!outgoing.headersSent) outgoing.writeHead(502);
        outgoing.end();
      });
      incoming.pipe(forwarded);
    });
  }

  static async start(targets: () => readonly string[]): Promise<RoundRobin> {
    const proxy = new RoundRobin(targets);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The balancer does not listen.');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Returns all recorded deliveries by message id, in order. */
export function readDeliveries(file: string): Map<string, Delivered[]> {
  const byId = new Map<string, Delivered[]>();
  for (const { payload, sms, pid } of readObservations(file)) {
    const id = String(sms?.statusCode ? sms.messageId : payload);
    const delivered = { id, redelivered: sms?.redelivered === true, via: String(sms?.via), pid };
    byId.set(id, [...(byId.get(id) ?? []), delivered]);
  }
  return byId;
}

/** Node-RED 4 if this run tests another version, because instances can differ in version. Otherwise, undefined. */
export function otherGeneration(): NodeRedOptions['generation'] {
  const redJs = join(__dirname, '..', '..', 'node_modules', 'node-red', 'red.js');
  return process.env.NR_RED_JS && process.env.NR_RED_JS !== redJs ? { node: process.execPath, redJs } : undefined;
}
