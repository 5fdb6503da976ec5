import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';

/** A delay under way. */
export interface Timer {
  /** Ends the delay without its callback. Can be called at any time, and again. */
  cancel(): void;
}

/** Time and chance, so that a test can control both. The library reads neither in any other way. */
export interface Clock {
  /** The wall clock in ms since 1970. It can be set back or forward. */
  now(): number;
  /** Milliseconds since some moment, with the time in which the computer was asleep. Never goes back. */
  elapsed(): number;
  /** Calls back after `delayMs` of {@link elapsed}, however long that is. An idle delay does not keep the process alive. */
  after(delayMs: number, callback: () => void, isIdle?: boolean): Timer;
  /** Calls back in the next turn of the event loop. */
  nextTurn(callback: () => void): Timer;
  /** At least 0, less than 1. */
  random(): number;
}

/** Timers of Node.js take no longer delay than this: 24.8 days. */
const maxTimerMs = 2 ** 31 - 1;

/** How often the clock checks whether the computer was asleep, in ms, while a longer delay is under way. */
const sleepCheckMs = 5_000;
/** Differences between two clocks that are less than this are noise. */
const minSleepMs = 500;

/** A delay that ends earlier if the computer sleeps. */
interface Delay {
  dueAt: number;
  restart(restMs: number): void;
}

/**
 * Creates a clock of the machine.
 *
 * @param uptimeMs milliseconds since the machine was started, with the time in which it was asleep
 */
export function createSystemClock(uptimeMs = () => uptime() * 1_000): Clock {
  const delays = new Set<Delay>();
  let sleptMs = 0;
  let wallLeadMs: number | undefined;
  let uptimeLeadMs = 0;
  let checking: NodeJS.Timeout | undefined;

  /** Timers and `performance` stand still during a sleep, but the wall clock does not. Only the uptime tells a sleep from a set clock. */
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
 * Longer than Node-RED takes to redeploy: it waits for up to 15 s for nodes that close. A node that is not there by then is
 * not part of the flows.
 */
export const longestDeploymentMs = 20_000;

/** Calls back once if a signal aborts, unless it has already. Returns how to stop listening. */
export function onceAborted(signal: AbortSignal, callback: () => void): () => void {
  // All messages in a queue can share one signal, which is not a leak.
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
 * @throws the reason of `signal` if it aborts before
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
