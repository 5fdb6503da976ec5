/** A calendar date of ISO 8601, extended or basic, and perhaps a time of day. */
const isoDate =
  /^(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d))(?:[T\s](\d\d)(?::?([0-5]\d)(?::?([0-5]\d)(?:[.,](\d{1,9}))?)?)?\s?(Z|[-+\u2212]\d\d(?::?\d\d)?)?)?$/i;
/** The name of the day may be followed by a comma, a space or both. */
const mailDate =
  /^(?:[a-z]{3,9}\.?(?:,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3,9})\.?[\s-]+(\d{2,4})\s+(\d{1,2}):([0-5]\d)(?::([0-5]\d|60))?(?:\s*(?:(?:GMT|UTC)\s*)?([+-]\d\d:?\d\d)|\s+([a-z]{1,5}))?$/i;
/** RFC 822 allows remarks such as `(UTC)` between the parts. */
const comment = /\([^()]*\)/g;
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Offsets from UTC in minutes, by the names of RFC 822 and those of the country whose numbers the specification shows. */
const zoneOffsets: ReadonlyMap<string, number> = new Map([
  ['UT', 0],
  ['UTC', 0],
  ['GMT', 0],
  ['EST', -300],
  ['EDT', -240],
  ['CST', -360],
  ['CDT', -300],
  ['MST', -420],
  ['MDT', -360],
  ['PST', -480],
  ['PDT', -420],
  ['NZST', 720],
  ['NZDT', 780],
]);

/** As {@link readInstant}, but gives it as ISO 8601 in UTC with milliseconds. */
export function readDate(text: string): string | undefined {
  const instant = readInstant(text);
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/**
 * Reads a date of ISO 8601 or RFC 822 (two-digit years, named zones) and gives it in ms since 1970. Without a zone it counts as UTC.
 * `undefined` when it cannot be read.
 */
export function readInstant(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > 64) return undefined;
  const read = readIsoDate(trimmed) ?? readMailDate(trimmed);
  return read && read.local - (read.offsetMs ?? 0);
}

/** What a date says: how a clock on the wall showed it, in ms since 1970 as if that clock were on UTC. */
export interface ReadDate {
  local: number;
  /** How far the zone that it names is ahead of UTC; `undefined`: it names none. */
  offsetMs: number | undefined;
}

/** Reads a date of ISO 8601, extended or basic, with or without a time of day and a zone; `undefined` when it is none. */
export function readIsoDate(text: string): ReadDate | undefined {
  const [found, year, month, day, basicMonth, basicDay, hour, minute, second, fraction = '', zone] =
    isoDate.exec(text) ?? [];
  if (found === undefined) return undefined;
  const date = [Number(year), Number(month ?? basicMonth) - 1, Number(day ?? basicDay)] as const;
  return createDate(date, [hour, minute, second, fraction.slice(0, 3).padEnd(3, '0')], zone);
}

function readMailDate(text: string): ReadDate | undefined {
  const match = mailDate.exec(text.replace(comment, ' ').trim());
  if (match === null) return undefined;
  const [, day, monthName = '', year = '', hour, minute, second, offset, zoneName] = match;
  const month = months.indexOf(monthName.slice(0, 3).toLowerCase());
  return createDate([fullYear(year), month, Number(day)], [hour, minute, second], offset ?? zoneName);
}

/** Years of two and three digits as RFC 2822 reads them. */
function fullYear(year: string): number {
  const number = Number(year);
  if (year.length === 4) return number;
  return year.length === 2 && number < 50 ? 2000 + number : 1900 + number;
}

/** The last moment of a day may be called 24:00, or be a leap second. */
function createDate(
  [year, month, day]: readonly [number, number, number],
  time: readonly (string | undefined)[],
  zone: string | undefined,
): ReadDate | undefined {
  const [hour = 0, minute = 0, second = 0, ms = 0] = time.map((part = '0') => Number(part));
  const timeMs = (hour * 60 + minute) * minuteMs + second * 1_000 + ms;
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month, day);
  // A day that the month does not have would roll over into the next.
  const isDay = midnight.getUTCMonth() === month && midnight.getUTCDate() === day;
  const offset = zone === undefined ? 0 : offsetOf(zone);
  if (!isDay || timeMs > dayMs || offset === undefined) return undefined;
  return { local: midnight.getTime() + timeMs, offsetMs: zone === undefined ? undefined : offset * minuteMs };
}

/** In minutes. */
function offsetOf(zone: string): number | undefined {
  // RFC 2822: the single letters of RFC 822 were defined wrongly and are no offset.
  if (zone.length === 1) return 0;
  const [, sign, hours, minutes = '0'] = /^([-+\u2212])([01]\d|2[0-3]):?([0-5]\d)?$/.exec(zone) ?? [];
  if (sign === undefined) return zoneOffsets.get(zone.toUpperCase());
  return (sign === '+' ? 1 : -1) * (Number(hours) * 60 + Number(minutes));
}
