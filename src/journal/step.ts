import type { Changes, Item, ReadKey, RecoveredWrite, Remembered } from '../store/store';

/**
 * How the journal treats a step while the store fails. `refuse` rejects the step with `SMS_STORE`. `postpone` runs it
 * when the store works again. `apply` runs it immediately, and writes it when the store works again.
 */
export type WhileFailing = 'refuse' | 'postpone' | 'apply';

/**
 * A change of the store. It is decided on values that are read from the store, and its effects run after the commit.
 */
export interface Step<Result> {
  /** The keys that `decide` always reads, so that the journal can read them from the store first. Absent: none. */
  readonly keys?: readonly string[];
  /**
   * Adds the changes of the step, without any other effect. The journal calls `decide` again after it has read a
   * further key, or if another process has changed a key. `changes` can contain changes of earlier steps in the same
   * commit, and `readKey` includes these changes.
   *
   * Returns the effects, which run once after the commit. If the effects throw, the step is rejected, but the store
   * does not count as failed.
   */
  decide(readKey: ReadKey, changes: Changes): (isWritten: boolean) => Result;
  readonly whileFailing: WhileFailing;
  /** Approximate size of the changes in bytes, so that large steps do not share a commit. Absent: small. */
  readonly bytes?: number | undefined;
}

/**
 * Creates a step that reads nothing. While the store fails, the step is applied and written later.
 *
 * @param effect runs once after the change is written, or applied without the store
 */
export function createChange(change: (changes: Changes) => void, effect = () => {}): Step<void> {
  return {
    whileFailing: 'apply',
    decide(_, changes) {
      change(changes);
      return effect;
    },
  };
}

/** Creates a step that reads remembered values and changes nothing. */
export function createReading<Result>(whileFailing: WhileFailing, read: (readKey: ReadKey) => Result): Step<Result> {
  return {
    whileFailing,
    decide(readKey) {
      const result = read(readKey);
      return () => result;
    },
  };
}

/** Returns a step that runs `step` and its effects, and then converts the result by `change`. */
export function withEffect<Result, Changed>(step: Step<Result>, change: (result: Result) => Changed): Step<Changed> {
  return {
    ...step,
    decide(readKey, changes) {
      const effect = step.decide(readKey, changes);
      return (isWritten) => change(effect(isWritten));
    },
  };
}

/** Two versions of the value under a key of a shared store. */
export interface Versions {
  /** The value that the store has now. */
  storeVersion: Remembered;
  /** The value that this process remembered while the store failed. */
  ownVersion: Remembered;
}

/** A part of the library that stores items in a journal. */
export interface Participant {
  /**
   * Receives the items of this participant from the store, without those that the participant has dropped in this
   * process. The participant might already have some of these items. The journal runs no step before this method
   * returns, or before its promise resolves.
   *
   * @param isOpening true if these are all items of this process, false if they were claimed from a dead process
   */
  receiveItems(items: readonly Item[], isOpening: boolean): void | Promise<void>;
  /** Returns the names (see `Item.subscribers`) whose items this process can claim now. */
  wantedNames(): readonly string[];
  /**
   * Returns whether the participant can use an item. If not, the store quarantines the item. Absent: it can use every
   * item.
   */
  isReadable?(item: Item): boolean;
  /**
   * Accepts a text that an earlier process saved (see {@link Journal.saveAhead}). Returns whether the text belongs to
   * this participant.
   */
  replay?(write: RecoveredWrite): boolean;
  /**
   * Merges two versions of a remembered value of this participant, if another process has changed the value while the
   * store failed for this process. If the method is absent, or the key belongs to another participant, the store keeps
   * `ownVersion`.
   */
  merge?(key: string, versions: Versions): Remembered;
  /**
   * Returns an item of this participant, or `undefined` if the participant has forgotten it. The journal stores the
   * item again if the store has lost it.
   */
  itemOf?(id: string): Item | undefined;
  /** Called when another process has claimed an item, even if the item belongs to another participant. */
  forget?(id: string): void;
  /** Called before the store closes, when all items are saved. The participant can remove its items from memory. */
  releaseAll?(): void;
}
