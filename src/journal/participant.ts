import type { Changes, Held, Item, Look, Part, Remembered } from '../store/store';
import type { Step } from './step';

/** How items were found. */
export interface Circumstances {
  /** The store has lost everything since it was last open: what is in hand has to be kept anew. */
  isReset: boolean;
  /** They are all that this process has in the store: what is missing of a shared store is another's. Otherwise a dead process left them. */
  isOpening: boolean;
  /** What is not in the store yet of what is remembered. */
  unwritten: Look;
}

/** What is remembered under a key, as two processes have changed it. */
export interface Versions {
  /** Before that; absent: nothing, or nobody could ask. */
  base: Remembered | undefined;
  /** In the store now; absent: nothing any more. */
  theirs: Remembered | undefined;
  /** Remembered here while the store failed. */
  mine: Remembered;
}

/** Says of each item, in order, whether it is put off: it is not found, and is read by {@link Backlog.readPage}. */
export type Sieve = (item: Item) => boolean;

/** A step that an earlier process was asked for. */
export interface Asked {
  /** What {@link Step.redo} returned. */
  text: string;
  /** It was taken without the store, and what came of it may have entered the flow. */
  wasApplied: boolean;
  /** See {@link Journal.run}. */
  run<Result>(step: Step<Result>): Promise<Result>;
}

/** A room of the library that keeps items in a journal. */
export interface Participant {
  /**
   * The store is being opened, and an earlier process held this on its way into it. Returns what all items of its part are put through
   * before those that are left are found. Absent: none is put off.
   *
   * @param unwritten what is not in the store yet of what is remembered; absent: everything is
   */
  sift?(held: readonly string[], unwritten: Look | undefined): Sieve;
  /**
   * Takes charge of items of its part. No step is taken until it has returned, or what it returns has resolved. Some of
   * them it may have found before.
   */
  found(items: readonly Item[], circumstances: Circumstances): void | Promise<void>;
  /** Names as in `Item.takers` that this process can take over now. */
  wanted(): readonly string[];
  /** Whether it can make something of an item; if not, the store sets it aside. Absent: it can. */
  isReadable?(item: Item): boolean;
  /**
   * Takes steps for what an earlier process held on its way into the store, which is to be let go of when that is
   * committed. What makes it throw is set aside. Absent: its part holds nothing.
   */
  recover?(held: Held): void;
  /**
   * Has a step taken that an earlier process was asked for, and may have committed. Returns whether it is one of its own. What makes
   * it throw is set aside.
   */
  redo?(asked: Asked): boolean;
  /**
   * What a shared store is to remember under a key that others have changed while it failed here; `undefined`: nothing. Of a key that is
   * not its own, and when absent: mine.
   */
  merge?(key: string, versions: Versions): Remembered | undefined;
  /** These, by id, are in the store now: its own, and those of others. */
  saved?(kept: Changes['keep']): void;
  /**
   * The store is about to be closed, and keeps all that there is until it is opened again, when it is found: whoever wants can
   * forget it.
   */
  letGo?(): void;
}

/** Notes of what is held: a step that was asked for, and one that was taken without the store. */
export const [askedNote, appliedNote] = ['0', '1'];

/** All rooms that keep in one journal. */
export class Participants {
  readonly #byPart = new Map<Part, Participant>();

  join(part: Part, participant: Participant): void {
    this.#byPart.set(part, participant);
  }

  sift(held: readonly string[], unwritten: Look | undefined): Sieve {
    const sieves = new Map([...this.#byPart].map(([part, participant]) => [part, participant.sift?.(held, unwritten)]));
    return (item) => sieves.get(item.part)?.(item) ?? false;
  }

  async found(items: readonly Item[], circumstances: Circumstances): Promise<void> {
    for (const [part, participant] of this.#byPart) {
      await participant.found(
        items.filter((item) => item.part === part),
        circumstances,
      );
    }
  }

  wanted(): string[] {
    return [...this.#byPart.values()].flatMap((participant) => [...participant.wanted()]);
  }

  /** What nobody here keeps is left alone: another version may have put it there. */
  isReadable(item: Item): boolean {
    return this.#byPart.get(item.part)?.isReadable?.(item) ?? true;
  }

  /**
   * Has what an earlier process was asked for taken.
   *
   * @throws whatever makes it unreadable
   */
  redo(held: Held, run: Asked['run']): void {
    const asked = { text: held.text, wasApplied: held.notes === appliedNote, run };
    for (const participant of this.#byPart.values()) {
      participant.recover?.(held);
      if (participant.redo?.(asked)) return;
    }
  }

  merge(key: string, versions: Versions): Remembered | undefined {
    let mine: Remembered | undefined = versions.mine;
    for (const participant of this.#byPart.values()) {
      if (mine && participant.merge) mine = participant.merge(key, { ...versions, mine });
    }
    return mine;
  }

  saved(kept: Changes['keep']): void {
    for (const participant of this.#byPart.values()) participant.saved?.(kept);
  }

  letGo(): void {
    for (const participant of this.#byPart.values()) participant.letGo?.();
  }
}
