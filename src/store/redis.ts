import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { formatRemembered, parseItem, parseRemembered } from './format';
import {
  type Changes,
  type Item,
  type Leftovers,
  type Remembered,
  type Store,
  StoreConflict,
  type StoreEvents,
} from './store';

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
for index, remembered in ipairs(step.remember) do
  if remembered then redis.call('SET', KEYS[index + 2], remembered.text, 'PX', remembered.forMs)
  else redis.call('DEL', KEYS[index + 2]) end
end
local ids = {}
local function hold(id, attempts, ...)
  redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, id, 'RETRYCOUNT', attempts, 'JUSTID', ...)
end
for index, item in ipairs(step.add) do
  ids[index] = redis.call('XADD', KEYS[1], '*', 'entry', item.text)
  hold(ids[index], item.attempts, 'FORCE', 'LASTID', ids[index])
end
for _, item in ipairs(step.count) do hold(item.id, item.attempts) end
for _, id in ipairs(step.drop) do
  redis.call('XACK', KEYS[1], step.group, id)
  redis.call('XDEL', KEYS[1], id)
end
return ids
`;

/** Lists a page of what a consumer holds: stream id, attempts and text of each, and the last stream id looked at. */
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
 * stream, then the sign of life of each consumer of \`others\`. Returns stream id, attempts and text of each.
 */
const takeOverScript = `
local step = cjson.decode(ARGV[1])
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local function isWanted(text)
  local read, item = pcall(cjson.decode, text)
  -- What nobody can read is whoever's finds it, to be set aside.
  if not read or type(item) ~= 'table' then return true end
  if type(item.takers) == 'table' then
    for _, taker in ipairs(item.takers) do if wanted[taker] then return true end end
    return false
  end
  -- Version 0.1.0 named nobody.
  local address = item.address
  if type(address) ~= 'table' then return item.channel == nil or wanted[item.channel] end
  return wanted['node ' .. tostring(address.node)] or wanted['path ' .. tostring(address.path)]
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
  revision: number;
}

type ListedItem = [streamId: string, attempts: number, text: string];

/**
 * Keeps everything on a Redis or Valkey server, for all instances of Node-RED that use one login.
 *
 * Items are in a stream with a consumer group; each instance is a consumer and holds what it has kept until it is done
 * with. Keys, all with the prefix `sms:{KEY}:` so that a cluster keeps them together:
 * `inbox` (stream), `unreadable` (stream of what was set aside), `epoch` (tells when the server has lost everything), `seen:…` (what is remembered, expiring) and
 * `alive:…` (signs of life, expiring). Time is the server's alone: the clocks of the machines may differ.
 */
