import type { Clock, Timer } from './clock';
import type { SmsError } from './errors';
import { ItemIds } from './item-ids';
import { type Circumstances, type Keeper, Keepers } from './keeper';
import { createTask, type Step, StepWriter, type Task } from './step';
import { StoreLifecycle, type StoreMode } from './store/lifecycle';
import type { Item, Part, Remembered, Store } from './store/store';

export type { Keeper } from './keeper';
export type { Step, WhileFailing } from './step';

/** What a journal needs. */
export interface JournalOptions {
  store: Store;
  clock: Clock;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** Something in the store could not be read and is set aside; `place` says where it is now, and nothing of its content. */
  onUnreadable?(place: string): void;
  /** How long to wait before a store that has failed is opened again; 5 s when absent. */
  reopenDelayMs?: number;
}

const largestGroup = 256;
const longestLazyMs = 25;

/**
 * Knows when something is written and whether the store is open: takes one {@link Step} after the other, as many of them
 * in one commit as come in one turn of the event loop or while a commit runs, opens the store again when it has failed, and tells
 * its keepers what is found there. It knows nothing of what it writes.
 */
export class Journal {
  readonly isShared: boolean;
  readonly isDurable: boolean;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onUnreadable: (place: string) => void;
  readonly #keepers = new Keepers();
  readonly #lifecycle: StoreLifecycle;
  readonly #writer: StepWriter;
  readonly #ids: ItemIds;
  #queue: Task[] = [];
  /** What comes before any step. */
  #errands: (() => Promise<void>)[] = [];
  #working: Promise<void> | undefined;
  #lazy: Timer | undefined;
  /** Nobody has asked since for the store to be open. */
  #isClosing = false;

  constructor({ store, clock, onStore, onUnreadable = () => {}, reopenDelayMs }: JournalOptions) {
    this.isShared = store.shared === true;
    this.isDurable = store.durable;
    this.#store = store;
    this.#clock = clock;
    this.#onUnreadable = onUnreadable;
    const onRetry = () => this.#doFirst(() => this.#open());
    this.#lifecycle = new StoreLifecycle({ store, clock, onStore, onRetry, reopenDelayMs });
    this.#writer = new StepWriter(store, this.#lifecycle, this.#keepers);
    this.#ids = new ItemIds(clock);
  }

  get mode(): StoreMode {
    return this.#lifecycle.mode;
  }

  /** Why the store cannot be used now, if so. */
  get failure(): SmsError | undefined {
    return this.#lifecycle.failure;
  }

  /** How long after its opening a store has taken over everything that dead processes held. */
  get takeOverMs(): number {
    return this.#store.takeOverMs ?? 0;
  }

  /** Whether nothing waits to be written. */
  get isWritten(): boolean {
    return this.#queue.length === 0 && !this.#writer.hasUnsaved;
  }

  /** Makes a room one of those that keep here. Has to be called before the journal is opened. */
  join(part: Part, keeper: Keeper): void {
    this.#keepers.join(part, keeper);
  }

  /** Opens the store if it is closed, and finds what an earlier process left. Failures go to `onStore`. */
  open(): void {
    this.#isClosing = false;
    this.#work();
  }

  /**
   * Resolves when the store is open, so that what is read can be kept.
   *
   * @throws SmsError `SMS_STORE` when it cannot be used
   */
  async ready(): Promise<void> {
    if (this.mode !== 'open' && !this.failure) {
      this.open();
      await this.flush();
    }
    if (this.failure) throw this.failure;
  }

