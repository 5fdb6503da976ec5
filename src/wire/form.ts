import { isUtf8 } from 'node:buffer';
import { unreadable } from './fields';
import { charsetOf, decodeBytes, type Encoded, isWide } from './text';

/** More than 8 MiB of status updates have; without a limit, that much of empty parameters takes 760 MB. */
const maxParameters = 500_000;
/** Far more than the service has, while a record of hundreds of thousands takes more than a second. */
const maxNames = 20_000;
const utf16Type = /^text\/plain;\s*charset="?utf-?16/i;
/** The escapes of the byte order marks of UTF-16, which are no UTF-8. */
const utf16Mark = /^%(?:FE%FF|FF%FE)/i;
/** What no text message has: control characters but for tabs and line breaks, and what could not be decoded. */
const isMistaken = /[^\P{Cc}\t\n\r]|\p{Cs}|\ufffd/u;
/** What one in UTF-8 has none of: U+FFFD may have been sent, and a form feed is in GSM 03.38. */
const isControl = /[^\P{Cc}\t\n\r\f]/u;

/**
 * Reads an `application/x-www-form-urlencoded` body or query string: name and value pairs in their order, repeated
 * names as often as they come. Escapes give bytes, which are decoded by the charset of the content type (UTF-8 when it
 * has none); a value whose bytes begin with a UTF-16 byte order mark is decoded as UTF-16, and so is one without it in a form
 * whose `contentType` says UTF-16 (§2.3), when it can be nothing else. Malformed escapes stay
 * as they are. A line break at the very end is no part of the last value, nor is white space before the first name part of that.
 *
 * @throws SmsError `SMS_RESPONSE` when there are more than half a million pairs or 20,000 names, and for nothing else
 */
export function parseForm(...encoded: Encoded): [name: string, value: string][] {
  const [bytes] = encoded;
  const charset = charsetOf(...encoded);
  const isUnicode = typeof charset === 'string' && charset.startsWith('utf-');
  // The body as a whole may be UTF-16, not only the bytes that its escapes stand for.
  const form = isUnicode
    ? decodeBytes(bytes, isWide(bytes) ? 'utf-16' : 'utf-8')
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  const decode = isUnicode ? decodeUnicode : (part: string) => decodeBytes(unescapePart(part, 'latin1'), charset);
  const pairs = readPairs(form, decode);
  if (!saysUtf16(pairs)) return pairs;
  const encoding = isUnicode ? 'utf8' : 'latin1';
  return readPairs(form, (part) => (part.includes('%') ? decodeUtf16(part, encoding) : undefined) ?? decode(part));
}

/**
 * The pairs that {@link parseForm} gives, of a form that another parser has read before, which knows UTF-8 only: what it took for
 * UTF-8, and the escapes that it left because they are none, may be UTF-16 by the same rules. Line breaks at the end of a `body` that
 * is the last value stay: they may have been escaped, as a part of the text.
 */
export function rereadForm(form: object): [name: string, value: string][] {
  const pairs = [...flattenForm(form)];
  const isUtf16 = saysUtf16(pairs);
  return pairs.map(([name, value], index) => {
    const isEnd = index === pairs.length - 1 && name.trimStart() !== 'body';
    return [index === 0 ? name.trimStart() : name, reread(isEnd ? withoutBreaks(value) : value, isUtf16)];
  });
}

/** A form without the line breaks at its very end. */
function withoutBreaks(form: string): string {
  return form.replace(/(?<![\r\n])[\r\n]+$/, '');
}

function reread(value: string, isUtf16: boolean): string {
  // The other parser leaves all escapes of a value where they are no UTF-8. What is escaped has nothing but ASCII, and each plus is a space by now.
  const isLeft = /^[ -*,-~]*$/.test(value) && !isUtf8(unescapePart(value, 'utf8'));
  const part = isLeft ? value : value.replaceAll('%', '%25').replaceAll('+', '%2B');
  if (utf16Mark.test(part)) return decodeUnicode(part);
  return (isUtf16 ? decodeUtf16(part, 'utf8') : undefined) ?? value;
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

function saysUtf16(pairs: readonly (readonly [string, string])[]): boolean {
  return pairs.some(([name, value]) => name === 'contentType' && utf16Type.test(value));
}

function readPairs(form: string, decode: (part: string) => string): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  const names = new Map<string, string>();
  const nameOf = (part: string) => {
    const name = names.get(part) ?? decode(part);
    if (names.set(part, name).size > maxNames) throw unreadable('answer', 'a form with too many names');
    return name;
  };
  for (const [pair] of withoutBreaks(form).trimStart().matchAll(/[^&]+/g)) {
    if (pairs.length === maxParameters) throw unreadable('answer', 'a form with too many parameters');
    const end = `${pair}=`.indexOf('=');
    pairs.push([nameOf(pair.slice(0, end)), decode(pair.slice(end + 1))]);
  }
  return pairs;
}

/**
 * Writes parameters as an `application/x-www-form-urlencoded` body or query string in UTF-8, as a browser does. Decoding it once
 * gives every name and value back as it was; only a lone surrogate becomes U+FFFD.
 */
export function formatForm(parameters: Iterable<[string, string]>): string {
  return new URLSearchParams([...parameters]).toString();
}

function decodeUnicode(part: string): string {
  if (!part.includes('%')) return part.replaceAll('+', ' ');
  const bytes = unescapePart(part, 'utf8');
  // A value may begin with U+FEFF of its own, so that only the marks of UTF-16, which are no UTF-8, say anything.
  const isUtf16 = (bytes[0] === 0xfe && bytes[1] === 0xff) || (bytes[0] === 0xff && bytes[1] === 0xfe);
  return isUtf16 ? decodeBytes(bytes, 'utf-16') : bytes.toString('utf8');
}

/** What a part says in UTF-16 without a byte order mark; `undefined` when it makes sense byte by byte, or none so. */
function decodeUtf16(part: string, encoding: 'latin1' | 'utf8'): string | undefined {
  const bytes = unescapePart(part, encoding);
  if (bytes.length % 2 !== 0 || !isMistaken.test(bytes.toString(encoding)) || isSentAsUtf8(bytes)) return undefined;
  const text = decodeBytes(bytes, isLittleEndian(bytes) ? 'utf-16le' : 'utf-16be');
  return isMistaken.test(text) ? undefined : text;
}

/** Whether all of it is well-formed UTF-8 that a text message may have; form feeds by the dozen are bytes of Telugu letters. */
function isSentAsUtf8(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  const text = bytes.toString('utf8');
  return !isControl.test(text) && 4 * (text.split('\f').length - 1) < bytes.length;
}

/** Whether most second bytes are 0, as the upper ones of Latin letters are, and fewer first bytes are. */
function isLittleEndian(bytes: Uint8Array): boolean {
  const zerosAt = (place: 0 | 1) => bytes.filter((byte, index) => byte === 0 && index % 2 === place).length;
  const [first, second] = [zerosAt(0), zerosAt(1)];
  return second > first && 4 * second > bytes.length;
}

/** The bytes that a part of a form stands for. */
function unescapePart(part: string, encoding: 'latin1' | 'utf8'): Buffer {
  const bytes = Buffer.from(part.replaceAll('+', ' '), encoding).toString('latin1');
  const unescaped = bytes.replace(/%([\da-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  return Buffer.from(unescaped, 'latin1');
}
