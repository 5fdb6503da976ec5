import { addChanges, type Changes, createChanges, isNoChange, noChanges, type Remembered } from '../store/store';
import type { Keepers } from './keeper';

/** What was found under keys; `undefined` where nothing is. A key that is missing was not asked for, or could not be. */
export type Recalled = ReadonlyMap<string, Remembered | undefined>;

/** Changes of steps that were taken without the store. */
export class Unsaved {
  readonly #keepers: Keepers;
  readonly #isShared: boolean;
  #changes = noChanges;
  /** What the first of them that remembers something under a key has found there; nothing, where the store could not be asked. */
  readonly #bases = new Map<string, Remembered | undefined>();

  constructor(keepers: Keepers, isShared: boolean) {
    this.#keepers = keepers;
    this.#isShared = isShared;
  }

  get isEmpty(): boolean {
    return isNoChange(this.#changes);
  }

  /** What they remember, and do not keep or drop. */
  get remembered(): Changes['remember'] {
    return this.#changes.remember;
  }

  /** Keys that others may have changed since. */
  get contested(): readonly string[] {
    return this.#isShared ? [...this.remembered.keys()] : [];
  }

  /** Whether an item will not be in the store any more when that is back. */
  drops(id: string): boolean {
    return this.#changes.drop.has(id);
  }

  /** Adds what a step changes that has looked at what was recalled. */
  add(changes: Changes, recalled: Recalled): void {
    if (this.#isShared) {
      for (const key of changes.remember.keys()) if (!this.#bases.has(key)) this.#bases.set(key, recalled.get(key));
    }
    if (this.#changes === noChanges) this.#changes = createChanges();
    addChanges(this.#changes, changes);
  }

  /** These are another process's now, which has them as it found them. */
  disown(ids: Iterable<string>): void {
    for (const id of ids) this.#changes.keep.delete(id);
  }

  /** All of it, brought together with what others have remembered meanwhile, as was just recalled. */
  mergedWith(recalled: Recalled): Changes {
    const remember = new Map(this.remembered);
    for (const key of this.contested) {
      const [mine, base, theirs] = [remember.get(key), this.#bases.get(key), recalled.get(key)];
      if (mine && (base || theirs)) remember.set(key, this.#keepers.merge(key, { base, theirs, mine }));
    }
    return { ...this.#changes, remember };
  }

  /** All of it is in the store. */
  clear(): void {
    this.#changes = noChanges;
    this.#bases.clear();
  }
}
