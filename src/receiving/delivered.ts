import type { Journal } from '../journal';

/**
 * Says where a crash does not reach it which entries are delivered, until the store says so: that is written with the next
 * commit, and who is killed before would deliver them again.
 */
export class Delivered {
  readonly #journal: Journal;
  readonly #ids = new Set<string>();
  #letGo: (() => void) | undefined;
  #isDue = false;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** An entry is delivered. What is in this turn of the event loop is noted together. */
  note(id: string): void {
    this.#ids.add(id);
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#hold();
    });
  }

  /** The store says so now, or fails and will say so when it is back. */
  forget(id: string): void {
    if (this.#ids.delete(id) && this.#ids.size === 0) this.#hold();
  }

  #hold(): void {
    const letGo = this.#letGo;
    this.#letGo =
      this.#ids.size > 0 ? this.#journal.hold(() => JSON.stringify({ delivered: [...this.#ids] })) : undefined;
    letGo?.();
  }
}

/** Reads the ids of entries that were delivered when a process died; `undefined` when it is something else that was held. */
export function parseDelivered(text: string): string[] | undefined {
  const { delivered } = JSON.parse(text) as { delivered?: unknown };
  return Array.isArray(delivered) ? delivered.filter((id) => typeof id === 'string') : undefined;
}
