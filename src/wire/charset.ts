import { isUtf8 } from 'node:buffer';

/** A received body and its Content-Type header. */
export type Encoded = [bytes: Uint8Array, contentType?: string | undefined];

/**
 * Decodes a received body, see {@link decodeBytes}. Uses the charset of the Content-Type header, or else that of the
 * XML declaration. Removes a byte order mark.
 */
export function decodeText(...encoded: Encoded): string {
  return decodeBytes(encoded[0], charsetOf(...encoded)).replace(/^\ufeff/, '');
}

/** Returns the declared charset: that of the Content-Type header, or else that of the XML declaration. */
export function charsetOf(bytes: Uint8Array, contentType = ''): string | undefined {
  const [, charset] = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(contentType) ?? [];
  const declaration = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  return charset ?? /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(declaration)?.[1];
}

/**
 * Decodes bytes. UTF-16 with a byte order mark and valid UTF-8 take precedence over the declared charset, because many
 * servers label every answer ISO-8859-1 or UTF-16. Otherwise the declared charset applies, or windows-1252 if Node.js
 * does not know it. Malformed bytes become U+FFFD.
 */
export function decodeBytes(bytes: Uint8Array, declared = 'utf-8'): string {
  const [first, second] = bytes;
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  // Bytes of 0 are valid in UTF-8, but here they show that the text is in UTF-16, which contains them in each Latin
  // character.
  if (isUtf8(bytes) && !bytes.includes(0)) return Buffer.from(bytes).toString('utf8');
  const decoder = createDecoder(declared);
  // Decodes as a stream, because without `stream`, Node.js 20 decodes windows-1252 as ISO-8859-1.
  return decoder.decode(bytes, { stream: true }) + decoder.decode();
}

function createDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder('windows-1252');
  }
}
