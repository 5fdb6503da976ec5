import type { buildConnector, Client, Dispatcher } from 'undici';
import { ProxyFailure } from './failure';
import { createTunnel, findProxy, type ProxyAddress, type ProxyOptions } from './proxy';

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

/** Connections to a service: what is needed here of undici's dispatchers. */
export interface Connections {
  /** Begins a request, and throws when it cannot begin. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Resolves when running requests have finished. */
  close(): Promise<void>;
  /** Cuts running requests off. */
  destroy(): Promise<void>;
}

const connectTimeoutMs = 10_000;
/**
 * Until the next address of a name is tried. Node waits for 250 ms, less than a connection takes over a satellite or a slow mobile network:
 * where the name has another address, which that network does not lead to, none was ever reached.
 */
const addressTimeoutMs = 2_500;
const timeouts = { timeout: connectTimeoutMs, autoSelectFamilyAttemptTimeout: addressTimeoutMs };
const untimed = { headersTimeout: 0, bodyTimeout: 0 };

/**
 * Opens kept-alive connections, as many as there are requests at a time. Redirects are not followed and answers are not timed
 * here: {@link createExchange} does that for each request as a whole. Close them with `close()`, which lets running requests finish.
 *
 * @param options.baseUrl what will be asked: its scheme says which proxy of the environment applies
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 */
export function createConnections(options: { baseUrl: string; tls?: TlsOptions; proxy?: ProxyOptions }): Connections {
  const proxy = findProxy(options.baseUrl, options.proxy);
  // Takes longer to load than all the rest together, and is not needed before somebody has an account.
  const undici = require('undici') as typeof import('undici');
  // One for all connections, so that they resume each other's TLS sessions.
  const connect = undici.buildConnector({ ...timeouts, ...options.tls });
  if (!proxy) return new OwnConnections(undici, connect);
  const isTunnelled = options.baseUrl.startsWith('https:') || proxy.url.protocol === 'https:';
  if (isTunnelled) return new OwnConnections(undici, createTunnel(proxy, timeouts, connect));
  return new ForwardedConnections(new OwnConnections(undici, connect), proxy);
}

interface Connection {
  readonly client: Client;
  readonly origin: string;
  /** Whether a request would leave at once. */
  isFree: boolean;
}

/**
 * Connections, each for one request at a time. undici's `Pool` has a queue for requests that no connection is left
 * for, with room for 2,048 from the start, and a connection in reserve: 19 KiB for each account, and without a limit none ever waits.
 */
class OwnConnections implements Connections {
  readonly #undici: typeof import('undici');
  readonly #options: Client.Options;
  readonly #open: Connection[] = [];
  #isClosed = false;

  constructor(undici: typeof import('undici'), connect: buildConnector.connector) {
    this.#undici = undici;
    this.#options = { ...untimed, connect };
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

/** Connections to a proxy that forwards requests by http. */
class ForwardedConnections implements Connections {
  readonly #connections: Connections;
  readonly #proxy: ProxyAddress;

  constructor(connections: Connections, proxy: ProxyAddress) {
    this.#connections = connections;
    this.#proxy = proxy;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { url, authorization } = this.#proxy;
    const origin = String(options.origin);
    const headers = [...(options.headers as readonly string[]), 'host', new URL(origin).host];
    if (authorization !== undefined) headers.push('proxy-authorization', authorization);
    const forwarded = { ...options, origin: url.origin, path: origin + options.path, headers };
    return this.#connections.dispatch(forwarded, new ForwardedHandler(handler));
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  destroy(): Promise<void> {
    return this.#connections.destroy();
  }
}

/** Follows a request through a proxy that forwards nothing before it knows who asks. */
class ForwardedHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler;
  }

  onRequestStart(...args: Parameters<Required<Dispatcher.DispatchHandler>['onRequestStart']>): void {
    this.#handler.onRequestStart?.(...args);
  }

  onResponseStart(...args: Parameters<Required<Dispatcher.DispatchHandler>['onResponseStart']>): void {
    const [controller, statusCode] = args;
    if (statusCode === 407) controller.abort(new ProxyFailure('HTTP 407'));
    else this.#handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<Required<Dispatcher.DispatchHandler>['onResponseData']>): void {
    this.#handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<Required<Dispatcher.DispatchHandler>['onResponseEnd']>): void {
    this.#handler.onResponseEnd?.(...args);
  }

  onResponseError(...args: Parameters<Required<Dispatcher.DispatchHandler>['onResponseError']>): void {
    this.#handler.onResponseError?.(...args);
  }
}
