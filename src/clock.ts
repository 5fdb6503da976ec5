import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';

/** A running delay. */
export interface Timer {
  /** Cancels the delay without calling back. Can be called at any time, also repeatedly. */
  cancel(): void;
}

/** Source of time and random numbers for the whole library, so that tests can control both. */
export interface Clock {
  /** The wall clock in ms since 1970. It can be set back or forward. */
  now(): number;
  /** Milliseconds since an arbitrary moment, including time in which the computer slept. Never decreases. */
  elapsed(): number;
  /**
   * Calls back after `delayMs` of {@link elapsed}. Delays can have any length. A delay with `isIdle` does not keep the
   * process alive.
   */
  after(delayMs: number, callback: () => void, isIdle?: boolean): Timer;
  /** Calls back in the next turn of the event loop. */
  nextTurn(callback: () => void): Timer;
  /** Returns a random number, at least 0 and less than 1. */
  random(): number;
}

/** Maximum delay of Node.js timers: 24.8 days. */
const maxTimerMs = 2 ** 31 - 1;

/** Interval at which the clock checks whether the computer was suspended, in ms. Applies only to longer delays. */
const sleepCheckMs = 5_000;
/** Minimum duration of a suspension, in ms. Smaller differences between the compared clocks are ignored. */
const minSleepMs = 500;

/** A delay that includes the time in which the computer sleeps. */
interface Delay {
  dueAt: number;
  restart(restMs: number): void;
}

/**
 * Creates a clock of this machine.
 *
 * @param uptimeMs milliseconds since the machine started, including time in which it slept
 */
export function createSystemClock(uptimeMs = () => uptime() * 1_000): Clock {
  const delays = new Set<Delay>();
  let sleptMs = 0;
  let wallLeadMs: number | undefined;
  let uptimeLeadMs = 0;
  let checking: NodeJS.Timeout | undefined;

  /**
   * Returns the elapsed time. Timers and `performance` stop during a sleep, but the wall clock does not. Only the
   * uptime distinguishes a sleep from a clock change.
   */
  function elapsed(): number {
    const awakeMs = performance.now();
    const leadMs = Date.now() - awakeMs;
    if (wallLeadMs === undefined) {
      wallLeadMs = leadMs;
      uptimeLeadMs = uptimeMs() - awakeMs;
    }
    if (Math.abs(leadMs - wallLeadMs) >= minSleepMs) {
      wallLeadMs = leadMs;
      const sleepMs = uptimeMs() - awakeMs - uptimeLeadMs;
      if (sleepMs >= minSleepMs) {
        uptimeLeadMs += sleepMs;
        sleptMs += sleepMs;
        for (const { dueAt, restart } of [...delays]) restart(Math.max(0, dueAt - awakeMs - sleptMs));
      }
    }
    return awakeMs + sleptMs;
  }

  function add(delay: Delay): void {
    delays.add(delay);
    checking ??= setInterval(elapsed, sleepCheckMs).unref();
  }

  function remove(delay: Delay): void {
    delays.delete(delay);
    if (delays.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }

  return {
    now: () => Date.now(),
    elapsed,
    after(delayMs, callback, isIdle = false) {
      let timer: NodeJS.Timeout;
      const start = (restMs: number) => {
        clearTimeout(timer);
        const ms = Math.min(restMs, maxTimerMs);
        timer = setTimeout(() => {
          if (restMs > ms) return start(restMs - ms);
          remove(delay);
          callback();
        }, ms);
        if (isIdle) timer.unref();
      };
      const delay: Delay = { dueAt: elapsed() + delayMs, restart: start };
      start(delayMs);
      if (delayMs > sleepCheckMs) add(delay);
      return {
        cancel: () => {
          clearTimeout(timer);
          remove(delay);
        },
      };
    },
    nextTurn(callback) {
      const immediate = setImmediate(callback);
      return { cancel: () => clearImmediate(immediate) };
    },
    random: () => Math.random(),
  };
}

/**
 * The clock of this machine.
 *
 * @example
 * ```ts
 * import { systemClock } from '@messaging-service/node-red-sms';
 *
 * const begin = systemClock.elapsed();
 * systemClock.after(100, () => console.log(systemClock.elapsed() - begin));
 * ```
 */
export const systemClock: Clock = createSystemClock();

/**
 * Time in ms after the start of a deployment at which it counts as ended, because Node-RED waits up to 15 s for nodes
 * to close. A node that has not attached by then was removed from the flows.
 */
export const maxDeploymentMs = 20_000;

/**
 * Calls back once when a signal aborts. Does nothing if the signal has already aborted. Returns a function that stops
 * listening.
 */
export function onceAborted(signal: AbortSignal, callback: () => void): () => void {
  // Removes the limit on listeners, because all queued messages can share one signal.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', callback, { once: true });
  return () => signal.removeEventListener('abort', callback);
}

/** Resolves in the next turn of the event loop. */
export function nextTurn(clock: Clock): Promise<void> {
  return new Promise((resolve) => void clock.nextTurn(resolve));
}

/**
 * Resolves after `delayMs`.
 *
 * @throws the reason of `signal`, if the signal aborts first
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
      stopListening?.();
      resolve();
    });
    const stopListening =
      signal &&
      onceAborted(signal, () => {
        timer.cancel();
        reject(signal.reason);
      });
  });
}
