import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { type Changes, type Entry, type Leftovers, type Store, StoreConflict, type StoreEvents } from './store';

/** How fast a {@link RedisStore} notices that another instance is gone. Milliseconds. */
export interface RedisTiming {
  /** An instance that has not given a sign of life for so long does not live any more. */
  aliveMs: number;
  /** Between two signs of life. */
  heartbeatMs: number;
  /** For so long after it has connected, an instance leaves it to the others to come back after a common outage. */
  graceMs: number;
  /** A command or a connection attempt that takes longer has failed. */
  commandTimeoutMs: number;
}

/** Where and how a {@link RedisStore} keeps. */
export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with user and password if the server asks for them. */
  url: string;
  /** Tells logins apart and gives nothing away; part of every key. */
  key: string;
  /** How long an identifier is remembered. */
  dedupeMs: number;
  /** Differs from {@link redisTiming} only in tests. Has to be the same for all instances. */
  timing?: Partial<RedisTiming>;
}

/** What a dead instance held is another's after at most `aliveMs` and one or two heartbeats, which is less than 60 s. */
export const redisTiming: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 10_000,
  graceMs: 15_000,
  commandTimeoutMs: 5_000,
};

const group = 'node-red';
/** The sign of an instance that has closed: others need not wait to take over what it has not delivered. */
const leftSign = 'left';
const pageSize = 1_000;

/**
 * Commits one step, or nothing when what it is based on has changed (0), or when the sign of life does not stand any
 * more and others may have taken over what this instance holds (-1). Keys: stream, sign of life, then one for each
 * remembered. A new entry is its holder's from the beginning.
 */
const commitScript = `
local step = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[2]) ~= step.sign then return -1 end
for index, expected in ipairs(step.expected) do
  if expected.check and redis.call('GET', KEYS[index + 2]) ~= expected.value then return 0 end
end
for index, value in ipairs(step.remember) do
  if value then redis.call('SET', KEYS[index + 2], value, 'PX', step.ttl)
  else redis.call('DEL', KEYS[index + 2]) end
end
local ids = {}
local function hold(id, attempts, ...)
  redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, id, 'RETRYCOUNT', attempts, 'JUSTID', ...)
end
for index, entry in ipairs(step.add) do
  ids[index] = redis.call('XADD', KEYS[1], '*', 'entry', entry.text)
  hold(ids[index], entry.attempts, 'FORCE', 'LASTID', ids[index])
end
for _, entry in ipairs(step.count) do hold(entry.id, entry.attempts) end
for _, id in ipairs(step.drop) do
  redis.call('XACK', KEYS[1], step.group, id)
  redis.call('XDEL', KEYS[1], id)
end
return ids
`;

/** Lists a page of what a consumer holds: stream id, attempts and entry of each, and the last stream id looked at. */
const listScript = `
local listed = {}
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], '+', ${pageSize}, ARGV[2])
for _, item in ipairs(pending) do
  local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
  if found then listed[#listed + 1] = { item[1], item[4], found[2][2] } end
end
return { listed, pending[${pageSize}] and pending[${pageSize}][1] or '' }
`;

/**
 * Takes over what other consumers hold who have left, or who have no sign of life, as far as it is wanted here. Keys:
 * stream, then the sign of life of each consumer of \`others\`. Returns stream id, attempts and entry of each.
 */
const takeOverScript = `
local step = cjson.decode(ARGV[1])
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local function isWanted(text)
  local entry = cjson.decode(text)
  local address = entry.address
  if not address then return wanted[entry.channel] end
  return wanted['node ' .. address.node] or wanted['path ' .. address.path]
end
local taken = {}
for index, name in ipairs(step.others) do
  local sign = redis.call('GET', KEYS[index + 1])
  if sign == '${leftSign}' or (step.all and not sign) then
    local pending = redis.call('XPENDING', KEYS[1], step.group, '-', '+', ${pageSize}, name)
    local rest = #pending == ${pageSize}
    for _, item in ipairs(pending) do
      local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
      if found and isWanted(found[2][2]) then
        redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, item[1], 'RETRYCOUNT', item[4], 'JUSTID')
        taken[#taken + 1] = { item[1], item[4], found[2][2] }
      elseif found then rest = true end
    end
    if not rest then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], step.group, name) end
  end
end
return taken
`;

