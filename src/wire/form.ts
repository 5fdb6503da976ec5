import { charsetOf, decodeBytes, type Encoded } from './charset';
import { unreadable } from './fields';

/** Maximum number of parameters. Without a limit, 8 MiB of empty parameters take 760 MB of memory. */
const maxParameters = 500_000;

/**
 * Reads an `application/x-www-form-urlencoded` body or query string into names and values, in their order. Names can
 * repeat.
 *
 * Each value is decoded separately, see {@link decodeBytes}, because a value can be in UTF-16 with a byte order mark
 * (§2.3). Malformed escapes do not change. Leading white space, a leading byte order mark and trailing line breaks
 * are dropped.
 *
 * @throws SmsError `SMS_RESPONSE` for more than 500,000 parameters
 */
export function parseForm(...encoded: Encoded): [name: string, value: string][] {
  const charset = charsetOf(...encoded);
  // Decodes the form as Latin-1, so that each byte stays one character.
  const form = Buffer.from(encoded[0])
    .toString('latin1')
    .replace(/^(?:\xef\xbb\xbf)?\s*/, '');
  const pairs: [string, string][] = [];
  for (const [pair] of form.replace(/(?<![\r\n])[\r\n]+$/, '').matchAll(/[^&]+/g)) {
    const end = `${pair}=`.indexOf('=');
    const name = decodePart(pair.slice(0, end), charset);
    pairs.push([name, decodePart(pair.slice(end + 1), charset)]);
    if (pairs.length > maxParameters) throw unreadable('answer', 'a form with too many parameters');
  }
  return pairs;
}

function decodePart(part: string, charset: string | undefined): string {
  const unescaped = part
    .replaceAll('+', ' ')
    .replace(/%([\da-f]{2})/gi, (_, digits) => String.fromCharCode(Number(`0x${digits}`)));
  // Printable ASCII needs no decoding, because it is valid UTF-8, which takes precedence over the declared charset.
  return /^[ -~]*$/.test(unescaped) ? unescaped : decodeBytes(Buffer.from(unescaped, 'latin1'), charset);
}

/**
 * Decodes a value in UTF-16 with a byte order mark, which other form parsers leave percent-encoded. Returns any other
 * value unchanged.
 */
export function decodeMarked(value: string): string {
  return /^%(?:FE%FF|FF%FE)/i.test(value) ? decodePart(value.replaceAll('+', '%2B'), undefined) : value;
}

/**
 * Yields the names and values of a form that another parser has read into arrays (repeated names) and objects (`a[b]`).
 */
export function* flattenForm(value: unknown, name = ''): Generator<[name: string, value: string]> {
  if (Array.isArray(value)) {
    for (const item of value) yield* flattenForm(item, name);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) yield* flattenForm(item, name === '' ? key : `${name}[${key}]`);
  } else if (value !== undefined && value !== null) {
    yield [name, String(value)];
  }
}

/**
 * Whether bytes that were read as a form are actually HTML, XML or JSON. The name of a form parameter never begins with
 * `<`, `{` or `[`.
 */
export function isOtherFormat([firstField]: readonly (readonly [name: string, value: string])[]): boolean {
  return firstField !== undefined && /^\s*[<{[]/.test(firstField[0]);
}

/** Writes an `application/x-www-form-urlencoded` body or query string in UTF-8. A lone surrogate becomes U+FFFD. */
export function formatForm(parameters: Iterable<[string, string]>): string {
  return new URLSearchParams([...parameters]).toString();
}
