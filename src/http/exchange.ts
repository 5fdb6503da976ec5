import type { Readable } from 'node:stream';
import { brotliDecompressSync, unzipSync } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { type Clock, onceAborted, systemClock, type Timer } from '../clock';
import { asSmsError, SmsError } from '../errors';
import type { Authentication } from '../login';
import { unreadable } from '../wire/fields';
import { formatForm } from '../wire/form';
import { resolveRetryAfter } from '../wire/retry-after';
import type { Connections } from './connections';
import { createUnreachable, createUnread, describeFailure, ProxyFailure } from './failure';

/** Where requests go and as whom. */
export interface Target {
  /** As {@link parseBaseUrl} returns it. */
  baseUrl: string;
  authentication: Authentication;
  connections: Pick<Connections, 'dispatch'>;
  /** Measures timeouts; the machine's own when absent. */
  clock?: Clock;
}

/** What a caller may say of a single call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Called when the head of the answer is here: from now on the answer is worth waiting for. */
  onAnswer?: (() => void) | undefined;
  /** Awaited when the connection stands, before the first byte; when it rejects, nothing is sent. What it rejects with becomes the failure. */
  beforeLeaving?: (() => Promise<void> | void) | undefined;
}

/** One request. */
export interface Call extends CallOptions {
  method: 'GET' | 'POST';
  /** Below the base URL, such as `/api/3/sms/out`. */
  path: string;
  parameters: readonly [string, string][];
  /** For the whole exchange, from the first byte out to the last byte in. */
  timeoutMs: number;
  /** What a failure after the request has left means: a send may have been accepted, a read was merely cut off. */
  effect: 'send' | 'read';
}

/** An answer of any status, read whole. */
export interface Answer {
  statusCode: number;
  /** The reason phrase of the status line. */
  statusText: string;
  contentType?: string;
  /** The header `Retry-After`, see {@link resolveRetryAfter}. */
  retryAfter?: string;
  bytes: Buffer;
}

/** Largest answer that is read, in bytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

/**
 * Prepares a target. What it returns makes one request and reads the answer, whatever its status. Redirects are not followed.
 *
 * Of a refusal (a status from 300 on) as much is read as comes of it. An answer that is compressed though that was not asked for is read.
 *
 * That rejects with SmsError `SMS_UNREACHABLE` when the request never left; `SMS_UNCERTAIN` (send) or `SMS_RESPONSE`
 * (read) when the connection broke, was cut off or timed out after it had left; `SMS_RESPONSE` for an answer over 8 MiB or in another encoding;
 * `SMS_CLOSED` when `signal` aborted before the request left
 */
export function createExchange(target: Target): (call: Call) => Promise<Answer> {
  const { baseUrl, authentication, connections, clock = systemClock } = target;
  const { origin, host, pathname } = new URL(baseUrl);
  const basePath = pathname.replace(/\/$/, '');
  const plain = ['accept', '*/*', 'accept-encoding', 'identity', 'user-agent', 'node-red-sms'];
  const headersOfGet = [...plain, ...formatAuthorization(authentication)];
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
      const reader = new AnswerReader({ call, host, clock }, resolve, reject);
      // undici documents async iterables as bodies; its types leave them out.
      const body = reader.leave(content) as AsyncIterable<Buffer> as unknown as Readable;
      connections.dispatch({ origin, path, method, headers, body }, reader);
    });
  };
}

/** The header with the credentials, as name and value, where they travel so (§5). */
function formatAuthorization(authentication: Authentication): string[] {
  if (authentication.type === 'form') return [];
  if (authentication.type === 'bearer') return ['authorization', `Bearer ${authentication.apiKey}`];
  const { userId, password } = authentication;
  return ['authorization', `Basic ${Buffer.from(`${userId}:${password}`).toString('base64')}`];
}

/** The credentials as parameters, where they travel so (§5). */
function credentialsOf(authentication: Authentication): [string, string][] {
  if (authentication.type !== 'form') return [];
  const { userId, password } = authentication;
  return Object.entries({ userId, password });
}

const noBytes = Buffer.alloc(0);

/** What undoes a `Content-Encoding` (RFC 9110, 8.4). */
const decoders: ReadonlyMap<string, typeof unzipSync> = new Map([
  ['gzip', unzipSync],
  ['deflate', unzipSync],
  ['br', brotliDecompressSync],
]);

/** None was asked for, but some proxies compress all the same. */
function decodeContent(bytes: Buffer, encoding: string): Buffer {
  if (encoding === 'identity' || bytes.length === 0) return bytes;
  const decode = decoders.get(encoding);
  if (!decode) throw new TypeError('unknown encoding');
  return decode(bytes, { maxOutputLength: maxAnswerBytes });
}

function createTooLarge(effect: Call['effect'], statusCode: number | undefined): SmsError {
  const facts = { statusCode };
  return effect === 'read' ? new SmsError('responseTooLarge', facts) : createUnread('larger than 8 MiB', facts);
}

