import { backOffMs } from '../back-off';
import type { Clock, Timer } from '../clock';
import { isSmsError, type SmsError } from '../errors';

/** An outage, from the first text that found the service out of reach until one gets through. */
export class Outage {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  /** Nodes that know of it. */
  readonly told = new Set<string>();
  /** Id of the text that tries. */
  probe: string | undefined;
  #error: SmsError;
  #failures = 0;
  #timer: Timer | undefined;

  /** @param onDue called when one text may try again */
  constructor(clock: Clock, error: SmsError, onDue: () => void) {
    this.#clock = clock;
    this.#error = error;
    this.#onDue = onDue;
    this.failed(error);
  }

  get error(): SmsError {
    return this.#error;
  }

  /** Whether a text may try now. */
  get isDue(): boolean {
    return this.#timer === undefined && this.probe === undefined;
  }

  /** Another try has failed: the next one comes after a growing delay, and not before the service wants it. */
  failed(error: SmsError): void {
    this.#error = error;
    this.#failures++;
    this.#timer?.cancel();
    const ownMs = backOffMs(this.#failures, this.#clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    const delayMs = Math.max(ownMs, retryAfterMs(error.retryAfter, this.#clock.now()));
    this.#timer = this.#clock.after(delayMs, () => this.tryNow(), true);
  }

  /** Lets one text try without waiting any longer. */
  tryNow(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#onDue();
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** Reads a `Retry-After`, which is a number of seconds or a date; 0 when it is neither, or past. */
function retryAfterMs(retryAfter: string | undefined, now: number): number {
  const text = retryAfter?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
