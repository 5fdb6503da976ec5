import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type Clock, onceAborted, systemClock, type Timer } from '../clock';
import { asSmsError, SmsError } from '../errors';
import type { Authentication } from '../login';
import { formatForm } from '../wire/form';
import { resolveRetryAfter } from '../wire/retry-after';
import type { Connections } from './connections';
import { createUnreachable, createUnread, describeFailure, ProxyFailure } from './failure';

/** The service to which requests are sent, with its login and connections. */
export interface Target {
  /** Base URL of the service, as {@link parseBaseUrl} returns it. */
  baseUrl: string;
  authentication: Authentication;
  connections: Pick<Connections, 'dispatch'>;
  /** Measures timeouts. Default: the clock of the machine. */
  clock?: Clock;
}

/** Options of a single call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Called when the headers of the answer have arrived. */
  onAnswer?: (() => void) | undefined;
  /**
   * Called when the connection is open, before the first byte is sent. The request waits for the returned promise. If
   * the promise rejects, nothing is sent, and its reason becomes the error of the call.
   */
  beforeLeaving?: (() => Promise<void> | void) | undefined;
}

/** A request, with its options. */
export interface Call extends CallOptions {
  method: 'GET' | 'POST';
  /** Path below the base URL, such as `/api/3/sms/out`. */
  path: string;
  parameters: readonly [string, string][];
  /** Time for the whole exchange including the connection, in ms. */
  timeoutMs: number;
  /**
   * `send`: if the answer is lost, the service might still have accepted the message. `read`: only the answer is lost.
   */
  effect: 'send' | 'read';
}

/** A complete answer of any status. */
export interface Answer {
  statusCode: number;
  /** Reason phrase of the status line. */
  statusText: string;
  contentType?: string;
  /** Header `Retry-After`, see {@link resolveRetryAfter}. */
  retryAfter?: string;
  bytes: Buffer;
}

/** Maximum size of an answer, in bytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

/**
 * Maximum number of connections for one request. Another connection is tried if the service closes a kept-alive
 * connection before the first byte is sent.
 */
const maxTries = 3;

/**
 * Returns a function that makes a request and reads the answer of any status. It does not follow redirects. If it
 * cannot read a refusal (status 300 and above) completely, it returns the part that has arrived.
 *
 * The function rejects with a {@link SmsError}:
 *
 * - `SMS_UNREACHABLE` if the request was never sent.
 * - `SMS_UNCERTAIN` (send) or `SMS_RESPONSE` (read) if the connection broke, was cut off or timed out after the
 *   request was sent.
 * - `SMS_RESPONSE` for an answer over 8 MiB.
 * - `SMS_CLOSED` if `signal` aborted before the request was sent.
 */
export function createExchange(target: Target): (call: Call) => Promise<Answer> {
  const { baseUrl, authentication, connections, clock = systemClock } = target;
  const { origin, host, pathname } = new URL(baseUrl);
  const basePath = pathname.replace(/\/$/, '');
  const commonHeaders = ['accept', '*/*', 'accept-encoding', 'identity', 'user-agent', 'node-red-sms'];
  const headersOfGet = [...commonHeaders, ...formatAuthorization(authentication)];
  const headersOfPost = [...headersOfGet, 'content-type', 'application/x-www-form-urlencoded'];
  const credentials = credentialsOf(authentication);

  return (call) => {
    const { method, parameters } = call;
    const form = formatForm([...credentials, ...parameters]);
    const isPost = method === 'POST';
    const path = basePath + call.path + (isPost || form === '' ? '' : `?${form}`);
    const content = Buffer.from(isPost ? form : '');
    const headers = isPost ? [...headersOfPost, 'content-length', String(content.length)] : headersOfGet;
    return new Promise((resolve, reject) => {
      const dispatch = (body: AsyncIterable<Buffer>) => {
        // undici documents async iterables as bodies, but its types do not include them.
        connections.dispatch({ origin, path, method, headers, body: body as unknown as Readable }, reader);
      };
      const reader = new AnswerReader({ call, content, host, clock, dispatch }, resolve, reject);
      reader.begin();
    });
  };
}

/** Returns name and value of the header with the credentials (§5); nothing for form credentials. */
function formatAuthorization(authentication: Authentication): string[] {
  if (authentication.type === 'form') return [];
  if (authentication.type === 'bearer') return ['authorization', `Bearer ${authentication.apiKey}`];
  const { userId, password } = authentication;
  return ['authorization', `Basic ${Buffer.from(`${userId}:${password}`).toString('base64')}`];
}

/** Returns form credentials as parameters (§5). */
function credentialsOf(authentication: Authentication): [string, string][] {
  if (authentication.type !== 'form') return [];
  const { userId, password } = authentication;
  return Object.entries({ userId, password });
}

interface Exchange {
  call: Call;
  /** Request body. */
  content: Buffer;
  /** Host of the base URL, with its port. */
  host: string;
  clock: Clock;
  dispatch: (body: AsyncIterable<Buffer>) => void;
}

