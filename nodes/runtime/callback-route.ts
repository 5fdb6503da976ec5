import { createHash, timingSafeEqual } from 'node:crypto';
import cors, { type CorsOptions } from 'cors';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import { formatForm, isUnsafeKey } from '../../src';

/** A callback as it came in, before anything is known of its content. */
export interface CallbackBody {
  contentType?: string;
  bytes?: Uint8Array;
  /** What Node-RED's own body parsers made of a form, when they ran first. */
  form?: Readonly<Record<string, unknown>>;
}

/** What a route answers. */
export interface CallbackAnswer {
  status: number;
  text: string;
}

/** How a route behaves. */
export interface CallbackRouteOptions {
  /** Below `httpNodeRoot`, with a leading slash. */
  path: string;
  /** When set, a request has to carry it as the query parameter `token`. */
  token: string | undefined;
  /** Handles a request that was let in, and says what to answer. */
  handle(body: CallbackBody, query: Record<string, string | string[]>): Promise<CallbackAnswer>;
}

/** Largest body that is read, in bytes. */
const maxBodyBytes = 256 * 1024;
const bodyTimeoutMs = 30_000;

/**
 * Answers at a path of Node-RED's own HTTP server, with its middleware and CORS settings. Returns how to take the route
 * away again.
 */
export function mountCallbackRoute(RED: NodeAPI, options: CallbackRouteOptions): () => void {
  const { httpNodeMiddleware, httpNodeCors } = RED.settings as {
    httpNodeMiddleware?: RequestHandler | RequestHandler[];
    httpNodeCors?: CorsOptions;
  };
  const before: RequestHandler[] = [httpNodeMiddleware ?? []].flat();
  if (httpNodeCors) before.push(cors(httpNodeCors));
  const path = normalisePath(options.path);
  const told = encodePath(options.path);
  const layer: RequestHandler = (request, response, next) => {
    // As sms-send tells it, which spares most callbacks the longer comparison.
    if (request.path !== told && normalisePath(request.path) !== path) next();
    else runInTurn([...before, (req, res) => void answer(options, req, res)], request, response, next);
  };
  RED.httpNode.use(layer);
  return () => {
    // Express 5 calls its router `router`; in Express 4 that name throws.
    const app = RED.httpNode as unknown as Record<'_router' | 'router', { stack: { handle: unknown }[] } | undefined>;
    const stack = (app._router ?? app.router)?.stack;
    const index = stack?.findIndex(({ handle }) => handle === layer) ?? -1;
    if (index >= 0) stack?.splice(index, 1);
  };
}

