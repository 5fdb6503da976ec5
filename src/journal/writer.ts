import type { SmsError } from '../errors';
import {
  addChanges,
  type Changes,
  createChanges,
  type Item,
  isNoChange,
  type Look,
  type Remembered,
  type Store,
  StoreConflict,
} from '../store/store';
import type { ClockSkew } from './clock-skew';
import type { Participant, Step } from './step';

/** A step that somebody waits for. */
export interface Task {
  readonly step: Step<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** A sweep looks at twice as many as were remembered since the last, so that it keeps up. */
const rememberedPerSweep = 500;

/** What was found under keys; `undefined` where nothing is. A key that is missing was not asked for, or could not be. */
type Recalled = ReadonlyMap<string, Remembered | undefined>;

const nothing: Recalled = new Map();

/** What steps change together, and what follows when it is written. */
interface Decided {
  changes: Changes;
  effects: ((isWritten: boolean) => void)[];
}

/** How a commit ended: written, with what follows; or not, with what was found of what the steps look at, if anybody could ask. */
export type Commit = Pick<Decided, 'effects'> | { error: unknown; recalled: Recalled | undefined };

/** Takes steps, a group of them in one commit, or without the store, and knows what the store does not have for that. */
export class StepWriter {
  readonly #store: Store;
  readonly #participants: ReadonlyMap<unknown, Participant>;
  readonly #skew: ClockSkew;
  /** Whether something is to be saved that the store does not have. */
  hasUnsaved = false;
  /** Ids of the items that the store has, as far as is known. */
  stored = new Set<string>();
  /** Changes of steps that were taken without the store. */
  #unsaved = createChanges();
  /** What the first of them that remembers something under a key has found there; nothing, where the store could not be asked. */
  readonly #bases = new Map<string, Remembered | undefined>();
  readonly #postponed: Task[] = [];
  #rememberedSinceSweep = rememberedPerSweep;
  #sweptAfterSetting = 0;

  constructor(store: Store, participants: ReadonlyMap<unknown, Participant>, skew: ClockSkew) {
    this.#store = store;
    this.#participants = participants;
    this.#skew = skew;
  }

  /** Whether an item will not be in the store any more when that is back. */
  isDropped(id: string): boolean {
    return this.#unsaved.drop.has(id);
  }

  /** These are in the store: all that this process has there (`isOpening`), or more. Returns the ids of those that it had and has no more. */
  noteFound(items: readonly Item[], isOpening: boolean): string[] {
    const former = this.stored;
    if (isOpening) this.stored = new Set();
    for (const { id } of items) this.stored.add(id);
    return isOpening ? [...former].filter((id) => !this.stored.has(id)) : [];
  }

  /** Nothing is written any more of an item that another process has taken over, and has as it found it. */
  disown(id: string): void {
    this.#unsaved.keep.delete(id);
  }

  get hasPostponed(): boolean {
    return this.#postponed.length > 0;
  }

  /** Takes out those that were postponed. */
  takePostponed(): Task[] {
    return this.#postponed.splice(0);
  }

  /** Takes a group of steps, in their order, and saves what is unsaved along with them. Never rejects. */
  async commit(tasks: readonly Task[]): Promise<Commit> {
    for (;;) {
      let recalled: Recalled | undefined;
      try {
        const decided = await this.#decideOnTruth(tasks);
        recalled = decided.recalled;
        const all = decided.changes;
        if (!isNoChange(all)) await this.#store.commit(all, recalled);
        if (this.hasUnsaved) this.#unsaved = createChanges();
        this.hasUnsaved = false;
        this.#bases.clear();
        this.#rememberedSinceSweep += all.remember.size;
        for (const id of all.keep.keys()) this.stored.add(id);
        for (const id of all.drop.keys()) this.stored.delete(id);
        return { effects: decided.effects };
      } catch (error) {
        if (!(error instanceof StoreConflict)) return { error, recalled };
      }
    }
  }

  /**
   * Takes each step as it may be taken without the store.
   *
   * @param refusal why that cannot be used
   * @param recalled what is known of what they look at; absent: nobody could ask
   */
  takeUnsaved(tasks: readonly Task[], refusal: SmsError, recalled: Recalled = nothing): void {
    for (const task of tasks) {
      const { whileFailing } = task.step;
      if (whileFailing === 'refuse') task.reject(refusal);
      else if (whileFailing === 'postpone') this.#postponed.push(task);
      else {
        const { changes, effects } = this.#decide([task], recalled);
        this.#addUnsaved(changes, recalled);
        for (const run of effects) run(false);
      }
    }
  }