/**
 * Makes one request and reads its answer. undici reads the request body just before it sends the first byte, so the
 * class knows whether anything was sent.
 */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: SmsError) => void;
  #timer: Timer;
  readonly #unsubscribe: (() => void) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isSettled = false;
  #tries = 0;
  /** Whether the connection of the current try has been opened. */
  #isConnected = false;
  #permission: Promise<void> | undefined;
  /** Whether the first byte was sent. If so, the service might have received the request. */
  #isSent = false;
  #answer: Answer | undefined;
  readonly #chunks: Buffer[] = [];
  /** Number of bytes in all chunks. */
  #length = 0;

  constructor(exchange: Exchange, resolve: (answer: Answer) => void, reject: (error: SmsError) => void) {
    this.#exchange = exchange;
    this.#resolve = resolve;
    this.#reject = reject;
    const { call, clock } = exchange;
    this.#timer = clock.after(call.timeoutMs, () => this.#onTimeout());
    const { signal } = call;
    if (signal?.aborted) this.#onAbort();
    else if (signal) this.#unsubscribe = onceAborted(signal, () => this.#onAbort());
  }

  begin(): void {
    this.#tries++;
    this.#isConnected = false;
    this.#exchange.dispatch(this.#createBody(this.#tries));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  /**
   * Creates the request body of a try. undici starts to read the body when the connection is open, and writes the
   * headers together with the first piece.
   */
  async *#createBody(attempt: number): AsyncGenerator<Buffer> {
    const { call, content } = this.#exchange;
    this.#isConnected = true;
    try {
      if (!this.#isSettled) this.#permission ??= Promise.resolve(call.beforeLeaving?.());
      await this.#permission;
    } catch (error) {
      this.#end(asSmsError(error));
    }
    // Sends nothing if the request has ended, for example by a timeout. Also sends nothing if the connection of this
    // try broke, and another try has replaced it.
    if (this.#isSettled || attempt !== this.#tries) throw new Error('ended');
    this.#isSent = true;
    if (content.length > 0) yield content;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
    statusText = '',
  ): void {
    if (statusCode < 200) return;
    this.#answer = { statusCode, statusText, bytes: Buffer.alloc(0) };
    const { 'content-type': contentType, 'retry-after': retryAfter, date } = headers;
    if (contentType !== undefined) this.#answer.contentType = String(contentType);
    if (retryAfter !== undefined) this.#answer.retryAfter = resolveRetryAfter(String(retryAfter), date?.toString());
    this.#exchange.call.onAnswer?.();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length <= maxAnswerBytes) this.#chunks.push(chunk);
    else this.#end(this.#createTooLargeError());
  }

  onResponseEnd(): void {
    if (!this.#answer) return;
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const isUnused = this.#isConnected && !this.#isSent && !(error instanceof ProxyFailure);
    if (isUnused && !this.#isSettled && this.#tries < maxTries) {
      this.begin();
      return;
    }
    // Removes the data that undici could not parse from the error, because the data might contain a message.
    if ('data' in error) delete error.data;
    this.#end(this.#failure(describeFailure(error), error));
  }

  /**
   * Applies the timeout one turn of the event loop later. After a pause of the process, timers run before the arrived
   * data is read, so the answer might be complete in the next turn.
   */
  #onTimeout(): void {
    const { call, clock } = this.#exchange;
    const failure = this.#failure(`timed out after ${call.timeoutMs / 1000} s`);
    if (!this.#isSent) {
      this.#end(failure);
      return;
    }
    const answer = this.#answer;
    const length = this.#length;
    this.#timer = clock.nextTurn(() => {
      if (this.#answer === answer && this.#length === length) this.#end(failure);
      else this.#onTimeout();
    });
  }

  #onAbort(): void {
    const reason = this.#exchange.call.effect === 'send' ? 'closed' : 'closedRead';
    this.#end(this.#isSent ? this.#failure('stopped') : new SmsError(reason));
  }

  #failure(detail: string, cause?: Error): SmsError {
    const { call, host } = this.#exchange;
    const { effect } = call;
    const facts = { cause, statusCode: this.#answer?.statusCode };
    if (!this.#isSent || cause instanceof ProxyFailure) {
      return createUnreachable({ host, effect }, { detail, ...facts });
    }
    return new SmsError(effect === 'send' ? 'uncertain' : 'responseCutOff', { ...facts, params: { detail } });
  }

  #createTooLargeError(): SmsError {
    const facts = { statusCode: this.#answer?.statusCode };
    if (this.#exchange.call.effect === 'read') return new SmsError('responseTooLarge', facts);
    return createUnread('larger than 8 MiB', facts);
  }

  /**
   * Settles the exchange, unless it is already settled. A 204 or a refusal counts as an answer even if its body could
   * not be read.
   */
  #end(error?: SmsError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#timer.cancel();
    this.#unsubscribe?.();
    const answer = this.#answer;
    if (answer?.statusCode === 204) this.#resolve(answer);
    else if (answer && (!error || answer.statusCode >= 300))
      this.#resolve({ ...answer, bytes: Buffer.concat(this.#chunks) });
    else if (error) this.#reject(error);
    if (error) this.#controller?.abort(error);
  }
}
