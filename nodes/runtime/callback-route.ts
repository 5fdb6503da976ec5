import { createHash, timingSafeEqual } from 'node:crypto';
import cors, { type CorsOptions } from 'cors';
import type { Application, ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import type { NodeAPI } from 'node-red';
import { type CallbackRequest, isUnsafeKey } from '../../src';
import { type CallbackAnswer, noteParserError, readBody } from './callback-body';
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
