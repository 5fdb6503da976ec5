import { Agent, request } from 'undici';
import type { Changes } from './changes';
import type { Clock } from './clock';
import { addBounded } from './keys';
import { linkCall } from './links';
import type {
  CallbackAttempt,
  CallbackRetries,
  IncomingMessage,
  Mail,
  Organisation,
  OutboundMessage,
  StatusUpdate,
} from './model';
import { type CallbackPayload, formatReplyCallback, formatStatusCallback } from './wire/callback';
import { fillUrl, parseMailto } from './wire/callback-url';

const defaultRetries: CallbackRetries = { firstMs: 1000, maxMs: 3_600_000, windowMs: 48 * 3_600_000 };
const answerTimeoutMs = 30_000;

export interface CallbackSurroundings {
  clock: Clock;
  changes: Changes;
  organisation: Organisation;
  retries: Partial<CallbackRetries>;
  /** Maximum number of entries in `log` and in `mailbox`. */
  keep: number;
}

interface PendingCallback extends CallbackPayload {
  event: 'reply' | 'status';
  url: string;
  firstAt: number;
  attempts: number;
  /** The incoming message that the callback reports. Absent for a status. */
  message?: IncomingMessage;
}

/**
 * Calls the client's URLs (§6). The callback URL of the sent message takes precedence over the URL of the organisation.
 * Failed callbacks are retried for 48 hours of the simulator's clock.
 */
export class Callbacks {
  readonly log: CallbackAttempt[] = [];
  readonly mailbox: Mail[] = [];
  readonly #surroundings: CallbackSurroundings;
  readonly #retries: CallbackRetries;
  readonly #agent = new Agent({ connections: 64, headersTimeout: answerTimeoutMs, bodyTimeout: answerTimeoutMs });
  readonly #attemptsInFlight = new Set<Promise<void>>();
  readonly #retryCancels = new Set<() => void>();
  #isClosed = false;
  #generation = 0;

  constructor(surroundings: CallbackSurroundings) {
    this.#surroundings = surroundings;
    this.#retries = { ...defaultRetries, ...surroundings.retries };
  }

  /** Reports an incoming message (§6.4). `original` is the message that it answers. */
  reply(message: IncomingMessage, original: OutboundMessage | undefined): void {
    const { organisation } = this.#surroundings;
    const template = original?.callbackUrl ?? organisation.callbackUrl;
    if (template === undefined) return;
    const url = fillUrl(template, {
      messageId: message.inReplyToId ?? '',
      body: message.body,
      'recipient.msisdn': message.from,
      'recipient.displayname': message.displayName ?? '',
      status: '',
    });
    if (/^mailto:/i.test(url)) {
      const { changes, clock, keep } = this.#surroundings;
      addBounded(this.mailbox, { at: clock.now(), ...parseMailto(url, message.body) }, keep);
      changes.emit('mail');
      return;
    }
    this.#start({ event: 'reply', url, message, ...formatReplyCallback(message, organisation.callbackFormat) });
  }

  /** Reports a status update (§6.5). */
  status(update: StatusUpdate, original: OutboundMessage | undefined): void {
    const { organisation } = this.#surroundings;
    const template = original?.callbackStatusUrl ?? organisation.callbackStatusUrl;
    if (template === undefined) return;
    const url = fillUrl(template, {
      messageId: update.inReplyToId,
      body: '',
      'recipient.msisdn': update.from,
      'recipient.displayname': update.displayName ?? '',
      status: update.statusCode,
    });
    this.#start({ event: 'status', url, ...formatStatusCallback(update, organisation.callbackFormat) });
  }

  /** Resolves when no attempt is in progress. Does not wait for retries that are not due yet. */
  async whenIdle(): Promise<void> {
    while (this.#attemptsInFlight.size > 0) await Promise.all(this.#attemptsInFlight);
  }

  /** Aborts attempts in flight and drops retries. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abortRetries();
    await this.#agent.destroy();
    await this.whenIdle();
  }

  /** Drops retries and clears the log. Attempts that are still in flight will not be logged or retried. */
  reset(): void {
    this.#abortRetries();
    this.clearLog();
  }

  #abortRetries(): void {
    this.#generation += 1;
    for (const cancel of this.#retryCancels) cancel();
    this.#retryCancels.clear();
  }

  clearLog(): void {
    this.log.length = 0;
    this.mailbox.length = 0;
  }

  #start(callback: Omit<PendingCallback, 'firstAt' | 'attempts'>): void {
    this.#attempt({ ...callback, firstAt: this.#surroundings.clock.now(), attempts: 0 });
  }

  #attempt(callback: PendingCallback): void {
    if (this.#isClosed) return;
    const attempt = this.#deliver(callback).finally(() => this.#attemptsInFlight.delete(attempt));
    this.#attemptsInFlight.add(attempt);
    this.#surroundings.clock.during(attempt);
  }

  async #deliver(callback: PendingCallback): Promise<void> {
    const { event, url, body, contentType } = callback;
    const generation = this.#generation;
    callback.attempts += 1;
    const entry: CallbackAttempt = {
      event,
      url,
      body,
      contentType,
      attempt: callback.attempts,
      at: this.#surroundings.clock.now(),
    };
    try {
      const answer = await request(url, {
        method: 'POST',
        body,
        headers: { 'content-type': contentType },
        dispatcher: this.#agent,
      });
      entry.status = answer.statusCode;
      await answer.body.dump();
    } catch (error) {
      if (entry.status === undefined) entry.error = error instanceof Error ? error.message : String(error);
    }
    if (generation !== this.#generation) return;
    addBounded(this.log, entry, this.#surroundings.keep);
    if (callback.message !== undefined) linkCall(callback.message, entry);
    if (entry.status === undefined || entry.status >= 400) this.#retry(callback);
    else if (callback.message !== undefined) this.#acknowledge(callback.message);
    this.#surroundings.changes.emit('callback');
  }

  #acknowledge(message: IncomingMessage): void {
    const { clock, changes } = this.#surroundings;
    message.calledBackAt ??= new Date(clock.now()).toISOString();
    changes.emit('read');
  }

  #retry(callback: PendingCallback): void {
    const { clock } = this.#surroundings;
    const pauseMs = Math.min(this.#retries.firstMs * 2 ** (callback.attempts - 1), this.#retries.maxMs);
    if (clock.now() + pauseMs > callback.firstAt + this.#retries.windowMs) return;
    const cancel = clock.schedule(pauseMs, () => {
      this.#retryCancels.delete(cancel);
      this.#attempt(callback);
    });
    this.#retryCancels.add(cancel);
  }
}
