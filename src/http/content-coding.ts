import { brotliDecompressSync, inflateRawSync, inflateSync, unzipSync } from 'node:zlib';

/** Why content cannot be decoded, in a few words. */
export class CodingError extends Error {}

type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['identity', (bytes) => bytes],
  ['gzip', unzipSync],
  ['x-gzip', unzipSync],
  ['br', brotliDecompressSync],
  // In the format of zlib, as RFC 9110 has it, or bare, as some send it.
  ['deflate', (bytes, options) => ((bytes[0] ?? 0) % 16 === 8 ? inflateSync : inflateRawSync)(bytes, options)],
]);

/**
 * Undoes the `Content-Encoding` of an answer (RFC 9110, 8.4). None is asked for; one that comes all the same must not cost a message.
 *
 * @returns `undefined` for what is larger than `maxBytes`
 * @throws CodingError for what is damaged, encoded more than once, or in a way that is not known
 */
export function decodeContent(bytes: Buffer, coding: string, maxBytes: number): Buffer | undefined {
  if (bytes.length === 0) return bytes;
  const decode = decoders.get(coding.trim().toLowerCase());
  if (!decode) throw new CodingError('unknown content encoding');
  try {
    return decode(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw new CodingError('broken content encoding', { cause: error });
  }
}
