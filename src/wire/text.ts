import { isUtf8 } from 'node:buffer';

const own = ['utf-8', 'utf-16', 'utf-16le', 'utf-16be', 'windows-1252'] as const;

/** The characters that bytes stand for: of a charset known here, of one that the platform knows, or of one that nobody knows. */
export type Charset = (typeof own)[number] | 'unknown' | TextDecoder;

/**
 * Told of a declared charset that is not known here. When it returns, the text is read as it is: as UTF-8 when it is that, else
 * byte by byte, so that nothing of it is lost.
 */
export type OnUnknownCharset = (charset: string) => void;

/** What came over the wire, as {@link decodeText} takes it. */
export type Encoded = [
  bytes: Uint8Array,
  contentType?: string | undefined,
  onUnknownCharset?: OnUnknownCharset | undefined,
];

/** The byte order of these is to be found out. */
const utf16Label = /^(?:utf-?16|(?:iso-10646-)?ucs-2)$/;

/** The characters of windows-1252 from 0x80 to 0x9F. Not taken from TextDecoder, which gets them wrong in some releases of Node. */
const windows1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';
const longestLabel = 40;

/**
 * Decodes what came over the wire. The charset is told by a byte order mark, else by the `charset` of the
 * Content-Type header, else, when the bytes begin as XML does, by its first bytes and its declaration, else it is UTF-8. What says UTF-16
 * of bytes that do not begin so (see {@link isWide}) does not count.
 * Malformed bytes become U+FFFD; the byte order mark is removed.
 */
export function decodeText(...encoded: Encoded): string {
  return decodeBytes(encoded[0], charsetOf(...encoded));
}

/** The charset that a body and its Content-Type header declare, as {@link decodeText} says. */
export function charsetOf(bytes: Uint8Array, contentType = '', onUnknownCharset?: OnUnknownCharset): Charset {
  const given = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(contentType)?.[1]?.slice(0, longestLabel).toLowerCase();
  const declared = labelOfXml(bytes);
  const known = [given, declared].map(findCharset).filter((charset) => charset !== undefined);
  const label = given ?? declared;
  if (known.length > 0 || label === undefined || markOf(bytes) !== undefined)
    return known.find((charset) => isWide(bytes) || !String(charset).startsWith('utf-16')) ?? 'utf-8';
  onUnknownCharset?.(label);
  return 'unknown';
}

/** Whether bytes may be UTF-16 without a byte order mark: XML, JSON and forms begin with a character of ASCII. */
export function isWide(bytes: Uint8Array): boolean {
  return bytes[0] === 0 || bytes[1] === 0;
}

function findCharset(label: string | undefined): Charset | undefined {
  if (label === undefined) return undefined;
  if (utf16Label.test(label)) return 'utf-16';
  // Whoever labels UTF-8 so has not looked, and all else that is labelled so is the same in UTF-8.
  if (/^(?:us-)?ascii$/.test(label)) return 'utf-8';
  try {
    // Whoever labels a text ISO-8859-1 and uses 0x80 to 0x9F means windows-1252, which the platform takes it for.
    const decoder = new TextDecoder(label === 'latin-1' ? 'latin1' : label);
    return own.find((name) => name === decoder.encoding) ?? decoder;
  } catch {
    return undefined;
  }
}

/** Decodes bytes whose charset is known, unless a byte order mark knows better. */
export function decodeBytes(bytes: Uint8Array, charset: Charset): string {
  const mark = markOf(bytes);
  const content = bytes.subarray(mark === undefined ? 0 : mark === 'utf-8' ? 3 : 2);
  const buffer = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const used = mark ?? charset;
  if (typeof used === 'object') return used.decode(bytes);
  if (used === 'utf-8' || (used === 'unknown' && isUtf8(content))) return buffer.toString('utf8');
  if (used === 'utf-16be' || (used === 'utf-16' && content[0] === 0 && content[1] !== 0)) {
    const whole = buffer.subarray(0, buffer.length - (buffer.length % 2));
    return Buffer.from(whole).swap16().toString('utf16le');
  }
  if (used.startsWith('utf-16')) return buffer.toString('utf16le');
  return buffer
    .toString('latin1')
    .replace(/[\x80-\x9f]/g, (control) => windows1252.charAt(control.charCodeAt(0) - 0x80));
}

/** What the byte order mark says that bytes begin with. */
function markOf(bytes: Uint8Array): 'utf-8' | 'utf-16be' | 'utf-16le' | undefined {
  const [first, second, third] = bytes.subarray(0, 3);
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
}

function labelOfXml(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  if (first === 0x3c && second === 0) return 'utf-16le';
  if (first === 0 && second === 0x3c) return 'utf-16be';
  if (first !== 0x3c || second !== 0x3f) return undefined;
  const declaration = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  return /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(declaration)?.[1]?.toLowerCase();
}
