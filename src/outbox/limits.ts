import { createHash } from 'node:crypto';
import { type Changes, createChanges, type Look, type Remembered } from '../store/store';

/** The limits of an account node. Absent: no limit. */
export interface LimitSettings {
  /** Maximum number of messages to one number in {@link perHandsetMs}. */
  perHandset?: number | undefined;
  perHandsetMs: number;
  /** Maximum number of messages in 24 hours. Each recipient counts as one message. */
  perDay?: number | undefined;
}

/** A recipient that a limit withholds. Plain data. */
export interface Limited {
  msisdn: string;
  limit: 'handset' | 'day';
  /** Maximum number of messages in {@link lengthMs}. */
  most: number;
  lengthMs: number;
  /** Time from which one more message is within the limit, in ms since 1970. */
  until: number;
}

/** A message that is counted. */
export interface Counting {
  /** Recipients in the order in which they use up a limit. An address-book item counts as one number. */
  recipients: readonly string[];
  /** All of these limits apply. */
  rules: { limits: readonly LimitSettings[] };
  moment: Moment;
  /** With `unlimited`, the message counts, but no limit withholds its recipients. */
  text: { options: { unlimited: boolean } };
}

const dayMs = 24 * 3_600_000;
/** Prefix of the keys of all limits. */
export const limitPrefix = 'limit:';
const dayKey = `${limitPrefix}day`;

/** Extra storage time of a count beyond its window, so that the sweep does not drop it if the clock is set forward. */
const spareMs = 24 * 3_600_000;

/**
 * Counts a message for each recipient within the limits, and returns the other recipients. A recipient over several
 * limits is returned with the limit that ends last.
 *
 * Call this function in the step that marks the message as leaving. If some counted recipients are not sent to, call
 * {@link giveBack} for them.
 */
export function takeWithinLimits(counting: Counting, look: Look, changes: Changes): Limited[] {
  const windows = openWindows(counting, look);
  const limited: Limited[] = [];
  for (const msisdn of counting.recipients) {
    const own = windows.of(msisdn);
    const [first, ...others] = counting.text.options.unlimited ? [] : own.flatMap((window) => window.reached());
    if (first) {
      const last = others.reduce((last, one) => (last.until >= one.until ? last : one), first);
      limited.push({ msisdn, ...last });
    } else for (const window of own) window.add();
  }
  windows.write(changes);
  return limited;
}

/** Returns the recipients that the limits would withhold now. Counts nothing. */
export function judgeLimits(counting: Counting, look: Look, changes: Changes): Limited[] {
  const limited = takeWithinLimits(counting, look, createChanges());
  // A count that is in the future, because the clock was set back, must not count forever.
  const windows = openWindows(counting, look);
  for (const { msisdn } of limited) windows.of(msisdn);
  windows.write(changes);
  return limited;
}

/**
 * Removes the counts of recipients that were not sent to. Accepted recipients, and recipients with an unknown outcome,
 * stay counted.
 *
 * @param takenAt the moment at which the recipients were counted
 */
export function giveBack(counting: Counting, takenAt: Moment, look: Look, changes: Changes): void {
  const windows = openWindows(counting, look);
  for (const msisdn of counting.recipients) {
    for (const window of windows.of(msisdn)) window.remove(takenAt);
  }
  windows.write(changes);
}

/** Merges the counts of two logins or stores. Counts of the same moment are the same message. */
export function mergeLimits(own: Remembered, former: Remembered): Remembered {
  return { ...own, forMs: Math.max(own.forMs, former.forMs), value: mergeWindows(own.value, former.value) };
}

/** A limit that applies to a recipient. */
type LimitOn = Pick<Limited, 'limit' | 'most' | 'lengthMs'>;

/**
 * Returns the limits that apply to a recipient, by the keys of their counts. The key of a number does not include the
 * period of the limit, so that the counts survive a change of the period.
 */
function limitsOn(msisdn: string, limits: readonly LimitSettings[]): Map<string, LimitOn[]> {
  const found = new Map<string, LimitOn[]>();
  const add = (key: string, limit: LimitOn) => void found.set(key, [...(found.get(key) ?? []), limit]);
  // Keys contain digests instead of numbers.
  const number = createHash('sha256').update(msisdn).digest('base64url');
  for (const { perHandset, perHandsetMs, perDay } of limits) {
    if (perHandset !== undefined) {
      add(`${limitPrefix}handset:${number}`, { limit: 'handset', most: perHandset, lengthMs: perHandsetMs });
    }
    if (perDay !== undefined) add(dayKey, { limit: 'day', most: perDay, lengthMs: dayMs });
  }
  return found;
}

/** Returns the windows that a step reads and writes, each loaded only once. */
function openWindows({ rules, moment }: Counting, look: Look) {
  const windows = new Map<string, SlidingWindow>();
  const windowOf = ([key, limits]: [string, LimitOn[]]) => {
    const window = windows.get(key) ?? new SlidingWindow(limits, look(key)?.value, moment);
    windows.set(key, window);
    return window;
  };
  return {
    of: (msisdn: string) => [...limitsOn(msisdn, rules.limits)].map(windowOf),
    write(changes: Changes): void {
      for (const [key, window] of windows) if (window.isChanged) changes.remember.set(key, window.format());
    },
  };
}

/**
 * A moment by two clocks: the wall clock, and a steady clock that never jumps. Counts therefore stay right if the
 * wall clock is set.
 */
export interface Moment {
  /** Milliseconds since 1970. */
  now: number;
  /** How far `now` is ahead of the steady clock, in ms. It changes only if the wall clock is set. */
  lead: number;
  /** Name of the steady clock. Each process has its own. */
  origin: string;
}

/** Number of messages at one moment, or at several merged moments. */
type Counted = [at: number, count: number];