export class RedisStore implements Store {
  readonly durable = true;
  readonly shared = true as const;
  readonly takeOverMs: number;
  readonly #options: RedisStoreOptions;
  readonly #timing: RedisTiming;
  readonly #consumer = randomUUID();
  /** Where the items that this instance holds are in the stream, by id. */
  readonly #places = new Map<string, Place>();
  /** What was recalled and is not written as this version would. */
  readonly #foreignTexts = new WeakMap<Remembered, string>();
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
      const items = [...(await this.#listOwn(session, events)), ...(await this.#takeOver(session, events))];
      session.nextBeat = setTimeout(() => void this.#beat(session, events), this.#timing.heartbeatMs);
      return { items, held: [], isReset };
    } catch (error) {
      this.#abandon();
      throw describeFailure(error);
    }
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const { redis } = this.#opened();
    const texts = await attempt(redis.mget(keys.map((key) => this.#key(`seen:${key}`))));
    return texts.map((text) => {
      if (text === null) return undefined;
      const remembered = parseRemembered(text);
      if (formatRemembered(remembered) !== text) this.#foreignTexts.set(remembered, text);
      return remembered;
    });
  }

  async commit(changes: Changes, recalled: ReadonlyMap<string, Remembered | undefined>): Promise<void> {
    const { redis, sign } = this.#opened();
    const kept = [...changes.keep.values()];
    const isUpToDate = (item: Item) => this.#places.get(item.id)?.revision === revisionOf(item);
    const added = kept.filter((item) => !isUpToDate(item));
    const counted = kept.filter(isUpToDate);
    const streamIds = (ids: Iterable<string>) =>
      [...ids].map((id) => this.#places.get(id)?.streamId).filter((id) => id !== undefined);
    const remembered = [...changes.remember];
    const step = {
      group,
      consumer: this.#consumer,
      sign,
      expected: remembered.map(([key]) => ({ check: recalled.has(key), value: this.#formerText(recalled.get(key)) })),
      remember: remembered.map(
        ([, value]) =>
          value !== undefined && { text: formatRemembered(value), forMs: Math.max(1, Math.ceil(value.forMs)) },
      ),
      add: added.map((item) => ({ text: JSON.stringify(item), attempts: item.attempts })),
      count: counted.map(({ id, attempts }) => ({ id: this.#places.get(id)?.streamId, attempts })),
      // What is in a stream cannot be changed, only replaced.
      drop: [...streamIds(changes.drop.keys()), ...streamIds(added.map(({ id }) => id))],
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
      const item = added[index];
      if (item) this.#places.set(item.id, { streamId, revision: revisionOf(item) });
    }
    for (const id of changes.drop.keys()) this.#places.delete(id);
  }

  /** As it stands at the server; `false` for nothing, as there. */
  #formerText(remembered: Remembered | undefined): string | false {
    if (remembered === undefined) return false;
    return this.#foreignTexts.get(remembered) ?? formatRemembered(remembered);
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
      const items = await this.#takeOver(session, events);
      if (this.#session !== session) return;
      if (items.length > 0) events.onTakenOver(items);
      session.nextBeat = setTimeout(() => void this.#beat(session, events), this.#timing.heartbeatMs);
    } catch (error) {
      if (this.#session === session) events.onFailure(describeFailure(error));
    }
  }

  /** What this instance held before the connection was lost, and nobody has taken over. */
  async #listOwn({ redis }: Session, events: StoreEvents): Promise<Item[]> {
    const items: Item[] = [];
    for (let from = '-'; from !== ''; ) {
      const answer = await redis.eval(listScript, 1, this.#key('inbox'), group, this.#consumer, from);
      const [listed, last] = answer as [ListedItem[], string];
      items.push(...(await this.#read(redis, listed, events)));
      from = last && nextStreamId(last);
    }
    return items;
  }

  async #takeOver(session: Session, events: StoreEvents): Promise<Item[]> {
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
      wanted: events.wanted(),
    };
    const listed = (await redis.eval(takeOverScript, keys.length, ...keys, JSON.stringify(step))) as ListedItem[];
    // Of a session that has ended meanwhile, the next one lists them as its own.
    return this.#session === session ? this.#read(redis, listed, events) : [];
  }

  /** Reads what the server has listed, and sets aside what cannot be read. */
  async #read(redis: Redis, listed: readonly ListedItem[], events: StoreEvents): Promise<Item[]> {
    const items: Item[] = [];
    for (const [streamId, attempts, text] of listed) {
      const item = parseItem(text, events.isReadable);
      if (item) {
        this.#places.set(item.id, { streamId, revision: revisionOf(item) });
        // The group counts the attempts; what the item says is how it began.
        items.push({ ...item, attempts });
      } else {
        const aside = this.#key('unreadable');
        await redis.xadd(aside, '*', 'entry', text);
        await redis.xack(this.#key('inbox'), group, streamId);
        await redis.xdel(this.#key('inbox'), streamId);
        events.onUnreadable(`an entry, which is in ${aside} now`);
      }
    }
    return items;
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

function revisionOf({ revision = 0 }: Item): number {
  return revision;
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
