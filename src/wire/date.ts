/** A calendar date of ISO 8601, extended or basic, and perhaps a time of day. */
const isoDate =
  /^(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d))(?:[T\s](\d\d)(?::?([0-5]\d)(?::?([0-5]\d)(?:[.,](\d{1,9}))?)?)?\s?(Z|([-+]\d\d)(?::?(\d\d))?)?)?$/i;
/** Of RFC 822, such as `Sun, 01 Nov 2026 10:00:00 +1300`, perhaps without a zone; there may be a remark such as `(UTC)` behind it. */
const mailDate =
  /^(?:[a-z]{3},\s*)?((\d{1,2})\s+[a-z]{3}\s+(?:\d\d|\d{4}))\s+(\d\d:\d\d(?::\d\d)?)(?:\s+(utc?|gmt|z|[ecmp][sd]t|[+-]\d{4}))?(?:\s*\([^()]*\))?$/i;

/** As {@link readInstant}, but gives it as ISO 8601 in UTC with milliseconds. */
export function readDate(text: string): string | undefined {
  const instant = readInstant(text);
  return instant === undefined ? undefined : new Date(instant).toISOString();
}

/**
 * Reads a date of ISO 8601 or RFC 822 and gives it in ms since 1970. Without a zone it counts as UTC. `undefined` when it cannot be
 * read.
 */
export function readInstant(text: string): number | undefined {
  const date = text.trim();
  const [found, calendar, day, time, zone = 'UTC'] = mailDate.exec(date) ?? [];
  if (found === undefined) return readIsoDate(date)?.instant;
  return isDay(`${calendar} UTC`, day) ? validOf(Date.parse(`${calendar} ${time} ${zone}`)) : undefined;
}

/**
 * Reads a date of ISO 8601, extended or basic, with or without a time of day and a zone; `undefined` when it is none.
 *
 * @returns the instant in ms since 1970, which without a zone (`isLocal`) is that of a clock on UTC
 */
export function readIsoDate(text: string): { instant: number; isLocal: boolean } | undefined {
  const [found, year, ...parts] = isoDate.exec(text) ?? [];
  if (found === undefined) return undefined;
  const [month, day, basicMonth, basicDay, hour = '00', minute = '00', second = '00', fraction = '', ...zone] = parts;
  const [named, hours, minutes = '00'] = zone;
  const date = `${year}-${month ?? basicMonth}-${day ?? basicDay}`;
  const offset = hours === undefined ? 'Z' : `${hours}:${minutes}`;
  const instant = validOf(Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0')}${offset}`));
  if (instant === undefined || !isDay(`${date}T00:00Z`, day ?? basicDay)) return undefined;
  return { instant, isLocal: named === undefined };
}

/** Says whether a date is of this day: one that the month does not have would roll over into the next. */
function isDay(date: string, day: string | undefined): boolean {
  return new Date(date).getUTCDate() === Number(day);
}

function validOf(instant: number): number | undefined {
  return Number.isNaN(instant) ? undefined : instant;
}
