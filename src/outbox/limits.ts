import { createHash } from 'node:crypto';
import { type Changes, createChanges, type Look, type Remembered } from '../store/store';

/** An account's own limits; an absent one is none. */
export interface LimitSettings {
  /** Texts to one number in {@link perHandsetMs}. */
  perHandset?: number | undefined;
  perHandsetMs: number;
  /** Texts, one for each recipient, in 24 hours. */
  perDay?: number | undefined;
}

/** A recipient that a text does not go to, and why. Plain data. */
export interface Limited {
  msisdn: string;
  limit: 'handset' | 'day';
  /** Texts at most in {@link lengthMs}. */
  most: number;
  lengthMs: number;
  /** When one more is within the limit, in ms since 1970. */
  until: number;
}

/** Whom a text is for, and when it goes out. */
export interface Counting {
  /** In the order in which they are served while the limit of the day lasts. An address-book item is one number. */
  recipients: readonly string[];
  /** All of these limits hold. */
  rules: { limits: readonly LimitSettings[] };
  moment: Moment;
  /** Of one that is unlimited all are within the limits; they are counted all the same. */
  text: { options: { unlimited: boolean } };
}

const dayMs = 24 * 3_600_000;
/** The keys of all limits begin so. */
export const limitPrefix = 'limit:';
const dayKey = `${limitPrefix}day`;

/** What is remembered outlasts its window by so long, lest it be swept when the clock is set forward. */
const spareMs = 24 * 3_600_000;

/**
 * Counts a text that goes out, for each recipient that is within the limits, and gives the others. One that is over several is named with the
 * one that ends last.
 *
 * To be decided in the step that notes that the text goes out: whoever is counted here but not sent to is given back with
 * {@link giveBack}.
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

/** Says who would be kept back now. Nobody is counted. */
export function judgeLimits(counting: Counting, look: Look, changes: Changes): Limited[] {
  const limited = takeWithinLimits(counting, look, createChanges());
  // What was counted before the clock was set back lies in the future now, and must not count for ever.
  const windows = openWindows(counting, look);
  for (const { msisdn } of limited) windows.of(msisdn);
  windows.write(changes);
  return limited;
}

/**
 * Takes back what {@link takeWithinLimits} counted for recipients that were not sent to after all. Those that were accepted
 * or are unknown stay counted.
 *
 * @param takenAt the moment of that step
 */
export function giveBack(counting: Counting, takenAt: Moment, look: Look, changes: Changes): void {
  const windows = openWindows(counting, look);
  for (const msisdn of counting.recipients) {
    for (const window of windows.of(msisdn)) window.remove(takenAt);
  }
  windows.write(changes);
}

/** Joins the counts of two places. What both have counted at one moment is the same. */
export function mergeLimits(own: Remembered, former: Remembered): Remembered {
  return { ...own, forMs: Math.max(own.forMs, former.forMs), value: mergeWindows(own.value, former.value) };
}

/** A limit as it concerns one recipient. */
type LimitOn = Pick<Limited, 'limit' | 'most' | 'lengthMs'>;

/**
 * The limits that concern a recipient, by the keys under which they count. The key of a number does not name the length of its limits, so that
 * the counts stay if a length changes.
 */
function limitsOn(msisdn: string, limits: readonly LimitSettings[]): Map<string, LimitOn[]> {
  const found = new Map<string, LimitOn[]>();
  const add = (key: string, limit: LimitOn) => void found.set(key, [...(found.get(key) ?? []), limit]);
  // Numbers stand in keys only as digests.
  const number = createHash('sha256').update(msisdn).digest('base64url');
  for (const { perHandset, perHandsetMs, perDay } of limits) {
    if (perHandset !== undefined) {
      add(`${limitPrefix}handset:${number}`, { limit: 'handset', most: perHandset, lengthMs: perHandsetMs });
    }
    if (perDay !== undefined) add(dayKey, { limit: 'day', most: perDay, lengthMs: dayMs });
  }
  return found;
}

/** The windows that a step looks at, each read once and written once. */
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

/** A moment by both clocks of a machine, the one that may be set and the one that passes evenly, so that windows outlive the setting of the clock. */
export interface Moment {
  /** Milliseconds since 1970. */
  now: number;
  /** By how much `now` is ahead of the even clock: it changes when the clock is set, and by nothing else. */
  lead: number;
  /** Names the even clock: another process has another. */
  origin: string;
}

/** So many texts went out at a time, or in the time since the entry before. */
type Counted = [at: number, count: number];

/** Where there are more moments, those of one step are put together; a window has so many steps. */
const mostEntries = 400;
const stepsOfWindow = 360;

/** Two clocks tell the time unevenly by a little, though nobody has set one. */
const leastSetMs = 1_000;

/** The clocks of several machines differ by less. A text that is further ahead was counted before the clock was set back. */
const toleratedAheadMs = 60_000;

/**
 * Messages that count at a moment for some limits: those that went out within the longest of them.
 *
 * It errs on the strict side: up to {@link mostEntries} moments are exact; of more, each counts for a 360th of the window
 * longer at most. When the clock is set while the process runs, they count on as if it had not been. Of what another process
 * has counted, that cannot be known: it goes by the clock, but nothing counts for longer than the window from the time at
 * which it is first seen to lie ahead.
 */
class SlidingWindow {
  readonly #limits: readonly LimitOn[];
  readonly #lengthMs: number;
  /**
   * Whether it has to be written: also when the clock was set back though nothing was counted, or what lies ahead would count
   * until the clock has caught up.
   */
  isChanged = false;
  readonly #moment: Moment;
  readonly #texts: Counted[] = [];

  /** @param value of what {@link format} has made; `undefined`, or what is not such a value, for none */
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

  /** The limits that one more message would exceed, each with the time from which it would not, in ms since 1970. */
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

  /** Counts one that goes out now. */
  add(): void {
    const { now } = this.#moment;
    this.isChanged = true;
    const last = this.#texts.at(-1);
    // One that lies ahead, by the clock of another machine, counts for longer.
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

  /** Counts one less of those that went out at `at`, if any still do. */
  remove(at: Moment): void {
    const when = at.now + (at.origin === this.#moment.origin ? setBy(this.#moment.lead - at.lead) : 0);
    if (this.#moment.now - when >= this.#lengthMs) return;
    // Where several moments were put together, they are under the last of them.
    const index = this.#texts.findIndex(([latest]) => latest >= when);
    const counted = this.#texts[index];
    if (!counted || counted[0] - when >= this.#lengthMs / stepsOfWindow) return;
    this.isChanged = true;
    counted[1]--;
    if (counted[1] === 0) this.#texts.splice(index, 1);
  }

  /** What is to be remembered of it, `undefined` when nothing counts. */
  format(): Remembered | undefined {
    if (this.#texts.length === 0) return undefined;
    const { now, lead, origin } = this.#moment;
    const value = JSON.stringify({ origin, lead, texts: this.#texts });
    return { at: now, forMs: Math.ceil(this.#lengthMs) + spareMs, value };
  }
}

/**
 * The value of a window that counts what both do. What both have counted at a moment is the same, copied before a kill.
 *
 * @param value of the one whose clock goes on to hold
 */
function mergeWindows(value: string, other: string): string {
  const { origin, lead, texts } = parse(value);
  const counts = countByMoment(texts);
  for (const [at, count] of countByMoment(parse(other).texts)) counts.set(at, Math.max(count, counts.get(at) ?? 0));
  return JSON.stringify({ origin, lead, texts: [...counts] });
}

/** Several entries may be of one moment, as when the clock was set back. */
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
