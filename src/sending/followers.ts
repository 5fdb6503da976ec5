import { onceAborted } from '../abort-watch';
import { type Clock, wait } from '../clock';

/** How soon it is asked again what became of a text that is not in hand here. */
const otherInstanceMs = 1_000;

/** Those who wait for the outcome of a text, because theirs has the same key. */
export class Followers {
  readonly #clock: Clock;
  readonly #isUnderWay: (id: string) => boolean;
  readonly #waiting = new Map<string, Set<() => void>>();

  /** @param isUnderWay whether a text is in hand here, so that its end is told */
  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Resolves when it is worth asking the store what became of a text: when it has ended here; after a second when it has just ended
   * or another instance has it in hand, which the store alone knows, and when not even its id is known, since the store fails.
   *
   * @throws the reason of `signal` when it aborts before
   */
  follow(id: string | undefined, signal: AbortSignal): Promise<void> {
    return id !== undefined && this.#isUnderWay(id)
      ? this.#ended(id, signal)
      : wait(this.#clock, otherInstanceMs, signal);
  }

  #ended(id: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, others);
      const leave = onceAborted(signal, () => {
        others.delete(onEnded);
        reject(signal.reason);
      });
      const onEnded = () => {
        leave();
        resolve();
      };
      others.add(onEnded);
    });
  }

  /** A text has ended. */
  ended(id: string): void {
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    for (const onEnded of waiting) onEnded();
  }
}
