import { createHash } from 'node:crypto';
import { type Changes, createChanges, type Look } from '../store/store';
import type { Heritage } from './heritage';
import type { LimitSettings, Rule, Withheld } from './rule';
import { type Moment, mergeWindows, SlidingWindow } from './sliding-window';

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
interface Counting {
  /** In the order in which they are served while the limit of the day lasts. An address-book item is one number. */
  recipients: readonly string[];
  /** All of them hold. */
  limits: readonly LimitSettings[];
  moment: Moment;
  /** All are within the limits; they are counted all the same. */
  isUnlimited?: boolean;
}

const dayMs = 24 * 3_600_000;
/** The keys of all limits begin so. */
const limitPrefix = 'limit:';
const dayKey = `${limitPrefix}day`;

/** What is remembered outlasts its window by so long, lest it be swept when the clock is set forward. */
const spareMs = 24 * 3_600_000;

/** Whether anything is limited, so that what goes out is counted. */
export function hasLimits(limits: readonly LimitSettings[]): boolean {
  return limits.some(({ perHandset, perDay }) => perHandset !== undefined || perDay !== undefined);
}

/** The keys that {@link takeWithinLimits} and {@link giveBack} look at. None without limits. */
export function keysOfLimits(recipients: readonly string[], limits: readonly LimitSettings[]): string[] {
  if (!hasLimits(limits)) return [];
  return [...new Set(recipients.flatMap((msisdn) => limitsOn(msisdn, limits).map(({ key }) => key)))];
}

/**
 * Counts a text that goes out, for each recipient that is within the limits. One that is over several is named with the one
 * that ends last.
 *
 * To be decided in the step that notes that the text goes out: whoever is counted here but not sent to is given back with
 * {@link giveBack}.
 */
export function takeWithinLimits(
  counting: Counting,
  look: Look,
  changes: Changes,
): { allowed: string[]; limited: Limited[] } {
  const { recipients, isUnlimited = false } = counting;
  const windows = new Windows(counting, look);
  const allowed: string[] = [];
  const limited: Limited[] = [];
  for (const msisdn of recipients) {
    const counters = windows.of(msisdn);
    const over = isUnlimited ? undefined : latest(counters.filter(({ window, most }) => window.count >= most));
    if (over) {
      const { limit, most, window } = over;
      limited.push({ msisdn, limit, most, lengthMs: window.lengthMs, until: window.freeAt(most) });
      continue;
    }
    allowed.push(msisdn);
    for (const { window } of counters) window.add();
  }
  windows.write(changes);
  return { allowed, limited };
}

/** Says who would be kept back now. Nobody is counted. */
export function judgeLimits(counting: Counting, look: Look, changes: Changes): Limited[] {
  const { limited } = takeWithinLimits(counting, look, createChanges());
  // What was counted before the clock was set back lies in the future now, and must not count for ever.
  if (limited.length > 0) {
    const windows = new Windows(counting, look);
    for (const { msisdn } of limited) windows.of(msisdn);
    windows.write(changes);
  }
  return limited;
}

/**
 * Takes back what {@link takeWithinLimits} counted for recipients that were not sent to after all. Those that were accepted
 * or are unknown stay counted.
 *
 * @param takenAt the moment of that step
 */
export function giveBack(counting: Counting, takenAt: Moment, look: Look, changes: Changes): void {
  const windows = new Windows(counting, look);
  for (const msisdn of counting.recipients) {
    for (const { window } of windows.of(msisdn)) window.remove(takenAt);
  }
  windows.write(changes);
}

/** The limits of one's own, which stop loops and bills: who is over one is withheld until it ends. */
export const limitRule: Rule = {
  holds: ({ limits }) => hasLimits(limits),
  keys: ({ recipients, settings }) => keysOfLimits(recipients, settings.limits),
  decide({ recipients, settings, moment, options }, look, changes, isLeaving) {
    const counting = { recipients, limits: settings.limits, moment, isUnlimited: options.unlimited };
    const limited = isLeaving
      ? takeWithinLimits(counting, look, changes).limited
      : judgeLimits(counting, look, changes);
    return { withheld: limited.map(explainLimited) };
  },
  giveBack({ recipients, settings, moment }, countedAt, look, changes) {
    giveBack({ recipients, limits: settings.limits, moment }, countedAt, look, changes);
  },
};

/** Says which limit keeps somebody back, and when it ends. */
export function explainLimited({ msisdn, limit, most, lengthMs, until }: Limited): Withheld {
  const end = new Date(Math.ceil(until / 1_000) * 1_000).toISOString().replace('.000', '');
  if (limit === 'day') return { msisdn, reason: 'limitDay', params: { limit: most, until: end }, until };
  return { msisdn, reason: 'limitHandset', params: { limit: most, minutes: lengthMs / 60_000, until: end }, until };
}

/** What two logins have counted is added up. */
export const limitHeritage: Heritage = {
  prefix: limitPrefix,
  merge: (own, other) => ({
    ...own,
    forMs: Math.max(own.forMs, other.forMs),
    value: mergeWindows(own.value, other.value),
  }),
};

/** A limit as it concerns one recipient. */
interface LimitOn extends Pick<Limited, 'limit' | 'most' | 'lengthMs'> {
  key: string;
}

/** Limits of one length count under one key, and the least of them holds. */
function limitsOn(msisdn: string, limits: readonly LimitSettings[]): LimitOn[] {
  const found = new Map<string, LimitOn>();
  const add = (limit: LimitOn) => {
    if (limit.most < (found.get(limit.key)?.most ?? Number.POSITIVE_INFINITY)) found.set(limit.key, limit);
  };
  // Numbers stand in keys only as digests.
  const number = createHash('sha256').update(msisdn).digest('base64url');
  for (const { perHandset, perHandsetMs, perDay } of limits) {
    const key = `${limitPrefix}handset:${perHandsetMs}:${number}`;
    if (perHandset !== undefined) add({ limit: 'handset', most: perHandset, lengthMs: perHandsetMs, key });
    if (perDay !== undefined) add({ limit: 'day', most: perDay, lengthMs: dayMs, key: dayKey });
  }
  return [...found.values()];
}

interface Counter extends LimitOn {
  window: SlidingWindow;
}

/** The windows that a step looks at, each read once and written once. */
class Windows {
  readonly #limits: readonly LimitSettings[];
  readonly #moment: Moment;
  readonly #look: Look;
  readonly #windows = new Map<string, SlidingWindow>();

  constructor({ limits, moment }: Counting, look: Look) {
    this.#limits = limits;
    this.#moment = moment;
    this.#look = look;
  }

  of(msisdn: string): Counter[] {
    return limitsOn(msisdn, this.#limits).map((on) => ({ ...on, window: this.#window(on) }));
  }

  write(changes: Changes): void {
    for (const [key, window] of this.#windows) {
      if (!window.isChanged) continue;
      const value = window.format();
      const remembered = { at: this.#moment.now, forMs: Math.ceil(window.lengthMs) + spareMs };
      changes.remember.set(key, value === undefined ? undefined : { ...remembered, value });
    }
  }

  #window({ key, lengthMs }: LimitOn): SlidingWindow {
    const existing = this.#windows.get(key);
    if (existing) return existing;
    const window = new SlidingWindow(this.#look(key)?.value, lengthMs, this.#moment);
    this.#windows.set(key, window);
    return window;
  }
}

function latest(counters: readonly Counter[]): Counter | undefined {
  const [first, ...others] = counters;
  return others.reduce(
    (last, one) => (last && last.window.freeAt(last.most) >= one.window.freeAt(one.most) ? last : one),
    first,
  );
}
