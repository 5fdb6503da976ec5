import type { Changes, Item, Look, RecoveredWrite, Remembered } from '../store/store';

/**
 * Behaviour of a step while the store fails: `refuse` rejects it with `SMS_STORE`, `postpone` takes it when the store
 * is back, `apply` takes it now and writes it then.
 */
export type WhileFailing = 'refuse' | 'postpone' | 'apply';

/** One change of the store. */
export interface Step<Result> {
  /** The keys that `decide` looks at in any case, which are read before. Absent: none. */
  readonly keys?: readonly string[];
  /**
   * Adds changes, and has no other effect. It is called again after a key that it looked at was read, or was changed by
   * another process. `changes` can have those of earlier steps in the same commit, and `look` sees them.
   *
   * Returns the effects, which run once, after the commit. An error that the effects throw rejects the step, and does not count
   * as a failure of the store.
   */
  decide(look: Look, changes: Changes): (isWritten: boolean) => Result;
  readonly whileFailing: WhileFailing;
  /** About how many bytes the step keeps, if that can be many: a commit ends after a large step. Absent: few. */
  readonly bytes?: number | undefined;
  /** Ids of items that the step drops and its participant has forgotten already: they are not found again when the store opens. */
  readonly drops?: readonly string[];
}

/**
 * Creates a step that looks at nothing, and is taken whether the store fails or not.
 *
 * @param then the effect
 */
export function createChange(change: (changes: Changes) => void, then = () => {}): Step<void> {
  return {
    whileFailing: 'apply',
    decide(_look, changes) {
      change(changes);
      return then;
    },
  };
}

/** Creates a step that reads remembered values, and changes nothing. */
export function createReading<Result>(whileFailing: WhileFailing, read: (look: Look) => Result): Step<Result> {
  return {
    whileFailing,
    decide(look) {
      const result = read(look);
      return () => result;
    },
  };
}

/** Two versions of the value under a key of a shared store. */
export interface Versions {
  /** In the store now. */
  theirs: Remembered;
  /** Remembered by this process while the store failed. */
  mine: Remembered;
}

/** A text that a process of another login held (see {@link Journal.hold}), as an import brings it. */
export interface HeldItem extends Item {
  part: 'held';
  text: string;
}

/** A part of the library that keeps items in a journal. */
export interface Participant {
  /**
   * Takes charge of items of its part, some of which it might know. No step is taken before it has returned, or the
   * promise that it returns has resolved.
   *
   * @param isOpening these are all items that this process has in the store; otherwise a dead process left them
   */
  found(items: readonly Item[], isOpening: boolean): void | Promise<void>;
  /** Names as in `Item.subscribers` that this process can claim now. */
  wanted(): readonly string[];
  /** Whether it can use an item. If not, the store quarantines the item. Absent: it can. */
  isReadable?(item: Item): boolean;
  /** Accepts a text that an earlier process held (see {@link Journal.hold}). Returns whether the text is its own. */
  replay?(held: RecoveredWrite): boolean;
  /** Merges two versions of a key of its part, which changed while the store failed. For keys of other parts, or without this method, the store keeps `mine`. */
  merge?(key: string, versions: Versions): Remembered;
  /** An item that it has, to be kept again if the store has lost it. */
  itemOf?(id: string): Item | undefined;
  /** Another process has claimed an item, which can be that of another participant. */
  forget?(id: string): void;
  /** The store is about to be closed and keeps all items until it is opened again: the participant can forget them. */
  letGo?(): void;
}
