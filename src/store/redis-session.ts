import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../clock';
import type { RedisServer } from '../login';
import { describeFailure, notConnected, notInTime, notRedis, signExpired } from './redis-failures';
import {
  group,
  type ListedItem,
  leftSign,
  nextStreamId,
  pageSize,
  type RedisKeys,
  type ScriptedRedis,
  scripts,
} from './redis-scripts';

/** How fast a {@link RedisStore} notices that another instance is gone. Milliseconds. */
export interface RedisTiming {
  /** An instance that has not given a sign of life for so long does not live any more. */
  aliveMs: number;
  /** Between two signs of life. */
  heartbeatMs: number;
  /** For so long after it has connected, an instance leaves it to the others to come back after a common outage. */
  graceMs: number;
  /** What a dead instance held, and nobody else wants, is left for so long to those who may come back for it. */
  reservedMs: number;
  /** A command that takes longer has failed, and so has an opening, but for what it reads page by page. */
  commandTimeoutMs: number;
}

/** What a session stands on. */
export interface SessionOptions {
  server: RedisServer;
  timing: RedisTiming;
  keys: RedisKeys;
  /** The name of this instance among the others. */
  consumer: string;
  clock: Clock;
}

/** What a session does while it lasts. */
export interface SessionLife {
  /** Called with each sign of life. */
  beat(): Promise<void>;
  /** It is of no use any more. */
  onFailure(error: Error): void;
}

/** Pages that are looked at with one sign of life: nothing in them may be wanted, and the server has others to serve. */
const mostLooks = 10;

/** What no script is called. */
const noScript = '0'.repeat(40);

/** One connection, from its opening until it fails or is closed, and the sign that this instance lives. */
export class RedisSession {
  readonly redis: ScriptedRedis;
  /** The sign of life of this session. A commit of an earlier one, however late it arrives, finds another. */
  readonly sign = randomUUID();
  /** As much has been taken over as is at a time. */
  hasMore = false;
  #epoch = '';
  readonly #options: SessionOptions;
  readonly #beganAtMs: number;
  /** From where to look on at what each other instance holds: what comes before was not wanted. `undefined`: all was looked at in this round. */
  readonly #places = new Map<string, string | undefined>();
  /** What it was looked for. */
  #sought = '';
  #life: SessionLife | undefined;
  #nextBeat: Timer | undefined;
  #failure: Error | undefined;
  #isEnded = false;
  /** Runs until {@link keepAlive}. */
  #opening: Timer | undefined;
  #overdue: Error | undefined;

