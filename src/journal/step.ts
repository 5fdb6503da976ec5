import type { Changes, Item, ReadKey, RecoveredWrite, Remembered } from '../store/store';

/**
 * How the journal treats a step while the store fails. `refuse` rejects the step with `SMS_STORE`. `postpone` runs it
 * when the store works again. `apply` runs it immediately, and writes it when the store works again.
 */
export type WhileFailing = 'refuse' | 'postpone' | 'apply';

/** A unit of work for the journal. Its changes depend on values in the store. Its effects run after the commit. */
export interface Step<Result> {
  /** Keys that `decide` always reads. The journal reads them from the store in advance. Absent: none. */
  readonly keys?: readonly string[];
  /**
   * Adds the changes of the step to `changes`, without any other effect. Both `readKey` and `changes` include the
   * changes of earlier steps in the same commit. The journal calls `decide` again after it has read a further key, or
   * if another process has changed a key.
   *
   * Returns a function that runs the effects once after the commit. If `decide` throws, the step is rejected and its
   * changes are dropped. If the returned function throws, the step is rejected, but its changes stay. In neither case
   * does the store count as failed.
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

/** Returns a step that runs `step` and its effects, and then converts the result with `change`. */
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
   * Receives the items of this participant from the store, except items that it has dropped. The participant might
   * already have some of the items. The journal runs no step until this method has returned, or its promise has
   * resolved.
   *
   * @param isOpening true if these are all items of this process, false if they were claimed from a dead process
   */
  receiveItems(items: readonly Item[], isOpening: boolean): void | Promise<void>;
  /** Returns the names of nodes (see `Item.subscribers`) whose items this process can claim now. */
  wantedNames(): readonly string[];
  /**
   * Returns whether the participant can use an item. If not, the store quarantines the item. Absent: it can use every
   * item.
   */
  isReadable?(item: Item): boolean;
  /**
   * Handles a text that an earlier process saved, see {@link Journal.saveAhead}. Returns false if the text does not
   * belong to this participant.
   */
  replay?(write: RecoveredWrite): boolean;
  /**
   * Merges two versions of a remembered value. Called for each key that this process changed while a shared store
   * failed, if the store has a value under the key. Returns `ownVersion` for a key of another participant. Absent: the
   * store keeps `ownVersion`.
   */
  merge?(key: string, versions: Versions): Remembered;
  /**
   * Returns this participant's current version of an item, or `undefined` if it has no such item. If the store has lost
   * the item, the journal stores this version again.
   */
  itemOf?(id: string): Item | undefined;
  /** Called when another process has claimed an item. The item might belong to another participant. */
  forget?(id: string): void;
  /** Called before the store closes, when all items are saved. The participant can remove its items from memory. */
  releaseAll?(): void;
}
