import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import type { Text } from './outgoing';

/** A text of a node that is not deployed is given up after so long at most. */
const longestAbsenceMs = 7 * 24 * 3_600_000;

/** Says when kept texts have waited for too long. */
export class Expiries {
  readonly #clock: Clock;
  readonly #onExpired: (id: string) => void;
  readonly #timers = new Map<string, Timer>();
  /** When each is over, by {@link Clock.elapsed}. */
  readonly #ends = new Map<string, number>();

  constructor(clock: Clock, onExpired: (id: string) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  /** Begins to watch a text, or watches it otherwise since its node has come or gone. */
  watch(text: Text, isNodeHere: boolean): void {
    this.forget(text.id);
    const ownMs = remainingMs(text, this.#clock.now());
    const delayMs = isNodeHere
      ? ownMs
      : Math.max(longestDeploymentMs, Math.min(ownMs ?? longestAbsenceMs, longestAbsenceMs));
    if (delayMs === undefined) return;
    this.#ends.set(text.id, this.#clock.elapsed() + delayMs);
    this.#timers.set(
      text.id,
      this.#clock.after(delayMs, () => this.#onExpired(text.id), true),
    );
  }

  /** Says whether a text's time is over, though that may not have been said yet. */
  isOver(id: string): boolean {
    return this.#clock.elapsed() >= (this.#ends.get(id) ?? Number.POSITIVE_INFINITY);
  }

  forget(id: string): void {
    this.#ends.delete(id);
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
  }

  clear(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#ends.clear();
  }
}

/** How much of its time a text has left. The clock may have been set since: it is never more than the whole. */
function remainingMs({ arrivedAt, options }: Text, now: number): number | undefined {
  const expireMs = options.keep?.expireMs;
  return expireMs === undefined ? undefined : Math.min(expireMs, Math.max(0, arrivedAt + expireMs - now));
}
