import { createHash } from 'node:crypto';
import { type Counted, clockOfCounts, formatCounts, parseCounts, storedMs, sumAfter } from '../store/counts';
import { type Changes, countMessages, type ReadKey, type Remembered, rememberValue } from '../store/store';

/** The limits of an account node. Absent: no limit. */
export interface LimitSettings {
  /** Maximum number of messages to one phone number within {@link perHandsetMs}. */
  perHandset?: number | undefined;
  perHandsetMs: number;
  /** Maximum number of messages in 24 hours. Each recipient counts as one message. */
  perDay?: number | undefined;
}

/** A recipient that a limit withholds. Can be stored as JSON. */
export interface Limited {
  msisdn: string;
  limit: 'handset' | 'day';
  /** Maximum number of messages within {@link lengthMs}. */
  max: number;
  lengthMs: number;
  /** Time from which the limit allows one more message, in ms since 1970. */
  until: number;
}

/** A message to count against the limits of the account. */
export interface Counting {
  /** Recipients in the order in which they use up a limit. An address-book item counts as one number. */
  recipients: readonly string[];
  /** The limits of all account nodes. All of them apply. */
  rules: { limits: readonly LimitSettings[] };
  time: CountTime;
  /** With `unlimited`, the message counts, but no limit withholds its recipients. */
  item: { options: { unlimited: boolean } };
}

/**
 * A time, and the state of the clock at that time. If a user changes the clock afterwards, the process detects this from
 * the state, and corrects the times of its counts.
 */
export interface CountTime {
  /** Milliseconds since 1970. */
  now: number;
  /**
   * Name of the clock and, after a slash, its lead over the elapsed time, in ms. The lead changes only if the clock is
   * set. `server`: the processes share the clock of a server.
   */
  clock: string;
}

const dayMs = 24 * 3_600_000;
/** Prefix of the keys of all limits. */
export const limitPrefix = 'limit:';
const dayKey = `${limitPrefix}day`;

/** Minimum clock change that is corrected, in ms. Smaller changes do not mean that the clock was set. */
const minSetMs = 1_000;

/**
 * Maximum difference between the clocks of different machines, in ms. If the time of a count is further in the future,
 * the clock has been set back since then.
 */
const maxAheadMs = 60_000;

/**
 * Returns the recipients over a limit. If a recipient is over several limits, names the limit that withholds the
 * recipient longest.
 *
 * @param isLeaving true if the step stores the state `leaving`. If so, counts one message for each recipient within the
 * limits. If the message is then not sent to some of these recipients, the caller must pass them to {@link
 * releaseCounts}
 */
export function applyLimits(counting: Counting, readKey: ReadKey, changes: Changes, isLeaving: boolean): Limited[] {
  const { recipients, item } = counting;
  const windows = openWindows(counting, readKey);
  const limited: Limited[] = [];
  for (const msisdn of recipients) {
    const concerned = windows.of(msisdn);
    const reached = item.options.unlimited ? [] : concerned.flatMap((window) => window.reached());
    const [limit] = reached.sort((a, b) => b.until - a.until);
    if (limit) limited.push({ msisdn, ...limit });
    else for (const window of concerned) window.added++;
  }
  for (const window of windows.all()) {
    window.writeCorrection(changes);
    if (isLeaving) window.writeAdded(changes, item.options.unlimited);
  }
  return limited;
}

/**
 * Removes the counts of recipients to which the message was not sent. The caller must not pass recipients that might
 * have received the message: these stay counted.
 *
 * @param countedAt the time at which the recipients were counted
 */
export function releaseCounts(counting: Counting, countedAt: CountTime, readKey: ReadKey, changes: Changes): void {
  const windows = openWindows(counting, readKey);
  for (const msisdn of counting.recipients) for (const window of windows.of(msisdn)) window.added--;
  for (const window of windows.all()) {
    window.writeCorrection(changes);
    window.writeRemoved(changes, countedAt);
  }
}

/**
 * Merges the counts of two logins or stores. Counts with the same time belong to the same messages, so they are not
 * added: the higher count applies.
 */
export function mergeLimits(current: Remembered, imported: Remembered): Remembered {
  const counts = countByTime(current.value);
  for (const [at, number] of countByTime(imported.value)) counts.set(at, Math.max(number, counts.get(at) ?? 0));
  const value = formatCounts(clockOfCounts(current.value), inOrder([...counts]));
  return { ...current, forMs: Math.max(current.forMs, imported.forMs), value };
}

/** Sums the counts of each time. If the clock was set back, several counts can have the same time. */
function countByTime(value: string): Map<number, number> {
  const counts = new Map<number, number>();
  for (const [at, number] of parseCounts(value)) counts.set(at, number + (counts.get(at) ?? 0));
  return counts;
}

function inOrder(counted: Counted[]): Counted[] {
  return counted.sort(([a], [b]) => a - b);
}

/** A limit that applies to a recipient. */
type LimitOn = Pick<Limited, 'limit' | 'max' | 'lengthMs'>;

/**
 * Returns the limits that apply to a recipient, by the keys of their counts. A key does not contain the period of its
 * limit, so that counts remain valid when a user changes the period.
 */
