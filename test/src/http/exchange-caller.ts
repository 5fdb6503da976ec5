import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { type Clock, systemClock } from '../../../src/clock';
import { SmsError, type SmsErrorCode } from '../../../src/errors';
import { type ConnectionsOptions, createConnections, type TlsOptions } from '../../../src/http/connections';
import { type Answer, type Call, createExchange, type Target } from '../../../src/http/exchange';
import type { ProxyOptions } from '../../../src/http/proxy';
import type { Authentication } from '../../../src/login';
import { useClosing } from '../closing';
import { type createSelfSigned, type RawService, startRawService } from '../raw-service';

export const bearer: Authentication = { type: 'bearer', apiKey: 'key-3141592653' };
export const basic: Authentication = { type: 'basic', userId: 'ann', password: 'pässwörd-271828' };
const secrets = [
  '3141592653',
  '271828',
  Buffer.from('ann:').toString('base64').slice(0, 5),
  'proxy-secret',
  'demo-api-key',
  'a private body',
];

interface Options extends Partial<Call> {
  authentication?: Authentication;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  connections?: Target['connections'];
  clock?: Clock;
}

/** Creates a clock whose most recent timer ends when the test calls `expire`. */
export function createTimeouts(): { clock: Clock; expire: () => void } {
  let expire = () => {};
  const after = (_delayMs: number, callback: () => void) => {
    expire = callback;
    return { cancel() {} };
  };
  return { clock: { ...systemClock, after }, expire: () => expire() };
}

/** Makes requests over connections that close after each test. */
export class Caller {
  readonly closing = useClosing();

  open(baseUrl: string, options: Omit<ConnectionsOptions, 'baseUrl'> = {}) {
    return this.closing.add(createConnections({ baseUrl, ...options }), (it) => void it.close().catch(() => {}));
  }

  readonly call = (baseUrl: string, options: Options = {}): Promise<Answer> => {
    const { authentication = bearer, tls, proxy, connections, clock = systemClock, ...rest } = options;
    const pool = connections ?? this.open(baseUrl, { ...(tls && { tls }), ...(proxy && { proxy }) });
    const exchange = createExchange({ baseUrl, authentication, connections: pool, clock });
    const call = { method: 'POST', path: '/x', timeoutMs: 10_000, effect: 'read' } as const;
    return exchange({ ...call, parameters: [['a', '1']], ...rest });
  };

  /** Makes a send and a read that both fail, and checks the codes of their errors. */
  readonly failsOnBoth = async (
    baseUrl: string,
    onSend: SmsErrorCode,
    onRead: SmsErrorCode,
    options: Options = {},
  ): Promise<void> => {
    assert.equal((await failure(this.call(baseUrl, { ...options, effect: 'send' }))).code, onSend);
    assert.equal((await failure(this.call(baseUrl, { ...options, effect: 'read' }))).code, onRead);
  };

  /** Starts a service that answers each request with the method, URL, body and headers of the request. */
  readonly startEcho = (tls?: ReturnType<typeof createSelfSigned>): Promise<RawService> =>
    startRawService(
      this.closing,
      async (incoming, outgoing) => {
        let body = '';
        for await (const chunk of incoming) body += chunk;
        const { method, url, headers } = incoming;
        outgoing.end(JSON.stringify({ method, url, body, headers }));
      },
      tls,
    );
}

/** Returns the error of a request, and checks that it contains no secret. */
export async function failure(promise: Promise<unknown>): Promise<SmsError> {
  const error = await promise.then(
    () => assert.fail('resolved'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof SmsError, inspect(error));
  for (const secret of secrets) {
    for (const text of [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), String(error.stack)]) {
      assert.ok(!text.includes(secret), `${secret} is in ${text}`);
    }
  }
  return error;
}

/** Reads the answer of {@link Caller.startEcho}. */
export function readEcho({ bytes }: Answer) {
  return JSON.parse(bytes.toString()) as {
    method: string;
    url: string;
    body: string;
    headers: Record<string, string>;
  };
}
