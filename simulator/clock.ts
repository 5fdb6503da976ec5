/**
 * The simulator's time. Message dates, statuses, callback retries and the daily limit use it. Waiting polls use the
 * real time.
 */
export interface Clock {
  /** Returns the time in ms since 1970. */
  now(): number;
  /** Calls `run` once after `delayMs`. Returns a function that cancels this call. `run` must not reject. */
  schedule(delayMs: number, run: () => void | Promise<void>): () => void;
  /** Keeps a manual clock from moving forward until `work` has ended. `work` must not reject. */
  during(work: Promise<void>): void;
  /** Moves forward by `ms` and runs everything that becomes due, in order. */
  advance(ms: number): Promise<void>;
  /** Sets a real clock back to the real time. Does not change a manual clock. Call it only if no run is scheduled. */
  reset(): void;
}

/** Creates a clock that shows the real time plus the sum of all times passed to `advance`. */
export function createRealClock(): Clock {
  let aheadMs = 0;
  const timers = new Map<ScheduledRun, NodeJS.Timeout>();
  const now = (): number => Date.now() + aheadMs;
  const arm = (entry: ScheduledRun): void => {
    const fire = (): void => {
      timers.delete(entry);
      void entry.run();
    };
    timers.set(entry, setTimeout(fire, Math.max(0, entry.at - now())));
  };
  return {
    now,
    schedule(delayMs, run) {
      const entry = { at: now() + delayMs, run };
      arm(entry);
      return () => {
        clearTimeout(timers.get(entry));
        timers.delete(entry);
      };
    },
    during() {},
    async advance(ms) {
      aheadMs += ms;
      for (const timer of timers.values()) clearTimeout(timer);
      for (const entry of [...timers.keys()].sort((a, b) => a.at - b.at)) arm(entry);
    },
    reset() {
      aheadMs = 0;
    },
  };
}

interface ScheduledRun {
  at: number;
  run: () => void | Promise<void>;
}

/**
 * Creates a clock that stands still until `advance` is called. `advance` waits until everything that it runs has
 * finished, including callbacks.
 *
 * @param startMs first time, in ms since 1970; default: the current time
 *
 * @example
 * ```ts
 * import { createManualClock, startSimulator } from '@messaging-service/node-red-sms/simulator';
 *
 * const clock = createManualClock(Date.parse('2026-12-24T18:00:00Z'));
 * const simulator = await startSimulator({ clock });
 * await clock.advance(60_000);
 * console.log(new Date(clock.now()).toISOString());
 * await simulator.close();
 * ```
 */
export function createManualClock(startMs = Date.now()): Clock {
  let time = startMs;
  /** Sorted by due time. Runs that are due at the same time are in the order of their `schedule` calls. */
  const queue: ScheduledRun[] = [];
  const workInProgress = new Set<Promise<void>>();

  const during = (work: Promise<void>): void => {
    const trackedWork = work.finally(() => workInProgress.delete(trackedWork));
    workInProgress.add(trackedWork);
  };
  const whenIdle = async (): Promise<void> => {
    while (workInProgress.size > 0) await Promise.all(workInProgress);
  };

  return {
    now: () => time,
    schedule(delayMs, run) {
      const entry = { at: time + delayMs, run };
      let place = queue.length;
      while (place > 0 && (queue[place - 1]?.at ?? 0) > entry.at) place -= 1;
      queue.splice(place, 0, entry);
      return () => {
        const index = queue.indexOf(entry);
        if (index >= 0) queue.splice(index, 1);
      };
    },
    during,
    async advance(ms) {
      const end = time + ms;
      for (;;) {
        await whenIdle();
        const nextRun = queue[0];
        if (nextRun === undefined || nextRun.at > end) break;
        queue.shift();
        time = Math.max(time, nextRun.at);
        during(Promise.resolve(nextRun.run()));
      }
      time = end;
    },
    reset() {},
  };
}
