import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock, type Timer } from '../clock';
import { isSmsError, SmsError } from '../errors';
import type { Authentication } from '../login';
import { formatForm } from '../wire/form';
import { createUnreachable, describeFailure, isProxyRefusal } from './failure';

/** Where requests go and as whom. */
export interface Target {
  /** As {@link parseBaseUrl} returns it. */
  baseUrl: string;
  authentication: Authentication;
  connections: Dispatcher;
  /** Measures timeouts; the machine's own when absent. */
  clock?: Clock;
}

/** One request. */
export interface Call {
  method: 'GET' | 'POST';
  /** Below the base URL, such as `/api/3/sms/out`. */
  path: string;
  parameters: readonly (readonly [string, string])[];
  /** For the whole exchange, from the first byte out to the last byte in. */
  timeoutMs: number;
  /** What a failure after the request has left means: a send may have been accepted, a read was merely cut off. */
  effect: 'send' | 'read';
  signal?: AbortSignal | undefined;
  /** Called when the request leaves on an open connection. */
  onSent?: (() => void) | undefined;
  /** Called when the head of the answer is here: from now on the answer is worth waiting for. */
  onAnswer?: (() => void) | undefined;
  /** Awaited when the connection stands and before the first byte goes out. What it rejects with becomes the failure of a call that never left. */
  beforeLeaving?: (() => Promise<void>) | undefined;
}

/** An answer of any status, read whole. */
export interface Answer {
  statusCode: number;
  /** The reason phrase of the status line. */
  statusText: string;
  contentType?: string;
  /** The header `Retry-After` as it came. */
  retryAfter?: string;
  bytes: Buffer;
}

/** Largest answer that is read, in bytes. */
export const maxAnswerBytes = 8 * 1024 * 1024;

/**
 * Makes one request and reads its answer, whatever the status. Redirects are not followed.
 *
 * Of a refusal (a status from 300 on) as much is read as comes of it.
 *
 * @throws SmsError `SMS_UNREACHABLE` when the request never left; `SMS_UNCERTAIN` (send) or `SMS_RESPONSE` (read) when
 *   the connection broke, was cut off or timed out after it had left; `SMS_RESPONSE` for an answer over 8 MiB;
 *   `SMS_CLOSED` when `signal` aborted before the request left
 */
export function exchange(target: Target, call: Call): Promise<Answer> {
  const pathStart = target.baseUrl.indexOf('/', target.baseUrl.indexOf('//') + 2);
  const origin = pathStart === -1 ? target.baseUrl : target.baseUrl.slice(0, pathStart);
  const headers: Record<string, string> = { accept: '*/*', 'user-agent': 'node-red-sms' };
  const parameters = [...call.parameters];
  const { authentication } = target;
  if (authentication.type === 'form') {
    parameters.unshift(['userId', authentication.userId], ['password', authentication.password]);
  } else {
    headers.authorization = formatAuthorization(authentication);
  }
  let path = pathStart === -1 ? call.path : target.baseUrl.slice(pathStart).replace(/\/$/, '') + call.path;
  let body: string | undefined;
  const form = formatForm(parameters);
  if (call.method === 'POST') {
    headers['content-type'] = 'application/x-www-form-urlencoded';
    body = form;
  } else if (form) {
    path += `?${form}`;
  }
  return new Promise((resolve, reject) => {
    const host = origin.slice(origin.indexOf('//') + 2);
    const reader = new AnswerReader({ call, host, clock: target.clock ?? systemClock }, resolve, reject);
    if (call.beforeLeaving && body !== undefined) headers['content-length'] = String(Buffer.byteLength(body));
    // undici documents async iterables as bodies; its types leave them out.
    const outgoing = call.beforeLeaving
      ? (reader.holdBack(body, call.beforeLeaving) as AsyncIterable<Buffer> as unknown as Readable)
      : body;
    try {
      target.connections.dispatch(
        { origin, path, method: call.method, headers, ...(outgoing === undefined ? undefined : { body: outgoing }) },
        reader,
      );
    } catch (error) {
      reader.onResponseError(undefined, error as Error);
    }
  });
}

