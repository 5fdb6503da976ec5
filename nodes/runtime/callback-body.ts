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
const tooLarge = { status: 413, text: 'The body is larger than 256 KiB.' };
const cutOff = { status: 400, text: 'The body did not arrive whole.' };
const jsonRefused = { status: 400, text: 'JSON is not accepted; send XMLv3 or FORMv1.' };

/** What Node-RED's own parsers say of a body that they came upon first and refused. */
interface ParserError {
  status: number;
  /** The text of a body that was read and could not be parsed. */
  body?: unknown;
}

const parserErrors = new WeakMap<Request, ParserError>();

/** Notes that Node-RED's own parsers came upon a body first and refused it. Says whether the error is one of theirs. */
export function noteParserError(request: Request, error: ParserError | undefined): boolean {
  if (!error || ![400, 413, 415].includes(error.status)) return false;
  parserErrors.set(request, error);
  return true;
}

/** Reads the body of a callback, or says what to answer instead. */
export async function readBody(request: Request): Promise<CallbackRequest | CallbackAnswer> {
  const contentType = request.headers['content-type'];
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge;
  const parserError = parserErrors.get(request);
  if (parserError) return readRefused(request, parserError);
  // Where editor and nodes share one root, Node-RED has parsed forms and JSON by now.
  if ((request as { _body?: boolean })._body || request.readableEnded) {
    const body: unknown = request.body;
    if (Buffer.isBuffer(body)) return { contentType, bytes: body };
    if (typeof body === 'string')
      return isEscapedForm(body) ? { contentType, bytes: Buffer.from(body) } : decoded(body);
    if (typeof body !== 'object' || body === null) return { contentType, bytes: Buffer.alloc(0) };
    if (!isForm(request)) return jsonRefused;
    if (!declaresLength(request) && sizeOfForm(body) > maxBodyBytes) return tooLarge;
    return { contentType, form: body as Record<string, unknown> };
  }
  const compressed = refuseCompressed(request);
  if (compressed) return compressed;
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
    const stop = () => end(cutOff);
    const timer = setTimeout(stop, bodyTimeoutMs);
    request.on('data', onData);
    request.once('end', () => end({ contentType, bytes: pieces.join() }));
    request.once('error', stop);
    request.once('close', stop);
  });
}

/** What becomes of a body that Node-RED's own parsers refused: theirs are bounds that FORMv1 does not have. */
function readRefused(request: Request, { status, body }: ParserError): CallbackRequest | CallbackAnswer {
  if (isForm(request) && typeof body === 'string') {
    const bytes = Buffer.from(body);
    return bytes.length > maxBodyBytes ? tooLarge : { contentType: request.headers['content-type'], bytes };
  }
  if (status === 413) {
    return { status, text: 'The body is larger than 256 KiB, or than apiMaxLength in the settings of Node-RED.' };
  }
  const compressed = refuseCompressed(request);
  if (compressed) return compressed;
  if (!isForm(request)) return jsonRefused;
  if (status === 400) return cutOff;
  return { status: 400, text: 'Node-RED cannot read a form in this character set. Send it in UTF-8.' };
}

/** A body that is text by now, whatever its header and its XML declaration say that it was. */
function decoded(text: string): CallbackRequest {
  return { contentType: 'text/plain; charset=UTF-8', bytes: Buffer.from(text) };
}

/** Whether a text is a form whose escapes are still in the charset of its header. */
function isEscapedForm(text: string): boolean {
  return /^\p{ASCII}*$/u.test(text) && !text.trimStart().startsWith('<');
}

function isForm({ headers }: Request): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
}

/** Names what the Content-Encoding header says beyond `identity`, short and without what does not belong in a name. */
function refuseCompressed({ headers }: Request): CallbackAnswer | undefined {
  const names = headers['content-encoding']?.toLowerCase().match(/[\w-]+/g);
  const compression = names?.find((name) => name !== 'identity')?.slice(0, 20);
  if (compression === undefined) return undefined;
  return { status: 400, text: `The body is compressed (${compression}). Send it uncompressed.` };
}

/** A compressed body has the length of something else. */
function declaresLength({ headers }: Request): boolean {
  return headers['content-length'] !== undefined && headers['content-encoding'] === undefined;
}

/** The bytes of a form that was parsed already, as they are when it is written again. */
function sizeOfForm(form: object): number {
  return formatForm(flattenForm(form)).length;
}
