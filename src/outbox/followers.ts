import { type Clock, onceAborted, wait } from '../clock';

/** How soon it is asked again what became of a text that is not in hand here. */
const otherInstanceMs = 1_000;

/** One that waits. */
interface Follower {
  /** Of its own text. */
  id: string;
  onEnded(): void;
}

/** Those who wait for the outcome of a text, because theirs has the same key. */
export class Followers {
  readonly #clock: Clock;
  readonly #isUnderWay: (id: string) => boolean;
  /** In the order in which they came, by the text that they wait for. */
  readonly #waiting = new Map<string, Set<Follower>>();

  /** @param isUnderWay whether a text is in hand here, so that its end is told */
  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Resolves when it is worth asking the store what became of a text: when it has ended here; after a second when it has just ended
   * or another instance has it in hand, which the store alone knows, and when not even its id is known, since the store fails. Whoever
   * then neither follows again nor is sent has to tell that by {@link ended}: others may have been left to wait for it.
   *
   * @param own id of the text that waits
   * @throws the reason of `signal` when it aborts before
   */
  follow(own: string, id: string | undefined, signal: AbortSignal): Promise<void> {
    this.ended(own);
    return id !== undefined && this.#isUnderWay(id)
      ? this.#ended(own, id, signal)
      : wait(this.#clock, otherInstanceMs, signal);
  }

  #ended(own: string, id: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, others);
      const leave = onceAborted(signal, () => {
        others.delete(follower);
        reject(signal.reason);
      });
      const follower: Follower = {
        id: own,
        onEnded: () => {
          leave();
          resolve();
        },
      };
      others.add(follower);
    });
  }

  /** A text has ended, or waits for another itself. */
  ended(id: string): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    for (const { onEnded } of waiting) onEnded();
  }

  /** A text has ended, and its key is free: the first of those who wait may have it, and the others wait for that one. */
  endedUnsent(id: string): void {
    const waiting = this.#waiting.get(id);
    const [first] = waiting ?? [];
    this.#waiting.delete(id);
    if (!waiting || !first) return;
    waiting.delete(first);
    if (waiting.size > 0) this.#waiting.set(first.id, waiting);
    first.onEnded();
  }
}
