/** The simulator's time: message dates, status life, callback retries and the daily limit follow it; poll waits do not. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Runs once after `delayMs`; the result cancels it. `run` must not reject. */
  schedule(delayMs: number, run: () => void | Promise<void>): () => void;
  /** Tells the clock of work under way, which must be over before time moves on. It must not reject. */
  during(work: Promise<void>): void;
}

/** A clock that stands still until it is told to move. */
export interface ManualClock extends Clock {
  /** Moves on by `ms`, running what falls due in order and waiting for each to finish, callbacks included. */
  advance(ms: number): Promise<void>;
}

/** The real time. */
export function createRealClock(): Clock {
  return {
    now: () => Date.now(),
    schedule(delayMs, run) {
      const timer = setTimeout(() => void run(), delayMs);
      return () => clearTimeout(timer);
    },
    during() {},
  };
}

interface ScheduledRun {
  at: number;
  run: () => void | Promise<void>;
}

/** A clock for tests. `startMs` is its first time, epoch milliseconds; the present by default. */
export function createManualClock(startMs = Date.now()): ManualClock {
  let time = startMs;
  const queue: ScheduledRun[] = [];
  const underWay = new Set<Promise<void>>();

  const during = (work: Promise<void>): void => {
    const tracked = work.finally(() => underWay.delete(tracked));
    underWay.add(tracked);
  };
  const settled = async (): Promise<void> => {
    while (underWay.size > 0) await Promise.all(underWay);
  };

  return {
    now: () => time,
    schedule(delayMs, run) {
      const entry = { at: time + delayMs, run };
      queue.splice(placeAfter(queue, entry.at), 0, entry);
      return () => {
        const index = queue.indexOf(entry);
        if (index >= 0) queue.splice(index, 1);
      };
    },
    during,
    async advance(ms) {
      const end = time + ms;
      for (;;) {
        await settled();
        const next = queue[0];
        if (next === undefined || next.at > end) break;
        queue.shift();
        time = Math.max(time, next.at);
        during(Promise.resolve(next.run()));
      }
      time = end;
    },
  };
}

/** The index behind every entry due at `at` or before, so that equal times run in the order they were scheduled. */
function placeAfter(queue: readonly ScheduledRun[], at: number): number {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle]?.at ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