/** Follows one exchange. It is asked for the body just before the first byte goes out, which decides what a failure means. */
class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #call: Call;
  /** As the base URL has it, with its port. */
  readonly #host: string;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: SmsError) => void;
  #timer: Timer;
  /** The signal may abort from now on without its knowing. */
  readonly #leave: (() => void) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  /** From the first byte on nobody can say any more that nothing was sent. */
  #hasLeft = false;
  #answer: Answer | undefined;
  #encoding = 'identity';
  readonly #body = new Pieces();

  constructor(
    { call, host, clock }: { call: Call; host: string; clock: Clock },
    resolve: (answer: Answer) => void,
    reject: (error: SmsError) => void,
  ) {
    this.#call = call;
    this.#host = host;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = clock.after(call.timeoutMs, () => this.#onTimeout(clock));
    const { signal } = call;
    if (signal?.aborted) this.#onAbort();
    else if (signal) this.#leave = onceAborted(signal, () => this.#onAbort());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  /** A body that undici asks for when the connection stands: it writes the head together with the first of it, or at its end. */
  async *leave(content: Buffer): AsyncGenerator<Buffer> {
    try {
      if (!this.#settled) await this.#call.beforeLeaving?.();
    } catch (error) {
      this.#end(asSmsError(error));
    }
    // Given up while it waited for a connection or for that: it must not leave any more.
    if (this.#settled) throw new Error('given up');
    this.#hasLeft = true;
    if (content.length > 0) yield content;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Record<string, string | string[] | undefined>,
    statusText = '',
  ): void {
    if (statusCode < 200) return;
    this.#answer = { statusCode, statusText, bytes: noBytes };
    const { 'content-type': contentType, 'retry-after': retryAfter, date } = headers;
    this.#encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase();
    if (contentType !== undefined) this.#answer.contentType = String(contentType);
    if (retryAfter !== undefined) this.#answer.retryAfter = resolveRetryAfter(String(retryAfter), date?.toString());
    this.#call.onAnswer?.();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#body.length + chunk.length <= maxAnswerBytes) this.#body.add(chunk);
    else this.#end(createTooLarge(this.#call.effect, this.#answer?.statusCode));
  }

  onResponseEnd(): void {
    if (!this.#answer) return;
    try {
      this.#answer.bytes = decodeContent(this.#body.join(), this.#encoding);
      this.#end();
    } catch (error) {
      this.#end(this.#undecoded(error, this.#answer.statusCode));
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    // A parser quotes what it could not read, which may be somebody's message.
    if ('data' in error) delete error.data;
    this.#end(this.#failure(describeFailure(error), error));
  }

  /** Where the process was paused or blocked, timers run before what has come meanwhile is read: in the turn after this one. */
  #onTimeout(clock: Clock): void {
    const failure = this.#failure(`timed out after ${this.#call.timeoutMs / 1000} s`);
    if (this.#hasLeft) {
      const answer = this.#answer;
      const { length } = this.#body;
      this.#timer = clock.nextTurn(() => {
        if (this.#answer === answer && this.#body.length === length) this.#end(failure);
        else this.#onTimeout(clock);
      });
    } else this.#end(failure);
  }

  #onAbort(): void {
    const closed = this.#call.effect === 'send' ? 'closed' : 'closedRead';
    this.#end(this.#hasLeft ? this.#failure('stopped') : new SmsError(closed));
  }

  #failure(detail: string, cause?: Error): SmsError {
    const { effect } = this.#call;
    const facts = { cause, statusCode: this.#answer?.statusCode };
    if (!this.#hasLeft || cause instanceof ProxyFailure) {
      return createUnreachable({ host: this.#host, effect }, { detail, ...facts });
    }
    return new SmsError(effect === 'send' ? 'uncertain' : 'responseCutOff', { ...facts, params: { detail } });
  }

  #undecoded(error: unknown, statusCode: number): SmsError {
    const { effect } = this.#call;
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return createTooLarge(effect, statusCode);
    const detail = `content encoding ${this.#encoding.replace(/[^\w, -]/g, '').slice(0, 40)}`;
    return effect === 'send' ? createUnread(detail, { statusCode }) : unreadable('answer', detail).with({ statusCode });
  }

  /** Ends it, with an error or with the answer. That the service refused, or has nothing to say, is known, whatever becomes of the page that says so. */
  #end(error?: SmsError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#timer.cancel();
    this.#leave?.();
    const answer = this.#answer;
    if (answer?.statusCode === 204) this.#resolve({ ...answer, bytes: noBytes });
    else if (answer && (!error || answer.statusCode >= 300))
      this.#resolve(error ? { ...answer, bytes: this.#body.join() } : answer);
    else if (error) this.#reject(error);
    if (error) this.#controller?.abort(error);
  }
}

/** A body that comes in pieces, however small they are: a million of one byte take little more than a million bytes. */
export class Pieces {
  #bytes = noBytes;
  /** Of all pieces, in bytes. */
  length = 0;

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    if (length > this.#bytes.length) this.#bytes = Buffer.concat([this.join(), Buffer.alloc(length)]);
    piece.copy(this.#bytes, this.length);
    this.length = length;
  }

  join(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }
}
