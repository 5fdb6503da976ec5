import { charsetOf, decodeBytes } from './text';
import { unreadable } from './unreadable';

/** More than 8 MiB of status updates have; without a limit, that much of empty parameters takes 760 MB. */
const maxParameters = 500_000;

/**
 * Reads an `application/x-www-form-urlencoded` body or query string: name and value pairs in their order, repeated
 * names as often as they come. Escapes give bytes, which are decoded by the charset of the content type (UTF-8 when it
 * has none); a value whose bytes begin with a UTF-16 byte order mark is decoded as UTF-16. Malformed escapes stay
 * as they are. A line break at the very end is no part of the last value.
 *
 * @throws SmsError `SMS_RESPONSE` when there are more than half a million pairs, and for nothing else
 */
export function parseForm(bytes: Uint8Array, contentType?: string): [name: string, value: string][] {
  const isSingleByte = charsetOf(contentType) === 'windows-1252';
  const text = isSingleByte
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    : decodeBytes(bytes, isWide(bytes) ? 'utf-16' : 'utf-8');
  let length = text.length;
  while (length > 0 && isLineBreak(text.charCodeAt(length - 1))) length--;

  const pairs: [string, string][] = [];
  for (let start = 0; start < length; ) {
    let end = text.indexOf('&', start);
    if (end === -1 || end > length) end = length;
    if (end > start) {
      if (pairs.length === maxParameters) {
        throw unreadable('answer', 'a form with too many parameters');
      }
      const pair = text.slice(start, end);
      const equals = pair.indexOf('=');
      pairs.push(
        equals === -1
          ? [decodePart(pair, isSingleByte), '']
          : [decodePart(pair.slice(0, equals), isSingleByte), decodePart(pair.slice(equals + 1), isSingleByte)],
      );
    }
    start = end + 1;
  }
  return pairs;
}

/**
 * Writes parameters as an `application/x-www-form-urlencoded` body or query string in UTF-8, as a browser does. Decoding it once
 * gives every name and value back as it was; only a lone surrogate becomes U+FFFD.
 */
export function formatForm(parameters: Iterable<readonly [string, string]>): string {
  const form = new URLSearchParams();
  for (const [name, value] of parameters) form.append(name, value);
  return form.toString();
}

/** Whether the body as a whole is UTF-16, not only the bytes that its escapes stand for. */
function isWide(bytes: Uint8Array): boolean {
  return bytes.length > 1 && (bytes[0] === 0 || bytes[1] === 0);
}

function isLineBreak(code: number): boolean {
  return code === 0x0a || code === 0x0d;
}

function decodePart(part: string, isSingleByte: boolean): string {
  const spaced = part.includes('+') ? part.replaceAll('+', ' ') : part;
  if (!spaced.includes('%')) return isSingleByte ? decodeBytes(Buffer.from(spaced, 'latin1'), 'windows-1252') : spaced;
  const bytes = Buffer.from(spaced, isSingleByte ? 'latin1' : 'utf8');
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0;
    const escaped = byte === 0x25 ? hexByte(bytes, index + 1) : -1;
    bytes[length++] = escaped === -1 ? byte : escaped;
    if (escaped !== -1) index += 2;
  }
  const decoded = bytes.subarray(0, length);
  if (isSingleByte) return decodeBytes(decoded, 'windows-1252');
  // A value may begin with U+FEFF of its own, so that only the marks of UTF-16, which are no UTF-8, say anything.
  const isUtf16 = (decoded[0] === 0xfe && decoded[1] === 0xff) || (decoded[0] === 0xff && decoded[1] === 0xfe);
  return isUtf16 ? decodeBytes(decoded, 'utf-16') : decoded.toString('utf8');
}

/** The byte that two hexadecimal digits stand for; -1 when they are not two such digits. */
function hexByte(bytes: Uint8Array, index: number): number {
  const high = hexDigit(bytes[index]);
  const low = hexDigit(bytes[index + 1]);
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
