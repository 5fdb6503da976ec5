import { SmsError } from './errors';

/** Credentials for one of the three authentication methods (§5). */
export type Authentication =
  | { type: 'bearer'; apiKey: string }
  | { type: 'basic'; userId: string; password: string }
  | { type: 'form'; userId: string; password: string };

/**
 * Checks a base address (§1) and normalises it: no trailing slash, host in lower case.
 *
 * @throws SmsError `SMS_CONFIG` in three cases. The address is missing or not http(s). It contains a user name, a query,
 *   a fragment or an unresolved variable. It is plain http to a host other than loopback, and `allowHttp` is not set.
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
  // Refuses `${NAME}` inside a longer text, because Node-RED replaces a variable only if it is the whole value. `URL`
  // would accept `${NAME}` as part of a path.
  if (text.includes('${') || !URL.canParse(text)) throw new SmsError('baseUrlInvalid');
  const url = new URL(text);
  const web = url.protocol === 'https:' || url.protocol === 'http:';
  if (!web || url.username || url.password || url.search || url.hash) throw new SmsError('baseUrlInvalid');
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) throw new SmsError('baseUrlHttp');
  let { pathname } = url;
  while (pathname.endsWith('/')) pathname = pathname.slice(0, -1);
  return url.origin + pathname;
}

/** Whether the host of a `URL` is this machine. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname)
  );
}

/**
 * Checks that the credentials are present and can be sent in a header. Drops white space around an API key.
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
    // Refuses a colon, because in the header, the first colon ends the user name (RFC 7617).
    if (type === 'basic' && userId.includes(':')) throw new SmsError('userIdColon');
    if (!password?.trim()) throw new SmsError('passwordMissing');
    return { type, userId, password };
  }
  const apiKey = credentials.apiKey?.trim();
  if (!apiKey) throw new SmsError('apiKeyMissing');
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new SmsError('apiKeyInvalid');
  return { type: 'bearer', apiKey };
}

/** Address and login of a Redis server, with the property names of the Redis client. */
export interface RedisServer {
  host: string;
  port: number;
  db: number;
  username?: string;
  password?: string;
  /** Present: TLS with the defaults of Node.js. */
  tls?: Record<string, never>;
}

const defaultPort = 6379;

/**
 * Reads a `redis://` or `rediss://` URL with a host and optionally user, password, port and the number of a database.
 * Refuses any other URL, because the client would read a query as options, and any path as a database.
 *
 * @throws SmsError `SMS_CONFIG`, without the URL, because it can contain a password
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
