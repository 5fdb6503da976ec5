import type { Hold } from '../store/store';

/** What a process that died had done with a record. */
export interface Past {
  /** How often it may have been sent into a flow. */
  attempts: number;
  /** All nodes that it was for have taken it. */
  isDelivered: boolean;
}

/**
 * A note is one control character: so many attempts, or that it is delivered. What is held is JSON, which has none of them: after a power
 * cut what is left there of an older text counts for nothing.
 */
const isDeliveredCode = 31;
const mostAttempts = isDeliveredCode - 1;

/** Notes for so many records that nobody has been given. */
export function createNotes(count: number): string {
  return formatNote(0).repeat(count);
}

/** Reads the note of a record; absent: nobody has noted anything of it, as an earlier version that held it did not. */
export function parseNote(note: string | undefined): Past {
  const code = note?.charCodeAt(0) ?? 0;
  return { attempts: code <= mostAttempts ? code : 0, isDelivered: code === isDeliveredCode };
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

  /** It is about to be sent into a flow, for so many times in all. */
  given(attempts: number): void {
    if (attempts > 0) this.#hold.note(this.#index, formatNote(Math.min(attempts, mostAttempts)));
  }

  /** All nodes that it is for have taken it. */
  delivered(): void {
    this.#hold.note(this.#index, formatNote(isDeliveredCode));
  }
}
