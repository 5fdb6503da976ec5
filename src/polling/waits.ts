import type { Clock } from '../clock';

/** Waits of one sort, which can be ended together. */
export class Waits {
  readonly #clock: Clock;
  readonly #ends = new Map<() => void, true>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after so long, or when woken; without a time only then. */
  wait(delayMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer?.cancel();
        this.#ends.delete(end);
        resolve();
      };
      const timer = delayMs === undefined ? undefined : this.#clock.after(delayMs, end);
      this.#ends.set(end, true);
    });
  }

  /** Ends all that wait now. */
  wake(): void {
    for (const end of this.#ends.keys()) end();
  }
}
