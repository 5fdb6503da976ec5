import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import { StoreLifecycle, type StoreMode } from '../store/lifecycle';
import type { Hold, Part, Remembered, Store } from '../store/store';
import { Supply } from './backlog';
import { NotedTimes } from './clock-skew';
import { ItemIds } from './item-ids';
import { type Keeper, Keepers } from './keeper';
import { createTask, type Step } from './step';
import { StepQueue } from './step-queue';
import { StoreSession } from './store-session';
import { StepWriter } from './writer';

export type { Keeper } from './keeper';
export type { Step, WhileFailing } from './step';

/** What a journal needs. */
export interface JournalOptions {
  store: Store;
  clock: Clock;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** Steps have been taken, or the store has been read, and what comes of it is done. */
  onSteps?(): void;
  /** Something in the store could not be read and is set aside; `place` says where it is now, and nothing of its content. */
  onUnreadable?(place: string): void;
  /** How long to wait before a store that has failed is opened again; 5 s when absent. */
  reopenDelayMs?: number;
}

/**
 * Knows when something is written and whether the store is open: takes one {@link Step} after the other, as many of them
 * in one commit as come in one turn of the event loop or while a commit runs, opens the store again when it has failed, and tells
 * its keepers what is found there. It knows nothing of what it writes.
 */
export class Journal {
  readonly isShared: boolean;
  readonly isDurable: boolean;
  readonly supply: Supply;
  readonly #store: Store;
  readonly #keepers = new Keepers();
  readonly #lifecycle: StoreLifecycle;
  readonly #writer: StepWriter;
  readonly #ids: ItemIds;
  readonly #steps: StepQueue;
  readonly #session: StoreSession;
  /** Nobody has asked since for the store to be open. */
  #isClosing = false;

  constructor({ store, clock, onStore, onSteps = () => {}, onUnreadable = () => {}, reopenDelayMs }: JournalOptions) {
    this.isShared = store.shared === true;
    this.isDurable = store.durable;
    this.#store = store;
    const onRetry = () => this.#steps.doFirst(() => this.#session.open());
    this.#lifecycle = new StoreLifecycle({ store, clock, onStore, onRetry, reopenDelayMs });
    this.#writer = new StepWriter(store, this.#lifecycle, this.#keepers, NotedTimes.of(clock));
    this.#ids = new ItemIds(clock);
    this.#steps = new StepQueue(clock, this.#writer, {
      begin: async () => {
        if (this.mode === 'closed') await this.#session.open();
      },
      onTaken: onSteps,
    });
    this.#session = new StoreSession({
      lifecycle: this.#lifecycle,
      keepers: this.#keepers,
      writer: this.#writer,
      steps: this.#steps,
      ids: this.#ids,
      onUnreadable,
    });
    const isUsable = () => this.mode === 'open' && !this.#isClosing;
    this.supply = new Supply({ store, steps: this.#steps, session: this.#session, isUsable });
  }

  get mode(): StoreMode {
    return this.#lifecycle.mode;
  }

  /** Why the store cannot be used now, if so. */
  get failure(): SmsError | undefined {
    return this.#lifecycle.failure;
  }

  /** Whether nothing waits to be written. */
  get isWritten(): boolean {
    return this.#steps.isEmpty && !this.#writer.hasUnsaved;
  }

  /** Makes a room one of those that keep here. Has to be called before the journal is opened. */
  join(part: Part, keeper: Keeper): void {
    this.#keepers.join(part, keeper);
  }

  /**
   * Opens the store if it is closed, and finds what an earlier process left. Failures go to `onStore`.
   *
   * @param isToFind nobody keeps anything: only if there may be something to find
   */
  open(isToFind = false): void {
    if (isToFind && !this.#store.mayHold) return;
    this.#isClosing = false;
    this.#steps.work();
  }

  /** Whether all that is in the store is known. Opens it if not, unless there is nothing to find. */
  find(): boolean {
    if (this.#session.isRead) return true;
    this.open(true);
    return !this.#steps.isWorking;
  }

  /**
   * Resolves when the store is open, so that what is read can be kept.
   *
   * @throws SmsError `SMS_STORE` when it cannot be used
   */
  async ready(): Promise<void> {
    // Whoever is about to close it has not begun to.
    const isUsable = this.mode === 'open' && !this.#isClosing;
    if (!isUsable && !this.failure) {
      this.open();
      await this.flush();
    }
    if (this.failure) throw this.failure;
  }

  /** Resolves when nothing is being written any more. */
  flush(): Promise<void> {
    return this.#steps.flush();
  }

  /** Writes what is unwritten and closes the store, unless it is opened again meanwhile. */
  async close(): Promise<void> {
    this.#isClosing = true;
    // A step may come while the store is being closed, and opens it again.
    do {
      await this.flush();
      if (!this.#isClosing) return;
      // Somebody else who closes it may have been faster, or a step that can wait has just come.
      if (this.#steps.isWorking || !this.#steps.isEmpty) continue;
      const { isDurable } = this;
      await this.#steps.interpose(
        () => this.#session.close({ isDurable }),
        () => !this.#isClosing,
      );
    } while (this.#steps.isWorking || !this.#steps.isEmpty || this.mode !== 'closed');
  }

  /**
   * Takes a step, after those that came before. Resolves with what its effects return.
   *
   * @throws SmsError `SMS_STORE` when it is refused while the store fails or is being closed
   */
  run<Result>(step: Step<Result>): Promise<Result> {
    if (step.whileFailing === 'refuse' && this.#isClosing) return Promise.reject(this.#lifecycle.unavailable());
    const { task, result } = createTask(step);
    this.#steps.add(task);
    return result;
  }

  /**
   * Everything that is remembered under keys that begin so.
   *
   * @throws SmsError `SMS_STORE` when the store cannot be used
   */
  remembered(prefixes: readonly string[]): Promise<[key: string, remembered: Remembered][]> {
    return new Promise((resolve, reject) => {
      this.#steps.doFirst(async () => {
        if (this.mode !== 'open') return reject(this.#lifecycle.unavailable());
        try {
          resolve(await this.#store.list(prefixes));
        } catch (error) {
          this.#lifecycle.fail(error);
          reject(this.#lifecycle.unavailable());
        }
      });
    });
  }

  /** Puts what `format` returns where a crash does not reach it, if the store can. See {@link Store.hold}. */
  hold(format: () => string, notes?: string): Hold | undefined {
    return this.#store.hold?.(format(), notes);
  }

  /** Another process has taken these over: what has changed of them while the store failed would put them there again. */
  disown(ids: Iterable<string>): void {
    this.#writer.disown(ids);
  }

  /** An id for a new item: ascending with time, unique among processes. */
  nextId(): string {
    return this.#ids.next();
  }
}
