import { isUtf8 } from 'node:buffer';
import dns, { type LookupAddress } from 'node:dns';
import { isIPv6, type LookupFunction, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../clock';
import { TlsFailure } from './failure';
import { findProxy, type ProxyOptions, type ProxyRules } from './proxy';
import { createTunnel, forwardBy } from './tunnel';

/** TLS settings of the connection, as Node's `tls.connect` takes them. */
export type TlsOptions = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized' | 'ALPNProtocols'
>;

/** Connections to a service. */
export interface Connections {
  /** Starts a request, as undici's dispatchers do. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Starts no further request, and resolves when the running requests have finished. */
  close(): Promise<void>;
}

/**
 * Time until an idle connection is closed, in ms. It is short, because many servers close idle connections after 5 s.
 * If the server closes it just when a request is sent, the client cannot know whether the server has read the request.
 */
const idleTimeoutMs = 1_000;

/**
 * Age at which connections are replaced, in ms, so that the client notices a changed address of the service. A poll can
 * take another 45 s, so a connection lives at most 5 minutes.
 */
const maxAgeMs = 4 * 60_000;

/** Maximum time to open a connection, in ms. */
const connectTimeoutMs = 10_000;

/**
 * Time until the next address of a host name is tried, in ms. The default of Node.js, 250 ms, is too short for
 * satellites and slow mobile networks.
 */
const addressTimeoutMs = 2_500;

/** Maximum size of the headers of an answer, in bytes. */
const maxHeaderBytes = 64 * 1024;

/** Options of {@link createConnections}. */
export interface ConnectionsOptions {
  /** Base URL of the service. Its scheme decides which proxy variable of the environment applies. */
  baseUrl: string;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  /** How the proxy variables of the environment (such as `http_proxy`) are read. */
  proxyRules?: ProxyRules;
  /** Measures the age of connections and the timeout of a proxy. Default: the clock of the machine. */
  clock?: Clock;
}

/**
 * Opens kept-alive connections, one for each simultaneous request. {@link Client} follows no redirects and limits the
 * time of each request as a whole. `close()` lets running requests finish.
 *
 * @throws SmsError `SMS_CONFIG` if the address of the proxy cannot be used
 *
 * @example
 * ```ts
 * import { createConnections } from '@messaging-service/node-red-sms';
 *
 * const connections = createConnections({
 * baseUrl: 'https://sms.example.com',
 * proxy: { url: 'http://proxy.example.com:8080' },
 * });
 * await connections.close();
 * ```
 */
export function createConnections(options: ConnectionsOptions): Connections {
  const { baseUrl, tls, clock = systemClock } = options;
  const proxy = findProxy(baseUrl, options.proxy, options.proxyRules);
  // Loads undici only when an account exists, because undici takes longer to load than all other modules together.
  const { Agent, buildConnector } = require('undici') as typeof import('undici');
  const family = new WorkingFamily();
  const connectOptions = {
    timeout: connectTimeoutMs,
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    lookup: family.lookup,
  };
  // Shared by all agents, so that a new connection can resume the TLS session of an earlier one.
  const connectService = buildConnector({ ...connectOptions, ...tls });
  const connectDirectly: typeof connectService = (target, callback) => {
    try {
      connectService(target, callback);
    } catch (error) {
      // The connector throws if the TLS settings are invalid. Passes the error to the callback, because in a tunnel, no
      // caller would catch it.
      target.httpSocket?.destroy();
      callback(new TlsFailure(error), null);
    }
  };
  const isTunnelled = baseUrl.startsWith('https:') || proxy?.url.protocol === 'https:';
  const connectAny =
    proxy && isTunnelled ? createTunnel(proxy, connectOptions, connectDirectly, clock) : connectDirectly;
  const connect: typeof connectService = (target, callback) => {
    connectAny(target, (...result) => {
      const [, socket] = result;
      if (socket) {
        family.remember(socket);
        adaptSocket(socket);
      }
      callback(...result);
    });
  };
  const keepAlive = { keepAliveTimeout: idleTimeoutMs, keepAliveMaxTimeout: idleTimeoutMs };
  const timeouts = { headersTimeout: 0, bodyTimeout: 0, ...keepAlive };
  return new RenewedConnections(() => {
    const agent = new Agent({ connect, pipelining: 1, maxHeaderSize: maxHeaderBytes, ...timeouts });
    return proxy && !isTunnelled ? agent.compose(forwardBy(proxy)) : agent;
  }, clock);
}

/**
 * Connections whose undici dispatcher is replaced when it is {@link maxAgeMs} old. The former dispatcher finishes its
 * requests.
 */
class RenewedConnections implements Connections {
  readonly #create: () => Dispatcher;
  readonly #clock: Clock;
  readonly #formerDispatchers = new Set<Dispatcher>();
  #dispatcher: Dispatcher;
  #createdAt: number;
  #isClosed = false;

  constructor(create: () => Dispatcher, clock: Clock) {
    this.#create = create;
    this.#clock = clock;
    this.#dispatcher = create();
    this.#createdAt = clock.elapsed();
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (!this.#isClosed && this.#clock.elapsed() - this.#createdAt >= maxAgeMs) this.#renew();
    return this.#dispatcher.dispatch(options, handler);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#dispatcher, ...this.#formerDispatchers].map((dispatcher) => dispatcher.close()));
  }

  #renew(): void {
    const formerDispatcher = this.#dispatcher;
    this.#formerDispatchers.add(formerDispatcher);
    const forget = () => this.#formerDispatchers.delete(formerDispatcher);
    formerDispatcher.close().then(forget, forget);
    this.#dispatcher = this.#create();
    this.#createdAt = this.#clock.elapsed();
  }
}

/**
 * Remembers the address family that worked last, and tries it first. Otherwise each connection would take 2.5 s longer
 * in a network that drops IPv6.
 */
class WorkingFamily {
  #family: number | undefined;

  readonly lookup: LookupFunction = (hostname, options, callback) => {
    dns.lookup(hostname, options, (error, addresses, family) => {
      callback(error, Array.isArray(addresses) ? this.#sort(addresses) : addresses, family);
    });
  };

  remember({ remoteAddress }: Socket): void {
    if (remoteAddress !== undefined) this.#family = isIPv6(remoteAddress) ? 6 : 4;
  }

  #sort(addresses: LookupAddress[]): LookupAddress[] {
    const works = ({ family }: LookupAddress) => family === this.#family;
    return [...addresses.filter(works), ...addresses.filter((address) => !works(address))];
  }
}

/**
 * Works around two problems of undici 7, before undici attaches to a socket:
 *
 * - After a reset, undici treats an answer without a length as complete. It recognises a reset by the error code, so
 *   the code is replaced.
 * - undici decodes status lines as UTF-8, and so loses Latin-1 characters. A Latin-1 status line is therefore rewritten
 *   in UTF-8.
 */
function adaptSocket(socket: Socket): void {
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'CONNECTION_RESET';
  });
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    const chunk: unknown = read(size);
    return Buffer.isBuffer(chunk) ? decodeStatusLine(chunk) : chunk;
  };
}

/** If a chunk begins with a status line in Latin-1, converts this line to UTF-8. */
function decodeStatusLine(chunk: Buffer): Buffer {
  if (!/^HTTP\/1\.\d \d{3} /.test(chunk.toString('latin1', 0, 16))) return chunk;
  const line = chunk.subarray(0, Math.max(0, chunk.indexOf('\n')));
  return isUtf8(line) ? chunk : Buffer.concat([Buffer.from(line.toString('latin1')), chunk.subarray(line.length)]);
}
