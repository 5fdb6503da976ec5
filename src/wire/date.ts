/** ISO 8601 calendar date, extended or basic, with or without a time of day. */
const isoDate =
  /^(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d))(?:[T\s](\d\d)(?::?([0-5]\d)(?::?([0-5]\d)(?:[.,](\d{1,9}))?)?)?\s?(Z|([-+]\d\d)(?::?(\d\d))?)?)?$/i;
/** RFC 822 date, such as `Sun, 01 Nov 2026 10:00:00 +1300`. The zone and a remark such as `(UTC)` are optional. */
const mailDate =
  /^(?:[a-z]{3},\s*)?((\d{1,2})\s+[a-z]{3}\s+(?:\d\d|\d{4}))\s+(\d\d:\d\d(?::\d\d)?)(?:\s+(utc?|gmt|z|[ecmp][sd]t|[+-]\d{4}))?(?:\s*\([^()]*\))?$/i;

/** Reads a date as {@link readInstant} does, and returns it as ISO 8601 in UTC with milliseconds. */
export function readDate(text: string): string | undefined {
  const instant = readInstant(text);
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/**
 * Reads an ISO 8601 or RFC 822 date, in ms since 1970. A date without a zone counts as UTC. Returns `undefined` for any
 * other text.
 */
export function readInstant(text: string): number | undefined {
  const date = text.trim();
  const [match, calendar, day, time, zone = 'UTC'] = mailDate.exec(date) ?? [];
  if (match === undefined) return readIsoDate(date)?.instant;
  return isDay(`${calendar} UTC`, day) ? validOf(Date.parse(`${calendar} ${time} ${zone}`)) : undefined;
}

/**
 * Reads an ISO 8601 date, extended or basic, with or without a time of day and a zone. Returns `undefined` for any
 * other text.
 *
 * @returns the instant in ms since 1970; if the date has no zone (`isLocal`), as if the zone were UTC
 */
export function readIsoDate(text: string): { instant: number; isLocal: boolean } | undefined {
  const [match, year, ...parts] = isoDate.exec(text) ?? [];
  if (match === undefined) return undefined;
  const [month, day, basicMonth, basicDay, hour = '00', minute = '00', second = '00', fraction = '', ...zone] = parts;
  const [zoneName, hours, minutes = '00'] = zone;
  const date = `${year}-${month ?? basicMonth}-${day ?? basicDay}`;
  const offset = hours === undefined ? 'Z' : `${hours}:${minutes}`;
  const instant = validOf(Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0')}${offset}`));
  if (instant === undefined || !isDay(`${date}T00:00Z`, day ?? basicDay)) return undefined;
  return { instant, isLocal: zoneName === undefined };
}

/**
 * Whether `date` has this day of the month. False for a day that does not exist, such as 31 June, because `Date` turns
 * it into a day of the next month.
 */
function isDay(date: string, day: string | undefined): boolean {
  return new Date(date).getUTCDate() === Number(day);
}

function validOf(instant: number): number | undefined {
  return Number.isNaN(instant) ? undefined : instant;
}
