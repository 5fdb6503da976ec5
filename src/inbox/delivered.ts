import type { Journal } from '../journal/journal';
import type { Hold } from '../store/store';

/** Entries that are done with, and the keys that stood for them in a shared store. */
export interface Gone {
  readonly ids: readonly string[];
  readonly holds: readonly string[];
}

/** Entries that were delivered in one go, and that the store has still. */
export interface Batch extends Gone {
  /** They are being dropped: what is delivered from now on belongs to another batch. */
  readonly close: () => void;
  /**
   * The store has them no more (`isWritten`). Or it fails, and drops them when it is back: until then that they are delivered stays
   * noted, and whoever opens it finds the note.
   */
  readonly dropped: (isWritten: boolean) => void;
}

/** Each is a file that is open. With more, the store is far behind, and what is not noted would be delivered again, marked. */
const mostNotes = 64;

/** Ids in a batch. */
const largestBatch = 256;

/**
 * Says where a crash does not reach it which entries are delivered, until the store says so: that is written with the next
 * commit, and who is killed before would deliver them again.
 */
export class Delivered {
  readonly #journal: Journal;
  readonly #onFull: () => void;
  #latest: { ids: string[]; holds: string[] } | undefined;
  #notes = 0;

  /** @param onFull so many were delivered that they are to be written without waiting for another commit */
  constructor(journal: Journal, onFull: () => void) {
    this.#journal = journal;
    this.#onFull = onFull;
  }

  /** An entry is delivered. Returns the batch when it is the first of one, which is to be dropped then. */
  add(id: string, holds: readonly string[]): Batch | undefined {
    const latest = this.#latest ?? { ids: [], holds: [] };
    const batch = this.#latest ? undefined : this.#begin(latest);
    this.#latest = latest;
    latest.ids.push(id);
    latest.holds.push(...holds);
    if (latest.ids.length === largestBatch) {
      this.#latest = undefined;
      this.#onFull();
    }
    return batch;
  }

  #begin(gone: Gone): Batch {
    let isDropped = false;
    let held: Hold | undefined;
    const close = () => {
      if (this.#latest === gone) this.#latest = undefined;
    };
    const note = () => {
      close();
      if (isDropped || this.#notes >= mostNotes) return;
      held = this.#journal.hold(() => JSON.stringify({ delivered: gone.ids }));
      if (held) this.#notes++;
    };
    // What is delivered in one go is noted together.
    void Promise.resolve().then(note);
    return {
      ids: gone.ids,
      holds: gone.holds,
      close,
      dropped: (isWritten) => {
        isDropped = true;
        if (held) this.#notes--;
        if (isWritten) held?.letGo();
        held = undefined;
      },
    };
  }
}

/** Reads the ids of entries that were delivered when a process died; `undefined` when it is something else that was held. */
export function parseDelivered(text: string): string[] | undefined {
  const { delivered } = JSON.parse(text) as { delivered?: unknown };
  return Array.isArray(delivered) ? delivered.filter((id) => typeof id === 'string') : undefined;
}
