type Charset = 'utf-8' | 'utf-16' | 'utf-16le' | 'utf-16be' | 'windows-1252';

const charsets: ReadonlyMap<string, Charset> = new Map([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
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

/**
 * Decodes what came over the wire. The charset is told by a byte order mark, else by the `charset` of the
 * Content-Type header, else, when the bytes begin as XML does, by its first bytes and its declaration, else it is UTF-8. A
 * charset that is not known counts as UTF-8. Malformed bytes become U+FFFD; the byte order mark is removed.
 */
export function decodeText(bytes: Uint8Array, contentType?: string): string {
  return decodeBytes(bytes, charsetOf(contentType) ?? charsetOfXml(bytes) ?? 'utf-8');
}

/** The `charset` parameter of a Content-Type header; `undefined` when there is none, or none that is known. */
export function charsetOf(contentType: string | undefined): Charset | undefined {
  const label = contentType === undefined ? undefined : /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(contentType)?.[1];
  return label === undefined ? undefined : charsets.get(label.toLowerCase());
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
      return bufferOf(bytes)
        .toString('latin1')
        .replace(/[\x80-\x9f]/g, (control) => windows1252.charAt(control.charCodeAt(0) - 0x80));
  }
}

function charsetOfXml(bytes: Uint8Array): Charset | undefined {
  const [first, second] = bytes;
  if (first === 0x3c && second === 0) return 'utf-16le';
  if (first === 0 && second === 0x3c) return 'utf-16be';
  if (first !== 0x3c || second !== 0x3f) return undefined;
  const declaration = bufferOf(bytes).toString('latin1', 0, 200);
  const label = /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(declaration)?.[1];
  const charset = label === undefined ? undefined : charsets.get(label.toLowerCase());
  // A declaration that could be read byte by byte is not in UTF-16, whatever it says.
  return charset?.startsWith('utf-16') ? 'utf-8' : charset;
}

function decodeUtf16BigEndian(bytes: Uint8Array): string {
  const swapped = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  return swapped.swap16().toString('utf16le');
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
