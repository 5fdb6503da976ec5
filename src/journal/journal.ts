import { type Clock, nextTurn, type Timer } from '../clock';
import { SmsError } from '../errors';
import {
  asStoreError,
  dropItem,
  type Item,
  type ItemKind,
  idTimeLength,
  keepItem,
  mostBytes,
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
import { createChange, type HeldItem, type Participant, type Step } from './step';
import { StepWriter, type Task } from './writer';

export type { Participant, Step, WhileFailing } from './step';

/** Options of a {@link Journal}. */
export interface JournalOptions {
  store: Store;
  clock: Clock;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** Steps were taken, or the store was read, and the effects have run. */
  onSteps?(): void;
  /** Something in the store was damaged and is quarantined; everything else continues. The error has nothing of its content. */
  onDamaged?(error: SmsError): void;
  /** Called before the store is opened, which counts as failed if this rejects. */
  prepare?(events: StoreEvents): Promise<void>;
  /** How long to wait before a store that failed is opened again, unless it is needed before. Absent: 5 s. */
  reopenDelayMs?: number;
}

const reopenDelayMs = 5_000;

/** A shared store is opened again after these delays first, because often only its connection was cut. */
const sharedDelaysMs = [0, 250, 1_000];

/** How long a step that needs a shared store waits, from when that failed. */
const sharedGraceMs = 2_000;

/** A failure begins a new outage of a shared store if the last one is longer ago, or something was written since. */
const newOutageMs = 10_000;

/** Maximum number of steps in one commit. */
const maxGroupSize = 256;

/** Reads the store between two commits. Must not reject. */
type Reading = () => Promise<void>;

/**
 * Takes one {@link Step} after the other, in the order in which they are asked for, and writes them. The steps of one
 * turn of the event loop share a commit, and so do those that come while a commit runs. The journal opens a failed store
 * again, and gives its participants the items in it. It does not read items or values.
 */
export class Journal {
  readonly isShared: boolean;
  readonly isDurable: boolean;
  readonly clock: Clock;
  readonly #options: JournalOptions;
  readonly #participants = new Map<ItemKind, Participant>();
  readonly #writer: StepWriter;
  /** When the last id was given, in µs since 1970, and a suffix that tells apart the ids of processes that share a store. */
  #lastIdAt = 0;
  readonly #idSuffix: string;
  /** Steps and readings that were asked for, in order. */
  #queue: (Task | Reading)[] = [];
  #working: Promise<void> | undefined;
  #mode: JournalMode = 'closed';
  /** Why the store cannot be used. Stays until something was written again. */
  failure: SmsError | undefined;
  /** The last damage that was found. */
  damage: SmsError | undefined;
  #retry: Timer | undefined;
  /** How often a shared store was opened again in this outage. */
  #tries = 0;
  /** Time of the last failure of a shared store, in ms of {@link Clock.elapsed}. */
  #lastFailedAt = Number.NEGATIVE_INFINITY;
  /** Steps that need the store wait for it while this runs. */
  #grace: Timer | undefined;
  /** Whether the store is to be open. */
  #isWanted = true;
  /** Identifies the last opening of the store. */
  #opening: object | undefined;
  /** Ids of held items that were replayed. */
  readonly #replayed = new Set<string>();
  /** Participants know everything that is in the store. */
  #isRead = false;

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
    return this.#queue.length === 0 && !this.#writer.hasUnsaved && !this.#writer.hasPostponed;
  }

  /** Adds a participant. Has to be called before the journal is opened. */
  join(part: ItemKind, participant: Participant): void {
    this.#participants.set(part, participant);
  }

  /** Lets the store be opened again after {@link close}, when something is asked for. */
  begin(): void {
    this.#isWanted = true;
  }

  /** Opens the store if it is closed. Failures go to `onStore`. */
  open(): void {
    this.begin();
    this.#work();
  }

  /** Whether participants know everything that is in the store. If not, opens it, unless nothing can be there. */
  find(): boolean {
    if (this.#isRead) return true;
    if (this.isShared || this.mayHold) this.open();
    return this.#working === undefined;
  }

  /**
   * Resolves when the store is open, so that an answer can be kept.
   *
   * @throws SmsError `SMS_STORE` when it cannot be used
   */
  async ready(): Promise<void> {
    if (!this.isOpen || !this.#isWanted) {
      // A store that has failed might work by now.
      if (this.#mode === 'failed') this.#setMode('due');
      this.open();
      await this.flush();
    }
    if (this.failure) throw this.failure;
  }

  /** Resolves when no writing is under way. */
  async flush(): Promise<void> {
    while (this.#working) await this.#working;
  }

  /** Opens the store again, even if the store is already open. */
  reopen(): void {
    this.begin();
    if (canFollow(this.#mode, 'due')) this.#setMode('due');
    else if (this.#mode === 'opening' || this.#mode === 'reopening') void this.flush().then(() => this.reopen());
    this.#work();
  }

  /** Writes all changes and closes the store, unless it is opened again in the meantime. */
  async close(): Promise<void> {
    this.#isWanted = false;
    this.#work();
    await this.flush();
  }

  /**
   * Takes a step, after everything that was asked for before. Resolves with the result of its effects.
   *
   * @throws SmsError `SMS_STORE` if it is refused while the store fails or is being closed
   */
  run<Result>(step: Step<Result>): Promise<Result> {
    if (step.whileFailing === 'refuse' && !this.#isWanted) return Promise.reject(this.#unavailable());
    return new Promise((resolve, reject) => {
      this.#enqueue({ step, resolve: resolve as (result: unknown) => void, reject });
    });
  }

  /**
   * Saves a text before it returns, so that the text survives a crash until it is released. A later process gets the text by
   * {@link Participant.replay}. `undefined`: the store has no such place, or cannot write.
   */
  hold(text: string): PendingWrite | undefined {
    return this.#options.store.hold?.(text);
  }

  /** Takes postponed steps that no longer say `postpone`. */
  retakePostponed(): void {
    for (const task of this.#writer.takePostponed()) this.#enqueue(task);
  }

  /** See {@link Store.mayHold}. Also true if this process has left something there. */
  get mayHold(): boolean | undefined {
    return this.#writer.stored.size > 0 || this.#options.store.mayHold;
  }

  /** An id for a new item: ascending with time, unique among processes. */
  nextId(): string {
    this.#lastIdAt = Math.max(this.#lastIdAt + 1, Math.floor(this.clock.now() * 1_000));
    return this.#lastIdAt.toString(36).padStart(idTimeLength, '0') + this.#idSuffix;
  }

  get #hasWork(): boolean {
    return this.#isToOpen || this.#queue.length > 0 || (this.isOpen && this.#writer.hasUnsaved);
  }

  /** Whether the store is to be opened again before anything else. */
  get #isToOpen(): boolean {
    return this.#mode === 'lapsed' || this.#mode === 'due';
  }

  #enqueue(what: Task | Reading): void {
    this.#queue.push(what);
    this.#work();
  }

  /** Works off the queue, beginning before this turn of the event loop ends. */
  #work(): void {
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined;
      if (this.#hasWork || (!this.#isWanted && this.#mode !== 'closed')) this.#work();
    });
  }

  async #workOff(): Promise<void> {
    // Steps of one turn of the event loop share a commit.
    await undefined;
    do {
      if (this.#isToOpen || (this.#mode === 'closed' && (this.#hasWork || this.#isWanted))) await this.#open();
      else if (this.#hasWork) await this.#takeNext();
      await this.#attempt(() => this.#writer.sweepWhenDue());
      this.#options.onSteps?.();
      if (!this.#isWanted && !this.#hasWork) await this.#close();
    } while (this.#hasWork || (this.#mode === 'closed' && this.#isWanted));
  }

  /** Makes the next reading, or takes the steps up to the next reading. */
  async #takeNext(): Promise<void> {
    const [first] = this.#queue;
    if (typeof first === 'function') {
      this.#queue.shift();
      return first();
    }
    const tasks: Task[] = [];
    let bytes = 0;
    for (const next of this.#queue) {
      if (typeof next === 'function' || tasks.length === maxGroupSize || bytes >= mostBytes) break;
      tasks.push(next);
      bytes += next.step.bytes ?? 0;
    }
    this.#queue.splice(0, tasks.length);
    await this.#take(tasks);
    if (tasks.length === maxGroupSize || bytes >= mostBytes) await nextTurn(this.clock);
  }

  /** Takes steps in one commit, or without the store while it fails. */
  async #take(tasks: readonly Task[]): Promise<void> {
    if (!this.isOpen) return this.#writer.takeUnsaved(tasks, this.#unavailable(), undefined, this.#grace !== undefined);
    const commit = await this.#writer.commit(tasks);
    if ('error' in commit) {
      if (this.#openAgain(commit.error)) {
        this.#queue.unshift(...tasks);
        return;
      }
      this.#fail(commit.error);
      this.#writer.takeUnsaved(tasks, this.#unavailable(), commit.recalled, this.#grace !== undefined);
    } else {
      if (this.#mode === 'unproven') this.#setMode('open');
      this.#lastFailedAt = Number.NEGATIVE_INFINITY;
      this.#recovered();
      for (const run of commit.effects) run(true);
    }
  }

  /** Asks the store for something. `undefined` if it is not open, or fails. */
  async #attempt<T>(call: (store: Store) => Promise<T>): Promise<T | undefined> {
    if (!this.isOpen) return undefined;
    try {
      const result = await call(this.#options.store);
      // The store might have failed in the meantime.
      return this.isOpen ? result : undefined;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Opens the store, and gives the participants its items. */
  async #open(): Promise<void> {
    const opening = {};
    this.#opening = opening;
    this.#setMode(this.#mode === 'lapsed' ? 'reopening' : 'opening');
    const leftovers = await this.#openStore(opening);
    if (!leftovers) return;
    const { items, held, isReset = false } = leftovers;
    this.#reconcile(this.#writer.noteFound(items, true), isReset);
    await this.#find(items, true);
    this.#isRead = true;
    // An earlier process held its texts before this process postponed steps, and those came before the steps that wait.
    const waiting = this.#queue.splice(0);
    for (const one of held) this.#replay(one);
    this.#queue = [...this.#queue, ...this.#writer.takePostponed(), ...waiting];
    if (!this.#writer.hasUnsaved) this.#recovered();
    // Before the first sweep: held texts are judged by everything that was known.
    if (this.#queue.length > 0 && !this.#isToOpen) await this.#takeNext();
  }

  #replay(held: RecoveredWrite): void {
    const isKnown = [...this.#participants.values()].some((participant) => {
      try {
        return participant.replay?.(held);
      } catch {
        return false;
      }
    });
    if (!isKnown) this.#quarantine(held.quarantine());
  }

  /** Replays a text that an import has brought as an item. */
  #replayItem({ id, part, text }: HeldItem): void {
    if (this.#replayed.has(id)) return;
    this.#replayed.add(id);
    const drop = createChange((changes) => dropItem(changes, id, part));
    this.#replay({ text, letGo: () => void this.run(drop), quarantine: () => id });
  }

  #quarantine(place: string): void {
    this.#report(new SmsError('storeUnreadable', { params: { place } }));
  }

  #report(damage: SmsError): void {
    this.damage = damage;
    this.#options.onDamaged?.(damage);
  }

  async #openStore(opening: object): Promise<RecoveredState | undefined> {
    try {
      const events: StoreEvents = {
        onTakenOver: (items) =>
          this.#enqueue(async () => {
            // Items claimed before the store failed are found again, or another process has claimed them since.
            if (opening !== this.#opening) return;
            this.#writer.noteFound(items, false);
            await this.#find(items, false);
          }),
        wanted: () => [...this.#participants.values()].flatMap((participant) => [...participant.wanted()]),
        onFailure: (error) => {
          if (!this.#openAgain(error)) this.#fail(error);
        },
        // Items of unknown parts are left alone: another version might have put them there.
        isReadable: (item) => this.#participants.get(item.part)?.isReadable?.(item) ?? true,
        onUnreadable: (place) => this.#quarantine(place),
        onNewerVersion: () => this.#report(new SmsError('storeNewer')),
        onDropped: (bytes, folder) => this.#report(new SmsError('storeDropped', { params: { bytes, folder } })),
      };
      await this.#options.prepare?.(events);
      const leftovers = await this.#options.store.open(events);
      // The store might have failed again already.
      if (this.#mode === 'opening') this.#setMode('open');
      else if (this.#mode === 'reopening') this.#setMode('unproven');
      return leftovers;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /**
   * Another process has claimed the items that are missing from the store: changes of them that were made while the
   * store failed must not put them there again. After a reset, the store has lost them, and they are kept again.
   */
  #reconcile(missing: readonly string[], isReset: boolean): void {
    const participants = [...this.#participants.values()];
    const keepAgain = (id: string) =>
      createChange((changes) => {
        const item = participants.map((one) => one.itemOf?.(id)).find((one) => one !== undefined);
        if (item && !changes.keep.has(id) && !changes.drop.has(id)) keepItem(changes, item);
      });
    for (const id of missing) {
      // A step for each, so that a commit has no more of them than a server writes in its time.
      if (isReset) void this.run(keepAgain(id));
      else if (this.isShared) {
        this.#writer.disown(id);
        for (const participant of participants) participant.forget?.(id);
      }
    }
  }

  async #find(items: readonly Item[], isOpening: boolean): Promise<void> {
    const isLeft = this.#createIsLeft();
    for (const item of items) {
      // The clock might have been set back since.
      const givenAt = Math.round(timeOf(item) * 1_000);
      if (givenAt > this.#lastIdAt) this.#lastIdAt = givenAt;
      if (item.part === 'held' && isLeft(item)) this.#replayItem(item as HeldItem);
    }
    for (const [part, participant] of this.#participants) {
      const own = items.filter((item) => item.part === part && isLeft(item));
      await participant.found(own, isOpening);
    }
  }

  /** Says whether an item will still be there when all steps are taken that were asked for. */
  #createIsLeft(): (item: Item) => boolean {
    const dropped = new Set<string>();
    for (const waiting of this.#queue) {
      if (typeof waiting !== 'function') for (const id of waiting.step.drops ?? []) dropped.add(id);
    }
    return ({ id }) => !dropped.has(id) && !this.#writer.isDropped(id);
  }

  /** Closes the store. Participants can forget the items of a durable store. */
  async #close(): Promise<void> {
    if (this.#mode === 'closed') return;
    // An open store has everything that was to be written.
    if (this.isOpen && this.isDurable) for (const one of this.#participants.values()) one.letGo?.();
    this.#isRead = false;
    this.#setMode('closing');
    this.#recovered();
    await this.#options.store.close().catch(() => {});
    this.#setMode('closed');
  }

  /** Has a store that has lapsed opened again before anything else, if that can help. */
  #openAgain(cause: unknown): boolean {
    if (!(cause instanceof StoreLapse)) return false;
    // Calls that were under way when it lapsed report the lapse too.
    if (this.#isToOpen) return true;
    if (this.#mode !== 'open') return false;
    this.#setMode('lapsed');
    this.#work();
    return true;
  }

  /** The store cannot be used. */
  #fail(cause: unknown): void {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const before = this.failure;
    this.failure = asStoreError(cause);
    if (this.isShared) this.#noteOutage();
    if (this.#mode !== 'failed' && this.#mode !== 'due') {
      this.#setMode('failed');
      const { clock, reopenDelayMs: lastDelayMs = reopenDelayMs } = this.#options;
      const delayMs = (this.isShared ? sharedDelaysMs[this.#tries++] : undefined) ?? lastDelayMs;
      this.#retry = clock.after(delayMs, () => {
        this.#setMode('due');
        this.#work();
      });
    }
    if (before?.message !== this.failure.message) this.#options.onStore(this.failure);
  }

  /** In a new outage, the store is opened again immediately, and the steps that need it wait, but not for long. */
  #noteOutage(): void {
    const isNew = this.clock.elapsed() - this.#lastFailedAt > newOutageMs;
    this.#lastFailedAt = this.clock.elapsed();
    if (!isNew) return;
    this.#tries = 0;
    this.#grace = this.clock.after(
      sharedGraceMs,
      () => {
        this.#grace = undefined;
        this.retakePostponed();
      },
      true,
    );
  }

  /** Something was written, or nothing has to be. */
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
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#mode = mode;
  }
}
