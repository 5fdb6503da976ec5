import { type Clock, wait } from '../clock';

/** Polls that are not handed over yet; they outlive those who wanted them. */
export class Polls {
  /** Each with whether its answer has begun to arrive. */
  readonly #inFlight = new Map<Promise<unknown>, boolean>();

  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * Keeps sight of a poll until it has been handed over.
   *
   * @param poll tells by its argument that its answer has begun to arrive
   */
  track<T>(poll: (onAnswer: () => void) => Promise<T>): Promise<T> {
    const polling = poll(() => {
      if (this.#inFlight.has(polling)) this.#inFlight.set(polling, true);
    });
    const handedOver = () => void this.#inFlight.delete(polling);
    this.#inFlight.set(polling, false);
    polling.then(handedOver, handedOver);
    return polling;
  }

  /** Resolves when those that are in flight now have been handed over. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#inFlight.keys());
  }

  /** Resolves when one of those that are in flight now has been handed over; at once when there is none. */
  async oneEnded(): Promise<void> {
    if (this.#inFlight.size > 0)
      await Promise.race([...this.#inFlight.keys()].map((polling) => polling.catch(() => {})));
  }

  /** Resolves when those have been handed over whose answer has begun to arrive by now, or after `graceMs`. */
  async arrived(clock: Clock, graceMs: number): Promise<void> {
    const arriving = [...this.#inFlight].flatMap(([polling, isArriving]) => (isArriving ? [polling] : []));
    if (arriving.length === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.allSettled(arriving), timeout]);
    grace.abort();
  }
}