/** Says whether a path can be mounted: what follows a `?` or `#` is no part of a path. */
export function isPath(path: string): boolean {
  return !/[?#]/.test(path);
}

/** Express tells paths apart neither by case nor by a slash at the end; nor does this, nor by how they are escaped. */
export function normalisePath(path: string): string {
  return encodePath(path).replace(/\/+$/, '').toLowerCase() || '/';
}

/** A path as a URL has it, whether it is given so or with characters that a URL has only as escapes. */
export function encodePath(path: string): string {
  const encode = (segment: string) =>
    encodeURI(decodeSegment(segment).replace(/\p{Cs}/gu, '\ufffd')).replace(/[/?#]/g, encodeURIComponent);
  return path.split('/').map(encode).join('/');
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // What looks like an escape and is none stands for itself.
    return segment;
  }
}

function runInTurn(handlers: RequestHandler[], request: Request, response: Response, next: NextFunction): void {
  const run = (index: number, error?: unknown) => {
    const handler = handlers[index];
    if (error || !handler) next(error);
    else handler(request, response, (problem?: unknown) => run(index + 1, problem));
  };
  run(0);
}

async function answer(options: CallbackRouteOptions, request: Request, response: Response): Promise<void> {
  const { status, text } = await respond(options, request, response);
  if (response.headersSent || response.destroyed) return;
  // A body that was not read to its end would be taken for the next request.
  if (!request.readableEnded) response.set('Connection', 'close');
  // Express would also make an ETag, which no caller of a POST has a use for.
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

async function respond(options: CallbackRouteOptions, request: Request, response: Response): Promise<CallbackAnswer> {
  const query = new URLSearchParams(request.originalUrl.split('?').slice(1).join('?'));
  if (request.method !== 'POST') {
    response.set('Allow', 'POST');
    return { status: 405, text: 'Use POST.' };
  }
  if (options.token && !isSameText(query.get('token') ?? '', options.token)) {
    return { status: 401, text: 'The token is missing or wrong.' };
  }
  const body = await readBody(request);
  if ('status' in body) return body;
  return options.handle(body, toObject(query));
}

/** Takes the same time wherever the two differ. */
function isSameText(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

function toObject(query: URLSearchParams): Record<string, string | string[]> {
  const values = new Map<string, string | string[]>();
  for (const name of new Set(query.keys())) {
    const all = query.getAll(name);
    if (name !== 'token' && !isUnsafeKey(name)) values.set(name, all.length === 1 ? (all[0] ?? '') : all);
  }
  return Object.fromEntries(values);
}

async function readBody(request: Request): Promise<CallbackBody | CallbackAnswer> {
  const contentType = request.headers['content-type'];
  const type = contentType === undefined ? {} : { contentType };
  const tooLarge = { status: 413, text: 'The body is larger than 256 KiB.' };
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge;
  // Where editor and nodes share one root, Node-RED has parsed forms and JSON by now.
  if ((request as { _body?: boolean })._body || request.readableEnded) {
    const body: unknown = request.body;
    if (Buffer.isBuffer(body)) return { ...type, bytes: body };
    if (typeof body === 'string') return { ...type, bytes: Buffer.from(body) };
    if (typeof body !== 'object' || body === null) return { ...type, bytes: Buffer.alloc(0) };
    if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) {
      return { status: 400, text: 'JSON is not accepted: send XMLv3 or FORMv1.' };
    }
    if (!isLengthTold(request) && sizeOfForm(body) > maxBodyBytes) return tooLarge;
    return { ...type, form: body as Record<string, unknown> };
  }
  const compression = compressionOf(request);
  if (compression) return { status: 400, text: `The body is compressed (${compression}). Send it uncompressed.` };
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (result: CallbackBody | CallbackAnswer) => {
      clearTimeout(timer);
      request.removeListener('data', onData);
      request.pause();
      resolve(result);
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBodyBytes) end(tooLarge);
      else chunks.push(chunk);
    };
    const cutOff = () => end({ status: 400, text: 'The body did not arrive whole.' });
    const timer = setTimeout(cutOff, bodyTimeoutMs);
    request.on('data', onData);
    request.once('end', () => end({ ...type, bytes: Buffer.concat(chunks) }));
    request.once('error', cutOff);
    request.once('close', cutOff);
  });
}

/** What the Content-Encoding header says beyond `identity`, short and without what does not belong in a name. */
function compressionOf({ headers }: Request): string | undefined {
  const names = headers['content-encoding']?.toLowerCase().match(/[\w-]+/g);
  return names?.find((name) => name !== 'identity')?.slice(0, 20);
}

/** A compressed body has the length of something else. */
function isLengthTold({ headers }: Request): boolean {
  return headers['content-length'] !== undefined && headers['content-encoding'] === undefined;
}

/** The bytes of a form that was parsed already, as they are when it is written again. */
function sizeOfForm(form: object): number {
  return formatForm(pairsOf(form)).length;
}

/** Names and values of a form in which repeated names have become lists, and `a[b]` objects. */
function* pairsOf(value: unknown, name = ''): Generator<[name: string, value: string]> {
  if (Array.isArray(value)) {
    for (const item of value) yield* pairsOf(item, name);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) yield* pairsOf(item, name === '' ? key : `${name}[${key}]`);
  } else {
    yield [name, String(value)];
  }
}
