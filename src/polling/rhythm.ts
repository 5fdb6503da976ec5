import { isSmsError, type SmsError } from '../errors';
import { backOffMs } from './back-off';

/** What one poll brought: something new; only what had been polled before; or nothing (204). */
export type PollOutcome = 'new' | 'repeated' | 'empty';

/** An empty answer that came sooner than this did not wait at the service as §8 says it would. */
const hastyAnswerMs = 250;
const firstHastyDelayMs = 10;

/** How long to wait between one poll and the next, by what the last ones brought. */
export class Rhythm {
  readonly #random: () => number;
  /** In a row, until an answer is in order. */
  #failures = 0;
  /** In a row, until one brings something new, or nothing; and hasty ones until one is not. */
  #repeats = 0;
  #hastyAnswers = 0;

  /** @param random at least 0, less than 1 */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** Whether the last poll failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Whether it waits longer because of what the service does, not because it was asked to. */
  get isBackingOff(): boolean {
    return this.#failures > 0 || this.#repeats > 0;
  }

  /** Begins anew. */
  reset(): void {
    this.#failures = 0;
    this.#repeats = 0;
  }

  /** How many polls in a row have brought nothing new. */
  get repeats(): number {
    return this.#repeats;
  }

  /** An answer is in order. */
  answered(): void {
    this.#failures = 0;
  }

  /**
   * An answer that took so long has brought this.
   *
   * @param repeats how many there were when it was asked for: polls that did not know of each other count once
   */
  brought(outcome: PollOutcome, { tookMs, repeats }: { tookMs: number; repeats: number }): void {
    this.#repeats = outcome === 'repeated' ? Math.max(this.#repeats, repeats + 1) : 0;
    this.#hastyAnswers = outcome === 'empty' && tookMs < hastyAnswerMs ? this.#hastyAnswers + 1 : 0;
  }

  failed(): void {
    this.#failures++;
  }

  /** @param pauseMs how long to wait after an empty answer (§8) */
  delayMs(outcome: PollOutcome | SmsError, pauseMs: number): number {
    if (outcome === 'empty') {
      const hastyMs = Math.min(hastyAnswerMs, firstHastyDelayMs * 2 ** Math.min(this.#hastyAnswers, 10));
      return this.#hastyAnswers > 0 ? Math.max(pauseMs, hastyMs) : pauseMs;
    }
    if (outcome === 'repeated') return backOffMs(this.#repeats, this.#random());
    return backOffMs(this.#failures, this.#random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));
  }
}
