import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError, Told } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { parseRetryAfter } from '../wire/retry-after';
import { formatOutcome, parseOutcome, type StoredRetryAfter } from './text';

/** The service cannot be reached or used. */
export interface SendFailure {
  error: SmsError;
  /** ms */
  since: number;
  /** When the next text tries, in ms; absent: one is trying now. */
  nextTryAt?: number;
}

/** What is found so soon after the end of an outage, or since nobody has watched it, is the same one. */
const relapseMs = 60_000;

/**
 * Until when the service wants to be left alone with kept texts (`Retry-After`), and who knows of the outage. It outlives the account,
 * since a redeploy changes nothing of it, and the process with the texts that wait for its end.
 */
export class RetryAfter {
  /** Nodes that know of the outage. */
  readonly told = new Told();
  readonly #clock: Clock;
  #error: SmsError | undefined;
  /** By {@link Clock.elapsed}. */
  #until = 0;
  /** The last outage: what is found until then by a text that came before is the same one. By {@link Clock.elapsed}. */
  #last = { until: 0, before: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 when it is over. */
  get remainingMs(): number {
    return Math.max(0, this.#until - this.#clock.elapsed());
  }

  /** Why, while it lasts. */
  get error(): SmsError | undefined {
    return this.remainingMs > 0 ? this.#error : undefined;
  }

  /** What a later process is to know, while it lasts; not of credentials that were refused, which may be others then. */
  get stored(): StoredRetryAfter | undefined {
    const { error, remainingMs } = this;
    if (!error || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: remainingMs, error: formatOutcome(error) };
  }

  /** A kept text has failed so: of several times that the service has named the latest counts. */
  heed(error: SmsError): void {
    this.#extend(parseRetryAfter(error.retryAfter ?? '', this.#clock.now()), error);
  }

  /** An earlier process has left this. The clock may have been set since: it never lasts longer than the service wanted. */
  recall({ at, forMs, error }: StoredRetryAfter): void {
    const outcome = parseOutcome(error);
    if (outcome instanceof SmsError) this.#extend(Math.min(forMs, at + forMs - this.#clock.now()), outcome);
  }

  /** The credentials that were refused may be others now. */
  end(): void {
    this.#until = 0;
  }

  /** A text that came then, by {@link Clock.elapsed}, has found an outage: those who know of the last one know of it, if it may be the same. */
  outageBegins(cameAt: number): void {
    const { until, before } = this.#last;
    if (this.#clock.elapsed() >= until || cameAt > before) this.told.clear();
    this.#last.until = 0;
  }

  /** An outage is over; or nobody watches it any more, and the next text to fail finds the same one. */
  outageEnds(isOver: boolean): void {
    const elapsed = this.#clock.elapsed();
    this.#last = { until: elapsed + relapseMs, before: isOver ? elapsed : Number.POSITIVE_INFINITY };
  }

  /** The service has answered, and there is no outage: it has ended while nobody watched it. */
  answered(): void {
    if (this.#last.before === Number.POSITIVE_INFINITY) this.#last.until = 0;
  }

  #extend(forMs: number, error: SmsError): void {
    if (!(forMs > this.remainingMs)) return;
    this.#until = this.#clock.elapsed() + forMs;
    this.#error = error;
  }
}

/** An outage, from the first text that found the service out of reach until one gets through; or none. */
export class Outage {
  /** Id of the text that tries. */
  probe: string | undefined;
  /** Why, while there is one. */
  error: SmsError | undefined;
  readonly #clock: Clock;
  readonly #retryAfter: RetryAfter;
  readonly #onDue: () => void;
  #begunAt = 0;
  #failures = 0;
  /** By {@link Clock.elapsed}, as far as it is not the service's wish. */
  #dueAt = 0;
  #timer: Timer | undefined;

  /** @param onDue one text may try again */
  constructor(clock: Clock, retryAfter: RetryAfter, onDue: () => void) {
    this.#clock = clock;
    this.#retryAfter = retryAfter;
    this.#onDue = onDue;
  }

  get state(): SendFailure | undefined {
    if (!this.error) return undefined;
    const now = this.#clock.now();
    const failure = { error: this.error, since: now - (this.#clock.elapsed() - this.#begunAt) };
    return this.probe === undefined ? { ...failure, nextTryAt: now + this.delayMs } : failure;
  }

  /** How long nobody is to try. */
  get delayMs(): number {
    return Math.max(0, this.#dueAt - this.#clock.elapsed(), this.#retryAfter.remainingMs);
  }

  /** Texts are sent again. */
  open(): void {
    // The credentials may be others now.
    if (isSmsError(this.#retryAfter.error, 'SMS_UNAUTHORIZED')) this.#retryAfter.end();
    this.goOn();
  }

  /** The service wanted to be left alone before, and may do so still. */
  goOn(): void {
    const { error } = this.#retryAfter;
    if (!error || this.error) return;
    this.#begin(error);
    this.#wait();
  }

  /**
   * A text has found it, that came at `cameAt` by {@link Clock.elapsed}. The next one tries after a growing delay, and not before
   * the service wants it.
   */
  failed(id: string, error: SmsError, cameAt: number): void {
    if (!this.error) {
      this.#retryAfter.outageBegins(cameAt);
      this.#begin(error);
    } else if (this.probe !== id) return;
    this.error = error;
    this.#failures++;
    const delayMs = backOffMs(this.#failures, this.#clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    this.#dueAt = this.#clock.elapsed() + delayMs;
    this.#wait();
  }

  /**
   * The service has answered a text. Says whether that ends an outage: not where the text left before it began, nor where it was sent
   * by hand before the service wanted it.
   */
  answered(id: string): boolean {
    if (!this.error) this.#retryAfter.answered();
    if (this.probe !== id || this.#retryAfter.remainingMs > 0) return false;
    this.#retryAfter.outageEnds(true);
    this.end();
    return true;
  }

  /** Nobody watches it any more. The account may be back in a moment, as in a redeploy: with other credentials, where these were refused. */
  close(): void {
    if (this.error && !isSmsError(this.error, 'SMS_UNAUTHORIZED')) this.#retryAfter.outageEnds(false);
    this.end();
  }

  /** There is none any more, as far as is known. */
  end(): void {
    this.#timer?.cancel();
    this.error = undefined;
    this.probe = undefined;
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
