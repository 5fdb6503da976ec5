import type { SmsError } from '../errors';
import { addCount } from '../store/counts';
import {
  addChanges,
  type Changes,
  createChanges,
  type Item,
  isNoChange,
  type ReadKey,
  type Remembered,
  type Store,
  StoreConflict,
} from '../store/store';
import type { ClockSkew } from './clock-skew';
import type { Participant, Step } from './step';

/** A step, with the functions that resolve or reject its promise. */
export interface Task {
  readonly step: Step<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * Number of newly remembered values after which {@link Store.sweep} is called. Each sweep checks twice as many values,
 * so that expired values do not accumulate.
 */
const rememberedPerSweep = 500;

/**
 * Values by key, as the store returned them. `undefined`: the store has no value. If a key is missing, it was not read.
 */
type RecalledValues = ReadonlyMap<string, Remembered | undefined>;

const noValues: RecalledValues = new Map();

/** The changes of a group of steps, and the effects, which are called after the commit. */
interface GroupDecision {
  changes: Changes;
  effects: ((isWritten: boolean) => void)[];
}

/** The result of a commit: the effects to call, or the error and the values that were read before the error. */
export type Commit = Pick<GroupDecision, 'effects'> | { error: unknown; recalled: RecalledValues | undefined };

/**
 * Runs steps in groups, and writes the changes of each group in one commit. While the store fails, runs steps without
 * the store, and collects their changes for a later commit.
 */
export class StepWriter {
  readonly #store: Store;
  readonly #participants: ReadonlyMap<unknown, Participant>;
  readonly #skew: ClockSkew;
  /** Whether there are changes that the store does not have yet. */
  hasUnsaved = false;
  /** Ids of the items in the store, as far as this process knows. */
  storedIds = new Set<string>();
  /** Changes of steps that ran while the store failed. */
  unsaved = createChanges();
  /** Steps that wait until the store works. */
  readonly postponed: Task[] = [];
  /**
   * Whether {@link Store.sweep} must be called. It is called at the start, after a clock change, and after every {@link
   * rememberedPerSweep} remembered values.
   */
  isSweepDue = true;
  #rememberedSinceSweep = 0;
  #sweptAfterSetting = 0;

  constructor(store: Store, participants: ReadonlyMap<unknown, Participant>, skew: ClockSkew) {
    this.#store = store;
    this.#participants = participants;
    this.#skew = skew;
  }

  /**
   * Notes that the store has these items.
   *
   * @param isOpening true if `items` are all items of this process; false if the process has just claimed them
   * @returns ids of the items that the store has lost since it was last open; none unless `isOpening`
   */
  noteItems(items: readonly Item[], isOpening: boolean): string[] {
    const formerIds = this.storedIds;
    if (isOpening) this.storedIds = new Set();
    for (const { id } of items) this.storedIds.add(id);
    return isOpening ? [...formerIds].filter((id) => !this.storedIds.has(id)) : [];
  }

  /**
   * Runs a group of steps in order, and writes their changes together with changes that are still unsaved. Never
   * rejects.
   */
  async commit(tasks: readonly Task[]): Promise<Commit> {
    for (;;) {
      let recalled: RecalledValues | undefined;
      try {
        const decision = await this.#decideOnStoredValues(tasks);
        recalled = decision.recalled;
        const allChanges = decision.changes;
        if (!isNoChange(allChanges)) await this.#store.commit(allChanges, recalled);
        if (this.hasUnsaved) this.unsaved = createChanges();
        this.hasUnsaved = false;
        this.#rememberedSinceSweep += allChanges.remember.size;
        this.isSweepDue ||=
          this.#rememberedSinceSweep >= rememberedPerSweep || this.#skew.setAt !== this.#sweptAfterSetting;
        for (const id of allChanges.keep.keys()) this.storedIds.add(id);
        for (const id of allChanges.drop.keys()) this.storedIds.delete(id);
        return { effects: decision.effects };
      } catch (error) {
        if (!(error instanceof StoreConflict)) return { error, recalled };
      }
    }
  }

  /**
   * Refuses, postpones or applies each step while the store fails.
   *
   * @param refusal the reason why the store cannot be used
   * @param recalled values that were read before the store failed; absent: none
   * @param mayReturn true if the store might soon work again, so that steps wait instead of being refused
   */
  runUnsaved(tasks: readonly Task[], refusal: SmsError, recalled: RecalledValues = noValues, mayReturn = false): void {
    for (const task of tasks) {
      const { whileFailing } = task.step;
      if (whileFailing === 'refuse' && !mayReturn) task.reject(refusal);
      else if (whileFailing !== 'apply') this.postponed.push(task);
      else {
        const { changes, effects } = this.#decide([task], recalled);
        this.#addUnsaved(changes);
        for (const run of effects) run(false);
      }
    }
  }