  /** Resolves when nothing is being written any more. */
  async flush(): Promise<void> {
    while (this.#working || this.#queue.length > 0) {
      if (!this.#working) this.#work();
      await this.#working;
    }
  }

  /** Writes what is unwritten and closes the store, unless it is opened again meanwhile. */
  async close(): Promise<void> {
    this.#isClosing = true;
    // A step may come while the store is being closed, and opens it again.
    do {
      await this.flush();
      if (!this.#isClosing) return;
      // Somebody else who closes it may have been faster.
      if (this.#working) continue;
      this.#working = this.#closeStore().finally(() => {
        this.#working = undefined;
        if (this.#hasWork || !this.#isClosing) this.#work();
      });
      await this.#working;
    } while (this.#working || this.mode !== 'closed');
  }

  /**
   * Takes a step, after those that came before. Resolves with what its effects return.
   *
   * @throws SmsError `SMS_STORE` when it is refused while the store fails or is being closed
   */
  run<Result>(step: Step<Result>): Promise<Result> {
    if (step.whileFailing === 'refuse' && this.#isClosing) return Promise.reject(this.#lifecycle.unavailable());
    const { result, ...task } = createTask(step);
    this.#queue.push(task);
    if (!step.lazy) this.#work();
    else if (!this.#working) this.#lazy ??= this.#clock.after(longestLazyMs, () => this.#work());
    return result;
  }

  /** Everything that is remembered under keys that begin so, if the store is open. */
  remembered(prefixes: readonly string[]): Promise<[key: string, remembered: Remembered][]> {
    return new Promise((resolve, reject) => {
      this.#doFirst(async () => {
        if (this.mode === 'open') await this.#store.list(prefixes).then(resolve, reject);
        else resolve([]);
      });
    });
  }

  /** Puts what `format` returns where a crash does not reach it, as far as the store can. See {@link Store.hold}. */
  hold(format: () => string): () => void {
    return this.#store.hold?.(format()) ?? (() => {});
  }

  /** An id for a new item: ascending with time, unique among processes. */
  nextId(): string {
    return this.#ids.next();
  }

  get #hasWork(): boolean {
    const canSave = this.mode === 'open' && this.#writer.hasUnsaved;
    return this.#errands.length > 0 || this.#queue.length > 0 || canSave;
  }

  #doFirst(errand: () => Promise<void>): void {
    this.#errands.push(errand);
    this.#work();
  }

  #work(): void {
    this.#lazy?.cancel();
    this.#lazy = undefined;
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined;
      if (this.#hasWork) this.#work();
    });
  }

  async #workOff(): Promise<void> {
    // What is asked for in the same turn of the event loop shares a commit.
    await undefined;
    if (this.mode === 'closed') await this.#open();
    while (this.#hasWork) {
      const errand = this.#errands.shift();
      if (errand) {
        await errand();
      } else {
        const group = this.#queue.splice(0, largestGroup);
        await this.#writer.write(group);
        await this.#writer.sweepWhenDue(this.#clock);
        if (group.length === largestGroup) await new Promise<void>((resolve) => void this.#clock.nextTurn(resolve));
      }
    }
    await this.#writer.sweepWhenDue(this.#clock);
  }

  async #open(): Promise<void> {
    // What was taken over before it failed is found again, or has been taken over by another since.
    this.#errands = [];
    const leftovers = await this.#lifecycle.open({
      onTakenOver: (items) => this.#doFirst(() => this.#find(items, { isReset: false, isOpening: false })),
      wanted: () => this.#keepers.wanted(),
      isReadable: (item) => this.#keepers.isReadable(item),
      onUnreadable: this.#onUnreadable,
    });
    if (!leftovers) return;
    const { items, held, isReset = false } = leftovers;
    await this.#find(items, { isReset, isOpening: true });
    // What an earlier process held came before what was put off, and that before what waits.
    const waiting = this.#queue.splice(0);
    for (const one of held) {
      const place = this.#keepers.recover(one);
      if (place !== undefined) this.#onUnreadable(place);
    }
    this.#queue = [...this.#queue, ...this.#writer.takePostponed(), ...waiting];
    if (!this.#writer.hasUnsaved) this.#lifecycle.recovered();
  }

  async #find(items: readonly Item[], circumstances: Omit<Circumstances, 'unwritten'>): Promise<void> {
    this.#ids.follow(items);
    const dropped = new Set(this.#queue.flatMap(({ step: { drops = [] } }) => drops));
    const isLeft = ({ id }: Item) => !dropped.has(id) && !this.#writer.isDropped(id);
    await this.#keepers.found(items.filter(isLeft), { ...circumstances, unwritten: this.#writer.unwritten });
  }

  async #closeStore(): Promise<void> {
    if (this.mode === 'open' && this.isDurable) this.#keepers.letGo((id) => this.#writer.isUnsaved(id));
    await this.#lifecycle.close();
  }
}
