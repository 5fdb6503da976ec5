import { randomUUID } from 'node:crypto';
import { type Clock, systemClock, type Timer } from '../clock';
import { createRedactor, type Redact } from '../http/redact';
import { parseRedisUrl } from '../login';
import { storedMs } from './counts';
import {
  closedHeartbeat,
  createKeys,
  heartbeatField,
  type ListedItem,
  type ScriptedRedis,
  scripts,
} from './redis-scripts';
import {
  type Changes,
  formatRemembered,
  type Item,
  parseRemembered,
  type RecoveredState,
  type Remembered,
  readItems,
  type Store,
  StoreConflict,
  type StoreEvents,
  StoreLapse,
  type StorePage,
} from './store';

/** Times of a {@link RedisStore}, in ms. */
export interface RedisTiming {
  /** Time without a heartbeat after which an instance is dead. */
  aliveMs: number;
  /** Time between two heartbeats. */
  heartbeatMs: number;
  /**
   * Time after connecting for which an instance treats no other instance as dead. The other instances might still be
   * returning from the same outage.
   */
  graceMs: number;
  /**
   * Time for which outgoing messages of a dead instance wait for an instance that has the nodes that sent them.
   * Afterwards, any instance can claim them.
   */
  reservedMs: number;
  /** Maximum duration of a command. */
  commandTimeoutMs: number;
}

/** Options of a {@link RedisStore}. */
export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with user and password if the server asks for them. */
  url: string;
  /** Identifies the login without revealing it, and is part of every key on the server. */
  key: string;
  /** Changed only by tests. All instances must use the same values. */
  timing?: Partial<RedisTiming>;
  /** Default: the clock of the machine. */
  clock?: Clock;
}

/**
 * An instance claims the items of a dead instance within `aliveMs` plus two heartbeats, which is less than 60 s.
 * `reservedMs` is also the time for which stored messages wait for a missing node.
 */
const redisTiming: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 10_000,
  graceMs: 15_000,
  reservedMs: 7 * 24 * 3_600_000,
  commandTimeoutMs: 5_000,
};

/**
 * If the expiry of a heartbeat has moved by more than this, in ms, the heartbeat was renewed. Smaller differences are
 * network delay.
 */
const minRenewalMs = 1_000;

/**
 * Maximum number of items that one command lists or claims. It is small, because the server serves no other client
 * during a command.
 */
const pageSize = 250;

/** Number of keys that the server scans in one command, which takes less than a millisecond. */
const scanSize = 1_000;

/**
 * Error message if the heartbeat of this instance is missing. Other instances might have claimed its items, or the
 * server has lost them.
 */
const missingHeartbeat =
  'Redis: the server has no heartbeat of this instance. The instance was cut off or paused for too long, or its keys (sms:…) were deleted or evicted. It reconnects by itself. If this error returns, check the network, the load of this machine, and which program deletes keys';

/**
 * Other instances that might be dead. The value is the expiry time of their heartbeat, by {@link Clock.elapsed};
 * `undefined`: not read yet.
 */
type UncertainInstances = Map<string, number | undefined>;

/** One connection, from its opening until it fails or is closed. */
interface Session {
  redis: ScriptedRedis;
  /**
   * Heartbeat value of this session. Each session has a different value, so that a late commit of an earlier session
   * fails.
   */
  heartbeat: string;
  beganAtMs: number;
  events?: StoreEvents;
  uncertainInstances?: UncertainInstances;
  nextBeat?: Timer;
}