  async sweep(): Promise<void> {
    this.isSweepDue = false;
    this.#rememberedSinceSweep = 0;
    this.#sweptAfterSetting = this.#skew.setAt;
    await this.#store.sweep((remembered) => this.#skew.renew(remembered));
  }

  #addUnsaved(changes: Changes): void {
    if (isNoChange(changes)) return;
    this.hasUnsaved = true;
    addChanges(this.unsaved, changes);
    // Removes everything that could cause a conflict: the keys to compare, and the limits of the counts. The changes
    // must be written later in any case, because the effects of the step have already run.
    this.unsaved.compare.clear();
    for (const [key, count] of this.unsaved.count) this.unsaved.count.set(key, { ...count, limits: [] });
  }

  /** Returns the unsaved changes. In a shared store, merges them with the values that the store has now. */
  #mergeUnsaved(recalled: RecalledValues): Changes {
    const remember = new Map(this.unsaved.remember);
    for (const key of this.#store.shared ? remember.keys() : []) {
      const storeVersion = recalled.get(key);
      for (const { merge } of this.#participants.values()) {
        const ownVersion = remember.get(key);
        if (merge && ownVersion && storeVersion) remember.set(key, merge(key, { storeVersion, ownVersion }));
      }
    }
    return { ...this.unsaved, remember };
  }

  /**
   * Reads the values that the steps need, and calls `decide` of each step. If a step looks up further keys, reads these
   * keys too, and calls `decide` of all steps again.
   */
  async #decideOnStoredValues(tasks: readonly Task[]): Promise<GroupDecision & { recalled: RecalledValues }> {
    const recalled = new Map<string, Remembered | undefined>();
    let keysToRead = new Set(this.unsaved.remember.keys());
    for (const { step } of tasks) for (const key of step.keys ?? []) keysToRead.add(key);
    for (;;) {
      const keys = [...keysToRead];
      const values = keys.length > 0 ? await this.#store.recall(keys) : [];
      for (const [index, key] of keys.entries()) recalled.set(key, values[index]);
      keysToRead = new Set();
      const unsaved = this.hasUnsaved ? this.#mergeUnsaved(recalled) : undefined;
      const { changes, effects } = this.#decide(tasks, recalled, unsaved, keysToRead);
      if (keysToRead.size > 0) continue;
      const allChanges = unsaved ? createChanges(unsaved, changes) : changes;
      this.#correct(recalled, allChanges);
      return { recalled, changes: allChanges, effects };
    }
  }

  /**
   * Calls `decide` of each step. If a step throws, rejects the step, and calls `decide` of the other steps again.
   * Exception: if a step has looked up a key that is not read yet, rejects nothing. The caller then reads the key and
   * tries again.
   *
   * @param keysToRead receives the keys that are not read yet; absent: such keys count as missing in the store
   */
  #decide(
    tasks: readonly Task[],
    recalled: RecalledValues,
    unsaved: Changes = this.unsaved,
    keysToRead?: Set<string>,
  ): GroupDecision {
    // Detects a clock change first, so that the steps remember correct times.
    const now = this.#skew.noteChange();
    for (let remainingTasks = tasks; ; ) {
      const changes = createChanges();
      const readKey = (key: string) => {
        if (changes.remember.has(key)) return changes.remember.get(key);
        const values = unsaved.remember.has(key) ? unsaved.remember : recalled;
        if (!values.has(key)) keysToRead?.add(key);
        let remembered = values.get(key);
        remembered &&= this.#skew.read(remembered, this.#store.shared, now);
        for (const { count } of [unsaved, changes]) {
          const addition = count.get(key);
          if (addition) remembered = addCount(remembered?.value, addition);
        }
        return remembered;
      };
      const effects: ((isWritten: boolean) => void)[] = [];
      const faultyTask = remainingTasks.find((task) => {
        try {
          effects.push(decide(task, readKey, changes));
          return false;
        } catch (error) {
          if (!keysToRead?.size) task.reject(error);
          return true;
        }
      });
      if (!faultyTask || keysToRead?.size) return { changes, effects };
      remainingTasks = remainingTasks.filter((task) => task !== faultyTask);
    }
  }

  /**
   * Corrects the times of values that were remembered before a clock change. They are stored again, because the next
   * process does not know about the change.
   */
  #correct(recalled: RecalledValues, { remember, count }: Changes): void {
    for (const [key, remembered] of recalled) {
      const correctedValue = remembered && this.#skew.correct(remembered, this.#store.shared);
      if (correctedValue !== remembered && !remember.has(key) && !count.has(key)) remember.set(key, correctedValue);
    }
  }
}

/**
 * Calls `decide` of a step. Returns a function to call after the commit: it runs the effects, and settles the promise
 * of the step.
 */
function decide({ step, resolve, reject }: Task, readKey: ReadKey, changes: Changes): (isWritten: boolean) => void {
  const effects = step.decide(readKey, changes);
  return (isWritten) => {
    try {
      resolve(effects(isWritten));
    } catch (error) {
      reject(error);
    }
  };
}
