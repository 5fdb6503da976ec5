import type { Request } from 'express';
import { type CallbackRequest, flattenForm, formatForm, Pieces } from '../../src';

/** What a route answers. */
export interface CallbackAnswer {
  status: number;
  text: string;
}

/** Largest body that is read, in bytes. */
const maxBodyBytes = 256 * 1024;
const bodyTimeoutMs = 30_000;

/** Requests whose body Node-RED's own parsers came upon first, and could not read. */
const unparsed = new WeakSet<Request>();

/** Notes that Node-RED's own parsers came upon a body first, and could not read it. */
export function markUnparsed(request: Request): void {
  unparsed.add(request);
}

/** Reads the body of a callback, or says what to answer instead. */
export async function readBody(request: Request): Promise<CallbackRequest | CallbackAnswer> {
  const contentType = request.headers['content-type'];
  const type = contentType === undefined ? {} : { contentType };
  const tooLarge = { status: 413, text: 'The body is larger than 256 KiB.' };
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge;
  // Where editor and nodes share one root, Node-RED has parsed forms and JSON by now.
  if ((request as { _body?: boolean })._body || request.readableEnded) {
    const body: unknown = request.body;
    if (Buffer.isBuffer(body)) return { ...type, bytes: body };
    if (typeof body === 'string') return isEscapedForm(body) ? { ...type, bytes: Buffer.from(body) } : decoded(body);
    if (typeof body !== 'object' || body === null) return { ...type, bytes: Buffer.alloc(0) };
    if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) {
      return { status: 400, text: 'JSON is not accepted; send XMLv3 or FORMv1.' };
    }
    if (!declaresLength(request) && sizeOfForm(body) > maxBodyBytes) return tooLarge;
    return { ...type, form: body as Record<string, unknown> };
  }
  const compression = compressionOf(request);
  if (compression) return { status: 400, text: `The body is compressed (${compression}). Send it uncompressed.` };
  if (unparsed.has(request)) {
    return { status: 400, text: 'Node-RED cannot read a form in this character set. Send it in UTF-8.' };
  }
  return new Promise((resolve) => {
    const pieces = new Pieces();
    const end = (result: CallbackRequest | CallbackAnswer) => {
      clearTimeout(timer);
      request.removeListener('data', onData);
      request.pause();
      resolve(result);
    };
    const onData = (chunk: Buffer) => {
      if (pieces.length + chunk.length > maxBodyBytes) end(tooLarge);
      else pieces.add(chunk);
    };
    const cutOff = () => end({ status: 400, text: 'The body did not arrive whole.' });
    const timer = setTimeout(cutOff, bodyTimeoutMs);
    request.on('data', onData);
    request.once('end', () => end({ ...type, bytes: pieces.join() }));
    request.once('error', cutOff);
    request.once('close', cutOff);
  });
}

/** A body that is text by now, whatever its header and its XML declaration say that it was. */
function decoded(text: string): CallbackRequest {
  return { contentType: 'text/plain; charset=UTF-8', bytes: Buffer.from(text) };
}

/** Whether a text is a form whose escapes are still in the charset of its header. */
function isEscapedForm(text: string): boolean {
  return /^\p{ASCII}*$/u.test(text) && !text.trimStart().startsWith('<');
}

/** What the Content-Encoding header says beyond `identity`, short and without what does not belong in a name. */
function compressionOf({ headers }: Request): string | undefined {
  const names = headers['content-encoding']?.toLowerCase().match(/[\w-]+/g);
  return names?.find((name) => name !== 'identity')?.slice(0, 20);
}

/** A compressed body has the length of something else. */
function declaresLength({ headers }: Request): boolean {
  return headers['content-length'] !== undefined && headers['content-encoding'] === undefined;
}

/** The bytes of a form that was parsed already, as they are when it is written again. */
function sizeOfForm(form: object): number {
  return formatForm(flattenForm(form)).length;
}
