import { SmsError } from '../errors';

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
