import { SmsError } from '../errors';
import { readIsoDate } from '../wire/date';
import { isBlank } from '../wire/fields';

/** Every day between two times of a zone: no text leaves then. */
export interface QuietSettings {
  /** Minutes since midnight. Later than {@link to}: over midnight. Never equal to it. */
  from: number;
  to: number;
  /** An IANA name. */
  timeZone: string;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** How far ahead a text may be meant to leave. */
const furthestMs = 366 * dayMs;

/** No zone is as far from UTC. */
const furthestOffsetMs = 15 * hourMs;

/** Quiet hours that leave no moment of a day free are looked through so far, and then asked again. */
const mostPeriods = 32;

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * Reads the name of a zone; blank: the machine's.
 *
 * @throws SmsError `SMS_CONFIG` when there is no such zone
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseTimeZone } from '@messaging-service/node-red-sms';
 *
 * assert.equal(parseTimeZone(' Pacific/Auckland '), 'Pacific/Auckland');
 * ```
 */
export function parseTimeZone(value: unknown): string {
  if (isBlank(value)) {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return isTimeZone(own) ? own : 'UTC';
  }
  const name = String(value).trim();
  if (!isTimeZone(name)) throw new SmsError('timeZoneUnknown');
  return name;
}

/**
 * Reads quiet hours, each of the two times as `HH:MM`; both blank: `undefined`.
 *
 * @throws SmsError `SMS_CONFIG` when one is no such time, when one alone is blank, or when they are equal
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseQuietHours } from '@messaging-service/node-red-sms';
 *
 * const quiet = parseQuietHours('21:00', '07:30', 'Pacific/Auckland');
 * assert.deepEqual(quiet, { from: 1_260, to: 450, timeZone: 'Pacific/Auckland' });
 * ```
 */
export function parseQuietHours(quietFrom: unknown, quietTo: unknown, timeZone: string): QuietSettings | undefined {
  const from = parseTimeOfDay('quietFrom', quietFrom);
  const to = parseTimeOfDay('quietTo', quietTo);
  if (from === undefined && to === undefined) return undefined;
  if (from === undefined || to === undefined) throw new SmsError('quietHalf');
  if (from === to) throw new SmsError('quietEqual');
  return { from, to, timeZone };
}

/**
 * Reads a time of day, `HH:MM`, as minutes since midnight; blank: `undefined`.
 *
 * @throws SmsError `SMS_CONFIG` that names the setting
 */
export function parseTimeOfDay(setting: string, value: unknown): number | undefined {
  if (isBlank(value)) return undefined;
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(String(value).trim()) ?? [];
  if (hours === undefined) throw new SmsError('timeOfDay', { params: { setting } });
  return Number(hours) * 60 + Number(minutes);
}

/**
 * Reads when a text may leave, in ms since 1970: a Date, ms since 1970, or ISO 8601, which without a zone is in `timeZone`. A
 * bare date is its first moment, and what is past is now. Blank: `undefined`.
 *
 * @throws SmsError `SMS_INPUT` with the field `at`, when it is no time or more than 366 days after `now`
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseAt } from '@messaging-service/node-red-sms';
 *
 * const now = Date.parse('2026-11-01T00:00:00Z');
 * assert.equal(parseAt('2026-12-24T18:00', 'Pacific/Auckland', now), Date.parse('2026-12-24T05:00:00Z'));
 * ```
 */
export function parseAt(value: unknown, timeZone: string, now: number): number | undefined {
  if (isBlank(value)) return undefined;
  const at = readInstant(value, timeZone);
  if (at === undefined || !Number.isFinite(at)) throw new SmsError('atInvalid', { field: 'at' });
  if (at - now > furthestMs) throw new SmsError('atTooFar', { field: 'at' });
  return Math.max(at, now);
}

/** The first moment from `instant` on, in ms since 1970, at which none of the quiet hours hold. */
export function nextAllowed(instant: number, quietHours: readonly QuietHours[]): number {
  let moment = instant;
  for (let periods = 0; periods < mostPeriods; periods++) {
    const until = Math.max(...quietHours.map((hours) => hours.endOf(moment) ?? moment));
    if (until <= moment) return moment;
    moment = until;
  }
  return moment;
}

