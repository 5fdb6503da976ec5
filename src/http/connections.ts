import type { Client, Dispatcher } from 'undici';
import { SmsError } from '../errors';

/** TLS settings of the connection, as Node's `tls.connect` takes them. */
export interface TlsOptions {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  passphrase?: string;
  servername?: string;
  rejectUnauthorized?: boolean;
  ALPNProtocols?: string[];
}

/** A proxy chosen by hand. Without one the environment's `http_proxy`, `https_proxy` and `no_proxy` apply. */
export interface ProxyOptions {
  /** Such as `http://proxy.example.com:8080`; may carry user and password. */
  url: string;
  /** Hosts that are reached without the proxy. */
  noProxy?: readonly string[];
  username?: string;
  password?: string;
}

/** Connections to a service: what is needed here of undici's dispatchers. */
export interface Connections {
  /** Whether a connection stands that a request would leave on at once, as far as it can be said. */
  readonly isFree?: boolean;
  /** Begins a request, and throws when it cannot begin. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Resolves when running requests have finished. */
  close(): Promise<void>;
  /** Cuts running requests off. */
  destroy(): Promise<void>;
}

const connectTimeoutMs = 10_000;
const untimed = { headersTimeout: 0, bodyTimeout: 0 };

/**
 * Opens kept-alive connections, as many as there are requests at a time. Redirects are not followed and answers are not timed
 * here: {@link createExchange} does that for each request as a whole. Close them with `close()`, which lets running requests finish.
 *
 * @param options.baseUrl what will be asked: its scheme says which proxy of the environment applies
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 */
export function createConnections(options: { baseUrl: string; tls?: TlsOptions; proxy?: ProxyOptions }): Connections {
  const tls = { timeout: connectTimeoutMs, ...options.tls };
  const proxy = options.proxy ?? findProxyInEnvironment(options.baseUrl);
  // Takes longer to load than all the rest together, and is not needed before somebody has an account.
  const undici = require('undici') as typeof import('undici');
  if (!proxy) return new DirectConnections(undici, tls);
  try {
    const url = new URL(proxy.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not http');
    const username = proxy.username || decodeURIComponent(url.username);
    const password = proxy.password || decodeURIComponent(url.password);
    url.username = '';
    url.password = '';
    return new undici.EnvHttpProxyAgent({
      ...untimed,
      connect: tls,
      requestTls: tls,
      proxyTunnel: false,
      httpProxy: url.href,
      httpsProxy: url.href,
      noProxy: (proxy.noProxy ?? []).join(','),
      ...(username || password
        ? { token: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
        : undefined),
    });
  } catch {
    // The cause is left out: it would quote the address, which may carry a password.
    throw new SmsError('proxyInvalid');
  }
}

/** The proxy for the scheme of an address; one without a scheme of its own speaks http. */
function findProxyInEnvironment(baseUrl: string): ProxyOptions | undefined {
  const read = (name: string) => process.env[name] || process.env[name.toUpperCase()];
  const address = read(baseUrl.startsWith('https:') ? 'https_proxy' : 'http_proxy');
  if (!address) return undefined;
  return {
    url: address.includes('://') ? address : `http://${address}`,
    noProxy: [read('no_proxy') ?? ''],
  };
}

interface Connection {
  readonly client: Client;
  readonly origin: string;
  /** Whether a request would leave at once. */
  isFree: boolean;
}

/**
 * Connections without a proxy, each for one request at a time. undici's `Pool` has a queue for requests that no connection is left
 * for, with room for 2,048 from the start, and a connection in reserve: 19 KiB for each account, and without a limit none ever waits.
 */
class DirectConnections implements Connections {
  readonly #undici: typeof import('undici');
  readonly #options: Client.Options;
  readonly #open: Connection[] = [];
  #isClosed = false;

  constructor(undici: typeof import('undici'), tls: TlsOptions & { timeout: number }) {
    this.#undici = undici;
    // One for all of them, so that they resume each other's TLS sessions.
    this.#options = { ...untimed, connect: undici.buildConnector(tls) };
  }

  get isFree(): boolean {
    return this.#open.some(({ isFree }) => isFree);
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#isClosed) throw new this.#undici.errors.ClientClosedError();
    const origin = String(options.origin);
    const connection = this.#open.find((one) => one.isFree && one.origin === origin) ?? this.#add(origin);
    connection.isFree = connection.client.dispatch(options, handler);
    return connection.isFree;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#open.map(({ client }) => client.close()));
  }

  async destroy(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#open.map(({ client }) => client.destroy()));
  }

  #add(origin: string): Connection {
    const client = new this.#undici.Client(origin, this.#options);
    const connection: Connection = { client, origin, isFree: false };
    this.#open.push(connection);
    client.on('drain', () => {
      connection.isFree = true;
    });
    client.once('disconnect', () => {
      this.#remove(connection);
      // Should a request have been given to it in the same moment, it is made on a new connection first.
      if (!this.#isClosed) void client.close();
    });
    client.on('connectionError', () => this.#remove(connection));
    return connection;
  }

  #remove(connection: Connection): void {
    const place = this.#open.indexOf(connection);
    if (place !== -1) this.#open.splice(place, 1);
  }
}
