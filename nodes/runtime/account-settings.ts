import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Node, NodeAPI, NodeDef } from 'node-red';
import {
  type AccountSettings,
  type Authentication,
  DiskStore,
  MemoryStore,
  type ProxyOptions,
  type ProxyRules,
  parseAuthentication,
  parseBaseUrl,
  parseConsentWords,
  parsePrefixes,
  parseQuietHours,
  parseRedisUrl,
  parseTimeZone,
  RedisStore,
  SmsError,
  type StoreChoice,
  type TlsOptions,
} from '../../src';
import { isInRange, limits, type Setting } from '../limits';
import { parseChoice, parseFlag, parseLimit, parseNumber, parseText } from './settings';

export const connectionFields = ['baseUrl', 'allowHttp', 'authType', 'method', 'tls', 'proxy', 'timeout'] as const;
type ConnectionField = (typeof connectionFields)[number];

type Consent = 'optOut' | 'optOutWords' | 'optInWords' | 'prefixes';
type Times = 'quietFrom' | 'quietTo' | 'timeZone';
type Field = ConnectionField | Consent | Times | 'store' | 'dedupe' | keyof (typeof limits)['sms-account'];

/** Connection settings from the form of `sms-account`, either saved or still being edited. */
export type ConnectionConfig = { [Name in ConnectionField]?: unknown };

/** The configuration of `sms-account`. */
export type AccountConfig = NodeDef & { [Name in Field]?: unknown };

/** The store of an account node, and its former stores. */
export interface NodeStores {
  /**
   * Name of the current store: `memory`, `disk` or `redis DIGEST`. The digest is made from the Redis URL without user
   * and password, because these can change.
   */
  place: string;
  /** Returns the store with the name `place`. Returns `undefined` if it is on a Redis server with an unknown URL. */
  storeAt(place: string): StoreChoice | undefined;
  /** File in which account nodes record their current and former places. Absent if Node-RED has no user directory. */
  placesFile?: string;
}

/** Settings of an account node. */
export interface NodeAccountSettings extends AccountSettings, NodeStores {}

/** Credentials of an account node. */
export type AccountCredentials = { [Name in 'apiKey' | 'userId' | 'password' | 'redisUrl']?: unknown };

interface TlsNode extends Node {
  addTLSOptions(options: TlsOptions): TlsOptions;
}

interface ProxyNode extends Node<{ username?: unknown; password?: unknown }> {
  url?: unknown;
  noproxy?: string[];
}

/** Account settings that one call to the service needs. */
export type ConnectionSettings = Pick<
  AccountSettings,
  'baseUrl' | 'authentication' | 'method' | 'timeoutMs' | 'tls' | 'proxy' | 'proxyRules'
>;

/**
 * Reads the connection settings.
 *
 * @throws SmsError `SMS_CONFIG`
 */
export function parseConnection(
  RED: NodeAPI,
  config: ConnectionConfig,
  credentials: AccountCredentials,
): ConnectionSettings {
  const tls = config.tls ? (RED.nodes.getNode(String(config.tls)) as TlsNode | null) : undefined;
  if (tls !== undefined && typeof tls?.addTLSOptions !== 'function') throw new SmsError('tlsMissing');
  const proxy = config.proxy ? (RED.nodes.getNode(String(config.proxy)) as ProxyNode | null) : undefined;
  if (proxy !== undefined && proxy?.type !== 'http proxy') throw new SmsError('proxyMissing');
  const proxyOptions = proxy && parseProxy(proxy);
  const { proxyOptions: proxyRules } = RED.settings as RequestSettings;
  const allowHttp = parseFlag('allowHttp', config.allowHttp, false);
  return {
    baseUrl: parseBaseUrl(parseText('baseUrl', config.baseUrl), allowHttp),
    authentication: parseLogin(config.authType, credentials),
    method: parseChoice('method', config.method, ['POST', 'GET']),
    timeoutMs: parseNumber('timeout', config.timeout, timeoutRange(RED)) * 1_000,
    ...(tls ? { tls: tls.addTLSOptions({}) } : undefined),
    ...(proxyOptions ? { proxy: proxyOptions } : undefined),
    ...(proxyRules ? { proxyRules } : undefined),
  };
}

/** Settings of Node-RED (`settings.js`) for requests of all nodes. */
interface RequestSettings {
  proxyOptions?: ProxyRules;
  /** Timeout in ms. */
  httpRequestTimeout?: unknown;
}

/**
 * Returns the range of `timeout`. If `timeout` is blank, `httpRequestTimeout` of `settings.js` applies, as in the core
 * node *http request*.
 */
function timeoutRange(RED: NodeAPI): Setting {
  const { timeout } = limits['sms-account'];
  const seconds = Number((RED.settings as RequestSettings).httpRequestTimeout) / 1_000;
  return isInRange(seconds, timeout) ? { ...timeout, byDefault: seconds } : timeout;
}

/** Reads the credentials. Only those of the chosen sign-in method are required. */
function parseLogin(type: unknown, credentials: AccountCredentials): Authentication {
  const authType = parseChoice('authType', type, ['bearer', 'basic', 'form']);
  const textOf = (name: keyof AccountCredentials) => parseText(name, credentials[name]);
  return parseAuthentication(
    authType,
    authType === 'bearer' ? { apiKey: textOf('apiKey') } : { userId: textOf('userId'), password: textOf('password') },
  );
}

