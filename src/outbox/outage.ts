import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError, Told } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { parseRetryAfter } from '../wire/retry-after';
import { formatOutcome, parseOutcome, type StoredRetryAfter, type Text } from './text';

/** The service cannot be reached or used. */
export interface SendFailure {
  error: SmsError;
  /** ms */
  since: number;
  /** When the next text tries, in ms; absent: one is trying now. */
  nextTryAt?: number;
}

/** What a text that came before finds so soon after the end of an outage is the same one. */
const relapseMs = 60_000;

/**
 * An outage, from the first kept text that found the service out of reach until one gets through, or none; until when the service wants
 * to be left alone (`Retry-After`); and who knows of it. It outlives the account, since a redeploy changes nothing of it.
 */
export class Outage {
  /** Nodes that know of it. */
  readonly told = new Told();
  /** Id of the text that tries. */
  probe: string | undefined;
  /** Why, while there is one. */
  error: SmsError | undefined;
  readonly #clock: Clock;
  #onDue = () => {};
  /** By {@link Clock.elapsed}, as those below. */
  #begunAt = 0;
  #failures = 0;
  /** When one text may try, as far as it is not the service's wish; and as far as it is. */
  #dueAt = 0;
  #wishedAt = 0;
  /** When the last one ended, or was watched by nobody any more. */
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

  /** How long nobody is to try. */
  get delayMs(): number {
    return Math.max(0, this.#dueAt - this.#clock.elapsed(), this.#wishedMs);
  }

  /** What a later process is to know of the service's wish; not of credentials that were refused, which may be others then. */
  get stored(): StoredRetryAfter | undefined {
    const { error } = this;
    if (!error || this.#wishedMs === 0 || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: this.#wishedMs, error: formatOutcome(error) };
  }

  get #wishedMs(): number {
    return Math.max(0, this.#wishedAt - this.#clock.elapsed());
  }

  /**
   * Texts are sent again: the first finds out anew, but not before the service wants it, unless it refused credentials, which may be others
   * now.
   *
   * @param onDue one text may try again
   */
  open(onDue: () => void): void {
    this.#onDue = onDue;
    if (isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#wishedAt = 0;
    if (this.#wishedMs === 0) this.end();
  }

  /** Nobody watches it any more. The account may be back in a moment, as in a redeploy: with other credentials, where these were refused. */
  close(): void {
    if (this.error && !isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#endedAt = this.#clock.elapsed();
  }

  /** An earlier process has left this. The clock may have been set since: it never lasts longer than the service wanted. */
  recall({ at, forMs, error }: StoredRetryAfter): void {
    const outcome = parseOutcome(error);
    if (!(outcome instanceof SmsError)) return;
    this.#wish(Math.min(forMs, at + forMs - this.#clock.now()));
    if (this.#wishedMs === 0 || this.error) return;
    this.#begin(outcome);
    this.#wait();
  }

  /**
   * A text has found it. The next one tries after a growing delay, and not before the service wants it: of several times that it has named
   * the latest counts.
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
   * The service has answered a text. Says whether that ends an outage: not where the text left before it began, nor where it was sent
   * by hand before the service wanted it.
   */
  answered(id: string): boolean {
    if (this.probe !== id || this.#wishedMs > 0) return false;
    this.#endedAt = this.#clock.elapsed();
    this.end();
    return true;
  }

  /** There is none any more, as far as is known. */
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

  /** Says when one text may try. */
  #wait(): void {
    this.#timer?.cancel();
    // The service may have wanted it longer meanwhile.
    const onOver = () => (this.delayMs > 0 ? this.#wait() : this.#onDue());
    this.#timer = this.#clock.after(Math.ceil(this.delayMs), onOver, true);
  }
}
