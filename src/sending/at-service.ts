import type { Clock } from '../clock';
import { PassingMap } from '../passing-map';

/** An answer that took longer does not come from close by, and says nothing of when the next one comes. */
const promptMs = 10;

/** Nobody waits for longer: see `Step.company`. */
const nearMs = 2;

/** Texts that have left, whose answers are to come. */
export class AtService {
  readonly #clock: Clock;
  /** When they left, by {@link Clock.elapsed}, the first that left first. */
  readonly #leftAt = new PassingMap<string, number>();
  /** How long the last answer took. */
  #lastMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether an answer is about to come, if the service takes as long as for the last: not from one that takes its time. */
  get isNear(): boolean {
    if (this.#lastMs >= promptMs) return false;
    const now = this.#clock.elapsed();
    for (const leftAt of this.#leftAt.values()) {
      const ageMs = now - leftAt;
      if (ageMs < promptMs) return ageMs >= this.#lastMs - nearMs;
    }
    return false;
  }

  /** A text leaves. */
  left(id: string): void {
    this.#leftAt.set(id, this.#clock.elapsed());
  }

  /** A text has been answered, or has not left after all. */
  ended(id: string): void {
    const leftAt = this.#leftAt.get(id);
    if (leftAt === undefined) return;
    this.#leftAt.delete(id);
    this.#lastMs = this.#clock.elapsed() - leftAt;
  }
}
