import { type ClientRequest, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import { systemClock } from '../clock';
import { SmsError } from '../errors';
import { describeFailure, ProxyFailure, TlsFailure } from './failure';

/** TLS settings of the connection, as Node's `tls.connect` takes them. */
export type TlsOptions = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized' | 'ALPNProtocols'
>;

/** Connections to a service: what is needed here of undici's dispatchers. */
export interface Connections {
  /** Begins a request. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Resolves when running requests have finished. */
  close(): Promise<void>;
}

/**
 * Until an idle connection is closed. The service may close it from 5 s on, counted from an earlier moment where this process was
 * blocked before it read the answer; a request that is sent just then fails, and nobody can say whether it was taken.
 */
const idleTimeoutMs = 1_000;
/** Until a connection stands, and a proxy has answered. */
const connectTimeoutMs = 10_000;
/**
 * Until the next address of a name is tried. Node waits for 250 ms, less than a connection takes over a satellite or a slow mobile network:
 * where the name has another address, which that network does not lead to, none was ever reached.
 */
const addressTimeoutMs = 2_500;
/** As undici's and Node's options call them. */
const timeouts = { timeout: connectTimeoutMs, autoSelectFamilyAttemptTimeout: addressTimeoutMs };
type ConnectTimeouts = typeof timeouts;

/**
 * Opens kept-alive connections, as many as there are requests at a time. Redirects are not followed and answers are not timed
 * here: {@link Client} does that for each request as a whole. Close them with `close()`, which lets running requests finish.
 *
 * @param options.baseUrl what will be asked: its scheme says which proxy of the environment applies
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 *
 * @example
 * ```ts
 * import { createConnections } from '@messaging-service/node-red-sms';
 *
 * const connections = createConnections({
 *   baseUrl: 'https://sms.example.com',
 *   proxy: { url: 'http://proxy.example.com:8080' },
 * });
 * await connections.close();
 * ```
 */
export function createConnections(options: { baseUrl: string; tls?: TlsOptions; proxy?: ProxyOptions }): Dispatcher {
  const proxy = findProxy(options.baseUrl, options.proxy);
  // Takes longer to load than all the rest together, and is not needed before somebody has an account.
  const { Agent, buildConnector } = require('undici') as typeof import('undici');
  // Made here, so that TLS sessions outlive the connections: the agent makes one anew after each time without any.
  const connectService = buildConnector({ ...timeouts, ...options.tls });
  const direct: typeof connectService = (target, callback) => {
    try {
      connectService(target, callback);
    } catch (error) {
      // It throws for TLS settings at fault; what is thrown as a proxy answers nobody would catch.
      target.httpSocket?.destroy();
      callback(new TlsFailure(error), null);
    }
  };
  const isTunnelled = options.baseUrl.startsWith('https:') || proxy?.url.protocol === 'https:';
  const connect = proxy && isTunnelled ? createTunnel(proxy, timeouts, direct) : direct;
  const idle = { keepAliveTimeout: idleTimeoutMs, keepAliveMaxTimeout: idleTimeoutMs };
  const agent = new Agent({ connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, ...idle });
  return proxy && !isTunnelled ? agent.compose(forwardBy(proxy)) : agent;
}

/** Has a proxy forward requests by http. One that does not know who asks has forwarded nothing. */
function forwardBy({ url, authorization }: ProxyAddress): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const origin = String(options.origin);
    const headers = [...(options.headers as readonly string[]), 'host', new URL(origin).host];
    if (authorization !== undefined) headers.push('proxy-authorization', authorization);
    return dispatch(
      { ...options, origin: url.origin, path: origin + options.path, headers },
      {
        onRequestStart: (...args) => handler.onRequestStart?.(...args),
        onResponseStart(controller, statusCode, ...rest) {
          if (statusCode === 407) throw new ProxyFailure(407);
          handler.onResponseStart?.(controller, statusCode, ...rest);
        },
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      },
    );
  };
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

/** A proxy, as requests go to it. */
export interface ProxyAddress {
  /** Without user and password. */
  readonly url: URL;
  /** The header `Proxy-Authorization`, where it has one. */
  readonly authorization: string | undefined;
}

