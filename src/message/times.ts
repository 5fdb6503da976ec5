import { SmsError } from '../errors';
import { readIsoDate } from '../wire/date';
import { isBlank } from '../wire/fields';

/** Daily quiet hours of a time zone, in which no message is sent. */
export interface QuietSettings {
  /**
   * Start, in minutes since midnight. If it is later than {@link to}, the quiet hours span midnight. Never equal to
   * {@link to}.
   */
  from: number;
  to: number;
  /** IANA name. */
  timeZone: string;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Maximum time by which the scheduled time of a message (`at`) can be in the future, in ms. */
const maxAheadMs = 366 * dayMs;

/**
 * Smaller numbers are refused as seconds since 1970, because as milliseconds, they would be dates before March 1973.
 */
const minMilliseconds = 100_000_000_000;

/** Maximum offset of a time zone from UTC, in ms. */
const maxOffsetMs = 15 * hourMs;

/** Maximum number of consecutive quiet periods that {@link nextAllowed} skips. */
const maxPeriods = 32;

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * Reads the name of a time zone. Blank: the zone of the machine.
 *
 * @throws SmsError `SMS_CONFIG` if the zone does not exist
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
    const machineZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return isTimeZone(machineZone) ? machineZone : 'UTC';
  }
  const name = String(value).trim();
  if (!isTimeZone(name)) throw new SmsError('timeZoneUnknown');
  return name;
}

/**
 * Reads quiet hours from two times of the form `HH:MM`. Both blank: `undefined`.
 *
 * @throws SmsError `SMS_CONFIG` if a time has another form, if only one is blank, or if both are equal
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
 * Reads a time of day of the form `HH:MM`, in minutes since midnight. Blank: `undefined`.
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
 * Reads the earliest time at which a message can be sent: a Date, milliseconds since 1970, or ISO 8601. ISO 8601
 * without a zone uses `timeZone`. A date without a time means the start of that day. Returns ms since 1970, `now` for
 * a time in the past, and `undefined` for a blank value.
 *
 * @throws SmsError `SMS_INPUT` with the field `at`, if the value is not a time, is in seconds, or is more than 366
 *   days ahead
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
  const isNumber = typeof value === 'number' || (typeof value === 'string' && /^\s*\d{9,11}\s*$/.test(value));
  if (isNumber && Number(value) < minMilliseconds) throw new SmsError('atSeconds', { field: 'at' });
  const at = readInstant(value, timeZone);
  if (at === undefined || !Number.isFinite(at)) throw new SmsError('atInvalid', { field: 'at' });
  if (at - now > maxAheadMs) throw new SmsError('atTooFar', { field: 'at' });
  return Math.max(at, now);
}

/** Returns the first time from `instant` on, in ms since 1970, that is outside all quiet hours. */
export function nextAllowed(instant: number, quietHours: readonly QuietHours[]): number {
  let candidate = instant;
  for (let periods = 0; periods < maxPeriods; periods++) {
    const until = Math.max(...quietHours.map((hours) => hours.endOf(candidate) ?? candidate));
    if (until <= candidate) return candidate;
    candidate = until;
  }
  return candidate;
}

/**
 * Quiet hours in a time zone, including its clock changes. If a local time occurs twice, quiet hours begin at the first
 * and end at the last occurrence. If a local time is skipped, the next existing time applies.
 */
export class QuietHours {
  readonly settings: QuietSettings;
  /**
   * The last result, which is valid from `from` until `until`. It is kept because most callers ask for the current time
   * repeatedly.
   */
  #lastSpan = { from: 0, until: 0, isQuiet: false };

  constructor(settings: QuietSettings) {
    this.settings = settings;
  }

  /** Returns the end of the quiet hours that contain a time, or `undefined` if the time is outside quiet hours. */
  endOf(instant: number): number | undefined {
    if (instant < this.#lastSpan.from || instant >= this.#lastSpan.until) this.#lastSpan = this.#spanAt(instant);
    return this.#lastSpan.isQuiet ? this.#lastSpan.until : undefined;
  }

  #spanAt(instant: number): { from: number; until: number; isQuiet: boolean } {
    const { from, to, timeZone } = this.settings;
    const today = Math.floor((instant + offsetAt(instant, timeZone)) / dayMs) * dayMs;
    const days = [today - dayMs, today, today + dayMs];
    // Looks ahead at most about two days. A later call computes the next span.
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
 * Returns the time at which the clock of a zone shows a local time. If the local time occurs twice, returns the first
 * time. If the local time is skipped, returns the time of the clock change.
 *
 * @param local local time, in ms since 1970 as if the zone were UTC
 */
export function instantOf(local: number, timeZone: string): number {
  return instantsOf(local, timeZone)[0] ?? local;
}

/**
 * Returns all times at which the clock of a zone shows a local time, in order. Returns at least one, see {@link
 * instantOf}.
 */
function instantsOf(local: number, timeZone: string): number[] {
  const [earliest, latest] = [local - maxOffsetMs, local + maxOffsetMs];
  const [offsetBefore, offsetAfter] = [offsetAt(earliest, timeZone), offsetAt(latest, timeZone)];
  if (offsetBefore === offsetAfter) return [local - offsetBefore];
  const candidates = [local - offsetBefore, local - offsetAfter];
  const instants = candidates.filter((instant) => instant + offsetAt(instant, timeZone) === local);
  if (instants.length > 0) return instants.sort((a, b) => a - b);
  // The local time is skipped, so the loop searches for the time of the clock change.
  let [beforeChange, afterChange] = [earliest, latest];
  while (afterChange - beforeChange > 1) {
    const middle = Math.floor((beforeChange + afterChange) / 2);
    if (offsetAt(middle, timeZone) === offsetBefore) beforeChange = middle;
    else afterChange = middle;
  }
  return [afterChange];
}

/** Returns the offset of a zone from UTC at a time, in ms. */
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

/**
 * Returns whether a time zone with this name exists. Refuses offsets such as `+05:00`, which newer versions of Node.js
 * accept.
 */
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
  // Does not use `instanceof`, which does not recognise dates from function nodes, because they belong to another
  // realm.
  if (Object.prototype.toString.call(value) === '[object Date]') return Number(value);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  // 13 digits are milliseconds, e.g. from an environment variable. ISO 8601 never has 13 digits in a row.
  if (/^\d{13}$/.test(text)) return Number(text);
  const date = readIsoDate(text);
  if (date === undefined) return undefined;
  return date.isLocal ? instantOf(date.instant, timeZone) : date.instant;
}