/**
 * Quiet hours as they are in a zone, where its clock changes too: they begin at the first and end at the last of two equal
 * times, and at the next time that exists where theirs is skipped.
 */
export class QuietHours {
  readonly settings: QuietSettings;
  /** Between these moments nothing changes: most are asked for the present, over and over. */
  #known = { from: 0, until: 0, isQuiet: false };

  constructor(settings: QuietSettings) {
    this.settings = settings;
  }

  /** When those end that hold at a moment; `undefined`: none do. */
  endOf(instant: number): number | undefined {
    if (instant < this.#known.from || instant >= this.#known.until) this.#known = this.#spanAt(instant);
    return this.#known.isQuiet ? this.#known.until : undefined;
  }

  #spanAt(instant: number): { from: number; until: number; isQuiet: boolean } {
    const { from, to, timeZone } = this.settings;
    const today = Math.floor((instant + offsetAt(instant, timeZone)) / dayMs) * dayMs;
    const days = [today - dayMs, today, today + dayMs];
    // What begins on a later day is not looked at.
    let until = instantOf(today + 2 * dayMs, timeZone);
    for (const day of days) {
      const begin = instantOf(day + from * minuteMs, timeZone);
      const end = instantsOf(day + to * minuteMs + (to < from ? dayMs : 0), timeZone).at(-1) ?? begin;
      if (begin <= instant && instant < end) return { from: instant, until: end, isQuiet: true };
      if (instant < begin && begin < end) until = Math.min(until, begin);
    }
    return { from: instant, until, isQuiet: false };
  }
}

/**
 * When a clock on the wall of a zone shows a time: the first such moment, or, where it skips that time, the next that exists.
 *
 * @param local ms since 1970 as if that clock were on UTC
 */
export function instantOf(local: number, timeZone: string): number {
  return instantsOf(local, timeZone)[0] ?? local;
}

/** All moments at which it shows that time, in order; at least one, see {@link instantOf}. */
function instantsOf(local: number, timeZone: string): number[] {
  const [earliest, latest] = [local - furthestOffsetMs, local + furthestOffsetMs];
  const [before, after] = [offsetAt(earliest, timeZone), offsetAt(latest, timeZone)];
  if (before === after) return [local - before];
  const found = [local - before, local - after].filter((instant) => instant + offsetAt(instant, timeZone) === local);
  if (found.length > 0) return found.sort((a, b) => a - b);
  // It skips that time: the next is the moment of the change.
  let [old, changed] = [earliest, latest];
  while (changed - old > 1) {
    const middle = Math.floor((old + changed) / 2);
    if (offsetAt(middle, timeZone) === before) old = middle;
    else changed = middle;
  }
  return [changed];
}

/** How far ahead of UTC the clock of a zone is at a moment, in ms. */
function offsetAt(instant: number, timeZone: string): number {
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(instant)) parts[type] = Number(value);
  const { year = 0, month = 1, day, hour, minute, second } = parts;
  const local = Date.UTC(year, month - 1, day, hour, minute, second);
  return local - Math.floor(instant / 1_000) * 1_000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (!format) {
    const numeric = 'numeric';
    const time = { hour: numeric, minute: numeric, second: numeric, hourCycle: 'h23' } as const;
    format = new Intl.DateTimeFormat('en-US', { timeZone, year: numeric, month: numeric, day: numeric, ...time });
    formats.set(timeZone, format);
  }
  return format;
}

/** An offset such as `+05:00`, which newer runtimes take, is no name. */
function isTimeZone(name: string): boolean {
  if (!/^[a-z]/i.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

function readInstant(value: unknown, timeZone: string): number | undefined {
  if (typeof value === 'number') return value;
  // One that a function node has made is of another realm.
  if (Object.prototype.toString.call(value) === '[object Date]') return Number(value);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  // Ms since 1970, as an environment variable gives them: no ISO 8601 looks so.
  if (/^\d{13}$/.test(text)) return Number(text);
  const read = readIsoDate(text);
  if (read === undefined) return undefined;
  return read.isLocal ? instantOf(read.instant, timeZone) : read.instant;
}