function parseProxy({ url, noproxy = [], credentials = {} }: ProxyNode): ProxyOptions | undefined {
  const [address, username, password] = [url, credentials.username, credentials.password].map((value) =>
    parseText('proxy', value),
  );
  if (address === undefined) return undefined;
  return {
    url: address,
    noProxy: noproxy,
    ...(username === undefined ? undefined : { username }),
    ...(password === undefined ? undefined : { password }),
  };
}

/**
 * Reads the whole configuration of an account.
 *
 * @param warnNoUserDir called if Node-RED has no user directory for the disk store
 * @throws SmsError `SMS_CONFIG`
 */
export function parseAccount(
  RED: NodeAPI,
  config: AccountConfig,
  credentials: AccountCredentials,
  warnNoUserDir: () => void,
): NodeAccountSettings {
  const numberOf = (
    setting:
      | 'concurrency'
      | 'queueLimit'
      | 'pause'
      | 'parallelPolls'
      | 'dedupeHours'
      | 'rememberHours'
      | 'perHandsetMinutes',
  ) => parseNumber(setting, config[setting], limits['sms-account'][setting]);
  const limitOf = (setting: 'perSecond' | 'perHandset' | 'perDay') =>
    parseLimit(setting, config[setting], limits['sms-account'][setting]);
  const textOf = (setting: 'quietFrom' | 'quietTo' | 'optOutWords' | 'optInWords') =>
    parseText(setting, config[setting]);
  const dedupeMs = numberOf('dedupeHours') * 3_600_000;
  return {
    id: config.id,
    ...parseConnection(RED, config, credentials),
    concurrency: numberOf('concurrency'),
    queueLimit: numberOf('queueLimit'),
    perSecond: limitOf('perSecond'),
    limits: {
      perHandset: limitOf('perHandset'),
      perHandsetMs: Math.ceil(numberOf('perHandsetMinutes') * 60_000),
      perDay: limitOf('perDay'),
    },
    prefixes: parsePrefixes(config.prefixes),
    optOut: parseFlag('optOut', config.optOut, false)
      ? parseConsentWords(textOf('optOutWords'), textOf('optInWords'))
      : undefined,
    quietHours: parseQuietHours(textOf('quietFrom'), textOf('quietTo'), parseZone(config)),
    pauseMs: numberOf('pause') * 1_000,
    parallelPolls: numberOf('parallelPolls'),
    dedupe: parseFlag('dedupe', config.dedupe, true),
    dedupeMs,
    sentMs: numberOf('rememberHours') * 3_600_000,
    ...parseStore(RED, config, credentials, warnNoUserDir),
  };
}

function parseStore(
  RED: NodeAPI,
  config: AccountConfig,
  { redisUrl }: AccountCredentials,
  warnNoUserDir: () => void,
): StoreChoice & NodeStores {
  const kind = parseChoice('store', config.store, ['disk', 'memory', 'redis']);
  const { userDir } = RED.settings;
  const folder = userDir ? join(userDir, 'sms-inbox') : undefined;
  const memory = { place: 'memory', storeName: 'memory', createStore: () => new MemoryStore() };
  const stores: (StoreChoice & Pick<NodeStores, 'place'>)[] = [memory];
  if (folder !== undefined) {
    const createStore = (key: string) => new DiskStore(join(folder, key));
    stores.push({ place: 'disk', storeName: `disk ${folder}`, createStore });
  }
  const redis = kind === 'redis' ? parseRedis(redisUrl) : findRedis(redisUrl);
  if (redis) {
    const { url } = redis;
    stores.push({
      place: redis.place,
      storeName: `redis ${digest(url)}`,
      createStore: (key) => new RedisStore({ url, key }),
    });
  }
  if (kind === 'disk' && folder === undefined) warnNoUserDir();
  const storePlace = kind === 'redis' ? (redis?.place ?? '') : kind;
  const storeAt = (name: string) => stores.find(({ place }) => place === name);
  return {
    ...(storeAt(storePlace) ?? memory),
    storeAt,
    ...(folder === undefined ? undefined : { placesFile: join(folder, 'logins.json') }),
  };
}

/** Reads the URL of a Redis server, and derives the name of the store. */
function parseRedis(redisUrl: unknown): { url: string; place: string } {
  const url = parseText('redisUrl', redisUrl)?.trim() ?? '';
  const { host, port, db } = parseRedisUrl(url);
  return { url, place: `redis ${digest(JSON.stringify([host, port, db]))}` };
}

/** Reads a Redis URL that might not be in use. Returns `undefined` instead of an error if it is invalid. */
function findRedis(redisUrl: unknown): ReturnType<typeof parseRedis> | undefined {
  try {
    return parseRedis(redisUrl);
  } catch {
    return undefined;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Reads the maximum length of a body. `undefined`: no limit.
 *
 * @throws SmsError `SMS_CONFIG`
 */
export function parseMaxLength(config: AccountConfig): number | undefined {
  return parseLimit('maxLength', config.maxLength, limits['sms-account'].maxLength);
}

/**
 * Reads the time zone of an account. Blank: the time zone of the machine.
 *
 * @throws SmsError `SMS_CONFIG`
 */
export function parseZone(config: AccountConfig): string {
  return parseTimeZone(parseText('timeZone', config.timeZone));
}