/**
 * Stores everything on a Redis or Valkey server, for all instances of Node-RED that use the same login.
 *
 * The items of an instance are in its own hash, by id. All keys have the prefix `sms:{KEY}:`, so that a cluster stores
 * them together: `inbox:…` (items of an instance), `instances` (their names), `unreadable` (quarantined items, by id),
 * `seen:…` (remembered values, expiring) and `alive:…` (heartbeats, expiring). The store uses only the time of the
 * server, because the clocks of the machines can differ.
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
  readonly #server: ReturnType<typeof parseRedisUrl>;
  readonly #redact: Redact;
  readonly #clock: Clock;
  readonly #timing: RedisTiming;
  readonly #keys: ReturnType<typeof createKeys>;
  /** Name of this instance. */
  readonly #consumer = randomUUID();
  /** Difference between the clock of the server and {@link Clock.elapsed}, in ms. */
  #serverLeadMs: number | undefined;
  /** The current session. */
  #session: Session | undefined;
  /** Heartbeat value of the last session. */
  #lastHeartbeat: string | undefined;

  /** @throws SmsError `SMS_CONFIG` if the URL is invalid */
  constructor({ url, key, timing, clock = systemClock }: RedisStoreOptions) {
    this.#server = parseRedisUrl(url);
    const { username = '', password = '' } = this.#server;
    this.#redact = createRedactor({ type: 'form', userId: username, password });
    this.#clock = clock;
    this.#timing = { ...redisTiming, ...timing };
    this.#keys = createKeys(key);
  }

  async open(events: StoreEvents): Promise<RecoveredState> {
    this.#abandon(this.#session);
    const redis = await this.#createClient();
    const session: Session = { redis, heartbeat: randomUUID(), beganAtMs: this.#clock.elapsed() };
    // Reports the last error. If the password is wrong, the first error says only that the server refuses to select the
    // database.
    let failure: Error | undefined;
    redis.on('error', (error: Error) => (failure = error));
    redis.on('close', () => this.#fail(session, events, failure ?? new Error('connection closed')));
    try {
      await redis.connect();
      // If the database in the URL does not exist, the client connects anyway, and reports the error only by an event.
      if (failure) throw failure;
      const { aliveMs } = this.#timing;
      const step = {
        consumer: this.#consumer,
        heartbeat: session.heartbeat,
        lastHeartbeat: this.#lastHeartbeat,
        aliveMs,
      };
      const names = [...this.#keys.allOf(this.#consumer), this.#keys.instances];
      session.heartbeat = await redis.startSession(...names, JSON.stringify(step));
      session.events = events;
      await this.#readTime(redis);
      session.uncertainInstances = (await this.#claim(session, events)).uncertainInstances;
      const items: Item[] = [];
      if (!events.isImport) for await (const page of this.#itemPages(session, events)) items.push(...page);
      this.#session = session;
      this.#beatLater(session, events);
      this.#lastHeartbeat = session.heartbeat;
      return { items, pendingWrites: [], isReset: session.heartbeat === step.heartbeat };
    } catch (error) {
      this.#abandon(session);
      throw describeFailure(failure ?? error, this.#redact);
    }
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const { redis } = this.#requireSession();
    const texts = await this.#attempt(redis.mget(keys.map(this.#keys.seen)));
    return texts.map((text) => (text === null ? undefined : parseRemembered(text)));
  }

  now(): number | undefined {
    return this.#serverLeadMs === undefined ? undefined : this.#clock.elapsed() + this.#serverLeadMs;
  }

  /**
   * Returns true while it is unknown whether some other instances are alive or dead. An instance counts as alive if it
   * has renewed its heartbeat since the first call of this method.
   */
  async awaitsClaims(): Promise<boolean> {
    const session = this.#requireSession();
    const { uncertainInstances = new Map(), events, redis, beganAtMs } = session;
    for (const [name, earlierExpiry] of uncertainInstances) {
      const leftMs = await this.#attempt(redis.pttl(this.#keys.alive(name)));
      const expiresAt = this.#clock.elapsed() + leftMs;
      if (leftMs > 0 && earlierExpiry !== undefined && expiresAt - earlierExpiry > minRenewalMs)
        uncertainInstances.delete(name);
      else if (leftMs > 0) uncertainInstances.set(name, earlierExpiry ?? expiresAt);
      else if (this.#clock.elapsed() - beganAtMs >= this.#timing.graceMs && events) {
        await this.#claim(session, events);
        uncertainInstances.delete(name);
      }
    }
    return uncertainInstances.size > 0;
  }

  /** Reads the names of all keys on the server, because the server has no list of the keys of one login. */
  async *pages(): AsyncGenerator<StorePage> {
    const session = this.#requireSession();
    const { redis, events } = session;
    if (events) for await (const items of this.#itemPages(session, events)) yield { items, remembered: [] };
    const start = this.#keys.seen('');
    let cursor = '0';
    do {
      const [next, keyNames] = await this.#attempt(redis.scan(cursor, 'MATCH', `${start}*`, 'COUNT', scanSize));
      const keys = keyNames.map((name) => name.slice(start.length));
      const values = keys.length > 0 ? await this.recall(keys) : [];
      const remembered = keys.map((key, index) => [key, values[index]] as const).filter(isRemembered);
      if (remembered.length > 0) yield { items: [], remembered };
      cursor = next;
    } while (cursor !== '0');
  }

  async clear(key: string, mark: Remembered): Promise<void> {
    const expected = [{ check: false, value: false }];
    const step = { expected, remember: [formatExpiring(mark)], keep: [], drop: [], count: [], isClearing: true };
    await this.#attempt(this.#commit(this.#requireSession(), [this.#keys.seen(key)], step));
  }

  async commit(changes: Changes, recalled: ReadonlyMap<string, Remembered | undefined>): Promise<void> {
    const unchangedKeys = [...changes.compare].filter((key) => !changes.remember.has(key));
    const comparedKeys = [...changes.remember.keys(), ...unchangedKeys];
    const keys = [...comparedKeys, ...changes.count.keys()];
    const step = {
      expected: comparedKeys.map((key) => ({ check: recalled.has(key), value: formatRecalled(recalled.get(key)) })),
      remember: [...changes.remember.values()].map((value) => value !== undefined && formatExpiring(value)),
      keep: [...changes.keep.values()].map((item) => ({ id: item.id, text: JSON.stringify(item) })),
      drop: [...changes.drop.keys()],
      count: [...changes.count.values()].map((count) => ({ ...count, forMs: storedMs(count.windowMs) })),
    };
    const isCommitted = await this.#attempt(this.#commit(this.#requireSession(), keys.map(this.#keys.seen), step));
    if (!isCommitted) throw new StoreConflict();
  }

  /** Does nothing, because Redis drops expired keys. */
  async sweep(): Promise<void> {}

  /** Closes the connection, and lets other instances claim the items immediately. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    session?.nextBeat?.cancel();
    if (session?.redis.status === 'ready') {
      await session.redis
        .set(this.#keys.alive(this.#consumer), closedHeartbeat, 'PX', this.#timing.aliveMs)
        .catch(() => {});
    }
    session?.redis.disconnect();
  }

  /**
   * Ends a session without releasing the items, because this instance continues to run. Other instances cannot claim
   * the items yet.
   */
  #abandon(session: Session | undefined): void {
    this.#session = undefined;
    session?.nextBeat?.cancel();
    session?.redis.disconnect();
  }

  /** Reports a failure of the current session. Does nothing during `open`, because `open` rejects with the failure. */
  #fail(session: Session, events: StoreEvents, error: unknown): void {
    if (this.#session === session) events.onFailure(describeFailure(error, this.#redact));
  }

  /** Loads the client only here, so that accounts without Redis do not load it. */
  async #createClient(): Promise<ScriptedRedis> {
    const { Redis } = await import('ioredis');
    const { commandTimeoutMs } = this.#timing;
    const redis = new Redis({
      ...this.#server,
      lazyConnect: true,
      // Does not reconnect automatically, because the journal must notice the failure and open the store again.
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      connectTimeout: commandTimeoutMs,
      commandTimeout: commandTimeoutMs,
      // Sends only the commands of the store, because the Redis user might have no rights for other commands.
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
      scripts,
    });
    return redis as ScriptedRedis;
  }

  /** Reads the items of this instance, in order. */
  async *#itemPages(session: Session, events: StoreEvents): AsyncGenerator<Item[]> {
    const { redis } = session;
    const itemsKey = this.#keys.items(this.#consumer);
    const ids = (await this.#attempt(redis.hkeys(itemsKey))).filter((id) => id !== heartbeatField).sort();
    for (let start = 0; start < ids.length; start += pageSize) {
      const page = ids.slice(start, start + pageSize);
      const texts = await this.#attempt(redis.hmget(itemsKey, ...page));
      const listed = page.map((id, index): ListedItem => [id, texts[index] ?? '']);
      yield await this.#readItems(session, listed, events);
    }
  }

  /**
   * Claims the wanted items of dead instances.
   *
   * @returns the claimed items, and the instances that might be dead
   */
  async #claim(
    { redis, heartbeat, beganAtMs }: Session,
    events: StoreEvents,
  ): Promise<{ claimedItems: ListedItem[]; uncertainInstances: UncertainInstances }> {
    const [keys, { graceMs, reservedMs }] = [this.#keys, this.#timing];
    const [wantedNames, mayClaimAll] = [events.wantedNames(), this.#clock.elapsed() - beganAtMs >= graceMs];
    const ownKeys = [keys.items(this.#consumer), keys.alive(this.#consumer), keys.instances];
    const otherNames = (await redis.smembers(keys.instances)).filter((name) => name !== this.#consumer);
    const heartbeats = otherNames.length > 0 ? await redis.mget(otherNames.map(keys.alive)) : [];
    const deadNames = otherNames.filter(
      (_, index) => heartbeats[index] === closedHeartbeat || (mayClaimAll && heartbeats[index] === null),
    );
    const claimedItems: ListedItem[] = [];
    for (const other of deadNames) {
      const names = [...ownKeys, ...keys.allOf(other)];
      const remainingIds = (await redis.hkeys(keys.items(other))).filter((id) => id !== heartbeatField).sort();
      do {
        const step = {
          heartbeat,
          other,
          mayClaimAll,
          wanted: wantedNames,
          reservedMs,
          ids: remainingIds.splice(0, pageSize),
        };
        const newItems = await redis.claimItems(...names, JSON.stringify(step));
        if (newItems === null) throw new StoreLapse(missingHeartbeat);
        for (const item of newItems) claimedItems.push(item);
      } while (remainingIds.length > 0);
    }
    return {
      claimedItems: claimedItems,
      uncertainInstances: new Map(
        otherNames.filter((name) => !deadNames.includes(name)).map((name) => [name, undefined]),
      ),
    };
  }

  /**
   * Commits a step, and renews the heartbeat. Returns false if nothing was committed, because a compared value has
   * changed or a limit is reached.
   *
   * @param names keys in this order: remembered values, values that are only compared, counts
   */
  async #commit({ redis, heartbeat }: Session, names: readonly string[], step: object): Promise<boolean> {
    const allKeys = [this.#keys.items(this.#consumer), this.#keys.alive(this.#consumer), ...names];
    const fullStep = { ...step, heartbeat, aliveMs: this.#timing.aliveMs };
    const result = await redis.commitStep(allKeys.length, ...allKeys, JSON.stringify(fullStep));
    if (result === -1) throw new StoreLapse(missingHeartbeat);
    return result === 1;
  }

  async #readTime(redis: ScriptedRedis): Promise<void> {
    const askedAt = this.#clock.elapsed();
    const [seconds, micros] = await redis.time();
    const serverMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
    this.#serverLeadMs = serverMs - (askedAt + this.#clock.elapsed()) / 2;
  }

  #beatLater(session: Session, events: StoreEvents): void {
    session.nextBeat = this.#clock.after(this.#timing.heartbeatMs, async () => {
      try {
        // Renews the heartbeat by an empty commit. The commit fails if the heartbeat has expired, because other
        // instances might then have claimed the items.
        await this.#commit(session, [], { expected: [], keep: [], remember: [], drop: [], count: [] });
        await this.#readTime(session.redis);
        const { claimedItems } = await this.#claim(session, events);
        const items = await this.#readItems(session, claimedItems, events);
        // If the session has ended, ignores the claimed items: the next session reads them from the store.
        if (this.#session !== session) return;
        if (items.length > 0) events.onTakenOver(items);
        this.#beatLater(session, events);
      } catch (error) {
        this.#fail(session, events, error);
      }
    });
  }

  #readItems({ redis }: Session, listed: readonly ListedItem[], events: StoreEvents): Promise<Item[]> {
    const { unreadable } = this.#keys;
    return readItems(listed, events, async (id, text) => {
      await redis.hset(unreadable, id, text);
      await redis.hdel(this.#keys.items(this.#consumer), id);
      return unreadable;
    });
  }

  /** Waits for a command. If it fails, rejects with the error of {@link describeFailure}. */
  #attempt<T>(command: Promise<T>): Promise<T> {
    return command.catch((error: unknown) => Promise.reject(describeFailure(error, this.#redact)));
  }

  #requireSession(): Session {
    if (!this.#session) throw new Error('not open');
    return this.#session;
  }
}

/** Formats a value so that a script can compare it. An absent value is `false`, as in Lua. */
function formatRecalled(remembered: Remembered | undefined): string | false {
  return remembered !== undefined && formatRemembered(remembered);
}

function isRemembered(entry: readonly [string, Remembered | undefined]): entry is [string, Remembered] {
  return entry[1] !== undefined;
}

function formatExpiring(remembered: Remembered): { text: string; forMs: number } {
  return { text: formatRemembered(remembered), forMs: Math.max(1, Math.ceil(remembered.forMs)) };
}

/** Matches the prefix that some servers put before the actual error of a script. */
const beforeRefusal = /^ERR Error running script .*@user_script: ?\d+: -?/s;
/** Matches the text that follows the actual error and quotes the sent data. */
const afterRefusal = /,? (?:script:|with args ).*/s;

/**
 * Describes a failure without quoting the command, which can contain the password or a body. The description contains
 * only the first sentence of the server's message, without the login.
 */
function describeFailure(error: unknown, redact: Redact): Error {
  if (error instanceof StoreLapse) return error;
  const { name, message, code } = error as { code?: unknown } & Error;
  if (name === 'ReplyError') {
    const refusal = redact(message)
      .replace(beforeRefusal, '')
      .replace(afterRefusal, '')
      .replace(/\bUser \S+/, 'the user');
    return new Error(`Redis: ${refusal.replace(/\.( .*)?$/s, '')}`);
  }
  if (code !== undefined) {
    // Adds a hint about TLS. The connection to a Redis server without TLS times out, because such a server waits for
    // the end of a line.
    const hint = /TIMEDOUT|SSL/.test(String(code)) ? '; with rediss:// in the Redis URL, it may not speak TLS' : '';
    return new Error(`Redis: ${code}${hint}`);
  }
  // For an unreadable answer, the client asks the user to report a bug. This text replaces that request, because the
  // usual cause is a server that is not a Redis server.
  return new Error(
    `Redis: ${/please report/i.test(message) ? 'the server does not speak Redis' : message.replace(/\.$/, '')}`,
  );
}
