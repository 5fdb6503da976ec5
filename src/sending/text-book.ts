import type { Clock, Timer } from '../clock';
import type { Text } from './outgoing';

const uncertainMs = 7 * 24 * 3_600_000;

/** The texts of this process that are on their way or may be decided about, found by id. */
export class TextBook {
  readonly #byId = new Map<string, Text>();
  readonly #clock: Clock;
  readonly #onExpired: (text: Text) => void;
  /** An uncertain text can be decided about for so long. */
  readonly #decisions = new Map<string, Timer>();

  /** @param onExpired nobody has decided about a text in time */
  constructor(clock: Clock, onExpired: (text: Text) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** How many somebody may decide about. */
  get uncertain(): number {
    return this.#decisions.size;
  }

  /** In the order of their arrival, or of their being found. */
  values(): IterableIterator<Text> {
    return this.#byId.values();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  get(id: string): Text | undefined {
    return this.#byId.get(id);
  }

  /** Adds a text, or puts it in the place of an earlier state of it. */
  set(text: Text): void {
    this.#byId.set(text.id, text);
  }

  /** Adds a text that somebody may decide about for 7 days from its outcome. */
  setUndecided(text: Text): void {
    this.set(text);
    const leftMs = Math.min(uncertainMs, Math.max(0, (text.settledAt ?? 0) + uncertainMs - this.#clock.now()));
    const expire = () => this.#onExpired(text);
    this.#decisions.set(text.id, this.#clock.after(leftMs, expire, true));
  }

  /** Somebody has decided about a text, if that was to be done. */
  decided(id: string): void {
    this.#decisions.get(id)?.cancel();
    this.#decisions.delete(id);
  }

  delete(id: string): void {
    this.#byId.delete(id);
    this.decided(id);
  }
}
