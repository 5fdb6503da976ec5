/**
 * Simulates the service on this machine, for development and tests.
 *
 * @module @messaging-service/node-red-sms/simulator
 */

import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Account } from './account';
import { createUnauthorized } from './answer';
import { Callbacks } from './callbacks';
import { Changes } from './changes';
import { createRealClock } from './clock';
import { serveControl, writeJson } from './control';
import { Data } from './data';
import { createFeedWork } from './endpoints/feed';
import { createIncomingWork, createOutboxWork, createStatusWork, withAuthentication } from './endpoints/polls';
import { createSendWork } from './endpoints/send';
import { Exchange } from './exchange';
import { Faults } from './faults';
import { History } from './history';
import { Listener } from './listener';
import { Messaging } from './messaging';
import type { IncomingMessage, SimulatorOptions, StatusUpdate } from './model';
import { servePage } from './page';
import { RequestLog } from './request-log';
import { isSameSite } from './same-site';
import { createService } from './service';
import { Simulator } from './simulator';
import { UnreadQueue } from './unread';

export { connectSimulator, type SimulatorClient, type SimulatorViews } from './client';
export { type Clock, createManualClock } from './clock';
export type { LogQuery } from './log';
export type { HandsetMessage } from './messaging';
export type * from './model';
export type { Simulator } from './simulator';

/**
 * Starts the simulated service on this machine. Without `host`, it listens only on the loopback address.
 *
 * @example
 * ```ts
 * import { startSimulator } from '@messaging-service/node-red-sms/simulator';
 *
 * const simulator = await startSimulator({ port: 0 });
 * simulator.receive({ from: '6421555123', to: '642100000001', body: 'Hello' });
 * console.log(simulator.baseUrl, simulator.credentials.apiKey);
 * await simulator.close();
 * ```
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { host = '127.0.0.1', waitMs = 30_000, keepRequests = 10_000, clock = createRealClock() } = options;
  const basePath = readBasePath(options.basePath);
  const changes = new Changes();
  const account = new Account(options);
  const onRead = (record: IncomingMessage | StatusUpdate): void => {
    record.readAt = new Date(clock.now()).toISOString();
    changes.emit('read');
  };
  const incoming = new UnreadQueue<IncomingMessage>({ waitMs, onRead });
  const statuses = new UnreadQueue<StatusUpdate>({ waitMs, onRead });
  const history = new History(options.keepMessages ?? 10_000);
  const faults = new Faults();
  const log = new RequestLog(keepRequests, changes);
  const { organisation } = account;
  const retries = options.retryCallbacksMs ?? {};
  const callbacks = new Callbacks({ clock, changes, organisation, retries, keep: keepRequests });
  const { statusDelayMs = 1000, statusBatch = 1 } = options;
  const messaging = new Messaging({ account, clock, changes, callbacks, history, incoming, statuses, statusDelayMs });
  const exchange = new Exchange({ basePath, log, faults });

  const data =
    options.dataFolder === undefined
      ? undefined
      : new Data(options.dataFolder, { account, changes, history, incoming, messaging, statuses });
  messaging.resume();

  const serve: RequestListener = (request, response) => {
    const url = new URL(`http://localhost${(request.url ?? '').replace(/^\/*/, '/')}`);
    const { pathname } = url;
    const isPage = pathname === '/' && request.method === 'GET';
    if (!isPage && !pathname.startsWith('/control/')) {
      const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : '';
      const handler = findHandler(request.method ?? '', path) ?? exchange.handler(undefined, createUnauthorized);
      void handler(request, response);
    } else if (!isSameSite(request, listener.origin)) {
      writeJson(response, 403, { error: 'The control API is not for pages of other sites' });
    } else if (request.method !== 'GET' || !servePage(pathname, response)) {
      void serveControl(simulator, request, response, url);
    }
  };
  const server = options.tls === undefined ? createServer(serve) : createTlsServer(options.tls, serve);
  const listener = new Listener(server, host, options.port ?? 0);
  const simulator = new Simulator({
    account,
    basePath,
    callbacks,
    changes,
    clock,
    data,
    exchange,
    faults,
    history,
    incoming,
    listener,
    log,
    messaging,
    statuses,
  });
  const findHandler = createService(exchange, {
    send: createSendWork(account, messaging),
    incoming: withAuthentication(account, createIncomingWork(incoming)),
    status: withAuthentication(account, createStatusWork(statuses, statusBatch)),
    outbox: withAuthentication(account, createOutboxWork(account, messaging)),
    feed: withAuthentication(
      account,
      createFeedWork(account, clock, history, () => `${listener.origin}${basePath}/api/2/sms/list`),
    ),
  });
  try {
    await listener.open();
  } catch (error) {
    await simulator.close();
    throw error;
  }
  return simulator;
}

/** Returns the base path with a leading slash and without a trailing slash, or an empty string if no path is set. */
function readBasePath(text = ''): string {
  const path = text.replace(/^\/*|\/*$/g, '');
  if (path === '') return '';
  if (path === 'control' || path.startsWith('control/')) {
    throw new Error('The base path must not begin with /control, which is the control API.');
  }
  if (!/^[\w.~/-]+$/.test(path)) throw new Error(`The base path ${text} has characters that do not belong in a path.`);
  return `/${path}`;
}
