/**
 * A time, in ms since 1970, and the number of messages at this time. If there are too many times, neighbouring times
 * are merged.
 */
export type Counted = [at: number, number: number];

/** Messages that a commit adds to the count of a key, and limits for the messages that are already counted. */
export interface Count {
  /** The current time, in ms since 1970. */
  now: number;
  /** Length of the longest window, in ms. The store forgets older messages. */
  windowMs: number;
  /** Name of the clock that the times were read from. It contains no colon. */
  clock: string;
  /** Messages to add, with their times. A negative number removes messages that were added at this time. */
  changes: readonly Counted[];
  /** The commit fails if the store has already counted more than `max` messages after the time `since`. */
  limits: readonly { since: number; max: number }[];
}

/**
 * Maximum number of different times under a key. If there are more, the window is divided into 360 parts, and the times
 * within each part are merged.
 */
export const maxTimes = 400;
/** Number of parts of a window, see {@link maxTimes}. */
export const partsOfWindow = 360;

/**
 * Time for which a count is stored after the end of its window, in ms. Without it, the sweep could drop the count if
 * the clock is set forward.
 */
const spareMs = 24 * 3_600_000;

/** Parses a stored count into its times, the latest last. Returns an empty list for an unreadable value. */
export function parseCounts(value = ''): Counted[] {
  const [, ...entries] = value.split(' ');
  const times = entries.map((text): Counted => {
    const [at, number] = text.split(':', 2);
    return [Number(at), Number(number)];
  });
  return times.filter((time) => time.every(Number.isInteger));
}

/** Returns the name of the clock of a stored count, see {@link Count.clock}. */
export function clockOfCounts(value: string | undefined): string {
  return value?.split(' ', 1)[0] ?? '';
}

/** Formats the times of counted messages as a value for the store. */
export function formatCounts(clock: string, times: readonly Counted[]): string {
  return [clock, ...times.map(([at, number]) => `${at}:${number}`)].join(' ');
}

/** Returns how long the store keeps a count, in ms. */
export function storedMs(windowMs: number): number {
  return Math.ceil(windowMs) + spareMs;
}

/** Returns whether the messages in a stored count are within the limits. */
export function isWithinLimits(value: string | undefined, { limits }: Count): boolean {
  const times = limits.length > 0 ? parseCounts(value) : [];
  return limits.every(({ since, max }) => sumAfter(times, since) <= max);
}

/**
 * Adds messages to a stored count, or removes messages from it. Returns the new value, or `undefined` if no message is
 * left in the window.
 *
 * Removing a message lowers the number at its time. If that time was merged with other times, the number at the merged
 * time is lowered.
 *
 * The Lua functions in `redis-scripts.ts` must follow the same rules.
 */
export function addCount(
  value: string | undefined,
  { now, windowMs, clock, changes }: Omit<Count, 'limits'>,
): { at: number; forMs: number; value: string } | undefined {
  const times = parseCounts(value);
  for (const [at, number] of changes) {
    const lastTime = times.at(-1);
    if (number < 0) remove(times, at, -number, windowMs / partsOfWindow);
    // If the clock of another machine is ahead, the last time can be later than `at`. Adds the messages to the last
    // time, so that the times stay in order.
    else if (lastTime && lastTime[0] >= at) lastTime[1] += number;
    else times.push([at, number]);
  }
  const currentTimes = times.filter(([at, number]) => number > 0 && now - at < windowMs);
  if (currentTimes.length === 0) return undefined;
  const text = formatCounts(clock, currentTimes.length > maxTimes ? mergeParts(currentTimes, windowMs) : currentTimes);
  return { at: now, forMs: storedMs(windowMs), value: text };
}

/**
 * Joins the counts that two steps of one commit add to the same key. Subtracts the messages of the earlier step from
 * the limits of the later step, because the store does not contain these messages yet.
 */
export function joinCounts(earlierCount: Count | undefined, laterCount: Count): Count {
  if (!earlierCount) return laterCount;
  const limits = new Map(earlierCount.limits.map(({ since, max }) => [since, max]));
  for (const { since, max } of laterCount.limits) {
    const joined = max - sumAfter(earlierCount.changes, since);
    limits.set(since, Math.min(joined, limits.get(since) ?? joined));
  }
  const changes = [...earlierCount.changes, ...laterCount.changes];
  const windowMs = Math.max(earlierCount.windowMs, laterCount.windowMs);
  return {
    now: Math.max(earlierCount.now, laterCount.now),
    windowMs,
    clock: laterCount.clock,
    // Limits the number of changes, which would otherwise grow without bound during a long outage of the store.
    changes: changes.length > maxTimes ? mergeParts(changes, windowMs) : changes,
    limits: [...limits].map(([since, max]) => ({ since, max })),
  };
}

/** Returns how many messages have a time after `since`. */
export function sumAfter(times: readonly Counted[], since: number): number {
  return times.reduce((sum, [at, number]) => (at > since ? sum + number : sum), 0);
}

function remove(times: Counted[], removedAt: number, number: number, partMs: number): void {
  let remainingCount = number;
  for (const time of times) {
    // Merged times are stored under their latest time, so the removed message can be at a time after `removedAt`.
    if (time[0] < removedAt || time[0] - removedAt >= partMs) continue;
    const difference = Math.min(remainingCount, time[1]);
    time[1] -= difference;
    remainingCount -= difference;
  }
}

/** Merges consecutive times in the same part of the window. Keeps removals separate. */
function mergeParts(times: readonly Counted[], windowMs: number): Counted[] {
  const partOf = (at: number) => Math.floor((at * partsOfWindow) / windowMs);
  const mergedTimes: Counted[] = [];
  for (const [at, number] of times) {
    const lastTime = mergedTimes.at(-1);
    const isSamePart = lastTime && lastTime[1] > 0 && number > 0 && partOf(lastTime[0]) === partOf(at);
    if (isSamePart) mergedTimes[mergedTimes.length - 1] = [Math.max(at, lastTime[0]), lastTime[1] + number];
    else mergedTimes.push([at, number]);
  }
  return mergedTimes;
}
