import type { Clock } from '../clock';

/** Waits of one sort, which can be ended together. */
export class Waits {
  readonly #clock: Clock;
  readonly #ends: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after so long, or when woken; without a time only then. */
  wait(delayMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer?.cancel();
        const place = this.#ends.indexOf(end);
        if (place !== -1) this.#ends.splice(place, 1);
        resolve();
      };
      const timer = delayMs === undefined ? undefined : this.#clock.after(delayMs, end);
      this.#ends.push(end);
    });
  }

  /** Ends all that wait now. */
  wake(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}
