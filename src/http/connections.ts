import type { Dispatcher } from 'undici';
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

const connectTimeoutMs = 10_000;

/**
 * Opens a pool of kept-alive connections. Redirects are not followed and answers are not timed here: {@link createExchange}
 * does that for each request as a whole. Close it with `close()`, which lets running requests finish.
 *
 * @param options.baseUrl what will be asked: its scheme says which proxy of the environment applies
 * @throws SmsError `SMS_CONFIG` for a proxy address that is not usable
 */
export function createConnections(options: { baseUrl: string; tls?: TlsOptions; proxy?: ProxyOptions }): Dispatcher {
  const tls = { timeout: connectTimeoutMs, ...options.tls };
  const pool = { connect: tls, requestTls: tls, headersTimeout: 0, bodyTimeout: 0, proxyTunnel: false };
  const proxy = options.proxy ?? findProxyInEnvironment(options.baseUrl);
  // Takes longer to load than all the rest together, and is not needed before somebody has an account.
  const { Agent, EnvHttpProxyAgent } = require('undici') as typeof import('undici');
  try {
    if (!proxy) return new Agent(pool);
    const url = new URL(proxy.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not http');
    const username = proxy.username || decodeURIComponent(url.username);
    const password = proxy.password || decodeURIComponent(url.password);
    url.username = '';
    url.password = '';
    return new EnvHttpProxyAgent({
      ...pool,
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
