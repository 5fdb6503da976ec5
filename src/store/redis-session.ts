import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../clock';
import type { RedisServer } from '../login';
import { describeFailure, notRedis, signExpired } from './redis-failures';
import { type ListedItem, leftSign, type RedisKeys, type ScriptedRedis, scripts, signField } from './redis-scripts';

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
  /** A command that takes longer has failed. */
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

/** Items that are taken over at a time: the server serves nobody else meanwhile. */
const pageSize = 250;

/** What no script is called. */
const noScript = '0'.repeat(40);

/** One connection, from its opening until it fails or is closed, and the sign that this instance lives. */
export class RedisSession {
  readonly redis: ScriptedRedis;
  /** The sign of life of this session. A commit of an earlier one, however late it arrives, finds another. */
  readonly sign = randomUUID();
  /** Whether the server has what this instance held before, or others do. */
  isThere = false;
  readonly #options: SessionOptions;
  readonly #beganAtMs: number;
  #onFailure: ((error: Error) => void) | undefined;
  #nextBeat: Timer | undefined;
  #failure: Error | undefined;
  #isEnded = false;

  private constructor(redis: ScriptedRedis, options: SessionOptions) {
    this.redis = redis;
    this.#options = options;
    this.#beganAtMs = options.clock.elapsed();
    redis.on('error', (error: Error) => {
      this.#failure ??= error;
    });
    redis.on('close', () => this.#fail(this.#failure ?? new Error('connection closed')));
  }

  /** Connects, once, and gives the first sign of life. */
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
      connectTimeout: timing.commandTimeoutMs,
      // A user needs permission for nothing beyond the commands of the store.
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
      scripts,
    });
    const session = new RedisSession(redis as ScriptedRedis, options);
    limitCommands(redis, options.clock, timing.commandTimeoutMs);
    try {
      await redis.connect();
      await logIn(redis, server);
      await session.#settleIn();
      return session;
    } catch (error) {
      session.abandon();
      throw session.#failure ?? error;
    }
  }

  async #settleIn(): Promise<void> {
    const { keys, consumer, timing } = this.#options;
    const step = { consumer, sign: this.sign, aliveMs: timing.aliveMs };
    const names = [...keys.allOf(consumer), keys.instances];
    // The client sends each script in full at first: whether a user may name one is to be known now, too.
    await this.redis.evalsha(noScript, 0).catch((error: Error) => {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
    });
    const answer: unknown = await this.redis.settleIn(...names, JSON.stringify(step));
    if (!Array.isArray(answer) || typeof answer[0] !== 'number') throw notRedis();
    this.isThere = answer[0] === 1;
  }

  /**
   * Lets this instance live on until the session ends.
   *
   * @param beat called with each sign of life
   * @param onFailure the session is of no use any more
   */
  keepAlive(beat: () => Promise<void>, onFailure: (error: Error) => void): void {
    this.#onFailure = onFailure;
    this.#beatLater(beat);
  }

  /** What this instance held before the connection was lost, and nobody has taken over. In order. */
  async listOwn(): Promise<ListedItem[]> {
    const { keys, consumer } = this.#options;
    const held = Object.entries(await this.redis.hgetall(keys.items(consumer)));
    return held.filter(([id]) => id !== signField).sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /**
   * Takes over what instances hold that do not live any more, as far as it is `wanted`. Of a session that has ended
   * meanwhile nothing is returned: the next one lists it as its own.
   *
   * @throws StoreLapse when this instance has no sign of life any more
   */
  async takeOver(wanted: readonly string[]): Promise<ListedItem[]> {
    const { keys, consumer, timing, clock } = this.#options;
    const all = clock.elapsed() - this.#beganAtMs >= timing.graceMs;
    const own = [keys.items(consumer), keys.alive(consumer), keys.instances];
    const others = (await this.redis.smembers(keys.instances)).filter((name) => name !== consumer);
    const signs = others.length > 0 ? await this.redis.mget(others.map(keys.alive)) : [];
    const dead = others.filter((_, index) => signs[index] === leftSign || (all && signs[index] === null));
    const listed: ListedItem[] = [];
    for (const other of dead) {
      const names = [...own, ...keys.allOf(other)];
      const step = { sign: this.sign, other, all, wanted, reservedMs: timing.reservedMs };
      const left = (await this.redis.hkeys(keys.items(other))).filter((id) => id !== signField).sort();
      do {
        const ids = left.splice(0, pageSize);
        const taken = await this.redis.takeOverHeld(...names, JSON.stringify({ ...step, ids }));
        if (taken === null) throw signExpired();
        for (const item of taken) listed.push(item);
      } while (left.length > 0);
    }
    return this.#isEnded ? [] : listed;
  }

  /**
   * Commits a step, and prolongs the sign of life with it.
   *
   * @param names keys of what it remembers, then of what is only compared
   * @returns whether what there is under them is what the step is based on; otherwise nothing is committed
   * @throws StoreLapse when this instance has no sign of life any more: others may have taken over what it holds
   */
  async commit(names: readonly string[], step: object): Promise<boolean> {
    const { keys, consumer, timing } = this.#options;
    const all = [keys.items(consumer), keys.alive(consumer), ...names];
    const signed = { ...step, sign: this.sign, aliveMs: timing.aliveMs };
    const end = await this.redis.commitStep(all.length, ...all, JSON.stringify(signed));
    if (end === -1) throw signExpired();
    return end === 1;
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

  #end(): void {
    this.#isEnded = true;
    this.#nextBeat?.cancel();
  }

  #beatLater(beat: () => Promise<void>): void {
    const { clock, timing } = this.#options;
    if (this.#isEnded) return;
    this.#nextBeat = clock.after(timing.heartbeatMs, async () => {
      try {
        // Only prolonged: once it has expired, others may have taken over what this instance holds.
        await this.commit([], { expected: [], keep: [], remember: [], drop: [] });
        await beat();
        this.#beatLater(beat);
      } catch (error) {
        this.#fail(error);
      }
    });
  }

  /** While it is being opened, the rejection tells. */
  #fail(error: unknown): void {
    if (!this.#isEnded) this.#onFailure?.(describeFailure(error));
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
async function logIn(redis: Redis, { username, password = '', db }: RedisServer): Promise<void> {
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
function afterRunning(clock: Clock, delayMs: number, callback: () => void): Timer {
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