function formatAuthorization(authentication: Exclude<Authentication, { type: 'form' }>): string {
  if (authentication.type === 'bearer') return `Bearer ${authentication.apiKey}`;
  const { userId, password } = authentication;
  return `Basic ${Buffer.from(`${userId}:${password}`).toString('base64')}`;
}

const noBytes = Buffer.alloc(0);

/** Follows one exchange. It is told just before the first byte goes out, which decides what a failure means. */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #call: Call;
  /** As the base URL has it, with its port. */
  readonly #host: string;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: SmsError) => void;
  readonly #timer: Timer;
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  /** From the first byte on nobody can say any more that nothing was sent. */
  #hasLeft = false;
  #answer: Answer | undefined;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(
    { call, host, clock }: { call: Call; host: string; clock: Clock },
    resolve: (answer: Answer) => void,
    reject: (error: SmsError) => void,
  ) {
    this.#call = call;
    this.#host = host;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = clock.after(call.timeoutMs, this.#onTimeout);
    if (call.signal?.aborted) this.#onAbort();
    else call.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Given up while it waited for a connection: it must not leave any more.
    if (this.#settled) {
      controller.abort(new Error('given up'));
      return;
    }
    this.#hasLeft = !this.#call.beforeLeaving;
    this.#call.onSent?.();
  }

  /** A body that undici asks for when the connection stands: it writes the head together with the first of it, or at its end. */
  async *holdBack(body: string | undefined, beforeLeaving: () => Promise<void>): AsyncGenerator<Buffer> {
    try {
      await beforeLeaving();
    } catch (error) {
      this.#fail(isSmsError(error) ? error : new SmsError('unexpected', { cause: error }));
    }
    if (this.#settled) throw new Error('given up');
    this.#hasLeft = true;
    if (body !== undefined) yield Buffer.from(body);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
    statusText = '',
  ): void {
    if (statusCode < 200) return;
    this.#answer = { statusCode, statusText, bytes: noBytes };
    const contentType = headers['content-type'];
    if (contentType !== undefined) this.#answer.contentType = String(contentType);
    const retryAfter = headers['retry-after'];
    if (retryAfter !== undefined) this.#answer.retryAfter = String(retryAfter);
    this.#call.onAnswer?.();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > maxAnswerBytes) this.#fail(new SmsError('responseTooLarge', this.#status()));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (!this.#settled && this.#answer) this.#succeed(this.#answer);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    // A parser quotes what it could not read, which may be somebody's message.
    if ('data' in error) delete error.data;
    this.#fail(this.#failure(describeFailure(error), error));
  }

  readonly #onTimeout = () => {
    this.#fail(this.#failure(`timed out after ${this.#call.timeoutMs / 1000} s`));
  };

  readonly #onAbort = () => {
    const closed = this.#call.effect === 'send' ? 'closed' : 'closedRead';
    this.#fail(this.#hasLeft ? this.#failure('stopped') : new SmsError(closed));
  };

  #failure(detail: string, cause?: Error): SmsError {
    const { effect } = this.#call;
    const facts = { cause, ...this.#status() };
    if (!this.#hasLeft || isProxyRefusal(cause)) {
      return createUnreachable({ host: this.#host, effect }, { detail, ...facts });
    }
    return new SmsError(effect === 'send' ? 'uncertain' : 'responseCutOff', { ...facts, params: { detail } });
  }

  #status(): { statusCode?: number } {
    return this.#answer ? { statusCode: this.#answer.statusCode } : {};
  }

  #succeed(answer: Answer): void {
    this.#settle();
    const [first = answer.bytes] = this.#chunks;
    answer.bytes = this.#chunks.length < 2 ? first : Buffer.concat(this.#chunks);
    this.#resolve(answer);
  }

  #fail(error: SmsError): void {
    if (this.#settled) return;
    if (this.#answer && this.#answer.statusCode >= 300) {
      // That the service refused is known, whatever becomes of the page that says so.
      this.#succeed(this.#answer);
    } else {
      this.#settle();
      this.#chunks = [];
      this.#reject(error);
    }
    this.#controller?.abort(error);
  }

  #settle(): void {
    this.#settled = true;
    this.#timer.cancel();
    this.#call.signal?.removeEventListener('abort', this.#onAbort);
  }
}
