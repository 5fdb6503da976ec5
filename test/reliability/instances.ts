import { join } from 'node:path';
import { type FlowNode, type NodeRedOptions, NodeRedProcess } from '../node-red-process';
import type { RedisServer } from '../redis-server';
import type { Closing } from '../src/closing';
import { startRawService } from '../src/raw-service';
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
export class Instance extends NodeRedProcess {
  private constructor(
    readonly proxy: TcpProxy,
    generation: NodeRedOptions['generation'],
  ) {
    super(generation && { generation });
  }

  /** @param createFlows gets the Redis URL of this instance, and creates the flows to deploy */
  static async run(
    closing: Closing,
    redis: RedisServer,
    createFlows: (redisUrl: string) => FlowNode[],
    generation?: NodeRedOptions['generation'],
  ): Promise<Instance> {
    const proxy = closing.add(await TcpProxy.start(redis.port), (it) => it.close());
    const instance = closing.add(new Instance(proxy, generation), (it) => it.kill());
    await instance.start({ flows: createFlows(`redis://127.0.0.1:${proxy.port}`) });
    return instance;
  }
}

/** Starts a load balancer that passes each POST to the next instance, and answers 502 if that instance is down. */
export function startBalancer(closing: Closing, targets: () => readonly string[]): Promise<{ baseUrl: string }> {
  let next = 0;
  return startRawService(closing, async (request, response) => {
    const all = targets();
    const target = all[next++ % all.length] ?? '';
    const type = request.headers['content-type'] ?? '';
    try {
      const body = Buffer.concat(await request.toArray());
      const init = { method: 'POST', headers: { 'Content-Type': type, Connection: 'close' }, body };
      const answer = await fetch(`${target}${request.url}`, init);
      await answer.arrayBuffer();
      response.writeHead(answer.status).end();
    } catch {
      response.writeHead(502).end();
    }
  });
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
