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
  type Remembered,
  type Store,
  StoreLapse,
  timeOf,
} from '../store/store';
import { ClockSkew } from './clock-skew';
import { createChange, type HeldItem, type Participant, type Step } from './step';
import { StepWriter, type Task } from './writer';

export type { Participant, Step, WhileFailing } from './step';

/**
 * Where the store stands: `closed` before it is opened and after it was closed; `failed` from any failure until it is opened
 * again, which is tried by itself.
 */
export type JournalMode = 'closed' | 'opening' | 'open' | 'failed' | 'closing';

/** What a journal needs. */
export interface JournalOptions {
  store: Store;
  clock: Clock;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** Steps have been taken, or the store has been read, and what comes of it is done. */
  onSteps?(): void;
  /** Something in the store was damaged and is set aside; everything else goes on. Nothing of its content is in the error. */
  onDamaged?(error: SmsError): void;
  /** How long to wait before a store that has failed is opened again, unless somebody needs it; 5 s when absent. */
  reopenDelayMs?: number;
}

const reopenDelayMs = 5_000;

/** Steps that are taken in one commit at most. */
const largestGroup = 256;

/** Something that reads the store between two commits. Must not reject. */
type Reading = () => Promise<void>;

/**
 * Knows when something is written and whether the store is open: takes one {@link Step} after the other, in the order in which they
 * are asked for, as many of them in one commit as come in one turn of the event loop or while a commit runs, opens the store again
 * when it has failed, and tells its participants what is found there. It knows nothing of what it writes.
 */
export class Journal {
  readonly isShared: boolean;
  readonly isDurable: boolean;
  readonly clock: Clock;
  readonly #options: JournalOptions;
  readonly participants = new Map<ItemKind, Participant>();
  /** Items by id that another journal has not let go of, though the store may have them: they are not found before it has. */
  readonly arriving = new Map<string, Item>();
  readonly #writer: StepWriter;
  /** When the last id was given, in µs since 1970, and what tells apart the ids of processes that share a store. */
  #lastIdAt = 0;
  readonly #idSuffix: string;
  /** What is asked for, in order. */
  #queue: (Task | Reading)[] = [];
  /** Ids of the items that stand for steps of this process. */
  readonly #heldHere = new Set<string>();
  #working: Promise<void> | undefined;
  mode: JournalMode = 'closed';
  /** Why the store cannot be used, if so. It stands until something has been written again. */
  failure: SmsError | undefined;
  /** What was found damaged last, if anything was. */
  damage: SmsError | undefined;
  #retry: Timer | undefined;
  #isRetryDue = false;
  /** The store was to be opened again, and nothing has been written since. */
  #hasLapsed = false;
  /** How many steps have been in its queue: as long as it is the same nothing has changed. */
  taken = 0;
  /** Nobody has asked since for the store to be open. */
  #isClosing = false;
  /** Stands for the last time that the store was opened. */
  opening: object | undefined;
  /** What the store had has been found, so that participants know all that there is. */
  #isRead = false;

  constructor(options: JournalOptions) {
    const { store, clock } = options;
    this.#options = options;
    this.isShared = store.shared === true;
    this.isDurable = store.durable;
    this.clock = clock;
    this.#writer = new StepWriter(store, this.participants, ClockSkew.of(clock));
    const random = Math.floor(clock.random() * 2 ** 32);
    this.#idSuffix = random.toString(16).padStart(8, '0');
  }

  /** Whether nothing waits to be written. */
  get isWritten(): boolean {
    return this.#queue.length === 0 && !this.#writer.hasUnsaved;
  }

  /** Makes a room one of those that keep here. Has to be called before the journal is opened. */
  join(part: ItemKind, participant: Participant): void {
    this.participants.set(part, participant);
  }

  /** Somebody is here who may ask for something, which opens the store, though it was closed before. */
  begin(): void {
    this.#isClosing = false;
  }

  /** Opens the store if it is closed, and finds what an earlier process left. Failures go to `onStore`. */
  open(): void {
    this.begin();
    this.#work();
  }

