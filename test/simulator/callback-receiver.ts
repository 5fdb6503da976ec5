import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One callback that the client's endpoint received. */
export interface ReceivedCallback {
  method: string;
  path: string;
  query: Record<string, string>;
  contentType: string;
  body: string;
}

/** A client's callback endpoint on loopback (§4.6). */
export class CallbackReceiver {
  readonly received: ReceivedCallback[] = [];
  /** Statuses of the next answers. Later answers have 200. */
  readonly statuses: number[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<CallbackReceiver> {
    const server = createServer((incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const url = new URL(incoming.url ?? '/', 'http://localhost');
        receiver.received.push({
          method: incoming.method ?? '',
          path: url.pathname,
          query: Object.fromEntries(url.searchParams),
          contentType: incoming.headers['content-type'] ?? '',
          body: Buffer.concat(chunks).toString('utf8'),
        });
        outgoing.writeHead(receiver.statuses.shift() ?? 200).end('OK');
      });
    });
    const receiver = new CallbackReceiver(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  /** Address of a path on this endpoint. */
  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