  private constructor(redis: ScriptedRedis, options: SessionOptions) {
    this.redis = redis;
    this.#options = options;
    this.#beganAtMs = options.clock.elapsed();
    this.#limitOpening();
    redis.on('error', (error: Error) => {
      this.#failure ??= error;
    });
    redis.on('close', () => this.#fail(this.#failure ?? new Error('connection closed')));
  }

  /** Another one than before when the server has lost what this instance held. */
  get epoch(): string {
    return this.#epoch;
  }

  /** Connects, once. */
  static async open(options: SessionOptions): Promise<RedisSession> {
    // Loaded only here, so that accounts without Redis do not pay for it.
    const { Redis } = await import('ioredis');
    const { server, timing } = options;
    const { host, port, tls } = server;
    const redis = new Redis({
      host,
      port,
      ...(tls && { tls }),
      lazyConnect: true,
      // The journal opens the store again by itself, and has to know when it is gone.
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      // The opening has its limit, and each command.
      connectTimeout: 0,
      // A user needs permission for nothing beyond the commands of the store.
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
      scripts,
    });
    limitCommands(redis, options.clock, timing.commandTimeoutMs);
    const session = new RedisSession(redis as ScriptedRedis, options);
    try {
      await redis.connect();
      await logIn(redis, server);
      return session;
    } catch (error) {
      session.abandon();
      throw session.#overdue ?? session.#failure ?? error;
    }
  }

  /** Gives the first sign of life, and makes the group. */
  async settleIn(): Promise<void> {
    const { keys, consumer, timing } = this.#options;
    const step = { group, sign: this.sign, aliveMs: timing.aliveMs, epoch: randomUUID() };
    const names = [keys.inbox, keys.alive(consumer), keys.epoch, keys.gone(consumer), keys.reserved(consumer)];
    const settling: Promise<unknown> = this.redis.settleIn(...names, JSON.stringify(step));
    // The client sends each script in full at first: whether a user may name one is to be known now, too.
    const naming: Promise<unknown> = this.redis.evalsha(noScript, 0).catch((error: unknown) => error);
    const answer = await settling;
    if (!Array.isArray(answer) || typeof answer[0] !== 'string') throw notRedis();
    const refusal = await naming;
    if (refusal instanceof Error && !refusal.message.startsWith('NOSCRIPT')) throw refusal;
    this.#epoch = answer[0];
  }

  /** Lets this instance live on until the session ends. */
  keepAlive(life: SessionLife): void {
    this.#endOpening();
    this.#life = life;
    this.#beatLater();
  }

  /** What this instance held before the connection was lost, and nobody has taken over. */
  async listOwn(): Promise<ListedItem[]> {
    const { keys, consumer } = this.#options;
    const items: ListedItem[] = [];
    for (let from = '-'; from !== ''; ) {
      const [listed, last] = await this.redis.listHeld(keys.inbox, group, consumer, from);
      if (listed.length > 0) this.extendOpening();
      for (const item of listed) items.push(item);
      from = last && nextStreamId(last);
    }
    return items;
  }

  /**
   * Takes over what instances hold that do not live any more, as far as it is `wanted`, no more than a page. Of a session that has ended
   * meanwhile nothing is returned: the next one lists it as its own.
   *
   * @throws StoreLapse when this instance has no sign of life any more
   */
  async takeOver(wanted: readonly string[]): Promise<ListedItem[]> {
    const { keys, consumer, timing, clock } = this.#options;
    const all = clock.elapsed() - this.#beganAtMs >= timing.graceMs;
    const others = await this.#listOthers();
    if (this.#sought !== wanted.join()) this.#places.clear();
    this.#sought = wanted.join();
    const listed: ListedItem[] = [];
    // Of those that were looked through, none comes again before all were.
    let left = others.filter((name) => !this.#places.has(name) || this.#places.get(name) !== undefined);
    for (let look = 0; left.length > 0 && listed.length < pageSize && look < mostLooks; ) {
      const from = left.map((name) => this.#places.get(name) ?? '-');
      const own = { group, consumer, sign: this.sign, epoch: this.epoch };
      const most = pageSize - listed.length;
      const step = { ...own, others: left, from, all, wanted, most, reservedMs: timing.reservedMs };
      const names = [keys.inbox, keys.alive(consumer), keys.epoch];
      for (const name of left) names.push(keys.alive(name), keys.gone(name), keys.reserved(name));
      const [taken, reached] = await this.redis.takeOverHeld(names.length, ...names, JSON.stringify(step));
      if (!reached) throw signExpired();
      listed.push(...taken);
      if (taken.length > 0) this.extendOpening();
      else look++;
      for (const [index, name] of left.entries()) this.#lookOn(name, reached[index]);
      left = left.filter((_, index) => reached[index] !== '');
    }
    // The next round begins with the next look: something else may be wanted by then.
    if (left.length === 0) this.#places.clear();
    // Where nobody had room for anything, it is still there.
    if (listed.length > 0) this.hasMore = listed.length >= pageSize;
    return this.#isEnded ? [] : listed;
  }

  async #listOthers(): Promise<string[]> {
    const { keys, consumer } = this.#options;
    const consumers = (await this.redis.xinfo('CONSUMERS', keys.inbox, group)) as string[][];
    return consumers
      .map((fields) => fields[fields.indexOf('name') + 1] ?? '')
      .filter((name) => name !== consumer && name !== '');
  }

  /** @param reached as the script says it */
  #lookOn(name: string, reached = ''): void {
    if (reached !== '-') this.#places.set(name, reached === '' ? undefined : nextStreamId(reached));
  }

  /** Does at once what comes with the next sign of life. */
  beatNow(): void {
    this.hasMore = false;
    void this.#life?.beat().catch((error: unknown) => this.#fail(error));
  }

  /** Tells the others that they need not wait to take over, and ends it. */
  async close(): Promise<void> {
    this.#end();
    const { keys, consumer, timing } = this.#options;
    if (this.redis.status === 'ready') {
      await this.redis.set(keys.alive(consumer), leftSign, 'PX', timing.aliveMs).catch(() => {});
    }
    this.redis.disconnect();
  }

  /** Ends it without a word to the others: this instance still lives. */
  abandon(): void {
    this.#end();
    this.redis.disconnect();
  }

  /** What has become of the opening, if its time was over: commands fail for that alone then. */
  get overdue(): Error | undefined {
    return this.#overdue;
  }

  /** Something more is there to be read: the time of the opening begins anew, unless it has ended. */
  extendOpening(): void {
    if (this.#opening) this.#limitOpening();
  }

  /**
   * Ends a connection that has not come into use in time: all that makes an opening has as long as one command, since whoever closes the
   * store waits for it. What depends on how much there is to read has its time besides.
   */
  #limitOpening(): void {
    this.#opening?.cancel();
    this.#opening = afterRunning(this.#options.clock, this.#options.timing.commandTimeoutMs, () => {
      this.#overdue = this.redis.status === 'connecting' ? notConnected() : notInTime();
      this.#endOpening();
      this.redis.disconnect();
      // Without this, it would wait for the server to hang up.
      this.redis.stream.destroy();
    });
  }

