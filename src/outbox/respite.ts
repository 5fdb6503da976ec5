import type { Clock } from '../clock';
import { isSmsError, SmsError } from '../errors';
import { parseRetryAfter } from '../wire/retry-after';
import { formatOutcome, parseOutcome, type StoredRespite } from './outgoing';

/** An outage that is over, or that nobody watches any more. */
export interface Endured {
  /** Nodes that know of it. */
  readonly told: Set<string>;
  /** What is found before that may be the same one. By {@link Clock.elapsed}. */
  readonly until: number;
}

/**
 * Until when the service wants to be left alone with kept texts (`Retry-After`), and who knows why. It outlives the account,
 * since a redeploy changes nothing of it, and the process with the texts that wait for its end.
 */
export class Respite {
  /** Nodes that know of the outage. */
  told = new Set<string>();
  /** An outage that the account was closed in. */
  endured: Endured | undefined;
  readonly #clock: Clock;
  #error: SmsError | undefined;
  /** By {@link Clock.elapsed}. */
  #until = 0;

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
  get stored(): StoredRespite | undefined {
    const { error, remainingMs } = this;
    if (!error || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: remainingMs, error: formatOutcome(error) };
  }

  /** A kept text has failed so: of several times that the service has named the latest counts. */
  heed(error: SmsError): void {
    this.#extend(parseRetryAfter(error.retryAfter ?? '', this.#clock.now()), error);
  }

  /** An earlier process has left this. The clock may have been set since: it never lasts longer than the service wanted. */
  recall({ at, forMs, error }: StoredRespite): void {
    const outcome = parseOutcome(error);
    if (outcome instanceof SmsError) this.#extend(Math.min(forMs, at + forMs - this.#clock.now()), outcome);
  }

  end(): void {
    this.#until = 0;
  }

  #extend(forMs: number, error: SmsError): void {
    if (!(forMs > this.remainingMs)) return;
    this.#until = this.#clock.elapsed() + forMs;
    this.#error = error;
  }
}
