import { createHash, timingSafeEqual } from 'node:crypto';
import cors, { type CorsOptions } from 'cors';
import type { Application, ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import { type CallbackRequest, flattenForm, formatForm, isUnsafeKey, Pieces } from '../../src';
import { encodePath, normalisePath, trimSlashes } from './callback-path';

/** How a route behaves. */
export interface CallbackRouteOptions {
  /** Below `httpNodeRoot`, with a leading slash. */
  path: string;
  /** When set, a request has to carry it as the query parameter `token`. */
  token: string | undefined;
  /** Handles a request that was let in, and says what to answer. */
  handle(body: CallbackRequest, query: Record<string, string | string[]>): Promise<CallbackAnswer>;
}

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
  const advertisedPath = encodePath(options.path);
  // As sms-send gives it to the service, which spares most callbacks the longer comparison.
  const isOwn = (requested: string) => requested === advertisedPath || normalisePath(requested) === path;
  const layer: RequestHandler = (request, response, next) => {
    if (!isOwn(request.path)) next();
    else runInTurn([...before, (req, res) => void answer(options, req, res)], request, response, next);
  };
  const unparsedLayer: ErrorRequestHandler = (error, request, _response, next) => {
    const requested = pathBelowRoot(RED, request);
    const isTaken = requested !== undefined && isOwn(requested) && noteParserError(request, error);
    next(isTaken ? undefined : error);
  };
  const removals = [addLayer(RED.httpNode, layer), addLayer(findParsingApp(RED), unparsedLayer)];
  return () => {
    for (const remove of removals) remove();
  };
}

/**
 * The server of the editor. Where it shares its root with the nodes, its parsers see every callback first, and refuse
 * some with an answer of their own, before anything has asked for a token.
 */
function findParsingApp(RED: NodeAPI): Application | undefined {
  return (RED.httpAdmin as unknown as { parent?: Application }).parent;
}

function pathBelowRoot({ settings }: NodeAPI, { originalUrl }: Request): string | undefined {
  const root = trimSlashes(String(settings.httpNodeRoot || ''));
  const [requested = ''] = originalUrl.split('?');
  if (root === '') return requested;
  return requested.startsWith(`/${root}/`) ? requested.slice(root.length + 1) : undefined;
}

function addLayer(app: Application | undefined, layer: RequestHandler | ErrorRequestHandler): () => void {
  app?.use(layer);
  return () => {
    // Express 5 calls its router `router`; in Express 4 that name throws.
    const routers = app as unknown as Record<'_router' | 'router', { stack: { handle: unknown }[] } | undefined>;
    const stack = (routers?._router ?? routers?.router)?.stack;
    const index = stack?.findIndex(({ handle }) => handle === layer) ?? -1;
    if (index >= 0) stack?.splice(index, 1);
  };
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
  // Express would also make an ETag, which no caller of a POST has a use for, and `writeHead` takes longer with headers beside its own.
  response.statusCode = status;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
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
  for (const [name, value] of query) {
    const former = values.get(name);
    if (former === undefined) values.set(name, value);
    else if (typeof former === 'string') values.set(name, [former, value]);
    else former.push(value);
  }
  const isData = ([name]: [string, unknown]) => name !== 'token' && !isUnsafeKey(name);
  return Object.fromEntries([...values].filter(isData));
}

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
function noteParserError(request: Request, error: ParserError | undefined): boolean {
  if (!error || ![400, 413, 415].includes(error.status)) return false;
  parserErrors.set(request, error);
  return true;
}

/** Reads the body of a callback, or says what to answer instead. */
async function readBody(request: Request): Promise<CallbackRequest | CallbackAnswer> {
  const contentType = request.headers['content-type'];
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge;
  const parserError = parserErrors.get(request);
  if (parserError) return readRefused(request, parserError);
  // Where editor and nodes share one root, Node-RED has parsed forms and JSON by now.
  if ((request as { _body?: boolean })._body || request.readableEnded) {
    const body: unknown = request.body;
    if (Buffer.isBuffer(body)) return { contentType, bytes: body };
    if (typeof body === 'string') return { contentType, bytes: Buffer.from(body) };
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
