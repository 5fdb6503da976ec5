import { createHash, timingSafeEqual } from 'node:crypto';
import cors, { type CorsOptions } from 'cors';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import getRawBody from 'raw-body';
import { type CallbackRequest, flattenForm, formatForm, isUnsafeKey } from '../../src';
import { normalisePath } from './callback-path';

/** Options of a callback route. */
export interface CallbackRouteOptions {
  /** Path below `httpNodeRoot`, with a leading slash. */
  path: string;
  /** Required value of the query parameter `token`. `undefined`: requests need no token. */
  token: string | undefined;
  /** Handles a request with the right method and token. */
  handle(body: CallbackRequest, query: Record<string, string | string[]>): Promise<CallbackAnswer>;
}

/** An answer to the service. */
export interface CallbackAnswer {
  status: number;
  text: string;
}

/** Maximum size of a request body, in bytes. */
const maxBodyBytes = 256 * 1024;
const bodyTimeoutMs = 30_000;
/** Value of the header `Retry-After`: time in seconds until the service can repeat a refused callback. */
const retryAfterSeconds = 30;
const tooLarge = { status: 413, text: 'The body is larger than 256 KiB.' };
const cutOff = { status: 400, text: 'The body did not arrive whole.' };
const jsonRefused = { status: 400, text: 'JSON is not accepted. Send XMLv3 or FORMv1.' };

/**
 * Serves a path on Node-RED's own HTTP server, with its middleware and CORS settings. Returns a function that removes
 * the route.
 */
export function mountCallbackRoute(RED: NodeAPI, options: CallbackRouteOptions): () => void {
  const { httpNodeMiddleware, httpNodeCors } = RED.settings as {
    httpNodeMiddleware?: RequestHandler | RequestHandler[];
    httpNodeCors?: CorsOptions;
  };
  const earlierHandlers: RequestHandler[] = [httpNodeMiddleware ?? []].flat();
  if (httpNodeCors) earlierHandlers.push(cors(httpNodeCors));
  const path = normalisePath(options.path);
  const layer: RequestHandler = (request, response, next) => {
    if (normalisePath(request.path) !== path) next();
    else runInTurn([...earlierHandlers, (req, res) => void answerRequest(options, req, res)], request, response, next);
  };
  RED.httpNode.use(layer);
  return () => removeLayer(RED, layer);
}

/** Removes one middleware function, so that other nodes keep theirs on the same path. */
function removeLayer({ httpNode }: NodeAPI, layer: RequestHandler): void {
  // Tries `_router` (Express 4) first, because Express 4 throws if `router` (Express 5) is read.
  const routers = httpNode as unknown as Record<'_router' | 'router', { stack: { handle: unknown }[] } | undefined>;
  const stack = (routers._router ?? routers.router)?.stack;
  const index = stack?.findIndex(({ handle }) => handle === layer) ?? -1;
  if (index >= 0) stack?.splice(index, 1);
}

function runInTurn(handlers: RequestHandler[], request: Request, response: Response, next: NextFunction): void {
  const run = (index: number, error?: unknown) => {
    const handler = handlers[index];
    if (error || !handler) next(error);
    else handler(request, response, (problem?: unknown) => run(index + 1, problem));
  };
  run(0);
}

async function answerRequest(options: CallbackRouteOptions, request: Request, response: Response): Promise<void> {
  const { status, text } = await respond(options, request, response);
  if (response.headersSent || response.destroyed) return;
  // If part of the body is unread, closes the connection. Otherwise, Node.js would parse this part as the next request.
  if (!request.readableEnded) response.set('Connection', 'close');
  if (status === 503) response.setHeader('Retry-After', retryAfterSeconds);
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

/** Compares two texts in a time that does not depend on the position of the first difference. */
function isSameText(sent: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(sent), digest(expected));
}

function toObject(query: URLSearchParams): Record<string, string | string[]> {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of query) {
    const earlierValue = values.get(name);
    if (earlierValue === undefined) values.set(name, value);
    else if (typeof earlierValue === 'string') values.set(name, [earlierValue, value]);
    else earlierValue.push(value);
  }
  const isData = ([name]: [string, unknown]) => name !== 'token' && !isUnsafeKey(name);
  return Object.fromEntries([...values].filter(isData));
}

/** Reads the body of a callback. Returns an answer instead if the body must be refused. */
async function readBody(request: Request): Promise<CallbackRequest | CallbackAnswer> {
  const contentType = request.headers['content-type'];
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return tooLarge;
  // Uses a body that was already read: by Node-RED, if the editor and the nodes share one root, or by
  // `httpNodeMiddleware`.
  if ((request as { _body?: boolean })._body || request.readableEnded) {
    const body: unknown = request.body;
    if (Buffer.isBuffer(body)) return { contentType, bytes: body };
    if (typeof body === 'string') return { contentType, bytes: Buffer.from(body) };
    if (typeof body !== 'object' || body === null) return { contentType, bytes: Buffer.alloc(0) };
    if (!isForm(request)) return jsonRefused;
    const hasLength = request.headers['content-length'] !== undefined;
    if (!hasLength && formatForm(flattenForm(body)).length > maxBodyBytes) return tooLarge;
    return { contentType, form: body as Record<string, unknown> };
  }
  const bytes = await readBytes(request);
  return Buffer.isBuffer(bytes) ? { contentType, bytes } : bytes;
}

function readBytes(request: Request): Promise<Buffer | CallbackAnswer> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(cutOff), bodyTimeoutMs);
    getRawBody(request, { limit: maxBodyBytes })
      .catch(({ status }: { status?: number }) => (status === 413 ? tooLarge : cutOff))
      .then((result) => {
        clearTimeout(timer);
        resolve(result);
      });
  });
}

function isForm({ headers }: Request): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
}