/** One connection, from its opening until it fails or is closed. */
interface Session {
  redis: Redis;
  /** The sign of life of this session. A commit of an earlier one, however late it arrives, finds another. */
  sign: string;
  openedAt: number;
  nextBeat?: NodeJS.Timeout;
}

interface Place {
  streamId: string;
  /** Whether what is in the stream has the twin too, which comes later than the rest. */
  hasTwin: boolean;
}

type ListedItem = [streamId: string, attempts: number, entry: string];

/**
 * Keeps everything on a Redis or Valkey server, for all instances of Node-RED that use one login.
 *
 * Entries are in a stream with a consumer group; each instance is a consumer and holds what it has read from the
 * service until it is delivered. Keys, all with the prefix `sms:{KEY}:` so that a cluster keeps them together:
 * `inbox` (stream), `epoch` (tells when the server has lost everything), `seen:…` (what is remembered, expiring) and
 * `alive:…` (signs of life, expiring). Time is the server's alone: the clocks of the machines may differ.
 */
export class RedisStore implements Store {
  readonly durable = true;
  readonly shared = true as const;
  readonly takeOverMs: number;
  readonly #options: RedisStoreOptions;
  readonly #timing: RedisTiming;
  readonly #consumer = randomUUID();
  /** Where the entries that this instance holds are in the stream, by entry id. */
  readonly #places = new Map<string, Place>();
  #session: Session | undefined;
  #epoch: string | undefined;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    this.#timing = { ...redisTiming, ...options.timing };
    const { aliveMs, heartbeatMs, graceMs } = this.#timing;
    this.takeOverMs = aliveMs + graceMs + 2 * heartbeatMs;
  }

  async open(events: StoreEvents): Promise<Leftovers> {
    this.#abandon();
    try {
      const session = await this.#connect(events);
      const isReset = await this.#settleIn(session.redis, session.sign);
      const entries = [...(await this.#listOwn(session)), ...(await this.#takeOver(session, events.wanted()))];
      session.nextBeat = setTimeout(() => void this.#beat(session, events), this.#timing.heartbeatMs);
      return { entries, held: [], isReset };
    } catch (error) {
      this.#abandon();
      throw describeFailure(error);
    }
  }

  /** Nothing is nearer than the server itself: what is lost with this process was one round trip from being kept. */
  hold(): () => void {
    return () => {};
  }

  async recall(keys: readonly string[]): Promise<(string | undefined)[]> {
    const { redis } = this.#opened();
    const values = await attempt(redis.mget(keys.map((key) => this.#key(`seen:${key}`))));
    return values.map((value) => value ?? undefined);
  }

  async commit(changes: Changes, recalled: ReadonlyMap<string, string | undefined>): Promise<void> {
    const { redis, sign } = this.#opened();
    const kept = [...changes.keep.values()];
    const isUpToDate = ({ id, twin }: Entry) => this.#places.get(id)?.hasTwin === (twin !== undefined);
    const added = kept.filter((entry) => !isUpToDate(entry));
    const counted = kept.filter(isUpToDate);
    const streamIds = (ids: Iterable<string>) =>
      [...ids].map((id) => this.#places.get(id)?.streamId).filter((id) => id !== undefined);
    const remembered = [...changes.remember];
    const step = {
      group,
      consumer: this.#consumer,
      sign,
      ttl: Math.max(1, Math.ceil(this.#options.dedupeMs)),
      expected: remembered.map(([key]) => ({ check: recalled.has(key), value: recalled.get(key) ?? false })),
      remember: remembered.map(([, value]) => value ?? false),
      add: added.map((entry) => ({ text: JSON.stringify(entry), attempts: entry.attempts })),
      count: counted.map(({ id, attempts }) => ({ id: this.#places.get(id)?.streamId, attempts })),
      // What is in a stream cannot be changed, only replaced.
      drop: [...streamIds(changes.drop), ...streamIds(added.map(({ id }) => id))],
    };
    const keys = [
      this.#key('inbox'),
      this.#aliveKey(this.#consumer),
      ...remembered.map(([key]) => this.#key(`seen:${key}`)),
    ];
    const result = await attempt(redis.eval(commitScript, keys.length, ...keys, JSON.stringify(step)));
    if (result === 0) throw new StoreConflict('changed by another instance');
    if (result === -1) throw signExpired();
    for (const [index, streamId] of (result as string[]).entries()) {
      const entry = added[index];
      if (entry) this.#places.set(entry.id, { streamId, hasTwin: entry.twin !== undefined });
    }
    for (const id of changes.drop) this.#places.delete(id);
  }

  /** Redis forgets by itself. */
  sweep(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#places.clear();
    if (!session) return;
    clearTimeout(session.nextBeat);
    const { redis } = session;
    if (redis.status === 'ready') {
      await redis.set(this.#aliveKey(this.#consumer), leftSign, 'PX', this.#timing.aliveMs).catch(() => {});
    }
    redis.disconnect();
  }

  /** Ends the session without a word to the others: this instance still lives. */
  #abandon(): void {
    clearTimeout(this.#session?.nextBeat);
    const redis = this.#session?.redis;
    this.#session = undefined;
    this.#places.clear();
    redis?.disconnect();
  }

  async #connect(events: StoreEvents): Promise<Session> {
    // Loaded only here, so that accounts without Redis do not pay for it.
    const { Redis } = await import('ioredis');
    const redis = new Redis(this.#options.url, {
      lazyConnect: true,
      // The inbox opens the store again by itself, and has to know when it is gone.
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      connectTimeout: this.#timing.commandTimeoutMs,
      commandTimeout: this.#timing.commandTimeoutMs,
      // A user needs permission for nothing beyond the commands of this file.
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
    });
    let failure: Error | undefined;
    redis.on('error', (error: Error) => {
      failure ??= error;
    });
    try {
      await redis.connect();
      // A refused database number does not end the connection, which then is one to another database.
      if (failure) throw failure;
    } catch (error) {
      redis.disconnect();
      throw failure ?? error;
    }
    const session: Session = { redis, sign: randomUUID(), openedAt: performance.now() };
    this.#session = session;
    redis.on('close', () => {
      // While it is being opened, the rejection tells.
      if (this.#session === session && session.nextBeat)
        events.onFailure(describeFailure(failure ?? new Error('connection closed')));
    });
    return session;
  }

  /** Gives the first sign of life and makes the group. Returns whether the server has lost what was there before. */
  async #settleIn(redis: Redis, sign: string): Promise<boolean> {
    await redis.set(this.#aliveKey(this.#consumer), sign, 'PX', this.#timing.aliveMs);
    await redis.xgroup('CREATE', this.#key('inbox'), group, '0', 'MKSTREAM').catch(ignoreExistingGroup);
    await redis.set(this.#key('epoch'), randomUUID(), 'NX');
    const epoch = (await redis.get(this.#key('epoch'))) ?? undefined;
    const isReset = this.#epoch !== undefined && this.#epoch !== epoch;
    this.#epoch = epoch;
    return isReset;
  }

  async #beat(session: Session, events: StoreEvents): Promise<void> {
    const { redis, sign } = session;
    try {
      // Only prolonged: once it has expired, others may have taken over what this instance holds.
      const isAlive = await redis.set(this.#aliveKey(this.#consumer), sign, 'PX', this.#timing.aliveMs, 'XX');
      if (!isAlive) throw signExpired();
      const entries = await this.#takeOver(session, events.wanted());
      if (this.#session !== session) return;
      if (entries.length > 0) events.onTakenOver(entries);
      session.nextBeat = setTimeout(() => void this.#beat(session, events), this.#timing.heartbeatMs);
    } catch (error) {
      if (this.#session === session) events.onFailure(describeFailure(error));
    }
  }

  /** What this instance held before the connection was lost, and nobody has taken over. */
  async #listOwn({ redis }: Session): Promise<Entry[]> {
    const entries: Entry[] = [];
    for (let from = '-'; from !== ''; ) {
      const answer = await redis.eval(listScript, 1, this.#key('inbox'), group, this.#consumer, from);
      const [items, last] = answer as [ListedItem[], string];
      entries.push(...items.map((item) => this.#parseItem(item)));
      from = last && nextStreamId(last);
    }
    return entries;
  }

  async #takeOver(session: Session, wanted: ReturnType<StoreEvents['wanted']>): Promise<Entry[]> {
    const { redis, openedAt } = session;
    const stream = this.#key('inbox');
    const consumers = (await redis.xinfo('CONSUMERS', stream, group)) as string[][];
    const others = consumers
      .map((fields) => fields[fields.indexOf('name') + 1] ?? '')
      .filter((name) => name !== this.#consumer && name !== '');
    if (others.length === 0) return [];
    const keys = [stream, ...others.map((name) => this.#aliveKey(name))];
    const step = {
      group,
      consumer: this.#consumer,
      others,
      all: performance.now() - openedAt >= this.#timing.graceMs,
      wanted: [
        ...wanted.channels,
        ...wanted.nodes.map((node) => `node ${node}`),
        ...wanted.paths.map((path) => `path ${path}`),
      ],
    };
    const items = (await redis.eval(takeOverScript, keys.length, ...keys, JSON.stringify(step))) as ListedItem[];
    // Of a session that has ended meanwhile, the next one lists them as its own.
    return this.#session === session ? items.map((item) => this.#parseItem(item)) : [];
  }

  #parseItem([streamId, attempts, text]: ListedItem): Entry {
    const entry = JSON.parse(text) as Entry;
    this.#places.set(entry.id, { streamId, hasTwin: entry.twin !== undefined });
    // The group counts the attempts; what the entry says is how it began.
    return { ...entry, attempts };
  }

  #opened(): Session {
    if (!this.#session) throw new Error('not open');
    return this.#session;
  }

  #aliveKey(consumer: string): string {
    return this.#key(`alive:${consumer}`);
  }

  #key(name: string): string {
    return `sms:{${this.#options.key}}:${name}`;
  }
}

function nextStreamId(streamId: string): string {
  const [ms = '0', sequence = '0'] = streamId.split('-');
  return `${ms}-${BigInt(sequence) + 1n}`;
}

function signExpired(): Error {
  return new Error('no sign of life for too long');
}

function ignoreExistingGroup(error: unknown): void {
  if (!(error instanceof Error) || !error.message.startsWith('BUSYGROUP')) throw error;
}

const refusals: Readonly<Record<string, string>> = {
  WRONGPASS: 'the user name or the password in the Redis URL is wrong',
  NOAUTH: 'the Redis URL has no password',
  NOPERM: 'the user of the Redis URL may not use the commands or the keys that are needed',
  OOM: 'the server has no memory left',
  READONLY: 'the server is a replica',
  MISCONF: 'the server cannot save to its disk',
  LOADING: 'the server is still loading its data',
  MOVED: 'the server is a part of a cluster that keeps this login elsewhere',
};

async function attempt<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    throw describeFailure(error);
  }
}

/** Says what failed without what the client's own errors carry: the command, and with it the password or a text. */
function describeFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('Redis: unknown reason');
  if (error.name === 'ReplyError') {
    const word = /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
    return new Error(`Redis ${word}: ${refusals[word] ?? 'the server refuses a command that is needed'}`);
  }
  const { code } = error as { code?: unknown };
  return new Error(`Redis: ${typeof code === 'string' ? code : error.message.replace(/\.$/, '')}`);
}