  /** Has the store forget what is outdated, in step with what comes, and when the clock was set. */
  async sweepWhenDue(): Promise<void> {
    const { setAt } = this.#skew;
    if (this.#rememberedSinceSweep < rememberedPerSweep && setAt === this.#sweptAfterSetting) return;
    this.#rememberedSinceSweep = 0;
    this.#sweptAfterSetting = setAt;
    await this.#store.sweep((remembered) => this.#skew.renew(remembered));
  }

  /** Adds what a step changes that has looked at what was recalled. */
  #addUnsaved(changes: Changes, recalled: Recalled): void {
    if (isNoChange(changes)) return;
    this.hasUnsaved = true;
    addChanges(this.#unsaved, changes);
    // What a step was based on is of no concern once it is taken.
    this.#unsaved.compare.clear();
    for (const key of changes.remember.keys()) if (!this.#bases.has(key)) this.#bases.set(key, recalled.get(key));
  }

  /**
   * All of it, brought together with what others have remembered meanwhile. In a store of one's own nobody has: what has been forgotten must
   * not come back.
   */
  #mergeUnsaved(recalled: Recalled): Changes {
    const remember = new Map(this.#unsaved.remember);
    for (const key of this.#store.shared ? remember.keys() : []) {
      const [base, theirs] = [this.#bases.get(key), recalled.get(key)];
      for (const { merge } of this.#participants.values()) {
        const mine = remember.get(key);
        if (merge && mine && (base || theirs)) remember.set(key, merge(key, { base, theirs, mine }));
      }
    }
    return { ...this.#unsaved, remember };
  }

  /** Has steps decide, and reads what they look at, until they look at nothing more. */
  async #decideOnTruth(tasks: readonly Task[]): Promise<Decided & { recalled: Recalled }> {
    const recalled = new Map<string, Remembered | undefined>();
    let asked = new Set(this.#unsaved.remember.keys());
    for (const { step } of tasks) for (const key of step.keys ?? []) asked.add(key);
    for (;;) {
      const keys = [...asked];
      const values = keys.length > 0 ? await this.#store.recall(keys) : [];
      for (const [index, key] of keys.entries()) recalled.set(key, values[index]);
      asked = new Set();
      const unsaved = this.hasUnsaved ? this.#mergeUnsaved(recalled) : undefined;
      const { changes, effects } = this.#decide(tasks, recalled, unsaved?.remember, asked);
      if (asked.size > 0) continue;
      const all = unsaved ? createChanges(unsaved, changes) : changes;
      this.#correct(recalled, all);
      return { recalled, changes: all, effects };
    }
  }

  /**
   * One that throws is left out, with all that it has changed: the others are decided anew without it. For what is not read yet nobody is to
   * blame.
   *
   * @param asked gets the keys that are looked at and not read yet; absent: they cannot be
   */
  #decide(
    tasks: readonly Task[],
    recalled: Recalled,
    unsaved: Recalled = this.#unsaved.remember,
    asked?: Set<string>,
  ): Decided {
    // What steps remember now has to be in a time that was looked at, though the clock may be set twice in a moment.
    this.#skew.look();
    for (let left = tasks; ; ) {
      const changes = createChanges();
      const look = (key: string) => {
        if (changes.remember.has(key)) return changes.remember.get(key);
        const known = unsaved.has(key) ? unsaved : recalled;
        if (!known.has(key)) asked?.add(key);
        const remembered = known.get(key);
        return remembered && this.#skew.read(remembered, this.#store.shared);
      };
      const effects: ((isWritten: boolean) => void)[] = [];
      const faulty = left.find((task) => {
        try {
          effects.push(decide(task, look, changes));
          return false;
        } catch (error) {
          if (!asked?.size) task.reject(error);
          return true;
        }
      });
      if (!faulty || asked?.size) return { changes, effects };
      left = left.filter((task) => task !== faulty);
    }
  }

  /** Has what was remembered before the clock was set written as it is read, since the next process knows nothing of that. */
  #correct(recalled: Recalled, { remember }: Changes): void {
    for (const [key, remembered] of recalled) {
      const corrected = remembered && this.#skew.correct(remembered, this.#store.shared);
      if (corrected !== remembered && !remember.has(key)) remember.set(key, corrected);
    }
  }
}

/** Returns how to run the effects and settle the task with what comes of them. */
function decide({ step, resolve, reject }: Task, look: Look, changes: Changes): (isWritten: boolean) => void {
  const effects = step.decide(look, changes);
  return (isWritten) => {
    try {
      resolve(effects(isWritten));
    } catch (error) {
      reject(error);
    }
  };
}
