import type { Clock } from '../clock';
import type { SmsError } from '../errors';

/**
 * Until when the service wants to be left alone with kept texts (`Retry-After`), and who knows why. It outlives the account,
 * since a redeploy changes nothing of it.
 */
export class Respite {
  /** Nodes that know of the outage. */
  told = new Set<string>();
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

  /** A kept text has failed so: of several times that the service has named the latest counts. */
  heed(error: SmsError): void {
    const until = this.#clock.elapsed() + retryAfterMs(error.retryAfter, this.#clock.now());
    if (until <= Math.max(this.#until, this.#clock.elapsed())) return;
    this.#until = until;
    this.#error = error;
  }

  end(): void {
    this.#until = 0;
  }
}

/** Reads a `Retry-After`, which is a number of seconds or a date; 0 when it is neither, or past. */
function retryAfterMs(retryAfter: string | undefined, now: number): number {
  const text = retryAfter?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
