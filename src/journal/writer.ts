import type { Clock } from '../clock';
import type { StoreLifecycle } from '../store/lifecycle';
import {
  type Changes,
  createChanges,
  isNoChange,
  type Look,
  noChanges,
  type Remembered,
  type Store,
  StoreConflict,
} from '../store/store';
import type { NotedTimes } from './clock-skew';
import type { Keepers } from './keeper';
import type { Task } from './step';
import { type Recalled, Unsaved } from './unsaved';

/** A sweep looks at twice as many as were remembered since the last, so that it keeps up. */
const rememberedPerSweep = 500;

/** A presumption costs as much as it compares when it does not hold. Steps that look at more share the round trip of asking. */
const mostPresumed = 64;

/** What steps change together, and what follows when it is written. */
interface Decided {
  changes: Changes;
  effects: ((isWritten: boolean) => void)[];
}

/** Takes steps, a group of them in one commit, and without the store while that fails. */
export class StepWriter {
  readonly #store: Store;
  readonly #lifecycle: StoreLifecycle;
  readonly #keepers: Keepers;
  readonly #times: NotedTimes;
  readonly #unsaved: Unsaved;
  #postponed: Task[] = [];
  #rememberedSinceSweep = rememberedPerSweep;
  #sweptAfterSetting = 0;

  constructor(store: Store, lifecycle: StoreLifecycle, keepers: Keepers, times: NotedTimes) {
    this.#store = store;
    this.#lifecycle = lifecycle;
    this.#keepers = keepers;
    this.#times = times;
    this.#unsaved = new Unsaved(keepers, store.shared === true);
  }

  get hasUnsaved(): boolean {
    return !this.#unsaved.isEmpty;
  }

  /** Whether something is unsaved that the store may take now. */
  get canSave(): boolean {
    return this.#lifecycle.mode === 'open' && this.hasUnsaved;
  }

  /** Whether it will not be in the store any more when that is back. */
  isDropped(id: string): boolean {
    return this.#unsaved.drops(id);
  }

  /** Whether something is remembered that is not in the store. */
  get hasUnwritten(): boolean {
    return this.#unsaved.remembered.size > 0;
  }

  /** What is remembered and not in the store. */
  readonly unwritten: Look = (key) => this.#unsaved.remembered.get(key);

  /** Nothing is written any more of items that another process has taken over. */
  disown(ids: Iterable<string>): void {
    this.#unsaved.disown(ids);
  }

  takePostponed(): Task[] {
    return this.#postponed.splice(0);
  }

