import type { Journal } from '../journal';

/** What was delivered in one turn of the event loop, and is not in the store yet. */
interface Note {
  ids: Set<string>;
  letGo?: (() => void) | undefined;
}

/** Each is a file that is open. With more, the store is far behind, and what is not noted would be delivered again, marked. */
const mostNotes = 64;

/**
 * Says where a crash does not reach it which entries are delivered, until the store says so: that is written with the next
 * commit, and who is killed before would deliver them again.
 */
export class Delivered {
  readonly #journal: Journal;
  readonly #notes = new Map<string, Note>();
  #latest: Note | undefined;
  #held = 0;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** An entry is delivered. What is in this turn of the event loop is noted together. */
  note(id: string): void {
    if (!this.#latest) {
      if (this.#held >= mostNotes) return;
      this.#latest = { ids: new Set() };
      queueMicrotask(() => this.#hold());
    }
    this.#latest.ids.add(id);
    this.#notes.set(id, this.#latest);
  }

  /** The store says so now, or fails and will say so when it is back. */
  forget(id: string): void {
    const note = this.#notes.get(id);
    if (!note) return;
    this.#notes.delete(id);
    note.ids.delete(id);
    if (note.ids.size > 0 || !note.letGo) return;
    this.#held--;
    note.letGo();
  }

  #hold(): void {
    const note = this.#latest;
    this.#latest = undefined;
    if (!note || note.ids.size === 0) return;
    note.letGo = this.#journal.hold(() => JSON.stringify({ delivered: [...note.ids] }));
    if (note.letGo) this.#held++;
  }
}

/** Reads the ids of entries that were delivered when a process died; `undefined` when it is something else that was held. */
export function parseDelivered(text: string): string[] | undefined {
  const { delivered } = JSON.parse(text) as { delivered?: unknown };
  return Array.isArray(delivered) ? delivered.filter((id) => typeof id === 'string') : undefined;
}