/**
 * The proxy on the way to an address, if any.
 *
 * @param chosen by hand; it takes precedence over the environment
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 */
export function findProxy(baseUrl: string, chosen: ProxyOptions | undefined): ProxyAddress | undefined {
  const options = chosen ?? findInEnvironment(baseUrl);
  if (!options) return undefined;
  const proxy = parseProxy(options);
  return isExcepted(new URL(baseUrl), (options.noProxy ?? []).join(',')) ? undefined : proxy;
}

/** The proxy for the scheme of an address; one without a scheme of its own speaks http. */
function findInEnvironment(baseUrl: string): ProxyOptions | undefined {
  const read = (name: string) => process.env[name] || process.env[name.toUpperCase()];
  const address = read(baseUrl.startsWith('https:') ? 'https_proxy' : 'http_proxy');
  if (!address) return undefined;
  return {
    url: address.includes('://') ? address : `http://${address}`,
    noProxy: [read('no_proxy') ?? ''],
  };
}

function parseProxy(options: ProxyOptions): ProxyAddress {
  try {
    const url = new URL(options.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not http');
    const username = options.username || decodeURIComponent(url.username);
    const password = options.password || decodeURIComponent(url.password);
    url.username = '';
    url.password = '';
    const token = Buffer.from(`${username}:${password}`).toString('base64');
    return { url, authorization: username || password ? `Basic ${token}` : undefined };
  } catch {
    // The cause is left out: it would quote the address, which may carry a password.
    throw new SmsError('proxyInvalid');
  }
}

/**
 * Whether hosts that are reached without the proxy have that of an address among them. They are read as Node-RED's own nodes read
 * them: a name is for itself alone, and with a dot or an asterisk in front for all names that end so.
 */
function isExcepted({ protocol, hostname, port }: URL, noProxy: string): boolean {
  const usedPort = port || (protocol === 'https:' ? '443' : '80');
  const entries = noProxy.toLowerCase().split(/[,\s]+/);
  return entries.some((entry) => {
    const [, name = entry, entryPort = usedPort] = /^(.+):(\d+)$/.exec(entry) ?? [];
    if (entryPort !== usedPort) return false;
    return /^[.*]/.test(name) ? hostname.endsWith(name.replace(/^\*/, '')) : hostname === name;
  });
}

/**
 * Makes connections that lead through a proxy (`CONNECT`). With undici 7.30 a request by its `ProxyAgent` never settles, aborted or not,
 * when the proxy closes the connection at `CONNECT` or does not answer. With undici 8, which needs Node 22.19, this can go.
 *
 * @param connectService speaks to the service on the socket that it is given
 */
export function createTunnel(
  proxy: ProxyAddress,
  timeouts: ConnectTimeouts,
  connectService: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) => {
    const { host = '', port, protocol } = options;
    const ported = port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
    const request = requestTunnel(proxy, ported, timeouts);
    request.once('connect', ({ statusCode }, socket: Socket, head: Buffer) => {
      socket.unshift(head);
      if (statusCode === 200 && protocol === 'https:') {
        connectService({ ...options, httpSocket: socket }, callback);
      } else if (statusCode === 200) {
        callback(null, socket);
      } else {
        socket.on('error', () => {}).destroy();
        callback(new ProxyFailure(Number(statusCode)), null);
      }
    });
    request.once('error', (error) => {
      // What the parser could not read may quote what the proxy was told.
      if ('rawPacket' in error) delete error.rawPacket;
      callback(new ProxyFailure(describeFailure(error), { cause: error }), null);
    });
    request.end();
  };
}

/** The proxy's answer, whatever it is, comes with the event `connect`. */
function requestTunnel({ url, authorization }: ProxyAddress, target: string, timeouts: ConnectTimeouts): ClientRequest {
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const { timeout, ...attempts } = timeouts;
  const request = (isSecure ? requestHttps : requestHttp)({
    method: 'CONNECT',
    host,
    port: url.port || (isSecure ? 443 : 80),
    path: target,
    headers: { host: target, ...(authorization === undefined ? undefined : { 'proxy-authorization': authorization }) },
    agent: false,
    ...attempts,
    // Of the proxy; Node would take that of the header.
    servername: isIP(host) ? '' : host,
  });
  const timer = systemClock.after(timeout, () => {
    request.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }));
  });
  request.once('close', () => timer.cancel());
  return request;
}
