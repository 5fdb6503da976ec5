import { SmsError } from '../errors';

/** A configured proxy. Without it, the proxy variables of the environment apply. */
export interface ProxyOptions {
  /** URL such as `http://proxy.example.com:8080`. It can contain user and password. */
  url: string;
  /** Hosts that are reached without the proxy. */
  noProxy?: readonly string[];
  username?: string;
  password?: string;
}

/**
 * How the proxy variables of the environment (such as `http_proxy`) are read, in the form of `proxyOptions` in
 * Node-RED's `settings.js`.
 */
export interface ProxyRules {
  /** `legacy`: only `http_proxy` and `no_proxy` apply, and `no_proxy` contains parts of addresses. */
  mode?: 'strict' | 'legacy';
  /** Whether upper-case variables take precedence. */
  favourUpperCase?: boolean;
  /** Whether upper-case variables are ignored, except in `legacy` mode. */
  lowerCaseOnly?: boolean;
  /** Whether the variables of npm are ignored, such as `npm_config_proxy`. */
  excludeNpm?: boolean;
}

/** Address of a proxy. */
export interface ProxyAddress {
  /** Address of the proxy, without user and password. */
  readonly url: URL;
  /** Value of the header `Proxy-Authorization`, if the proxy needs a login. */
  readonly authorization: string | undefined;
}

/**
 * Returns the proxy for an address, or `undefined` if the address is reached directly.
 *
 * @param configuredProxy takes precedence over the environment
 * @throws SmsError `SMS_CONFIG` if the address of the proxy cannot be used
 */
export function findProxy(
  baseUrl: string,
  configuredProxy?: ProxyOptions,
  rules: ProxyRules = {},
): ProxyAddress | undefined {
  const options = configuredProxy ?? findInEnvironment(baseUrl, rules);
  if (!options) return undefined;
  const proxy = parseProxy(options);
  return isExcepted(new URL(baseUrl), (options.noProxy ?? []).join(',')) ? undefined : proxy;
}

/**
 * Finds the proxy in the environment, by the same rules as the nodes of Node-RED. An address without a scheme counts as
 * http.
 */
function findInEnvironment(baseUrl: string, rules: ProxyRules): ProxyOptions | undefined {
  const { env } = process;
  const mode = /^(?:legacy|strict)$/.exec(env.NR_PROXY_MODE ?? '')?.[0] ?? rules.mode;
  const isLegacy = mode === 'legacy';
  const readVariable = (name: string): string | undefined => {
    const upper = rules.lowerCaseOnly && !isLegacy ? undefined : env[name.toUpperCase()];
    return rules.favourUpperCase || isLegacy ? upper || env[name] : env[name] || upper;
  };
  const readNpm = (name: string) => (rules.excludeNpm || isLegacy ? undefined : readVariable(`npm_config_${name}`));
  const scheme = new URL(baseUrl).protocol === 'https:' && !isLegacy ? 'https' : 'http';
  // Ignores values that are not HTTP proxies, because `all_proxy` often contains a SOCKS proxy for other programs.
  const generalProxy = isLegacy ? undefined : [readNpm('proxy'), readVariable('all_proxy')].find(isHttpProxy);
  const address = readNpm(`${scheme}_proxy`) || readVariable(`${scheme}_proxy`) || generalProxy;
  const noProxy = readNpm('no_proxy') || readVariable('no_proxy') || '';
  if (!address) return undefined;
  if (isLegacy && noProxy.split(',').some((item) => item.trim() !== '' && baseUrl.includes(item.trim())))
    return undefined;
  return { url: address.includes('://') ? address : `http://${address}`, noProxy: isLegacy ? [] : [noProxy] };
}

function isHttpProxy(address: string | undefined): boolean {
  return Boolean(address) && (!address?.includes('://') || /^https?:/i.test(address));
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
    // The error has no cause, because the cause would quote the address, which can contain a password.
    throw new SmsError('proxyInvalid');
  }
}

/**
 * Whether an address is reached without the proxy. As in the nodes of Node-RED, a name in `noProxy` excludes only the
 * host with this name. A name with a leading dot or asterisk excludes all hosts with this ending.
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