  /** Whether all that is in the store is known. Opens it if not, unless there is nothing to find; what others share may hold anything. */
  find(): boolean {
    if (this.#isRead) return true;
    if (this.isShared || this.mayHold) this.open();
    return this.#working === undefined;
  }

  /**
   * Resolves when the store is open, so that what is read can be kept.
   *
   * @throws SmsError `SMS_STORE` when it cannot be used
   */
  async ready(): Promise<void> {
    if (this.mode !== 'open' || this.#isClosing) {
      // One that has failed may work by now.
      this.#isRetryDue ||= this.mode === 'failed';
      this.open();
      await this.flush();
    }
    if (this.failure) throw this.failure;
  }

  /** Resolves when nothing is being written any more. */
  async flush(): Promise<void> {
    while (this.#working) await this.#working;
  }

  /** Writes what is unwritten and closes the store, unless it is opened again meanwhile. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#work();
    await this.flush();
  }

  /**
   * Takes a step, after all that was asked for before. Resolves with what its effects return.
   *
   * @throws SmsError `SMS_STORE` when it is refused while the store fails or is being closed
   */
  run<Result>(step: Step<Result>): Promise<Result> {
    const { redo, after, onWritten } = step;
    const place = redo && this.#options.store.hold?.(redo());
    if (place) onWritten?.();
    const hold = place ?? (after && this.#holdAsItem(step));
    const isSafe = hold !== undefined || redo === undefined || !this.isDurable;
    return after && isSafe ? after.then(() => this.#run(step, hold)) : this.#run(step, hold);
  }

  /**
   * Everything that is remembered under keys that begin so.
   *
   * @throws SmsError `SMS_STORE` when the store cannot be used
   */
  async remembered(prefixes: readonly string[]): Promise<[key: string, remembered: Remembered][]> {
    const found = await this.#read(() => this.#attempt((store) => store.list(prefixes)));
    if (!found) throw this.#unavailable();
    return found;
  }

  /** Has participants find items that have arrived, once `isTheirs` has resolved, and before any step that is asked for from now on. */
  take(items: readonly Item[], isTheirs = Promise.resolve()): Promise<void> {
    const arrived = () => items.filter(({ id }) => this.arriving.delete(id));
    return this.#read(() => isTheirs.then(() => this.#find(arrived(), false, true)));
  }

  /** Whether the store has an item, as far as is known. */
  isStored(id: string): boolean {
    return this.#writer.stored.has(id);
  }

  /** Takes those steps that were postponed and say by now that they wait for the store no longer. */
  takeOverdue(): void {
    for (const task of this.#writer.takePostponed()) this.#enqueue(task);
  }

  /** See {@link Store.mayHold}; also whether this process has left something there, which it knows. */
  get mayHold(): boolean | undefined {
    return this.#writer.stored.size > 0 || this.#options.store.mayHold;
  }

  /** See {@link Store.takeOverMs}. */
  get takeOverMs(): number {
    return this.#options.store.takeOverMs ?? 0;
  }

  /** An id for a new item: ascending with time, unique among processes. */
  nextId(): string {
    this.#lastIdAt = Math.max(this.#lastIdAt + 1, Math.floor(this.clock.now() * 1_000));
    return this.#lastIdAt.toString(36).padStart(idTimeLength, '0') + this.#idSuffix;
  }

  get #hasWork(): boolean {
    return this.#isRetryDue || this.#queue.length > 0 || (this.mode === 'open' && this.#writer.hasUnsaved);
  }

  #run<Result>(step: Step<Result>, hold: PendingWrite | undefined): Promise<Result> {
    if (step.whileFailing === 'refuse' && this.#isClosing) return Promise.reject(this.#unavailable());
    this.taken++;
    return new Promise((resolve, reject) => {
      this.#enqueue({ step, resolve: resolve as (result: unknown) => void, reject, hold });
    });
  }

  /** A shared store has no place for what waits but among its items; not for what keeps it from serving others. */
  #holdAsItem({ redo, redoneFor = [], onWritten }: Step<unknown>): PendingWrite | undefined {
    const text = this.isShared && this.mode === 'open' ? redo?.() : undefined;
    if (text === undefined || text.length > mostBytes) return undefined;
    const item: HeldItem = { id: this.nextId(), part: 'held', subscribers: redoneFor, attempts: 0, text };
    this.#heldHere.add(item.id);
    void this.run(createChange((changes) => keepItem(changes, item), onWritten));
    return this.#heldAs(item);
  }

  #heldAs({ id, part, text }: HeldItem): RecoveredWrite {
    const onGone = () => this.#heldHere.delete(id);
    const drop = createChange((changes) => dropItem(changes, id, part), onGone);
    return { text, letGo: () => void this.run(drop), quarantine: () => id };
  }

  #read<T>(read: () => Promise<T>): Promise<T> {
    return new Promise((resolve) => this.#enqueue(async () => resolve(await read())));
  }

  #enqueue(what: Task | Reading): void {
    this.#queue.push(what);
    this.#work();
  }

  /** Does what there is to do, beginning before this turn of the event loop has come to its end. */
  #work(): void {
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined;
      // It may have been closed since it was looked.
      if (this.#hasWork || (this.#isClosing && this.mode !== 'closed')) this.#work();
    });
  }

  async #workOff(): Promise<void> {
    // What is asked for together is taken together.
    await undefined;
    do {
      if (this.#isRetryDue || (this.mode === 'closed' && (this.#hasWork || !this.#isClosing))) await this.#open();
      else if (this.#hasWork) await this.#takeNext();
      await this.#attempt(() => this.#writer.sweepWhenDue());
      this.#options.onSteps?.();
      if (this.#isClosing && !this.#hasWork) await this.#close();
    } while (this.#hasWork || (this.mode === 'closed' && !this.#isClosing));
  }

  /** Reads what is asked for next, or takes the steps that are, up to the next that reads. */
  async #takeNext(): Promise<void> {
    const [first] = this.#queue;
    if (typeof first === 'function') {
      this.#queue.shift();
      return first();
    }
    const tasks: Task[] = [];
    let bytes = 0;
    for (const next of this.#queue) {
      if (typeof next === 'function' || tasks.length === largestGroup || bytes >= mostBytes) break;
      tasks.push(next);
      bytes += next.step.bytes ?? 0;
    }
    this.#queue.splice(0, tasks.length);
    await this.#take(tasks);
    if (tasks.length === largestGroup || bytes >= mostBytes) await nextTurn(this.clock);
  }

  /** Takes steps in one commit, and without the store while that fails. */
  async #take(tasks: readonly Task[]): Promise<void> {
    if (this.mode !== 'open') return this.#writer.takeUnsaved(tasks, this.#unavailable());
    const commit = await this.#writer.commit(tasks);
    if ('error' in commit) {
      if (this.#openAgain(commit.error)) {
        this.#queue.unshift(...tasks);
        return;
      }
      this.#fail(commit.error);
      this.#writer.takeUnsaved(tasks, this.#unavailable(), commit.recalled);
    } else {
      this.#hasLapsed = false;
      this.#recovered();
      for (const run of commit.effects) run(true);
    }
  }

  /** Asks the store for something while it is open. `undefined` when it is not, or fails. */
  async #attempt<T>(call: (store: Store) => Promise<T>): Promise<T | undefined> {
    if (this.mode !== 'open') return undefined;
    try {
      const result = await call(this.#options.store);
      // It may have failed meanwhile.
      return this.mode === 'open' ? result : undefined;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Opens the store, and tells the participants what is found there, then and later. */
  async #open(): Promise<void> {
    const opening = {};
    this.opening = opening;
    this.#setMode('opening');
    const leftovers = await this.#openStore(opening);
    if (!leftovers) return;
    const { items, held, isReset = false } = leftovers;
    this.#reconcile(this.#writer.noteFound(items, true), isReset);
    await this.#find(items, true);
    this.#isRead = true;
    // What an earlier process held came before what was postponed, and that before what waits.
    const waiting = this.#queue.splice(0);
    for (const one of held) this.#redo(one);
    this.#queue = [...this.#queue, ...this.#writer.takePostponed(), ...waiting];
    if (!this.#writer.hasUnsaved) this.#recovered();
    // Before anything is swept: what was held is judged by all that was known, however long ago that was.
    if (this.#queue.length > 0 && !this.#isRetryDue) await this.#takeNext();
  }

  #redo(held: RecoveredWrite): void {
    try {
      const run = <Result>(step: Step<Result>) => this.#run(step, held);
      for (const participant of this.participants.values()) if (participant.redo?.(held.text, run)) return;
    } catch {
      this.#quarantine(held.quarantine());
    }
  }

  #quarantine(place: string): void {
    this.damage = new SmsError('storeUnreadable', { params: { place } });
    this.#options.onDamaged?.(this.damage);
  }

  async #openStore(opening: object): Promise<RecoveredState | undefined> {
    try {
      const leftovers = await this.#options.store.open({
        onTakenOver: (items) =>
          this.#enqueue(async () => {
            // What was taken over before the store failed is found again, or has been taken over by another since.
            if (opening !== this.opening) return;
            this.#writer.noteFound(items, false);
            await this.#find(items, false);
          }),
        wanted: () => [...this.participants.values()].flatMap((participant) => [...participant.wanted()]),
        onFailure: (error) => {
          if (!this.#openAgain(error)) this.#fail(error);
        },
        // What nobody here keeps is left alone: another version may have put it there.
        isReadable: (item) => this.participants.get(item.part)?.isReadable?.(item) ?? true,
        onUnreadable: (place) => this.#quarantine(place),
      });
      // It may have failed again already.
      if (this.mode === 'opening') this.#setMode('open');
      return leftovers;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /**
   * What was in the store and is not there any more another process has taken over: what has changed of it while the store failed would put
   * it there again. After a reset it is lost, and is kept anew.
   */
  #reconcile(missing: readonly string[], isReset: boolean): void {
    const participants = [...this.participants.values()];
    const keepAnew = (id: string) =>
      createChange((changes) => {
        const known = [...participants.map((one) => one.itemOf?.(id)), this.arriving.get(id)];
        const item = known.find((one) => one !== undefined);
        if (item && !changes.keep.has(id) && !changes.drop.has(id)) keepItem(changes, item);
      });
    for (const id of missing) {
      // A step for each: a commit takes no more of them than a server writes in its time.
      if (isReset) void this.run(keepAnew(id));
      else if (this.isShared) {
        this.#writer.disown(id);
        this.arriving.delete(id);
        for (const participant of participants) participant.forget?.(id);
      }
    }
  }

  async #find(items: readonly Item[], isOpening: boolean, isMoved = false): Promise<void> {
    const isLeft = this.#createIsLeft();
    for (const item of items) {
      // The clock may have been set back since.
      const givenAt = Math.round(timeOf(item) * 1_000);
      if (givenAt > this.#lastIdAt) this.#lastIdAt = givenAt;
      if (item.part === 'held' && !this.#heldHere.has(item.id) && isLeft(item))
        this.#redo(this.#heldAs(item as HeldItem));
    }
    for (const [part, participant] of this.participants) {
      const own = items.filter((item) => item.part === part && isLeft(item) && !this.arriving.has(item.id));
      await participant.found(own, isOpening, isMoved);
    }
  }

  /** Says of items whether they will still be there when all steps are taken that are known now. */
  #createIsLeft(): (item: Item) => boolean {
    const dropped = new Set<string>();
    for (const waiting of this.#queue) {
      if (typeof waiting !== 'function') for (const id of waiting.step.drops ?? []) dropped.add(id);
    }
    return ({ id }) => !dropped.has(id) && !this.#writer.isDropped(id);
  }

  /** Closes the store, unless it is closed; a durable one keeps what participants may forget then. */
  async #close(): Promise<void> {
    if (this.mode === 'closed') return;
    // One that is open has all that was ever to be written.
    if (this.mode === 'open' && this.isDurable) for (const one of this.participants.values()) one.letGo?.();
    this.#isRead = false;
    this.#setMode('closing');
    this.#recovered();
    await this.#options.store.close().catch(() => {});
    this.#setMode('closed');
  }

  /** Has a store that is well opened again before anything else, if that may help: not twice when nothing was written in between. */
  #openAgain(cause: unknown): boolean {
    if (!(cause instanceof StoreLapse)) return false;
    // What was under way when it lapsed says so, too.
    if (this.#isRetryDue) return true;
    if (this.mode !== 'open' || this.#hasLapsed) return false;
    this.#hasLapsed = true;
    this.#setMode('failed');
    this.#isRetryDue = true;
    this.#work();
    return true;
  }

  /** The store cannot be used any more. */
  #fail(cause: unknown): void {
    if (this.mode === 'closing' || this.mode === 'closed') return;
    const isNew = !this.failure;
    this.failure = asStoreError(cause);
    this.#setMode('failed');
    const { clock, reopenDelayMs: delayMs = reopenDelayMs, onStore } = this.#options;
    this.#retry = clock.after(delayMs, () => {
      this.#isRetryDue = true;
      this.#work();
    });
    if (isNew) onStore(this.failure);
  }

  /** Something has been written, or there is nothing to write. */
  #recovered(): void {
    if (!this.failure || this.mode === 'failed') return;
    this.failure = undefined;
    this.#options.onStore(undefined);
  }

  /** What to refuse with. */
  #unavailable(): SmsError {
    return this.failure ?? new SmsError('storeUnavailable', { params: { detail: 'closed' } });
  }

  #setMode(mode: JournalMode): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#isRetryDue = false;
    this.mode = mode;
  }
}
