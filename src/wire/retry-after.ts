/** The three formats of an HTTP-date (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, RFC 850 and `asctime`. */
const httpDate =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d [\d:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/;

/** Maximum wait: 30 years. */
const maxSeconds = 1_000_000_000;

/**
 * Reads a `Retry-After` (RFC 9110, 10.2.3): a whole number of seconds, or an HTTP-date.
 *
 * @param now time from which a date is counted, in ms since 1970
 * @returns milliseconds to wait; 0 for a date in the past and for any other text
 */
export function parseRetryAfter(retryAfter: string, now: number): number {
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text), maxSeconds) * 1_000;
  return Math.max(0, (parseHttpDate(text) ?? now) - now);
}

/**
 * Converts a date in `Retry-After` to seconds, if the answer has a `Date` header. The wait is then right even if the
 * clock of this machine is wrong.
 *
 * @param date header `Date` of the same answer
 */
export function resolveRetryAfter(retryAfter: string, date: string | undefined): string {
  const answeredAt = parseHttpDate(date?.trim() ?? '');
  return answeredAt === undefined ? retryAfter : String(Math.ceil(parseRetryAfter(retryAfter, answeredAt) / 1_000));
}

function parseHttpDate(text: string): number | undefined {
  if (!httpDate.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