/** Maximum number of moments in a window. Beyond it, the window merges the moments of each 1/360 of its length. */
const mostEntries = 400;
const stepsOfWindow = 360;

/** Smaller differences between the two clocks do not mean that the clock was set. */
const leastSetMs = 1_000;

/**
 * Clocks of different machines differ by less than this. A count further ahead dates from before the clock was set
 * back.
 */
const toleratedAheadMs = 60_000;

/**
 * The messages that count for one or more limits, over the longest window of these limits.
 *
 * The window is exact for up to {@link mostEntries} moments. Beyond that, each message counts for up to 1/360 of the
 * window longer. If the clock is set while the process runs, the counts stay right. Counts of another process use the
 * wall clock. If they are ahead of it, they last for one window from the time at which this process first reads them.
 */
class SlidingWindow {
  readonly #limits: readonly LimitOn[];
  readonly #lengthMs: number;
  /**
   * Whether the window must be written. Also true if the clock was set back. Otherwise, counts from the future
   * would last until the clock catches up.
   */
  isChanged = false;
  readonly #moment: Moment;
  readonly #texts: Counted[] = [];

  /** @param value result of {@link format}; if `undefined` or unreadable, the window starts empty */
  constructor(limits: readonly LimitOn[], value: string | undefined, moment: Moment) {
    const lengthMs = Math.max(...limits.map((limit) => limit.lengthMs));
    this.#limits = limits;
    this.#lengthMs = lengthMs;
    this.#moment = moment;
    const { texts, lead, origin } = parse(value);
    const byMs = origin === moment.origin ? setBy(moment.lead - lead) : 0;
    const latest = moment.now + Math.min(lengthMs, toleratedAheadMs);
    for (const counted of texts) {
      counted[0] += byMs;
      if (counted[0] > latest) {
        counted[0] = moment.now;
        this.isChanged = true;
      }
      if (moment.now - counted[0] >= lengthMs) continue;
      this.#texts.push(counted);
    }
    this.#texts.sort(([a], [b]) => a - b);
  }

  /** Returns the limits that one more message would exceed, each with the time at which it ends, in ms since 1970. */
  reached(): Omit<Limited, 'msisdn'>[] {
    return this.#limits.flatMap((limit) => {
      const { most, lengthMs } = limit;
      const counted = this.#texts.filter(([at]) => this.#moment.now - at < lengthMs);
      let count = counted.reduce((sum, [, more]) => sum + more, 0);
      if (count < most) return [];
      for (const [at, leaving] of counted) {
        count -= leaving;
        if (count < most) return [{ ...limit, until: at + lengthMs }];
      }
      return [{ ...limit, until: this.#moment.now }];
    });
  }

  /** Counts a message that leaves now. */
  add(): void {
    const { now } = this.#moment;
    this.isChanged = true;
    const last = this.#texts.at(-1);
    // The last count might be in the future, by the clock of another machine. Counting there makes this message count
    // longer.
    if (last && last[0] >= now) last[1]++;
    else this.#texts.push([now, 1]);
    if (this.#texts.length <= mostEntries) return;
    const steps = new Map<number, Counted>();
    for (const [at, count] of this.#texts) {
      const step = Math.floor((at * stepsOfWindow) / this.#lengthMs);
      steps.set(step, [at, count + (steps.get(step)?.[1] ?? 0)]);
    }
    this.#texts.splice(0, this.#texts.length, ...steps.values());
  }

  /** Removes one of the messages that left at `at`, if any of them still counts. */
  remove(at: Moment): void {
    const when = at.now + (at.origin === this.#moment.origin ? setBy(this.#moment.lead - at.lead) : 0);
    if (this.#moment.now - when >= this.#lengthMs) return;
    // Merged moments are stored under the latest of them.
    const index = this.#texts.findIndex(([latest]) => latest >= when);
    const counted = this.#texts[index];
    if (!counted || counted[0] - when >= this.#lengthMs / stepsOfWindow) return;
    this.isChanged = true;
    counted[1]--;
    if (counted[1] === 0) this.#texts.splice(index, 1);
  }

  /** The value to store; `undefined` if no message counts. */
  format(): Remembered | undefined {
    if (this.#texts.length === 0) return undefined;
    const { now, lead, origin } = this.#moment;
    const value = JSON.stringify({ origin, lead, texts: this.#texts });
    return { at: now, forMs: Math.ceil(this.#lengthMs) + spareMs, value };
  }
}

/**
 * Merges the values of two windows. Counts of the same moment are the same message.
 *
 * @param value the window whose clock the result keeps
 */
function mergeWindows(value: string, other: string): string {
  const { origin, lead, texts } = parse(value);
  const counts = countByMoment(texts);
  for (const [at, count] of countByMoment(parse(other).texts)) counts.set(at, Math.max(count, counts.get(at) ?? 0));
  return JSON.stringify({ origin, lead, texts: [...counts] });
}

/** Sums the counts of each moment. If the clock was set back, several entries can have the same moment. */
function countByMoment(texts: readonly Counted[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const [at, count] of texts) counts.set(at, count + (counts.get(at) ?? 0));
  return counts;
}

function setBy(ms: number): number {
  return Math.abs(ms) < leastSetMs ? 0 : ms;
}

function parse(value: string | undefined): { origin?: string; lead: number; texts: Counted[] } {
  try {
    const { origin, lead, texts } = JSON.parse(value ?? '{}');
    if (typeof lead === 'number' && Array.isArray(texts) && texts.every(isCounted)) return { origin, lead, texts };
  } catch {}
  return { lead: 0, texts: [] };
}

function isCounted(entry: unknown): entry is Counted {
  return Array.isArray(entry) && Number.isFinite(entry[0]) && Number.isInteger(entry[1]) && entry[1] > 0;
}
