import { unreadable } from './fields';
import { charsetOf, decodeBytes, decodeText, type Encoded } from './text';

/** More than 8 MiB of status updates have; without a limit, that much of empty parameters takes 760 MB. */
const maxParameters = 500_000;
/** Far more than the service has, while a record of hundreds of thousands takes more than a second. */
const maxNames = 20_000;

/**
 * Reads an `application/x-www-form-urlencoded` body or query string: name and value pairs in their order, repeated
 * names as often as they come. Escapes give bytes, which are decoded value by value as {@link decodeBytes} says, so that one may be in
 * UTF-16 with its byte order mark (§2.3), as the form as a whole may be. Malformed escapes stay as they are. A line break at the very end is no part of the last
 * value, nor are a byte order mark and white space at the beginning part of the first name.
 *
 * @throws SmsError `SMS_RESPONSE` when there are more than half a million pairs or 20,000 names, and for nothing else
 */
export function parseForm(...encoded: Encoded): [name: string, value: string][] {
  const charset = charsetOf(...encoded);
  const isUtf16 = encoded[0].subarray(0, 4).includes(0);
  // One character for each byte.
  const form = Buffer.from(isUtf16 ? decodeText(...encoded) : encoded[0])
    .toString('latin1')
    .replace(/^(?:\xef\xbb\xbf)?\s*/, '');
  const pairs: [string, string][] = [];
  const names = new Set<string>();
  for (const [pair] of form.replace(/(?<![\r\n])[\r\n]+$/, '').matchAll(/[^&]+/g)) {
    const end = `${pair}=`.indexOf('=');
    const name = decodePart(pair.slice(0, end), charset);
    pairs.push([name, decodePart(pair.slice(end + 1), charset)]);
    if (pairs.length > maxParameters) throw unreadable('answer', 'a form with too many parameters');
    if (names.add(name).size > maxNames) throw unreadable('answer', 'a form with too many names');
  }
  return pairs;
}

function decodePart(part: string, charset: string | undefined): string {
  const unescaped = part
    .replaceAll('+', ' ')
    .replace(/%([\da-f]{2})/gi, (_, digits) => String.fromCharCode(Number(`0x${digits}`)));
  return /^[\0-\x7f]*$/.test(unescaped) ? unescaped : decodeBytes(Buffer.from(unescaped, 'latin1'), charset);
}

/** Decodes a value that another parser has left escaped since it is in UTF-16, with its mark; any other stays as it is. */
export function decodeMarked(value: string): string {
  return /^%(?:FE%FF|FF%FE)/i.test(value) ? decodePart(value.replaceAll('+', '%2B'), undefined) : value;
}

/** Names and values of a form that another parser has read, in which repeated names have become lists, and `a[b]` objects. */
export function* flattenForm(value: unknown, name = ''): Generator<[name: string, value: string]> {
  if (Array.isArray(value)) {
    for (const item of value) yield* flattenForm(item, name);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) yield* flattenForm(item, name === '' ? key : `${name}[${key}]`);
  } else if (value !== undefined && value !== null) {
    yield [name, String(value)];
  }
}

/** Whether what was read as a form is a page, a document or JSON with an ampersand in it: no parameter has such a name. */
export function isOtherwise([first]: readonly (readonly [name: string, value: string])[]): boolean {
  return first !== undefined && /^\s*[<{[]/.test(first[0]);
}

/**
 * Writes parameters as an `application/x-www-form-urlencoded` body or query string in UTF-8, as a browser does. Decoding it once
 * gives every name and value back as it was; only a lone surrogate becomes U+FFFD.
 */
export function formatForm(parameters: Iterable<[string, string]>): string {
  return new URLSearchParams([...parameters]).toString();
}
