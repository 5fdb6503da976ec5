import type { Dispatcher } from 'undici';
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
  /** Begins a request. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** Resolves when running requests have finished. */
  close(): Promise<void>;
}

const connectTimeoutMs = 10_000;
/**
 * Until the next address of a name is tried. Node waits for 250 ms, less than a connection takes over a satellite or a slow mobile network:
 * where the name has another address, which that network does not lead to, none was ever reached.
 */
const addressTimeoutMs = 2_500;
const timeouts = { timeout: connectTimeoutMs, autoSelectFamilyAttemptTimeout: addressTimeoutMs };

/**
 * Opens kept-alive connections, as many as there are requests at a time. Redirects are not followed and answers are not timed
 * here: {@link createExchange} does that for each request as a whole. Close them with `close()`, which lets running requests finish.
 *
 * @param options.baseUrl what will be asked: its scheme says which proxy of the environment applies
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 */
export function createConnections(options: { baseUrl: string; tls?: TlsOptions; proxy?: ProxyOptions }): Dispatcher {
  const proxy = findProxy(options.baseUrl, options.proxy);
  // Takes longer to load than all the rest together, and is not needed before somebody has an account.
  const { Agent, buildConnector } = require('undici') as typeof import('undici');
  // Made here, so that TLS sessions outlive the connections: the agent makes one anew after each time without any.
  const direct = buildConnector({ ...timeouts, ...options.tls });
  const isTunnelled = options.baseUrl.startsWith('https:') || proxy?.url.protocol === 'https:';
  const connect = proxy && isTunnelled ? createTunnel(proxy, timeouts, direct) : direct;
  const agent = new Agent({ connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
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
          if (statusCode === 407) throw new ProxyFailure('HTTP 407');
          handler.onResponseStart?.(controller, statusCode, ...rest);
        },
        onResponseData: (...args) => handler.onResponseData?.(...args),
        onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
        onResponseError: (...args) => handler.onResponseError?.(...args),
      },
    );
  };
}
