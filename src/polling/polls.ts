import { type Clock, wait } from '../clock';

/** A poll that is not handed over yet. */
interface InFlight {
  readonly polling: Promise<unknown>;
  /** Its answer has begun to arrive. */
  isArriving: boolean;
}

/** Polls that are not handed over yet; they outlive those who wanted them. */
export class Polls {
  /** By number: a promise as the key would outlive its poll with all that this has brought. */
  readonly #inFlight = new Map<number, InFlight>();
  #begun = 0;

  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * Keeps sight of a poll until it has been handed over.
   *
   * @param poll tells by its argument that its answer has begun to arrive
   */
  track<T>(poll: (onAnswer: () => void) => Promise<T>): Promise<T> {
    const number = this.#begun++;
    const polling = poll(() => {
      const inFlight = this.#inFlight.get(number);
      if (inFlight) inFlight.isArriving = true;
    });
    const handedOver = () => void this.#inFlight.delete(number);
    this.#inFlight.set(number, { polling, isArriving: false });
    polling.then(handedOver, handedOver);
    return polling;
  }

  /** Resolves when those that are in flight now have been handed over. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#all());
  }

  /** Resolves when one of those that are in flight now has been handed over; at once when there is none. */
  async oneEnded(): Promise<void> {
    if (this.#inFlight.size > 0) await Promise.race(this.#all().map((polling) => polling.catch(() => {})));
  }

  /** Resolves when those have been handed over whose answer has begun to arrive by now, or after `graceMs`. */
  async arrived(clock: Clock, graceMs: number): Promise<void> {
    const arriving = this.#all(({ isArriving }) => isArriving);
    if (arriving.length === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.allSettled(arriving), timeout]);
    grace.abort();
  }

  #all(isMeant: (inFlight: InFlight) => boolean = () => true): Promise<unknown>[] {
    return [...this.#inFlight.values()].filter(isMeant).map(({ polling }) => polling);
  }
}
