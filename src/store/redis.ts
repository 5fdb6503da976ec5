import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../clock';
import { parseRedisUrl } from '../login';
import { attempt, describeFailure } from './redis-failures';
import { createKeys, type ListedItem, type RedisKeys } from './redis-scripts';
import { RedisSession, type RedisTiming, type SessionOptions } from './redis-session';
import {
  type Changes,
  formatRemembered,
  type Item,
  type Leftovers,
  parseRemembered,
  type Remembered,
  readItems,
  type Store,
  StoreConflict,
  type StoreEvents,
} from './store';

export type { RedisTiming } from './redis-session';

/** Where and how a {@link RedisStore} keeps. */
export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with user and password if the server asks for them. */
  url: string;
  /** Tells logins apart and gives nothing away; part of every key. */
  key: string;
  /** Differs from the usual only in tests. Has to be the same for all instances. */
  timing?: Partial<RedisTiming>;
  /** The machine's own when absent. */
  clock?: Clock;
}

/**
 * What a dead instance held is another's after at most `aliveMs` and one or two heartbeats, which is less than 60 s. Of the ledger, what
 * nobody wants is somebody's after as long as texts wait for a node that is gone.
 */
const redisTiming: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 10_000,
  graceMs: 15_000,
  reservedMs: 7 * 24 * 3_600_000,
  commandTimeoutMs: 5_000,
};

/** Names that the server goes through in one go, in which it serves nobody else: less than a millisecond. */
const scanSize = 1_000;

/**
 * Keeps everything on a Redis or Valkey server, for all instances of Node-RED that use one login.
 *
 * The items that an instance holds are in a hash of its own, by id, until it is done with them. Keys, all with the prefix `sms:{KEY}:` so that a
 * cluster keeps them together: `inbox:…` (the items of an instance), `instances` (their names), `unreadable` (what was set aside, by id),
 * `seen:…` (what is remembered, expiring) and `alive:…` (signs of life, expiring). Time is the server's alone: the clocks of the machines may differ.
 *
 * @example
 * ```ts
 * import { RedisStore } from '@messaging-service/node-red-sms';
 *
 * const url = 'rediss://:password@redis.example.com';
 * const createStore = (key: string) => new RedisStore({ url, key });
 * console.log(createStore('0a8c').durable);
 * ```
 */
export class RedisStore implements Store {
  readonly durable = true;
  readonly shared = true as const;
  readonly takeOverMs: number;
  readonly #options: SessionOptions;
  readonly #keys: RedisKeys;
  #session: RedisSession | undefined;
  /** It was open before. */
  #isKnown = false;
  /** The server has lost what this instance held, and those who are to hear of it have not yet. */
  #isReset = false;

  /** @throws SmsError `SMS_CONFIG` when the URL is not usable */
  constructor({ url, key, timing, clock = systemClock }: RedisStoreOptions) {
    this.#keys = createKeys(key);
    const times = { ...redisTiming, ...timing };
    this.takeOverMs = times.aliveMs + times.graceMs + 2 * times.heartbeatMs;
    this.#options = { server: parseRedisUrl(url), clock, timing: times, keys: this.#keys, consumer: randomUUID() };
  }

  async open(events: StoreEvents): Promise<Leftovers> {
    this.#abandon();
    try {
      const session = await RedisSession.open(this.#options);
      this.#session = session;
      this.#isReset ||= this.#isKnown && !session.isThere;
      const listed = [...(await session.listOwn()), ...(await session.takeOver(events.wanted()))];
      const items = await this.#readItems(session, listed, events);
      session.keepAlive(
        () => this.#takeOver(session, events),
        (error) => events.onFailure(error),
      );
      const isReset = this.#isReset;
      this.#isKnown = true;
      this.#isReset = false;
      return { items, held: [], isReset };
    } catch (error) {
      this.#abandon();
      throw describeFailure(error);
    }
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const { redis } = this.#opened();
    const texts = await attempt(redis.mget(keys.map(this.#keys.seen)));
    return texts.map((text) => (text === null ? undefined : parseRemembered(text)));
  }

  /** Goes through the names of all keys of the server, for it has no list of those of a login. */
  async list(prefixes: readonly string[]): Promise<[string, Remembered][]> {
    const { redis } = this.#opened();
    const start = this.#keys.seen('');
    const listed = new Map<string, Remembered>();
    let cursor = '0';
    do {
      const [next, found] = await attempt(redis.scan(cursor, 'MATCH', `${start}*`, 'COUNT', scanSize));
      const all = found.map((name) => name.slice(start.length));
      const keys = all.filter((key) => prefixes.some((prefix) => key.startsWith(prefix)));
      const values = keys.length > 0 ? await this.recall(keys) : [];
      for (const [index, key] of keys.entries()) {
        const remembered = values[index];
        if (remembered) listed.set(key, remembered);
      }
      cursor = next;
    } while (cursor !== '0');
    return [...listed];
  }

  async commit(changes: Changes, recalled: ReadonlyMap<string, Remembered | undefined>): Promise<void> {
    const session = this.#opened();
    const unchanged = [...changes.compare].filter((key) => !changes.remember.has(key));
    const keys = [...changes.remember.keys(), ...unchanged];
    const step = {
      expected: keys.map((key) => ({ check: recalled.has(key), value: formerly(recalled.get(key)) })),
      remember: [...changes.remember.values()].map((value) => value !== undefined && formatExpiring(value)),
      keep: [...changes.keep.values()].map((item) => ({ id: item.id, text: JSON.stringify(item) })),
      drop: [...changes.drop.keys()],
    };
    if (!(await attempt(session.commit(keys.map(this.#keys.seen), step)))) throw new StoreConflict();
  }

  /** Redis forgets by itself. */
  async sweep(): Promise<void> {}

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  /** Ends the session without a word to the others: this instance still lives. */
  #abandon(): void {
    this.#session?.abandon();
    this.#session = undefined;
  }

  async #takeOver(session: RedisSession, events: StoreEvents): Promise<void> {
    const items = await this.#readItems(session, await session.takeOver(events.wanted()), events);
    if (this.#session === session && items.length > 0) events.onTakenOver(items);
  }

  #readItems({ redis }: RedisSession, listed: readonly ListedItem[], events: StoreEvents): Promise<Item[]> {
    const { unreadable } = this.#keys;
    return readItems(listed, events, async (id, text) => {
      await redis.hset(unreadable, id, text);
      await redis.hdel(this.#keys.items(this.#options.consumer), id);
      return unreadable;
    });
  }

  #opened(): RedisSession {
    if (!this.#session) throw new Error('not open');
    return this.#session;
  }
}

/** As it stood when it was read; `false` for nothing, as in scripts. */
function formerly(remembered: Remembered | undefined): string | false {
  return remembered !== undefined && formatRemembered(remembered);
}

function formatExpiring(remembered: Remembered): { text: string; forMs: number } {
  return { text: formatRemembered(remembered), forMs: Math.max(1, Math.ceil(remembered.forMs)) };
}