  #endOpening(): void {
    this.#opening?.cancel();
    this.#opening = undefined;
  }

  #end(): void {
    this.#isEnded = true;
    this.#endOpening();
    this.#nextBeat?.cancel();
  }

  #beatLater(): void {
    const { clock, timing } = this.#options;
    if (!this.#isEnded) this.#nextBeat = clock.after(timing.heartbeatMs, () => void this.#beat());
  }

  async #beat(): Promise<void> {
    const { keys, consumer, timing } = this.#options;
    try {
      // Only prolonged: once it has expired, others may have taken over what this instance holds.
      const isAlive = await this.redis.prolong(keys.alive(consumer), keys.epoch, this.sign, this.epoch, timing.aliveMs);
      if (!isAlive) throw signExpired();
      await this.#life?.beat();
      this.#beatLater();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** While it is being opened, the rejection tells. */
  #fail(error: unknown): void {
    if (!this.#isEnded) this.#life?.onFailure(describeFailure(error));
  }
}

/** Has a command that is not answered in time fail. */
function limitCommands(redis: Redis, clock: Clock, limitMs: number): void {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    const timer = afterRunning(clock, limitMs, () => command.reject(new Error('Command timed out')));
    const end = () => timer.cancel();
    command.promise.then(end, end);
    return send(command, stream);
  };
}

/** What servers say to a password that they do not need, and Redis before version 6 to the name of a user. */
const unneeded = /no password is set|without any password configured|wrong number of arguments for 'auth'/;

/**
 * Says who uses a new connection, and which database: not the client, which tells the console of a password that the server does
 * not need.
 *
 * @throws the refusal of the server, that of the password first
 */
export async function logIn(redis: Redis, { username, password = '', db }: RedisServer): Promise<void> {
  const steps: Promise<unknown>[] = [];
  if (username || password) {
    const authenticating = username ? redis.auth(username, password) : redis.auth(password);
    steps.push(authenticating.catch(passUnneeded));
  }
  // A user who needs no other needs no permission for it.
  if (db !== 0) steps.push(redis.select(db));
  const refused = (await Promise.allSettled(steps)).find((step) => step.status === 'rejected');
  if (refused) throw refused.reason;
}

function passUnneeded(error: unknown): void {
  if (!(error instanceof Error && unneeded.test(error.message))) throw error;
}

/** A timer that comes so late has been held up with the whole process. */
const heldUpMs = 250;

/**
 * Calls back when a time is over in which the process ran. Where it was suspended or blocked, timers run before what has come meanwhile is
 * read: the time begins anew then.
 */
export function afterRunning(clock: Clock, delayMs: number, callback: () => void): Timer {
  const start = () => {
    const dueAt = clock.elapsed() + delayMs;
    return clock.after(delayMs, () => {
      if (clock.elapsed() < dueAt + heldUpMs) callback();
      else timer = start();
    });
  };
  let timer = start();
  return { cancel: () => timer.cancel() };
}
