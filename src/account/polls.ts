import { type Clock, wait } from '../clock';

/** Polls that are not handed over yet; they outlive those who wanted them. */
export class Polls {
  readonly #inFlight = new Set<Promise<unknown>>();
  /** Those of them whose answer has begun to arrive. */
  readonly #arriving = new Set<Promise<unknown>>();

  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * Keeps sight of a poll until it has been handed over.
   *
   * @param poll tells by its argument that its answer has begun to arrive
   */
  track<T>(poll: (onAnswer: () => void) => Promise<T>): Promise<T> {
    const polling = poll(() => this.#arriving.add(polling));
    const handedOver = () => {
      this.#inFlight.delete(polling);
      this.#arriving.delete(polling);
    };
    this.#inFlight.add(polling);
    polling.then(handedOver, handedOver);
    return polling;
  }

  /** Resolves when those that are in flight now have been handed over. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
  }

  /** Resolves when one of those that are in flight now has been handed over; at once when there is none. */
  async oneEnded(): Promise<void> {
    if (this.#inFlight.size > 0) await Promise.race([...this.#inFlight].map((polling) => polling.catch(() => {})));
  }

  /** Resolves when those have been handed over whose answer has begun to arrive by now, or after `graceMs`. */
  async arrived(clock: Clock, graceMs: number): Promise<void> {
    if (this.#arriving.size === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.allSettled(this.#arriving), timeout]);
    grace.abort();
  }
}
