import { setMaxListeners } from 'node:events';

/** A delay under way. */
export interface Timer {
  /** The delay ends without its callback. May be called at any time, and again. */
  cancel(): void;
}

/** Time and chance, so that a test can own both. The library reads neither in any other way. */
export interface Clock {
  /** Milliseconds since 1970, as the machine's clock says: it may be set back or forward. */
  now(): number;
  /** Milliseconds since some moment: never goes back, and passes evenly. */
  elapsed(): number;
  /** Calls back after `delayMs`, however long that is. An idle delay does not keep the process alive. */
  after(delayMs: number, callback: () => void, isIdle?: boolean): Timer;
  /** Calls back on the next turn of the event loop. */
  nextTurn(callback: () => void): Timer;
  /** At least 0, less than 1. */
  random(): number;
}

/** A delay longer than this, 24.8 days, is no delay to Node's timers. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * The machine's own.
 *
 * @example
 * ```ts
 * import { systemClock } from '@messaging-service/node-red-sms';
 *
 * const begin = systemClock.elapsed();
 * systemClock.after(100, () => console.log(systemClock.elapsed() - begin));
 * ```
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, callback, isIdle = false) {
    let timer: NodeJS.Timeout;
    const start = (restMs: number) => {
      const ms = Math.min(restMs, longestTimerMs);
      timer = setTimeout(() => (restMs > ms ? start(restMs - ms) : callback()), ms);
      if (isIdle) timer.unref();
    };
    start(delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  nextTurn(callback) {
    const immediate = setImmediate(callback);
    return { cancel: () => clearImmediate(immediate) };
  },
  random: () => Math.random(),
};

/**
 * Longer than Node-RED takes to redeploy: it waits for 15 s for nodes that close. Whoever is not here by then is not part of the
 * flows any more.
 */
export const longestDeploymentMs = 20_000;

/** Calls back once when a signal aborts, unless it has already. Returns how to leave. */
export function onceAborted(signal: AbortSignal, callback: () => void): () => void {
  // As many texts as wait in a queue may share one signal: no leak.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', callback, { once: true });
  return () => signal.removeEventListener('abort', callback);
}

/** Resolves on the next turn of the event loop. */
export function nextTurn(clock: Clock): Promise<void> {
  return new Promise((resolve) => void clock.nextTurn(resolve));
}

/**
 * Resolves after `delayMs`.
 *
 * @throws the reason of `signal` when it aborts before
 *
 * @example
 * ```ts
 * import { systemClock, wait } from '@messaging-service/node-red-sms';
 *
 * await wait(systemClock, 100);
 * ```
 */
export async function wait(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = clock.after(delayMs, () => {
      leave?.();
      resolve();
    });
    const leave =
      signal &&
      onceAborted(signal, () => {
        timer.cancel();
        reject(signal.reason);
      });
  });
}

/**
 * Resolves after so many seconds in which this process has run: of the time for which it is suspended one counts.
 *
 * @throws the reason of `signal` when it aborts before
 */
export async function waitRunning(clock: Clock, seconds: number, signal: AbortSignal): Promise<void> {
  for (let second = 0; second < seconds; second++) await wait(clock, 1_000, signal);
}