  /** Takes a group of steps, in their order, and saves what is unsaved along with them. Never rejects. */
  async write(tasks: readonly Task[]): Promise<void> {
    let found: Recalled = new Map();
    for (let isFirst = true; ; isFirst = false) {
      const presumed = isFirst ? this.#presume(tasks) : undefined;
      const recalled = presumed ?? (await this.#recall(tasks, found));
      if (this.#lifecycle.mode !== 'open') return this.#writeLater(tasks, recalled, { isRecalled: false });
      const unsaved = this.hasUnsaved ? this.#unsaved.mergedWith(recalled) : undefined;
      const decided = this.#decide(tasks, recalled, { unsaved: unsaved?.remember, isPresumed: presumed !== undefined });
      // A presumption that changes nothing is compared with nothing.
      if (!decided || (presumed && isNoChange(decided.changes))) continue;
      const { changes, effects } = decided;
      const all = unsaved ? createChanges(unsaved, changes) : changes;
      try {
        if (!isNoChange(all)) await this.#store.commit(all, recalled, presumed !== undefined);
      } catch (error) {
        if (error instanceof StoreConflict) {
          found = error.found;
          continue;
        }
        this.#lifecycle.fail(error);
        return this.#writeLater(tasks, recalled, { isRecalled: true });
      }
      if (unsaved) this.#unsaved.clear();
      this.#rememberedSinceSweep += all.remember.size;
      this.#lifecycle.recovered();
      for (const run of effects) run(true);
      this.#keepers.saved(all.keep);
      return;
    }
  }

  /** Has the store forget what is outdated, in step with what comes, and when the clock was set. */
  async sweepWhenDue(clock: Clock): Promise<void> {
    const { setAt } = this.#times;
    const isDue = this.#rememberedSinceSweep >= rememberedPerSweep || setAt !== this.#sweptAfterSetting;
    if (this.#lifecycle.mode !== 'open' || !isDue) return;
    this.#rememberedSinceSweep = 0;
    this.#sweptAfterSetting = setAt;
    await this.#store.sweep(clock.now(), this.#times).catch((error: unknown) => this.#lifecycle.fail(error));
  }

  /**
   * That nothing is known of what steps look at, as of most messages: where to ask takes a round trip, a commit finds out by itself.
   * What is unsaved is brought together with what is known.
   */
  #presume(tasks: readonly Task[]): Recalled | undefined {
    if (!this.#store.shared || this.hasUnwritten) return undefined;
    const presumed = new Map<string, undefined>();
    for (const { step } of tasks) for (const key of step.keys) presumed.set(key, undefined);
    const look = this.#look(noChanges, presumed);
    for (const task of tasks) for (const key of task.further(look)) presumed.set(key, undefined);
    return presumed.size <= mostPresumed ? presumed : undefined;
  }

  /** @param found what a conflict has told already */
  async #recall(tasks: readonly Task[], found: Recalled): Promise<Recalled> {
    const recalled = new Map<string, Remembered | undefined>();
    const look = this.#look(noChanges, recalled);
    let keys = [...this.#unsaved.contested];
    for (const { step } of tasks) for (const key of step.keys) keys.push(key);
    try {
      while (this.#lifecycle.mode === 'open') {
        const asked: string[] = [];
        for (const key of keys) {
          if (recalled.has(key)) continue;
          recalled.set(key, found.get(key));
          if (!found.has(key)) asked.push(key);
        }
        const values = asked.length > 0 ? await this.#store.recall(asked) : [];
        for (let index = 0; index < asked.length; index++) recalled.set(asked[index] ?? '', values[index]);
        keys = [];
        for (const task of tasks) for (const key of task.further(look)) if (!recalled.has(key)) keys.push(key);
        if (keys.length === 0) break;
      }
      return recalled;
    } catch (error) {
      this.#lifecycle.fail(error);
      return new Map();
    }
  }

  /**
   * One that throws is left out, with all that it has changed: the others are decided anew without it. For what is only
   * presumed nobody is to blame: it is `undefined` then.
   */
  #decide(
    tasks: readonly Task[],
    recalled: Recalled,
    { unsaved, isPresumed = false }: { unsaved?: Recalled | undefined; isPresumed?: boolean } = {},
  ): Decided | undefined {
    for (let left = tasks; ; ) {
      const changes = this.#correct(recalled, unsaved);
      const look = this.#look(changes, recalled, unsaved);
      const effects: ((isWritten: boolean) => void)[] = [];
      const faulty = left.find((task) => {
        try {
          effects.push(task.decide(look, changes));
          return false;
        } catch (error) {
          if (!isPresumed) task.reject(error);
          return true;
        }
      });
      if (faulty && isPresumed) return undefined;
      if (!faulty) return { changes, effects };
      left = left.filter((task) => task !== faulty);
    }
  }

  /** Takes each as it may be taken without the store. */
  #writeLater(tasks: readonly Task[], recalled: Recalled, { isRecalled }: { isRecalled: boolean }): void {
    for (const task of tasks) {
      const { whileFailing, needsLook = false } = task.step;
      if (whileFailing === 'refuse' || (needsLook && !isRecalled)) {
        task.reject(this.#lifecycle.unavailable());
      } else if (whileFailing === 'postpone') {
        this.#postponed.push(task);
        task.step.postponed?.();
      } else {
        const decided = this.#decide([task], recalled);
        if (decided) this.#unsaved.add(decided.changes, recalled);
        for (const run of decided?.effects ?? []) run(false);
      }
    }
  }

  /** Has what was remembered before the clock was set written as it is read, since the next process knows nothing of that. */
  #correct(recalled: Recalled, unsaved: Recalled = this.#unsaved.remembered): Changes {
    const changes = createChanges();
    for (const [key, remembered] of recalled) {
      const corrected = remembered && this.#times.correct(remembered, this.#store.shared);
      if (corrected !== remembered && !unsaved.has(key)) changes.remember.set(key, corrected);
    }
    return changes;
  }

  #look({ remember }: Changes, recalled: Recalled, unsaved: Recalled = this.#unsaved.remembered): Look {
    return (key) => {
      if (remember.has(key)) return remember.get(key);
      const remembered = unsaved.has(key) ? unsaved.get(key) : recalled.get(key);
      return remembered && this.#times.read(remembered, this.#store.shared);
    };
  }
}
