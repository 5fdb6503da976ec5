import type { Redis } from 'ioredis';
import type { Clock, Timer } from '../clock';
import { notConnected, notInTime } from './redis-failures';

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

/**
 * Ends a connection that has not come into use in time: all that makes an opening has as long as one command, since whoever closes the
 * store waits for it. What depends on how much there is to read has its time besides.
 */
export class OpeningLimit {
  readonly #redis: Redis;
  readonly #clock: Clock;
  readonly #limitMs: number;
  #timer: Timer | undefined;
  #failure: Error | undefined;

  /** The time begins. */
  constructor(redis: Redis, clock: Clock, limitMs: number) {
    this.#redis = redis;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#start();
  }

  /** What has become of the opening, if its time was over: commands fail for that alone then. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Something more is there to be read: the time begins anew, unless the opening has ended. */
  extend(): void {
    if (!this.#timer) return;
    this.#timer.cancel();
    this.#start();
  }

  /** The opening has ended, one way or the other. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = afterRunning(this.#clock, this.#limitMs, () => this.#giveUp());
  }

  #giveUp(): void {
    this.#failure = this.#redis.status === 'connecting' ? notConnected() : notInTime();
    this.end();
    this.#redis.disconnect();
    // Without this, it would wait for the server to hang up.
    this.#redis.stream.destroy();
  }
}
