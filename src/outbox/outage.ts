import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError, Told } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { parseRetryAfter } from '../wire/retry-after';
import { formatOutcome, parseOutcome, type StoredRetryAfter, type Text } from './text';

/** An outage as users see it. */
export interface SendFailure {
  error: SmsError;
  /** Time at which it began, in ms. */
  since: number;
  /** Time of the next try, in ms. Absent: a message tries now. */
  nextTryAt?: number;
}

/** A message from before the end of an outage that fails within this time has found the same outage. */
const relapseMs = 60_000;

/**
 * An outage: it begins when a stored message cannot reach the service, and ends when one gets through or none is left. Also knows until when
 * the service wants no requests (`Retry-After`), and which nodes know of the outage. It outlives the account, because a redeploy changes nothing.
 */
export class Outage {
  /** Nodes that know of the outage. */
  readonly told = new Told();
  /** Id of the message that tries. */
  probe: string | undefined;
  /** The error, during an outage. */
  error: SmsError | undefined;
  readonly #clock: Clock;
  #onDue = () => {};
  /** By {@link Clock.elapsed}, as the times below. */
  #begunAt = 0;
  #failures = 0;
  /** Times from which one message can try: by the own delay, and by the wish of the service. */
  #dueAt = 0;
  #wishedAt = 0;
  /** Time at which the last outage ended, or at which the account closed. */
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

  /** Time for which no message tries, in ms. */
  get delayMs(): number {
    return Math.max(0, this.#dueAt - this.#clock.elapsed(), this.#wishedMs);
  }

  /** The wish of the service for a later process. After refused credentials there is none, because a later process can have others. */
  get stored(): StoredRetryAfter | undefined {
    const { error } = this;
    if (!error || this.#wishedMs === 0 || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: this.#wishedMs, error: formatOutcome(error) };
  }

  get #wishedMs(): number {
    return Math.max(0, this.#wishedAt - this.#clock.elapsed());
  }

  /**
   * Messages are sent again. The first one tries, but not before the service wants requests, unless it refused credentials, which can have
   * changed.
   *
   * @param onDue called when one message can try again
   */
  open(onDue: () => void): void {
    this.#onDue = onDue;
    if (isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#wishedAt = 0;
    if (this.#wishedMs === 0) this.end();
  }

  /** The account closes. After refused credentials, it can come back with others. */
  close(): void {
    if (this.error && !isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#endedAt = this.#clock.elapsed();
  }

  /** Continues the wish that an earlier process has stored. It never lasts longer than the service asked for, even if the clock was set. */
  recall({ at, forMs, error }: StoredRetryAfter): void {
    const outcome = parseOutcome(error);
    if (!(outcome instanceof SmsError)) return;
    this.#wish(Math.min(forMs, at + forMs - this.#clock.now()));
    if (this.#wishedMs === 0 || this.error) return;
    this.#begin(outcome);
    this.#wait();
  }

  /**
   * A message has found the outage. The next one tries after a growing delay, and not before the service wants requests. The latest wish of the
   * service counts.
   */
  failed({ id, arrivedAt }: Text, error: SmsError): void {
    const now = this.#clock.now();
    const elapsed = this.#clock.elapsed();
    this.#wish(parseRetryAfter(error.retryAfter ?? '', now));
    if (!this.error) {
      const cameAt = elapsed - (now - arrivedAt);
      if (elapsed >= this.#endedAt + relapseMs || cameAt > this.#endedAt) this.told.clear();
      this.#begin(error);
    } else if (this.probe !== id) return;
    this.error = error;
    this.#failures++;
    const delayMs = backOffMs(this.#failures, this.#clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    this.#dueAt = elapsed + delayMs;
    this.#wait();
  }

  /**
   * The service has answered a message. Returns whether that ends the outage: not if the message left before the outage began, nor if a user sent
   * it before the service wanted requests.
   */
  answered(id: string): boolean {
    if (this.probe !== id || this.#wishedMs > 0) return false;
    this.#endedAt = this.#clock.elapsed();
    this.end();
    return true;
  }

  /** Ends the outage, as far as is known. */
  end(): void {
    this.#timer?.cancel();
    this.error = undefined;
    this.probe = undefined;
  }

  #wish(forMs: number): void {
    this.#wishedAt = Math.max(this.#wishedAt, this.#clock.elapsed() + forMs);
  }

  #begin(error: SmsError): void {
    this.error = error;
    this.#begunAt = this.#clock.elapsed();
    this.#failures = 0;
    this.#dueAt = 0;
  }

  /** Calls back when one message can try. */
  #wait(): void {
    this.#timer?.cancel();
    // The service can have asked for a longer wait in the meantime.
    const onOver = () => (this.delayMs > 0 ? this.#wait() : this.#onDue());
    this.#timer = this.#clock.after(Math.ceil(this.delayMs), onOver, true);
  }
}
