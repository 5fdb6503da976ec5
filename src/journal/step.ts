import type { Changes, Item, Look, MovedValues, Remembered } from '../store/store';

/**
 * What becomes of a step while the store fails: `refuse` rejects it with `SMS_STORE`, `postpone` takes it when the store
 * is back, `apply` takes it now and writes it then.
 */
export type WhileFailing = 'refuse' | 'postpone' | 'apply';

/** A step that waits in a shared store: whoever takes it over has it redone. */
export interface HeldItem extends Item {
  part: 'held';
  text: string;
}

/** Something that changes what is kept. */
export interface Step<Result> {
  /** What `decide` looks at in any case, and is read before. Absent: nothing. */
  readonly keys?: readonly string[];
  /**
   * Says what changes, and changes nothing else: it is repeated once what it has looked at is read, and when another process got in between.
   * `changes` may have those of steps before it that share its commit; `look` sees them too, and nothing under a key that is not read yet.
   * Returns the effects, which run once, after the commit: what they throw is the fault of the step, which rejects with it, and not of
   * the store.
   */
  decide(look: Look, changes: Changes): (isWritten: boolean) => Result;
  readonly whileFailing: WhileFailing;
  /** It is worth nothing when what it looks at cannot be read: it is rejected with `SMS_STORE` then. */
  readonly needsLook?: boolean;
  /** About how much it keeps, where that may be a lot: a commit ends with what makes it large. Absent: little. */
  readonly bytes?: number | undefined;
  /** Ids of items that it drops and that their participant has forgotten already: it does not find them again when the store opens. */
  readonly drops?: readonly string[];
  /**
   * What its participant makes the same step of in a later process, see {@link Participant.redo}: written as it is asked for, where a kill does
   * not reach it, and kept there until what it changes is in the store. A store that is shared has only what waits for `after`, as an item.
   */
  redo?(): string;
  /** Names of those who can take that over where it is an item, as in `Item.subscribers`. */
  readonly redoneFor?: readonly string[];
  /** Called when that is written. Not called where the store has no such place, or cannot write. */
  onWritten?(): void;
  /**
   * It is taken after those that have come by the time that this resolves; at once where a kill would lose what is to be redone, since a
   * store has no place for that now.
   */
  readonly after?: Promise<void> | undefined;
  /** Called whenever it is postponed, which may be several times before it is taken. */
  postponed?(): void;
}

/**
 * Changes what needs no look at anything, in whatever state the store is.
 *
 * @param then what follows
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

/** Looks at what is remembered, and changes nothing. See {@link Step} for what it takes. */
export function createReading<Result>(whileFailing: WhileFailing, read: (look: Look) => Result): Step<Result> {
  return {
    whileFailing,
    decide(look) {
      const result = read(look);
      return () => result;
    },
  };
}

/** What is remembered under a key, as it was changed here and, in a shared store, by others. */
export interface Versions {
  /** Before that; absent: nothing, or nobody could ask. */
  base: Remembered | undefined;
  /** In the store now; absent: nothing any more. */
  theirs: Remembered | undefined;
  /** Remembered here while the store failed. */
  mine: Remembered;
}

/** A room of the library that keeps items in a journal. */
export interface Participant {
  /**
   * Takes charge of items of its part. No step is taken until it has returned, or what it returns has resolved. Some of
   * them it may have found before.
   *
   * @param isOpening they are all that this process has in the store; otherwise a dead process left them, or another journal
   * @param isMoved the latter, and what that remembered may be in the store by now
   */
  found(items: readonly Item[], isOpening: boolean, isMoved: boolean): void | Promise<void>;
  /** Names as in `Item.subscribers` that this process can take over now. */
  wanted(): readonly string[];
  /** Whether it can make something of an item; if not, the store sets it aside. Absent: it can. */
  isReadable?(item: Item): boolean;
  /**
   * Has a step taken by `run` that an earlier process was asked for, and may have committed, or taken without the store. Returns whether it is
   * one of its own. What makes it throw is set aside.
   *
   * @param text what {@link Step.redo} returned
   * @param run see {@link Journal.run}
   */
  redo?(text: string, run: <Result>(step: Step<Result>) => Promise<Result>): boolean;
  /**
   * What is to be remembered under a key that was changed while the store failed, where that has something else than nothing, or had;
   * `undefined`: nothing. Of a key that is not its own, and when absent: mine.
   */
  merge?(key: string, versions: Versions): Remembered | undefined;
  /** An item that it has, as it is to be kept anew where the store has lost it. */
  itemOf?(id: string): Item | undefined;
  /** Another process, or journal, has taken over an item, which may be another participant's. */
  forget?(id: string): void;
  /** All that it has, as it goes to another journal. */
  kept?(): Iterable<Item>;
  /** What it remembers that goes along. */
  readonly values?: readonly MovedValues[];
  /** What else changes as an item comes from another journal (`isHere`), or goes there. */
  moves?(item: Item, isHere: boolean, look: Look, changes: Changes): void;
  /**
   * The store is about to be closed, and keeps all that there is until it is opened again, when it is found: whoever wants can
   * forget it.
   */
  letGo?(): void;
}
