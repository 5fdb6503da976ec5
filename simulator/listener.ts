import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/**
 * Time for which idle connections stay open, in ms (the default of nginx). The default of Node.js, 5 s, is too short:
 * a busy client might still be reading an answer when the connection closes, and its next request would fail.
 */
const keepAliveMs = 75_000;

/** The listening socket of the server. It can be closed and opened again on the same port. */
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

  /** Address such as `http://127.0.0.1:40123`. The port is known after the listener was opened. */
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

  /** Destroys every socket. New connections are refused. */
  async close(): Promise<void> {
    if (!this.isOpen) return;
    const whenClosed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await whenClosed;
  }
}
