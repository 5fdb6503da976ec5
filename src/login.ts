import { SmsError } from './errors';

/** One of the three ways to authenticate (§5). */
export type Authentication =
  | { type: 'bearer'; apiKey: string }
  | { type: 'basic'; userId: string; password: string }
  | { type: 'form'; userId: string; password: string };

/**
 * Checks a base address (§1) and brings it into one form: no trailing slash, host in lower case.
 *
 * @throws SmsError `SMS_CONFIG` when it is missing, not http(s), carries user name, query, fragment or a variable that nobody
 *   has filled in, or is plain http to a host that is not loopback and `allowHttp` is not set
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseBaseUrl } from '@messaging-service/node-red-sms';
 *
 * assert.equal(parseBaseUrl('https://SMS.example.com/v1/'), 'https://sms.example.com/v1');
 * ```
 */
export function parseBaseUrl(baseUrl: string | undefined, allowHttp = false): string {
  const text = baseUrl?.trim();
  if (!text) throw new SmsError('baseUrlMissing');
  // Node-RED fills in a variable only where nothing else is around it, and a URL takes what is left for a part of a path.
  if (text.includes('${') || !URL.canParse(text)) throw new SmsError('baseUrlInvalid');
  const url = new URL(text);
  const web = url.protocol === 'https:' || url.protocol === 'http:';
  if (!web || url.username || url.password || url.search || url.hash) throw new SmsError('baseUrlInvalid');
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) throw new SmsError('baseUrlHttp');
  let { pathname } = url;
  while (pathname.endsWith('/')) pathname = pathname.slice(0, -1);
  return url.origin + pathname;
}

/** Says whether a host, as a `URL` has it, is this machine. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname)
  );
}

/**
 * Checks that credentials are there and can travel in a header; white space around an API key is dropped.
 *
 * @throws SmsError `SMS_CONFIG`
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseAuthentication } from '@messaging-service/node-red-sms';
 *
 * assert.deepEqual(parseAuthentication('bearer', { apiKey: ' secret ' }), { type: 'bearer', apiKey: 'secret' });
 * ```
 */
export function parseAuthentication(
  type: string | undefined,
  credentials: { apiKey?: string | undefined; userId?: string | undefined; password?: string | undefined },
): Authentication {
  if (type === 'basic' || type === 'form') {
    const { userId, password } = credentials;
    if (!userId?.trim()) throw new SmsError('userIdMissing');
    // The first colon ends it (RFC 7617).
    if (type === 'basic' && userId.includes(':')) throw new SmsError('userIdColon');
    if (!password?.trim()) throw new SmsError('passwordMissing');
    return { type, userId, password };
  }
  const apiKey = credentials.apiKey?.trim();
  if (!apiKey) throw new SmsError('apiKeyMissing');
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new SmsError('apiKeyInvalid');
  return { type: 'bearer', apiKey };
}

/** Where a Redis server is and who is to use it, as the client takes it. */
export interface RedisServer {
  host: string;
  port: number;
  db: number;
  username?: string;
  password?: string;
  /** TLS as Node.js does it by itself. */
  tls?: Record<string, never>;
}

const defaultPort = 6379;

/**
 * Reads `redis://` or `rediss://` with a host, and maybe user, password, port and the number of a database. Nothing else may be there:
 * the client takes a query for options that go before those of the store, and a path that is no number for a database, which no
 * server has.
 *
 * @throws SmsError `SMS_CONFIG`, without the URL, which may carry a password
 */
export function parseRedisUrl(redisUrl: string | undefined): RedisServer {
  const text = redisUrl?.trim();
  if (!text) throw new SmsError('redisUrlMissing');
  if (!/^rediss?:\/\/[^\s?#]+$/i.test(text) || !URL.canParse(text)) throw new SmsError('redisUrlInvalid');
  const url = new URL(text);
  if (!url.hostname || !/^(\/\d*)?$/.test(url.pathname)) throw new SmsError('redisUrlInvalid');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || defaultPort),
    db: Number(url.pathname.slice(1)),
    ...((url.username || url.password) && { username: decode(url.username), password: decode(url.password) }),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new SmsError('redisUrlInvalid');
  }
}
