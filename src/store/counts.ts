/** Number of messages at one time, or at several merged times, in ms since 1970. */
export type Counted = [at: number, number: number];

/** Messages that a commit counts under a key, and the limits that the messages already counted must not exceed. */
export interface Count {
  /** The current time, in ms since 1970. */
  now: number;
  /** Length of the longest window, in ms. The store forgets older messages. */
  windowMs: number;
  /** Identifies the clock of the times. It contains no colon. */
  clock: string;
  /** Messages to add, with their times. A negative number removes messages that were added at this time. */
  changes: readonly Counted[];
  /** Another process has reached a limit if the store has more than `max` messages after the time `since`. */
  limits: readonly { since: number; max: number }[];
}

/** Maximum number of times under a key. Beyond it, the times of each 1/360 of the window are merged. */
export const maxTimes = 400;
/** Number of parts of a window, see {@link maxTimes}. */
export const partsOfWindow = 360;

/**
 * Extra storage time of a count beyond its window, in ms, so that the sweep does not drop the count if the clock is set
 * forward.
 */
const spareMs = 24 * 3_600_000;

/** Reads the times of a counted value, the latest last. An unreadable value has none. */
export function parseCounts(value = ''): Counted[] {
  const [, ...times] = value.split(' ');
  const counted = times.map((text): Counted => {
    const [at, number] = text.split(':', 2);
    return [Number(at), Number(number)];
  });
  return counted.filter((one) => one.every(Number.isInteger));
}

/** Returns the name of the clock of a counted value. */
export function clockOfCounts(value: string | undefined): string {
  return value?.split(' ', 1)[0] ?? '';
}

/** Writes counted messages as a value. */
export function formatCounts(clock: string, counted: readonly Counted[]): string {
  return [clock, ...counted.map(([at, number]) => `${at}:${number}`)].join(' ');
}

/** Returns how long the store keeps a count, in ms. */
export function storedMs(windowMs: number): number {
  return Math.ceil(windowMs) + spareMs;
}

/** Returns whether a count does not exceed its limits. */
export function areLimitsKept(value: string | undefined, { limits }: Count): boolean {
  const counted = limits.length > 0 ? parseCounts(value) : [];
  return limits.every(({ since, max }) => sumAfter(counted, since) <= max);
}

/**
 * Counts messages on top of a value. Removing a message lowers the number at its time or, if that time was merged with
 * others, at the merged time. Returns the new value, or `undefined` if no message counts any longer.
 *
 * `redis-scripts.ts` has the same rules for the server.
 */
export function addCount(
  value: string | undefined,
  { now, windowMs, clock, changes }: Omit<Count, 'limits'>,
): { at: number; forMs: number; value: string } | undefined {
  const counted = parseCounts(value);
  for (const [at, number] of changes) {
    const last = counted.at(-1);
    if (number < 0) remove(counted, at, -number, windowMs / partsOfWindow);
    // The last time might be later, because another machine has a different clock. The message then counts longer.
    else if (last && last[0] >= at) last[1] += number;
    else counted.push([at, number]);
  }
  const current = counted.filter(([at, number]) => number > 0 && now - at < windowMs);
  if (current.length === 0) return undefined;
  const text = formatCounts(clock, current.length > maxTimes ? mergeParts(current, windowMs) : current);
  return { at: now, forMs: storedMs(windowMs), value: text };
}

/** Joins the counts of two steps. The limits of the later step allow for the changes of the earlier step. */
export function joinCounts(earlier: Count | undefined, later: Count): Count {
  if (!earlier) return later;
  const limits = new Map(earlier.limits.map(({ since, max }) => [since, max]));
  for (const { since, max } of later.limits) {
    const joined = max - sumAfter(earlier.changes, since);
    limits.set(since, Math.min(joined, limits.get(since) ?? joined));
  }
  const changes = [...earlier.changes, ...later.changes];
  const windowMs = Math.max(earlier.windowMs, later.windowMs);
  return {
    now: Math.max(earlier.now, later.now),
    windowMs,
    clock: later.clock,
    // Merges the changes, because their number during a long outage has no limit.
    changes: changes.length > maxTimes ? mergeParts(changes, windowMs) : changes,
    limits: [...limits].map(([since, max]) => ({ since, max })),
  };
}

/** Returns how many messages have a later time. */
export function sumAfter(counted: readonly Counted[], since: number): number {
  return counted.reduce((sum, [at, number]) => (at > since ? sum + number : sum), 0);
}

function remove(counted: Counted[], removedAt: number, number: number, partMs: number): void {
  let remaining = number;
  for (const one of counted) {
    // Merged times are stored under the latest time.
    if (one[0] < removedAt || one[0] - removedAt >= partMs) continue;
    const less = Math.min(remaining, one[1]);
    one[1] -= less;
    remaining -= less;
  }
}

/** Merges successive added messages of the same part of the window. */
function mergeParts(counted: readonly Counted[], windowMs: number): Counted[] {
  const partOf = (at: number) => Math.floor((at * partsOfWindow) / windowMs);
  const merged: Counted[] = [];
  for (const [at, number] of counted) {
    const last = merged.at(-1);
    const isSamePart = last && last[1] > 0 && number > 0 && partOf(last[0]) === partOf(at);
    if (isSamePart) merged[merged.length - 1] = [Math.max(at, last[0]), last[1] + number];
    else merged.push([at, number]);
  }
  return merged;
}
