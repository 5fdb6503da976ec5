import { isUtf8 } from 'node:buffer';

/** What came over the wire: its bytes, and its Content-Type header. */
export type Encoded = [bytes: Uint8Array, contentType?: string | undefined];

/**
 * Decodes what came over the wire, see {@link decodeBytes}: its charset is the one of the Content-Type header, else of an XML
 * declaration. A byte order mark is removed.
 */
export function decodeText(...encoded: Encoded): string {
  return decodeBytes(encoded[0], charsetOf(...encoded)).replace(/^\ufeff/, '');
}

/** The charset that a body and its Content-Type header declare. */
export function charsetOf(bytes: Uint8Array, contentType = ''): string | undefined {
  const [, given] = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(contentType) ?? [];
  const declaration = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  return given ?? /^<\?xml\s[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(declaration)?.[1];
}

/**
 * Decodes bytes as UTF-16 when they begin with its byte order mark, else as UTF-8 when they are that, whatever is declared: many
 * a server labels all it has ISO-8859-1 or UTF-16. Else as what is declared, or windows-1252 where Node does not know that.
 * Malformed bytes become U+FFFD.
 */
export function decodeBytes(bytes: Uint8Array, declared = 'utf-8'): string {
  const [first, second] = bytes;
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  // Text in UTF-16 has upper bytes of 0.
  if (isUtf8(bytes) && !bytes.includes(0)) return Buffer.from(bytes).toString('utf8');
  const decoder = createDecoder(declared);
  // At one go, Node 20 takes windows-1252 for ISO-8859-1.
  return decoder.decode(bytes, { stream: true }) + decoder.decode();
}

function createDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder('windows-1252');
  }
}
