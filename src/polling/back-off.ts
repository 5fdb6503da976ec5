import { isSmsError, type SmsError } from '../errors';

/** What one poll brought: something new; only what had been polled before; or nothing (204). */
export type PollOutcome = 'new' | 'repeated' | 'empty';

const firstDelayMs = 1_000;
const longestDelayMs = 60_000;
const firstRefusedDelayMs = 30_000;
const longestRefusedDelayMs = 300_000;

/** An empty answer that came sooner than this did not wait at the service as §8 says it would. */
const hastyAnswerMs = 250;
const firstHastyDelayMs = 10;

/**
 * How long to wait after so many failures in a row, in ms: from 1 s, doubling to at most 60 s, with up to a quarter of
 * jitter; from 30 s to at most 5 min where the service refuses whoever asks.
 *
 * @param random at least 0, less than 1
 */
export function backOffMs(failures: number, random: number, isRefused = false): number {
  const firstMs = isRefused ? firstRefusedDelayMs : firstDelayMs;
  const longestMs = isRefused ? longestRefusedDelayMs : longestDelayMs;
  const delayMs = Math.min(longestMs * 0.8, firstMs * 2 ** Math.min(failures - 1, 30));
  return delayMs * (1 + random / 4);
}

/** How long to wait between one poll and the next, by what the last ones brought. */
export class PollBackOff {
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

  /** How many polls in a row have brought nothing new. */
  get repeats(): number {
    return this.#repeats;
  }

  /** Begins anew. */
  reset(): void {
    this.#failures = 0;
    this.#repeats = 0;
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
