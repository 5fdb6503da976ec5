import { isUtf8 } from 'node:buffer';

/** The characters that bytes stand for: of a charset known here, of one that the platform knows, or of one that nobody knows. */
export type Charset = 'utf-8' | 'utf-16' | 'utf-16le' | 'utf-16be' | 'windows-1252' | 'unknown' | TextDecoder;

/**
 * Told of a declared charset that is not known here. When it returns, the text is read as it is: as UTF-8 when it is that, else
 * byte by byte, so that nothing of it is lost.
 */
export type OnUnknownCharset = (charset: string) => void;

/** What is read otherwise than the platform would, which takes each of these for something else or does not know it. */
const charsets: ReadonlyMap<string, Charset> = new Map([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
  // Whoever labels UTF-8 so has not looked, and all else that is labelled so is the same in UTF-8.
  ['us-ascii', 'utf-8'],
  ['ascii', 'utf-8'],
  ['utf-16', 'utf-16'],
  ['utf16', 'utf-16'],
  ['ucs-2', 'utf-16'],
  ['iso-10646-ucs-2', 'utf-16'],
  ['utf-16le', 'utf-16le'],
  ['utf-16be', 'utf-16be'],
  ['windows-1252', 'windows-1252'],
  ['cp1252', 'windows-1252'],
  // Whoever labels a text ISO-8859-1 and uses 0x80 to 0x9F means windows-1252; elsewhere the two are equal.
  ['iso-8859-1', 'windows-1252'],
  ['iso8859-1', 'windows-1252'],
  ['iso_8859-1', 'windows-1252'],
  ['latin1', 'windows-1252'],
  ['latin-1', 'windows-1252'],
  ['l1', 'windows-1252'],
]);

/** The characters of windows-1252 from 0x80 to 0x9F. Not taken from TextDecoder, which gets them wrong in some releases of Node. */
const windows1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';
const longestLabel = 40;

/**
 * Decodes what came over the wire. The charset is told by a byte order mark, else by the `charset` of the
 * Content-Type header, else, when the bytes begin as XML does, by its first bytes and its declaration, else it is UTF-8.
 * Malformed bytes become U+FFFD; the byte order mark is removed.
 */
export function decodeText(bytes: Uint8Array, contentType?: string, onUnknownCharset?: OnUnknownCharset): string {
  return decodeBytes(bytes, charsetOf(bytes, contentType, onUnknownCharset));
}

/** The charset that a body and its Content-Type header declare, as {@link decodeText} says. */
export function charsetOf(bytes: Uint8Array, contentType?: string, onUnknownCharset?: OnUnknownCharset): Charset {
  const given = labelIn(contentType);
  const byHeader = given === undefined ? undefined : findCharset(given);
  if (byHeader !== undefined) return byHeader;
  const declared = labelOfXml(bytes);
  const byDeclaration = declared === undefined ? undefined : findCharset(declared);
  if (byDeclaration !== undefined) return byDeclaration;
  const label = given ?? declared;
  if (label === undefined || hasMark(bytes)) return 'utf-8';
  onUnknownCharset?.(label);
  return 'unknown';
}

function labelIn(contentType = ''): string | undefined {
  const label = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(contentType)?.[1];
  return label?.slice(0, longestLabel).toLowerCase();
}

function findCharset(label: string): Charset | undefined {
  const known = charsets.get(label);
  if (known !== undefined) return known;
  try {
    const decoder = new TextDecoder(label);
    return charsets.get(decoder.encoding) ?? decoder;
  } catch {
    return undefined;
  }
}

/** Decodes bytes whose charset is known, unless a byte order mark knows better. */
export function decodeBytes(bytes: Uint8Array, charset: Charset): string {
  const [first, second] = bytes;
  if (first === 0xef && second === 0xbb && bytes[2] === 0xbf) return bufferOf(bytes).toString('utf8', 3);
  if (first === 0xfe && second === 0xff) return decodeUtf16BigEndian(bytes.subarray(2));
  if (first === 0xff && second === 0xfe) return bufferOf(bytes).toString('utf16le', 2);
  switch (charset) {
    case 'utf-8':
      return bufferOf(bytes).toString('utf8');
    case 'utf-16':
      return first === 0 && second !== 0 ? decodeUtf16BigEndian(bytes) : bufferOf(bytes).toString('utf16le');
    case 'utf-16le':
      return bufferOf(bytes).toString('utf16le');
    case 'utf-16be':
      return decodeUtf16BigEndian(bytes);
    case 'windows-1252':
      return decodeWindows1252(bytes);
    case 'unknown':
      return isUtf8(bytes) ? bufferOf(bytes).toString('utf8') : decodeWindows1252(bytes);
    default:
      return charset.decode(bytes);
  }
}

function hasMark(bytes: Uint8Array): boolean {
  const [first, second, third] = bytes.subarray(0, 3);
  return (
    (first === 0xef && second === 0xbb && third === 0xbf) ||
    (first === 0xfe && second === 0xff) ||
    (first === 0xff && second === 0xfe)
  );
}

function labelOfXml(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  if (first === 0x3c && second === 0) return 'utf-16le';
  if (first === 0 && second === 0x3c) return 'utf-16be';
  if (first !== 0x3c || second !== 0x3f) return undefined;
  const declaration = bufferOf(bytes).toString('latin1', 0, 200);
  const label = /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(declaration)?.[1]?.toLowerCase();
  // A declaration that could be read byte by byte is not in UTF-16, whatever it says.
  return label !== undefined && String(charsets.get(label)).startsWith('utf-16') ? 'utf-8' : label;
}

function decodeWindows1252(bytes: Uint8Array): string {
  return bufferOf(bytes)
    .toString('latin1')
    .replace(/[\x80-\x9f]/g, (control) => windows1252.charAt(control.charCodeAt(0) - 0x80));
}

function decodeUtf16BigEndian(bytes: Uint8Array): string {
  const swapped = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  return swapped.swap16().toString('utf16le');
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
