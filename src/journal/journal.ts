import { type Clock, nextTurn, type Timer } from '../clock';
import { SmsError } from '../errors';
import {
  asStoreError,
  type Item,
  type ItemKind,
  idTimeLength,
  keepItem,
  maxBytes,
  type PendingWrite,
  type RecoveredState,
  type RecoveredWrite,
  type Store,
  type StoreEvents,
  StoreLapse,
  timeOf,
} from '../store/store';
import { ClockSkew } from './clock-skew';
import { canFollow, type JournalMode } from './journal-mode';
import { createChange, type Participant, type Step } from './step';
import { StepWriter, type Task } from './writer';

export type { Participant, Step, WhileFailing } from './step';

/** Options of a {@link Journal}. */
export interface JournalOptions {
  store: Store;
  clock: Clock;
  /** Called with an error if the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** Called each time that the journal has opened the store, passed claimed items to participants, or run steps. */
  onSteps?(): void;
  /** Called when damaged data was found in the store and quarantined. The error contains none of the data. */
  onDamaged?(error: SmsError): void;
  /** Called before each opening of the store. If it rejects, the opening fails. */
  prepare?(events: StoreEvents): Promise<void>;
}

/** Delay before a failed store is opened again, in ms, unless a step needs it earlier. */
const reopenDelayMs = 5_000;

/** Delays before a failed shared store is opened again, in ms. Short, because often only the connection was cut. */
const sharedDelaysMs = [0, 250, 1_000];

/** Time from the failure of a shared store until steps that need it are refused instead of waiting, in ms. */
const sharedGraceMs = 2_000;

/**
 * If a shared store fails again within this time after its last failure, in ms, the same outage continues. After a
 * successful write, any failure starts a new outage.
 */
const newOutageMs = 10_000;

/** Maximum number of steps in one commit. */
const maxGroupSize = 256;

/**
 * Runs each {@link Step} in the order of the requests, and writes its changes. Steps of the same turn of the event loop
 * share a commit. Steps that arrive during a commit share the next one.
 *
 * The journal reopens a failed store. It passes the items in the store to its participants, which are the parts of the
 * library that own the items. It does not interpret items or values.
 */
export class Journal {
  readonly isShared: boolean;
  readonly isDurable: boolean;
  readonly clock: Clock;
  readonly #options: JournalOptions;
  readonly #participants = new Map<ItemKind, Participant>();
  readonly #writer: StepWriter;
  /** Highest time that an id contains so far, in µs since 1970. */
  #lastIdAt = 0;
  /** Distinguishes the ids of processes that share a store. */
  readonly #idSuffix: string;
  /** Requested steps, in order. */
  #queue: Task[] = [];
  /** Items that the open store has claimed from dead processes, and that no participant has received yet. */
  #claimedItems: Item[] = [];
  #whenIdle: Promise<void> | undefined;
  #mode: JournalMode = 'closed';
  /** The last error of the store. Stays set until a write succeeds. */
  failure: SmsError | undefined;
  /** The last damaged data that was found in the store. */
  damage: SmsError | undefined;
  #retryTimer: Timer | undefined;
  /** Number of times that a shared store was opened again in this outage. */
  #tries = 0;
  /** Time of the last failure of a shared store, in ms of {@link Clock.elapsed}. */
  #lastFailedAt = Number.NEGATIVE_INFINITY;
  /** While this timer runs, steps that need the store wait until it works, instead of being refused. */
  #graceTimer: Timer | undefined;
  /** False after {@link close}. The store is then closed as soon as all changes are written. */
  #isWanted = true;
  /** Whether the participants have received all items in the store. */
  #isRead = false;
  /**
   * True after the participants have removed their items from memory. They receive the items again when the store
   * opens.
   */
  #isReleased = false;

  constructor(options: JournalOptions) {
    const { store, clock } = options;
    this.#options = options;
    this.isShared = store.shared === true;
    this.isDurable = store.durable;
    this.clock = clock;
    this.#writer = new StepWriter(store, this.#participants, ClockSkew.of(clock));
    const random = Math.floor(clock.random() * 2 ** 32);
    this.#idSuffix = random.toString(16).padStart(8, '0');
  }

  get mode(): JournalMode {
    return this.#mode;
  }

  /** Whether the store can be used. */
  get isOpen(): boolean {
    return this.#mode === 'open' || this.#mode === 'unproven';
  }

  /** Whether nothing waits to be written. */
  get isWritten(): boolean {
    return this.#queue.length === 0 && !this.#writer.hasUnsaved && this.#writer.postponed.length === 0;
  }

  /** Adds a participant. Call it before the journal is opened. */
  join(part: ItemKind, participant: Participant): void {
    this.#participants.set(part, participant);
  }

