import { type ClientRequest, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../clock';
import { describeFailure, ProxyFailure } from './failure';
import type { ProxyAddress } from './proxy';

/** Options of a connection to a proxy, under the names of undici and Node.js. */
export interface ConnectOptions {
  /** Maximum time to open the connection and get the proxy's answer, in ms. */
  timeout: number;
  /** Time until the next address of a host name is tried, in ms. */
  autoSelectFamilyAttemptTimeout: number;
  lookup?: LookupFunction;
}

/** Sends plain http requests through a proxy. If the proxy answers 407, it has forwarded nothing to the service. */
export function forwardBy({ url, authorization }: ProxyAddress): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const origin = String(options.origin);
    const headers = [...(options.headers as readonly string[]), 'host', new URL(origin).host];
    if (authorization !== undefined) headers.push('proxy-authorization', authorization);
    return dispatch(
      { ...options, origin: url.origin, path: origin + options.path, headers },
      {
        onRequestStart: (...args) => handler.onRequestStart?.(...args),
        onResponseStart(controller, statusCode, ...details) {
          if (statusCode === 407) throw new ProxyFailure(407);
          handler.onResponseStart?.(controller, statusCode, ...details);
        },
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      },
    );
  };
}

/**
 * Creates a connector that connects through a proxy (`CONNECT`). It replaces the `ProxyAgent` of undici 7, whose
 * requests never settle if the proxy closes the connection at `CONNECT` or does not answer. undici 8 has fixed this,
 * but needs Node.js 22.19.
 *
 * @param connectService makes the TLS connection to the service on the given socket
 */
export function createTunnel(
  proxy: ProxyAddress,
  options: ConnectOptions,
  connectService: buildConnector.connector,
  clock: Clock,
): buildConnector.connector {
  return (target, callback) => {
    const { host = '', port, protocol } = target;
    const hostAndPort = port ? host : `${host}:${protocol === 'https:' ? 443 : 80}`;
    const request = requestTunnel(proxy, hostAndPort, options);
    const timer = clock.after(options.timeout, () => {
      request.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }));
    });
    request.once('close', () => timer.cancel());
    request.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
      socket.unshift(head);
      const isOpen = statusCode >= 200 && statusCode < 300;
      if (isOpen && protocol === 'https:') {
        connectService({ ...target, httpSocket: socket }, callback);
      } else if (isOpen) {
        callback(null, socket);
      } else {
        socket.on('error', () => {}).destroy();
        callback(new ProxyFailure(statusCode), null);
      }
    });
    request.once('error', (error) => {
      // Removes the data that Node.js could not parse from the error, because the data might contain the login.
      if ('rawPacket' in error) delete error.rawPacket;
      callback(new ProxyFailure(describeFailure(error), { cause: error }), null);
    });
    request.end();
  };
}

/** Asks a proxy for a tunnel. Node.js emits `connect` for an answer of any status. */
function requestTunnel({ url, authorization }: ProxyAddress, target: string, options: ConnectOptions): ClientRequest {
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const { timeout: _, ...socketOptions } = options;
  return (isSecure ? requestHttps : requestHttp)({
    method: 'CONNECT',
    host,
    port: url.port || (isSecure ? 443 : 80),
    path: target,
    headers: { host: target, ...(authorization === undefined ? undefined : { 'proxy-authorization': authorization }) },
    agent: false,
    ...socketOptions,
    // The certificate must contain the name of the proxy. By default, Node.js would check the name in the `Host`
    // header, which is the name of the service.
    servername: isIP(host) ? '' : host,
  });
}
