const isoDate = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d\d:?\d\d)?)?$/i;
/** The name of the day may be followed by a comma, a space or both. */
const mailDate =
  /^(?:[a-z]{3,9}\.?(?:,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3,9})\.?[\s-]+(\d{2,4})\s+(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*(?:(?:GMT|UTC)\s*)?([+-]\d\d:?\d\d)|\s+([a-z]{1,5}))?$/i;
const comment = /\([^()]*\)/g;
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Offsets from UTC in minutes, by the names of RFC 822 and the few others that feeds use without ambiguity. */
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
  ['CET', 60],
  ['CEST', 120],
  ['NZST', 720],
  ['NZDT', 780],
  ['AEST', 600],
  ['AEDT', 660],
]);

/** As {@link readInstant}, but gives it as ISO 8601 in UTC with milliseconds. */
export function readDate(text: string): string | undefined {
  const instant = readInstant(text);
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/**
 * Reads a date of RFC 3339 or RFC 822 (two-digit years, named zones) and gives it in ms since 1970. Without a zone it counts as UTC.
 * `undefined` when it cannot be read.
 */
export function readInstant(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > 64) return undefined;
  return readIsoDate(trimmed) ?? readMailDate(trimmed);
}

function readIsoDate(text: string): number | undefined {
  const match = isoDate.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', zone] = match;
  const ms = Number(fraction.slice(0, 3).padEnd(3, '0'));
  return createInstant([Number(year), Number(month) - 1, Number(day)], [hour, minute, second], ms, zone);
}

function readMailDate(text: string): number | undefined {
  const match = mailDate.exec(withoutComments(text));
  if (match === null) return undefined;
  const [, day, monthName = '', year = '', hour, minute, second, offset, zoneName] = match;
  const month = months.indexOf(monthName.slice(0, 3).toLowerCase());
  if (month === -1) return undefined;
  return createInstant([fullYear(year), month, Number(day)], [hour, minute, second], 0, offset ?? zoneName);
}

/** RFC 5322 allows remarks such as `(UTC)` anywhere between the parts, and within each other. */
function withoutComments(text: string): string {
  const rest = text.replace(comment, ' ');
  return rest === text ? text.trim() : withoutComments(rest);
}

/** Years of two and three digits as RFC 2822 reads them. */
function fullYear(year: string): number {
  const number = Number(year);
  if (year.length === 4) return number;
  return year.length === 2 && number < 50 ? 2000 + number : 1900 + number;
}

function createInstant(
  [year, month, day]: readonly [number, number, number],
  time: readonly (string | undefined)[],
  ms: number,
  zone = 'Z',
): number | undefined {
  const hour = Number(time[0] ?? 0);
  const minute = Number(time[1] ?? 0);
  const second = Number(time[2] ?? 0);
  const offset = offsetOf(zone);
  if (offset === undefined || hour > 23 || minute > 59 || second > 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  // A day that the month does not have would roll over into the next.
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return undefined;
  return date.setUTCHours(hour, minute - offset, second, ms);
}

function offsetOf(zone: string): number | undefined {
  // RFC 2822: the single letters of RFC 822 were defined wrongly and are no offset.
  if (zone.length === 1) return 0;
  const numeric = /^([+-])(\d\d):?(\d\d)$/.exec(zone);
  if (numeric === null) return zoneOffsets.get(zone.toUpperCase());
  const [, sign, hours, minutes] = numeric;
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const offset = Number(hours) * 60 + Number(minutes);
  return sign === '-' ? -offset : offset;
}
