import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/**
 * Idle connections stay for as long as with a service behind nginx. After Node's 5 s they end while a client is busy with answers that it
 * has received, and what it asks next comes to nothing.
 */
const keepAliveMs = 75_000;

/** The server's socket: opened, closed for a while with everything kept, opened again on the same port. */
export class Listener {
  readonly #server: Server;
  readonly #host: string;
  #port: number;

  constructor(server: Server, host: string, port: number) {
    this.#server = server;
    server.keepAliveTimeout = keepAliveMs;
    this.#host = host;
    this.#port = port;
  }

  /** e.g. `http://127.0.0.1:40123`; the port is known once the listener was opened. */
  get origin(): string {
    const host = this.#host.includes(':') ? `[${this.#host}]` : this.#host;
    return `${this.#server instanceof HttpsServer ? 'https' : 'http'}://${host}:${this.#port}`;
  }

  get isOpen(): boolean {
    return this.#server.listening;
  }

  async open(): Promise<void> {
    if (this.isOpen) return;
    this.#server.listen(this.#port, this.#host);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Destroys every socket; new connections are refused. */
  async close(): Promise<void> {
    if (!this.isOpen) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
