import type { Clock, Timer } from '../clock';
import { isSmsError, type SmsError } from '../errors';
import { backOffMs } from '../polling/back-off';
import type { Respite } from './respite';

/** The service cannot be reached or used. */
export interface SendFailure {
  error: SmsError;
  /** ms */
  since: number;
  /** When the next text tries, in ms; absent: one is trying now. */
  nextTryAt?: number;
}

/** What an outage needs. */
export interface OutageOptions {
  clock: Clock;
  /** Nobody tries before it is over, but by hand. */
  respite: Respite;
  /** One text may try again. */
  onDue(): void;
}

/** An outage, from the first text that found the service out of reach until one gets through. */
export class Outage {
  /** Id of the text that tries. */
  probe: string | undefined;
  readonly #options: OutageOptions;
  readonly #begunAt: number;
  #error: SmsError;
  #failures = 0;
  /** By {@link Clock.elapsed}, as far as it is not the service's wish. */
  #dueAt = 0;
  #timer: Timer | undefined;

  constructor(options: OutageOptions, error: SmsError) {
    this.#options = options;
    this.#error = error;
    this.#begunAt = options.clock.elapsed();
  }

  get error(): SmsError {
    return this.#error;
  }

  get state(): SendFailure {
    const { clock } = this.#options;
    const now = clock.now();
    const failure = { error: this.#error, since: now - (clock.elapsed() - this.#begunAt) };
    return this.probe === undefined ? { ...failure, nextTryAt: now + this.delayMs } : failure;
  }

  /** How long nobody is to try. */
  get delayMs(): number {
    const { clock, respite } = this.#options;
    return Math.max(0, this.#dueAt - clock.elapsed(), respite.remainingMs);
  }

  /** A try has failed: the next one comes after a growing delay, and not before the service wants it. */
  failed(error: SmsError): void {
    const { clock } = this.#options;
    this.#error = error;
    this.#failures++;
    this.#dueAt = clock.elapsed() + backOffMs(this.#failures, clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    this.wait();
  }

  /** Says when one text may try. */
  wait(): void {
    const { clock, onDue } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.after(Math.ceil(this.delayMs), onDue, true);
  }

  /** Has a text try without waiting any longer. */
  tryNow(id: string): void {
    this.#dueAt = 0;
    this.probe = id;
  }

  end(): void {
    this.#timer?.cancel();
  }
}