  /** Allows the store to be opened again after {@link close}, at the next request. */
  begin(): void {
    this.#isWanted = true;
  }

  /** Opens the store if it is closed. `onStore` receives failures. */
  open(): void {
    this.begin();
    this.#work();
  }

  /**
   * Returns true if the inbox and the outbox have read all items in the store, or the store has no items. Otherwise,
   * opens the store and returns false.
   */
  ensureRead(): boolean {
    if (this.#isRead) return true;
    if (this.isShared || this.mayHold) this.open();
    return this.#whenIdle === undefined;
  }

  /**
   * Resolves when the store is open. Called before an answer of the service has to be saved.
   *
   * @throws SmsError `SMS_STORE` if the store cannot be used
   */
  async ready(): Promise<void> {
    if (!this.isOpen || !this.#isWanted) {
      // Opens a failed store again, because it might work by now.
      if (this.#mode === 'failed') this.#setMode('due');
      this.open();
      await this.flush();
    }
    if (this.failure) throw this.failure;
  }

  /** Resolves when the journal is not writing. */
  async flush(): Promise<void> {
    while (this.#whenIdle) await this.#whenIdle;
  }

  /**
   * Opens the store again, even if it is open. If an opening is under way, opens the store again afterwards, unless the
   * journal is closed by then.
   */
  reopen(): void {
    this.begin();
    if (canFollow(this.#mode, 'due')) this.#setMode('due');
    else if (this.#mode.endsWith('opening')) void this.flush().then(() => this.#isWanted && this.reopen());
    this.#work();
  }

  /** Writes all changes and closes the store, unless it is opened again in the meantime. */
  async close(): Promise<void> {
    this.#isWanted = false;
    this.#work();
    await this.flush();
  }

  /**
   * Runs a step after all steps that were requested earlier. Resolves with the result of its effects.
   *
   * @throws SmsError `SMS_STORE` if the step is refused because the store fails or is closing
   */
  run<Result>(step: Step<Result>): Promise<Result> {
    if (step.whileFailing === 'refuse' && !this.#isWanted) return Promise.reject(this.#unavailable());
    return new Promise((resolve, reject) => {
      this.#enqueue({ step, resolve: resolve as (result: unknown) => void, reject });
    });
  }

  /**
   * Saves a text synchronously. After a crash, the next process receives the text by {@link Participant.replay}, unless
   * the text was removed before. Returns `undefined` if the store cannot save texts in this way, or the write fails.
   */
  saveAhead(text: string): PendingWrite | undefined {
    return this.#options.store.saveAhead?.(text);
  }

  /** Runs all postponed steps again. Steps that must wait longer are postponed again. */
  requestPostponed(): void {
    for (const task of this.#writer.postponed.splice(0)) this.#enqueue(task);
  }

  /** See {@link Store.mayHold}. Also true if the store has items of this process. */
  get mayHold(): boolean | undefined {
    return this.#writer.storedIds.size > 0 || this.#options.store.mayHold;
  }

  /** Returns an id for a new item. Ids ascend with time, and no two processes create the same id. */
  nextId(): string {
    this.#lastIdAt = Math.max(this.#lastIdAt + 1, Math.floor(this.clock.now() * 1_000));
    return this.#lastIdAt.toString(36).padStart(idTimeLength, '0') + this.#idSuffix;
  }

  #enqueue(task: Task): void {
    this.#queue.push(task);
    this.#work();
  }

  get #hasWork(): boolean {
    if (this.#isToOpen || this.#queue.length > 0) return true;
    return this.isOpen && (this.#claimedItems.length > 0 || this.#writer.hasUnsaved);
  }

  /** Whether the store must be opened again before anything else happens. */
  get #isToOpen(): boolean {
    return this.#mode === 'lapsed' || this.#mode === 'due';
  }

  /** Starts to process the queue, unless that is already under way. */
  #work(): void {
    this.#whenIdle ??= this.#workOff().finally(() => {
      this.#whenIdle = undefined;
      if (this.#hasWork || (!this.#isWanted && this.#mode !== 'closed')) this.#work();
    });
  }

  async #workOff(): Promise<void> {
    // Waits, so that steps of one turn of the event loop share a commit.
    await undefined;
    do {
      if (this.#isToOpen || (this.#mode === 'closed' && (this.#hasWork || this.#isWanted))) await this.#open();
      else if (this.isOpen && this.#claimedItems.length > 0) await this.#passItems(this.#claimedItems.splice(0), false);
      else if (this.#hasWork) await this.#runNext();
      if (this.isOpen && this.#writer.isSweepDue) await this.#writer.sweep().catch((error) => this.#fail(error));
      this.#options.onSteps?.();
      if (!this.#isWanted && !this.#hasWork) await this.#close();
    } while (this.#hasWork || (this.#mode === 'closed' && this.#isWanted));
  }

  /** Runs the next steps. */
  async #runNext(): Promise<void> {
    let [count, bytes] = [0, 0];
    for (const { step } of this.#queue) {
      if (count === maxGroupSize || bytes >= maxBytes) break;
      count++;
      bytes += step.bytes ?? 0;
    }
    await this.#runTasks(this.#queue.splice(0, count));
    if (count === maxGroupSize || bytes >= maxBytes) await nextTurn(this.clock);
  }

  /**
   * Runs steps, and commits their changes together. While the store fails, treats each step as its {@link
   * Step.whileFailing} says.
   */
  async #runTasks(tasks: readonly Task[]): Promise<void> {
    if (!this.isOpen)
      return this.#writer.runUnsaved(tasks, this.#unavailable(), undefined, this.#graceTimer !== undefined);
    const commit = await this.#writer.commit(tasks);
    if ('error' in commit) {
      if (this.#openAgain(commit.error)) {
        this.#queue.unshift(...tasks);
        return;
      }
      this.#fail(commit.error);
      this.#writer.runUnsaved(tasks, this.#unavailable(), commit.recalled, this.#graceTimer !== undefined);
    } else {
      if (this.#mode === 'unproven') this.#setMode('open');
      this.#lastFailedAt = Number.NEGATIVE_INFINITY;
      this.#recovered();
      for (const run of commit.effects) run(true);
    }
  }

  /** Opens the store, and passes its items to the participants. */
  async #open(): Promise<void> {
    this.#setMode(this.#mode === 'lapsed' ? 'reopening' : 'opening');
    const recoveredState = await this.#openStore();
    if (!recoveredState) return;
    const { items, pendingWrites, isReset = false } = recoveredState;
    await this.#passItems(items, true, isReset);
    this.#isRead = true;
    this.#isReleased = false;
    // Replays the saved texts of an earlier process first, because they are older than the waiting steps.
    const waitingTasks = this.#queue.splice(0);
    for (const one of pendingWrites) this.#replay(one);
    this.#queue = [...this.#queue, ...this.#writer.postponed.splice(0), ...waitingTasks];
    if (!this.#writer.hasUnsaved) this.#recovered();
    // Runs the steps of the replayed texts before the first sweep, because the sweep removes expired values, by which
    // these steps recognise duplicates.
    if (this.#queue.length > 0 && !this.#isToOpen) await this.#runNext();
  }

  /**
   * Returns whether an item from the store must not be passed to its participant, because the participant has already
   * dropped it. The drop might not be written yet.
   */
  #isForgotten({ id, part }: Item): boolean {
    const { unsaved, storedIds } = this.#writer;
    if (unsaved.drop.has(id)) return true;
    const isKept = storedIds.has(id) || unsaved.keep.has(id);
    return !this.#isReleased && isKept && !this.#participants.get(part)?.itemOf?.(id);
  }

  #replay(write: RecoveredWrite): void {
    const isKnown = [...this.#participants.values()].some((participant) => participant.replay?.(write));
    if (!isKnown) this.#quarantine(write.quarantine());
  }

  #quarantine(place: string): void {
    this.#report(new SmsError('storeUnreadable', { params: { place } }));
  }

  #report(damage: SmsError): void {
    this.damage = damage;
    this.#options.onDamaged?.(damage);
  }

  async #openStore(): Promise<RecoveredState | undefined> {
    // Discards items that were claimed before the store failed, and that no participant has received. This opening
    // returns them again, unless another process has claimed them.
    const claimedItems: Item[] = [];
    this.#claimedItems = claimedItems;
    try {
      const events: StoreEvents = {
        onTakenOver: (items) => {
          for (const item of items) claimedItems.push(item);
          this.#work();
        },
        wantedNames: () => [...this.#participants.values()].flatMap((participant) => [...participant.wantedNames()]),
        onFailure: (error) => {
          if (!this.#openAgain(error)) this.#fail(error);
        },
        // Items without a participant stay in the store, because another version of the package might have written
        // them.
        isReadable: (item) => this.#participants.get(item.part)?.isReadable?.(item) ?? true,
        onUnreadable: (place) => this.#quarantine(place),
        onDropped: (bytes, folder) => this.#report(new SmsError('storeDropped', { params: { bytes, folder } })),
      };
      await this.#options.prepare?.(events);
      const recoveredState = await this.#options.store.open(events);
      // If the store has failed again during the opening, the mode stays `failed`.
      if (this.#mode === 'opening') this.#setMode('open');
      else if (this.#mode === 'reopening') this.#setMode('unproven');
      return recoveredState;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /**
   * Handles items of this process that are missing from the store:
   *
   * - If `isReset`, the store has lost them. Stores them again.
   * - Otherwise, if the store is shared, another process has claimed them. Forgets the items and their unsaved changes.
   */
  #reconcile(missingIds: readonly string[], isReset: boolean): void {
    const participants = [...this.#participants.values()];
    const keepAgain = (id: string) =>
      createChange((changes) => {
        const item = participants.map((one) => one.itemOf?.(id)).find((one) => one !== undefined);
        if (item && !changes.keep.has(id) && !changes.drop.has(id)) keepItem(changes, item);
      });
    for (const id of missingIds) {
      // Stores each item in a separate step, so that {@link maxGroupSize} limits the items of one commit. A very large
      // commit would exceed the time limit for commands.
      if (isReset) void this.run(keepAgain(id));
      else if (this.isShared) {
        this.#writer.unsaved.keep.delete(id);
        for (const participant of participants) participant.forget?.(id);
      }
    }
  }

  async #passItems(items: readonly Item[], isOpening: boolean, isReset = false): Promise<void> {
    const currentItems = items.filter((item) => !this.#isForgotten(item));
    this.#reconcile(this.#writer.noteItems(items, isOpening), isReset);
    for (const item of items) {
      // The clock might have been set back, so this loop keeps new ids higher than the ids of these items.
      const idAt = Math.round(timeOf(item) * 1_000);
      if (idAt > this.#lastIdAt) this.#lastIdAt = idAt;
    }
    for (const [part, participant] of this.#participants) {
      const participantItems = currentItems.filter((item) => item.part === part);
      await participant.receiveItems(participantItems, isOpening);
    }
  }

  /** Closes the store. */
  async #close(): Promise<void> {
    if (this.#mode === 'closed') return;
    // An open, durable store keeps all items, so the participants can remove them from memory.
    if (this.isOpen && this.isDurable) {
      for (const one of this.#participants.values()) one.releaseAll?.();
      this.#isReleased = true;
    }
    this.#isRead = false;
    this.#setMode('closing');
    this.#recovered();
    await this.#options.store.close().catch(() => {});
    this.#setMode('closed');
  }

  /**
   * Decides whether an error is a lapse of the store or a failure. For a lapse ({@link StoreLapse}), opens the store
   * again before anything else, and returns true. A second lapse is a failure if nothing was written in between.
   */
  #openAgain(cause: unknown): boolean {
    if (!(cause instanceof StoreLapse)) return false;
    // All calls that were running when the store lapsed report the same lapse. The first report has already requested
    // the opening.
    if (this.#isToOpen) return true;
    if (this.#mode !== 'open') return false;
    this.#setMode('lapsed');
    this.#work();
    return true;
  }

  /** Notes a failure of the store, and opens the store again after a delay. */
  #fail(cause: unknown): void {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const earlierFailure = this.failure;
    this.failure = asStoreError(cause);
    if (this.isShared) this.#noteOutage();
    if (this.#mode !== 'failed' && this.#mode !== 'due') {
      this.#setMode('failed');
      const delayMs = (this.isShared ? sharedDelaysMs[this.#tries++] : undefined) ?? reopenDelayMs;
      this.#retryTimer = this.clock.after(delayMs, () => {
        this.#setMode('due');
        this.#work();
      });
    }
    if (earlierFailure?.message !== this.failure.message) this.#options.onStore(this.failure);
  }

  /**
   * At the start of an outage, lets steps that need the store wait for up to {@link sharedGraceMs}. Also lets the store
   * be opened again immediately.
   */
  #noteOutage(): void {
    const isNew = this.clock.elapsed() - this.#lastFailedAt > newOutageMs;
    this.#lastFailedAt = this.clock.elapsed();
    if (!isNew) return;
    this.#tries = 0;
    this.#graceTimer = this.clock.after(
      sharedGraceMs,
      () => {
        this.#graceTimer = undefined;
        this.requestPostponed();
      },
      true,
    );
  }

  /** Clears the failure, because a write succeeded or nothing has to be written. */
  #recovered(): void {
    if (!this.failure || this.#mode === 'failed') return;
    this.failure = undefined;
    this.#options.onStore(undefined);
  }

  #unavailable(): SmsError {
    return this.failure ?? new SmsError('storeUnavailable', { params: { detail: 'closed' } });
  }

  #setMode(mode: JournalMode): void {
    if (!canFollow(this.#mode, mode)) throw new Error(`journal: ${this.#mode} to ${mode}`);
    this.#retryTimer?.cancel();
    this.#retryTimer = undefined;
    this.#mode = mode;
  }
}
