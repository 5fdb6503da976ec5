import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Forwards connections to a server on loopback, and can interrupt them. */
export class TcpProxy {
  readonly #server: Server;
  readonly #clients = new Set<Client>();
  #isCut = false;
  #isMute = false;
  #muteFrom: string | undefined;
  #delayMs = 0;

  private constructor(readonly targetPort: number) {
    this.#server = createServer((socket) => this.#join(socket));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The proxy does not listen.');
    return address.port;
  }

  /** Ends all connections. Until {@link restore}, also ends each new connection immediately. */
  cut(): void {
    this.#isCut = true;
    for (const { socket } of this.#clients) socket.destroy();
  }

  /**
   * Holds back the data of the server until {@link restore}, which delivers all of it. The server still receives the
   * data of its clients.
   * @param from if not empty, starts only when a client sends data that contains this text
   */
  mute(from = ''): void {
    this.#isMute = from === '';
    this.#muteFrom = from;
  }

  get isMute(): boolean {
    return this.#isMute;
  }

  /** Delays the data of the server, until {@link restore}. */
  delay(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  restore(): void {
    this.#delayMs = 0;
    this.#isCut = false;
    this.#isMute = false;
    this.#muteFrom = undefined;
    for (const { socket, unsaid } of this.#clients) for (const bytes of unsaid.splice(0)) socket.write(bytes);
  }

  /**
   * Holds back the data of the current clients, even if they disconnect.
   *
   * @returns `release` sends the data to the server, and resolves when the server has closed the connections
   */
  keepBack(): { isHolding(): boolean; release(): Promise<void> } {
    const clients = [...this.#clients];
    for (const client of clients) client.keptBack = [];
    return {
      isHolding: () => clients.some(({ keptBack }) => keptBack && keptBack.length > 0),
      release: async () => {
        for (const { keptBack, server } of clients) {
          server.end(Buffer.concat(keptBack ?? []));
          await once(server, 'close');
        }
      },
    };
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(socket: Socket): void {
    if (this.#isCut) {
      socket.destroy();
      return;
    }
    const server = connect(this.targetPort, '127.0.0.1');
    const client: Client = { socket, server, keptBack: undefined, unsaid: [] };
    this.#clients.add(client);
    socket.setNoDelay();
    server.setNoDelay();
    socket.on('data', (bytes) => {
      if (this.#muteFrom !== undefined && bytes.includes(this.#muteFrom)) this.#isMute = true;
      if (client.keptBack) client.keptBack.push(bytes);
      else server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (this.#isMute) client.unsaid.push(bytes);
      else if (this.#delayMs > 0) setTimeout(() => socket.write(bytes), this.#delayMs);
      else socket.write(bytes);
    });
    socket.on('error', () => {});
    server.on('error', () => {});
    socket.on('close', () => {
      this.#clients.delete(client);
      if (!client.keptBack) server.destroy();
    });
    server.on('close', () => socket.destroy());
  }
}

interface Client {
  socket: Socket;
  server: Socket;
  /** Data of the client that the server has not received. */
  keptBack: Buffer[] | undefined;
  /** Data of the server that the client has not received. */
  unsaid: Buffer[];
}
