/** The three ways to write an HTTP-date (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, that of RFC 850, and that of `asctime`. */
const httpDate =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d [\d:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})$/;

/** 30 years are as good as for ever. */
const mostSeconds = 1_000_000_000;

/**
 * Reads a `Retry-After` (RFC 9110, 10.2.3): a whole number of seconds, or an HTTP-date.
 *
 * @param now by the clock that a date is measured against, in milliseconds
 * @returns milliseconds from now on; 0 for a date that is past and for whatever else
 */
export function parseRetryAfter(retryAfter: string, now: number): number {
  const text = retryAfter.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text), mostSeconds) * 1_000;
  return Math.max(0, (parseHttpDate(text) ?? now) - now);
}

/**
 * A `Retry-After` with its date as seconds, where the answer tells when it was made: this machine's clock need not be right.
 *
 * @param date the header `Date` of the same answer
 */
export function resolveRetryAfter(retryAfter: string, date: string | undefined): string {
  const madeAt = parseHttpDate(date?.trim() ?? '');
  return madeAt === undefined ? retryAfter : String(Math.ceil(parseRetryAfter(retryAfter, madeAt) / 1_000));
}

function parseHttpDate(text: string): number | undefined {
  if (!httpDate.test(text)) return undefined;
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
