import type { Clock, Timer } from '../clock';
import { isSmsError, Notices, SmsError } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { parseRetryAfter } from '../wire/retry-after';
import { formatOutcome, type MessageItem, parseOutcome, type StoredRetryAfter } from './message-item';

/** An outage, as users see it. */
export interface SendFailure {
  error: SmsError;
  /** Time at which the outage began, in ms since 1970. */
  since: number;
  /** Time of the next try, in ms since 1970. Absent while a try is in progress. */
  nextTryAt?: number;
}

/**
 * Time after the end of an outage, in ms. If a message that arrived before the end fails within this time, the same
 * outage continues, and nodes are not notified again.
 */
const relapseMs = 60_000;

/**
 * Tracks an outage, which begins when a stored message cannot reach the service. The outage ends when the service
 * answers a message, or when no message waits. This object also keeps:
 *
 * - the time until which the service wants no requests (`Retry-After`)
 * - the nodes that were notified of the outage
 *
 * This object outlives the account, because a redeploy does not end an outage.
 */
export class Outage {
  /** Ids of nodes that were notified of the outage. */
  readonly notices = new Notices();
  /** Id of the message that is being tried during the outage. */
  probe: string | undefined;
  /** The error that caused the outage. `undefined`: there is no outage. */
  error: SmsError | undefined;
  readonly #clock: Clock;
  #onDue = () => {};
  /** Time at which the outage began, by {@link Clock.elapsed} like all times below. */
  #begunAt = 0;
  #failures = 0;
  /** Earliest time of the next try, set by the growing delay between tries. */
  #dueAt = 0;
  /** Earliest time of the next try, set by the `Retry-After` of the service. */
  #retryAfterAt = 0;
  /** Time at which the last outage ended, or the account closed. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): SendFailure | undefined {
    if (!this.error) return undefined;
    const now = this.#clock.now();
    const failure = { error: this.error, since: now - (this.#clock.elapsed() - this.#begunAt) };
    return this.probe === undefined ? { ...failure, nextTryAt: now + this.delayMs } : failure;
  }

  /** Time until a message can be tried, in ms. */
  get delayMs(): number {
    return Math.max(0, this.#dueAt - this.#clock.elapsed(), this.#retryAfterMs);
  }

  /**
   * The `Retry-After` wait to store for a later process. `undefined` after refused credentials, because a later process
   * can have new credentials.
   */
  get stored(): StoredRetryAfter | undefined {
    const { error } = this;
    if (!error || this.#retryAfterMs === 0 || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: this.#retryAfterMs, error: formatOutcome(error) };
  }

  get #retryAfterMs(): number {
    return Math.max(0, this.#retryAfterAt - this.#clock.elapsed());
  }

  /**
   * Called when the account opens. Allows messages to be sent again when the rest of the `Retry-After` wait is over.
   * After refused credentials, messages do not wait, because the credentials might have changed.
   *
   * @param onDue called when a message can be tried
   */
  open(onDue: () => void): void {
    this.#onDue = onDue;
    if (isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#retryAfterAt = 0;
    if (this.#retryAfterMs === 0) this.end();
  }

  /**
   * Notes the time at which the account closes, so that the outage continues if an older message fails soon after the
   * account opens again. After refused credentials, notes nothing, because the account can return with new credentials.
   */
  close(): void {
    if (this.error && !isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#endedAt = this.#clock.elapsed();
  }

  /**
   * Continues the `Retry-After` wait that an earlier process stored. Even if the clock was set, the wait is never
   * longer than the service requested.
   */
  recall({ at, forMs, error }: StoredRetryAfter): void {
    const outcome = parseOutcome(error);
    if (!(outcome instanceof SmsError)) return;
    this.#noteRetryAfter(Math.min(forMs, at + forMs - this.#clock.now()));
    if (this.#retryAfterMs === 0 || this.error) return;
    this.#begin(outcome);
    this.#wait();
  }

  /**
   * Notes that a message failed because of the outage. The next try follows after a growing delay, and never before the
   * latest `Retry-After` of the service.
   */
  failed({ id, arrivedAt }: MessageItem, error: SmsError): void {
    const now = this.#clock.now();
    const elapsed = this.#clock.elapsed();
    this.#noteRetryAfter(parseRetryAfter(error.retryAfter ?? '', now));
    if (!this.error) {
      const cameAt = elapsed - (now - arrivedAt);
      if (elapsed >= this.#endedAt + relapseMs || cameAt > this.#endedAt) this.notices.clear();
      this.#begin(error);
    } else if (this.probe !== id) return;
    this.error = error;
    this.#failures++;
    const delayMs = backOffMs(this.#failures, this.#clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    this.#dueAt = elapsed + delayMs;
    this.#wait();
  }

  /**
   * Notes that the service answered a message. Returns whether this ends the outage. These messages do not end it:
   *
   * - messages that were sent before the outage began
   * - messages that a user sent during the `Retry-After` wait
   */
  answered(id: string): boolean {
    if (this.probe !== id || this.#retryAfterMs > 0) return false;
    this.#endedAt = this.#clock.elapsed();
    this.end();
    return true;
  }

  /** Ends the outage, so that messages are sent again without delay. */
  end(): void {
    this.#timer?.cancel();
    this.error = undefined;
    this.probe = undefined;
  }

  #noteRetryAfter(forMs: number): void {
    this.#retryAfterAt = Math.max(this.#retryAfterAt, this.#clock.elapsed() + forMs);
  }

  #begin(error: SmsError): void {
    this.error = error;
    this.#begunAt = this.#clock.elapsed();
    this.#failures = 0;
    this.#dueAt = 0;
  }

  /** Calls `onDue` when the wait is over and a message can be sent again. */
  #wait(): void {
    this.#timer?.cancel();
    // If the service has requested a longer wait since the timer started, waits again.
    const onOver = () => (this.delayMs > 0 ? this.#wait() : this.#onDue());
    this.#timer = this.#clock.after(Math.ceil(this.delayMs), onOver, true);
  }
}
