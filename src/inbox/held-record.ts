import type { Hold } from '../store/store';

/** What a process that died had done with a record. */
export interface Past {
  /** How often it may have been sent into a flow. */
  attempts: number;
  /** All nodes that it was for have taken it, or it is in a store, perhaps that of another login. */
  isDone: boolean;
}

/**
 * A note is one control character: so many attempts, or that it is done with. What is held is JSON, which has none of them: after a power
 * cut what is left there of an older text counts for nothing.
 */
const isDoneCode = 31;
const mostAttempts = isDoneCode - 1;

/** Notes for so many records that nobody has been given. */
export function createNotes(count: number): string {
  return formatNote(0).repeat(count);
}

/** Reads the note of a record; absent: nobody has noted anything of it, as an earlier version that held it did not. */
export function parseNote(note: string | undefined): Past {
  const code = note?.charCodeAt(0) ?? 0;
  return { attempts: code <= mostAttempts ? code : 0, isDone: code === isDoneCode };
}

function formatNote(code: number): string {
  return String.fromCharCode(code);
}

/**
 * A record that is nowhere but where it is held, since the store fails, and is delivered all the same: without a note of that the next
 * process would deliver it as if nobody had.
 */
export class HeldRecord {
  readonly #hold: Hold;
  readonly #index: number;

  /** @param index which of the records that are held together */
  constructor(hold: Hold, index: number) {
    this.#hold = hold;
    this.#index = index;
  }

  /** It has been sent into a flow so many times in all, or is about to be. */
  given(attempts: number): void {
    this.#hold.note(this.#index, formatNote(Math.min(attempts, mostAttempts)));
  }

  /** Nobody is to deliver it from here: all nodes that it is for have taken it, or it is in a store. */
  done(): void {
    this.#hold.note(this.#index, formatNote(isDoneCode));
  }
}