function limitsOn(msisdn: string, limits: readonly LimitSettings[]): Map<string, LimitOn[]> {
  const limitsByKey = new Map<string, LimitOn[]>();
  const add = (key: string, limit: LimitOn) => void limitsByKey.set(key, [...(limitsByKey.get(key) ?? []), limit]);
  // Uses a digest, because keys must not contain numbers.
  const number = createHash('sha256').update(msisdn).digest('base64url');
  for (const { perHandset, perHandsetMs, perDay } of limits) {
    if (perHandset !== undefined) {
      add(`${limitPrefix}handset:${number}`, { limit: 'handset', max: perHandset, lengthMs: perHandsetMs });
    }
    if (perDay !== undefined) add(dayKey, { limit: 'day', max: perDay, lengthMs: dayMs });
  }
  return limitsByKey;
}

/** Returns the {@link CountWindow}s that a step reads and writes, each loaded only once. */
function openWindows({ rules, time }: Counting, readKey: ReadKey) {
  const windows = new Map<string, CountWindow>();
  const windowOf = ([key, limits]: [string, LimitOn[]]) => {
    const window = windows.get(key) ?? new CountWindow(key, limits, readKey(key)?.value, time);
    windows.set(key, window);
    return window;
  };
  return {
    of: (msisdn: string) => [...limitsOn(msisdn, rules.limits)].map(windowOf),
    all: () => windows.values(),
  };
}

/**
 * The counts that the store has under one key, over the longest period of the limits that use the key. If a clock was
 * set, the times of the counts can be wrong:
 *
 * - If this process has counted the messages, it corrects the times.
 * - If another process has counted the messages, the times cannot be corrected. A time in the future becomes the time
 *   at which this process first reads it.
 */
class CountWindow {
  /** Number of messages that this step adds. If negative, the number that this step removes. */
  added = 0;
  readonly #key: string;
  readonly #limits: readonly LimitOn[];
  readonly #time: CountTime;
  readonly #windowMs: number;
  readonly #counted: readonly Counted[];
  /** Whether the clock was set, so that the times in the store must be corrected. */
  readonly #isCorrected: boolean;

  constructor(key: string, limits: readonly LimitOn[], value: string | undefined, time: CountTime) {
    this.#key = key;
    this.#limits = limits;
    this.#time = time;
    this.#windowMs = Math.max(...limits.map(({ lengthMs }) => lengthMs));
    const stored = parseCounts(value);
    const byMs = changeBetween(clockOfCounts(value), time.clock);
    const latest = time.now + Math.min(this.#windowMs, maxAheadMs);
    this.#counted = inOrder(stored.map(([at, number]): Counted => [at + byMs > latest ? time.now : at + byMs, number]));
    this.#isCorrected = stored.some(([at]) => byMs !== 0 || at > latest);
  }

  /**
   * Returns the limits that one more message would exceed, each with the time from which it allows one more message, in
   * ms since 1970.
   */
  reached(): Omit<Limited, 'msisdn'>[] {
    const { now } = this.#time;
    const counted: Counted[] = [...this.#counted, [now, this.added]];
    return this.#limits.flatMap((limit) => {
      const { max, lengthMs } = limit;
      const since = now - lengthMs;
      let remaining = sumAfter(counted, since);
      if (remaining < max) return [];
      for (const [at, number] of counted) {
        if (at <= since) continue;
        remaining -= number;
        if (remaining < max) return [{ ...limit, until: at + lengthMs }];
      }
      return [];
    });
  }

  /**
   * Writes the corrected times of the counts, because counts in the future would otherwise last until the clock catches
   * up.
   */
  writeCorrection(changes: Changes): void {
    if (!this.#isCorrected) return;
    const { now, clock } = this.#time;
    const value = formatCounts(clock, this.#counted);
    rememberValue(changes, this.#key, { at: now, forMs: storedMs(this.#windowMs), value });
  }

  /**
   * Adds the new counts. The store checks the limits again at the commit, because other processes can count under the
   * same key.
   */
  writeAdded(changes: Changes, isUnlimited: boolean): void {
    const { now } = this.#time;
    const limits = this.#limits.map(({ max, lengthMs }) => ({ since: now - lengthMs, max: max - this.added }));
    if (this.added > 0) this.#write(changes, [now, this.added], isUnlimited ? [] : limits);
  }

  /**
   * Removes messages that were counted at `countedAt`. If `countedAt` is before the periods of all limits, does nothing,
   * because the messages are no longer counted.
   */
  writeRemoved(changes: Changes, countedAt: CountTime): void {
    const at = countedAt.now + changeBetween(countedAt.clock, this.#time.clock);
    const isCounted = this.#counted.length > 0 && this.#time.now - at < this.#windowMs;
    if (isCounted) this.#write(changes, [at, this.added], []);
  }

  #write(changes: Changes, change: Counted, limits: readonly { since: number; max: number }[]): void {
    countMessages(changes, this.#key, { ...this.#time, windowMs: this.#windowMs, changes: [change], limits });
  }
}

/** Returns by how many ms a clock was set. 0: it was not set, or its earlier state is not known. */
function changeBetween(earlier: string, current: string): number {
  const [earlierName, earlierLead] = earlier.split('/');
  const [name, lead] = current.split('/');
  const byMs = Number(lead) - Number(earlierLead);
  return name === earlierName && Math.abs(byMs) >= minSetMs ? byMs : 0;
}
