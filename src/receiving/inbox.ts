import { randomBytes } from 'node:crypto';
import { isSmsError, SmsError } from '../errors';
import type { Via } from '../model';
import {
  type Changes,
  createChanges,
  isNoChange,
  type Look,
  type Remembered,
  type Store,
  StoreConflict,
} from '../store/store';
import { type Destination, Distribution, type Taker } from './distribution';
import { type Channel, type Entry, type HeldRecords, type InboxRecord, nameTakers } from './entry';
import { forget, type Identity, identify, judge, type Kind, keysOf, type Verdict } from './identity';
import { createUndelivered, type Undelivered, UndeliveredEntries } from './undelivered';

/** Records that came in one answer or one callback. */
export interface Arrival extends Destination {
  kind: Kind;
  via: Via;
  records: readonly InboxRecord[];
}

/** What became of one record of an {@link Arrival}. */
export interface Acceptance {
  outcome: Verdict['outcome'];
  /** The entry, when it is new or not delivered yet. */
  entry?: Entry;
  /** It was called back before, and another process has not delivered it yet: it may still be refused there. */
  heldElsewhere?: boolean;
}

/** What the inbox needs. */
export interface InboxOptions {
  store: Store;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** How long to wait before a store that has failed is opened again; 5 s when absent. */
  reopenDelayMs?: number;
}

const reopenDelayMs = 5_000;
const largestStep = 256;
/** A sweep looks at twice as many as were remembered since the last, so that it keeps up. */
const rememberedPerSweep = 500;

/** Digits of an entry's id that ascend with time. */
const idTimeLength = 11;

interface AcceptTask {
  type: 'accept';
  arrival: Arrival;
  /** Its records, in their order. */
  items: readonly { record: InboxRecord; identity: Identity }[];
  /** An earlier process had it in hand, and may have committed it. */
  isLeftover: boolean;
  /** Called when it is committed. */
  letGo(): void;
  resolve(acceptances: Acceptance[]): void;
  reject(error: SmsError): void;
}

interface ReleaseTask {
  type: 'release';
  undelivered: Undelivered;
  resolve(): void;
}

interface AdoptTask {
  type: 'adopt';
  items: readonly { entry: Entry; identity: Identity }[];
  resolve(): void;
}

/** Somebody has taken after all what had been released. */
interface LateTask {
  type: 'late';
  items: readonly { identity: Identity }[];
}

type Task = AcceptTask | ReleaseTask | AdoptTask | LateTask;

/**
 * Takes charge of what the service gave away (§3): keeps each record until every node that it is for has taken it, and
 * recognises what was seen before, whichever way it came.
 *
 * A record is in the store before a node gets it. While the store fails, polled records are delivered all the same,
 * since nobody else has them, and called-back ones are refused, since the service keeps them.
 */
export class Inbox {
  readonly #options: InboxOptions;
  readonly #undelivered = new UndeliveredEntries();
  readonly #distribution = new Distribution(this.#undelivered, {
    onAttempt: (entry) => this.countAttempt(entry),
    onTaken: (undelivered) => this.#settle(undelivered),
  });
  #tasks: Task[] = [];
  /** Releases that wait until a shared store says whether the entries are still this process's. */
  #postponed: ReleaseTask[] = [];
  /** Changes that are not in the store yet. */
  #unsaved = createChanges();
  #isOpen = false;
  /** It may be open, or half so, after a failure too. */
  #isToBeClosed = false;
  #isClosing = false;
  /** For whom it takes over what other processes leave. */
  #heir: Inbox | undefined;
  #working: Promise<void> | undefined;
  #failure: SmsError | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isRetryDue = false;
  #rememberedSinceSweep = rememberedPerSweep;
  #lastId = 0;
  /** Tells the entries of inboxes apart that share a store. */
  readonly #idSuffix = randomBytes(4).toString('hex');

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /** Why the store cannot be used now, if so. */
  get failure(): SmsError | undefined {
    return this.#failure;
  }

  /** Whether everything is delivered and written. */
  get isSettled(): boolean {
    return this.#undelivered.size === 0 && isNoChange(this.#unsaved);
  }

  /** Whether nothing would be lost by forgetting this closed inbox. */
  get isDisposable(): boolean {
    return this.#options.store.durable && this.isSettled;
  }

  /** How long after its opening a store has taken over everything that dead processes held. */
  get takeOverMs(): number {
    return this.#options.store.takeOverMs ?? 0;
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
    if (!this.#isOpen && !this.#failure) {
      this.open();
      await this.flush();
    }
    if (this.#failure) throw this.#failure;
  }

  /** Adds a node to those that get what comes on a channel. What waits for it is given to it soon. */
  attach(channel: Channel, taker: Taker): void {
    this.#heir = undefined;
    this.#distribution.attach(channel, taker);
    this.open();
  }

  /** Takes a node away. What it has not answered waits for it, or for others. */
  detach(channel: Channel, taker: Taker): void {
    this.#distribution.detach(channel, taker);
  }

  /**
   * Keeps what came and gives the new to the nodes it is for. Resolves when it is in the store, in order with `records`.
   *
   * @throws SmsError `SMS_STORE` for a callback when the store cannot keep it, or is closed
   */
  accept(arrival: Arrival): Promise<Acceptance[]> {
    const { kind, via, records } = arrival;
    if (via === 'callback' && this.#isClosing) return Promise.reject(this.#unavailable());
    // The service has forgotten what it was polled for, but not what it called back.
    const letGo =
      via === 'poll' ? this.#options.store.hold(JSON.stringify({ kind, records } satisfies HeldRecords)) : () => {};
    return new Promise((resolve, reject) => this.#do({ ...createAcceptTask(arrival, letGo), resolve, reject }));
  }

  /** A node has taken an entry, or given it up. It is forgotten when no other is owed it. */
  done(entry: Entry, taker: Taker): void {
    const undelivered = this.#undelivered.get(entry.id);
    if (!undelivered?.owed.delete(taker.id)) return;
    undelivered.taken++;
    if (undelivered.owed.size === 0) this.#settle(undelivered);
  }

  /** A node has taken after all what was released: it is known when the service brings it again, or has already. */
  doneLate(id: string): void {
    const released = this.#undelivered.takeReleased(id);
    if (!released) return;
    const { identity } = released;
    const successor = this.#undelivered.findCalledBack(identity);
    if (successor) this.#settle(successor);
    else this.#do({ type: 'late', items: [{ identity }] });
  }

  /**
   * Lets go of a called-back entry that the service shall bring again. It counts as new then, but for its attempts.
   */
  release(entry: Entry): Promise<void> {
    const undelivered = this.#undelivered.get(entry.id);
    if (!undelivered) return Promise.resolve();
    undelivered.isReleased = true;
    return new Promise((resolve) => this.#do({ type: 'release', undelivered, resolve }));
  }

  /** Writes down that an entry is sent into a flow once more. */
  countAttempt(entry: Entry): void {
    if (!this.#undelivered.has(entry.id)) return;
    entry.attempts++;
    this.#unsaved.keep.set(entry.id, entry);
    this.#work();
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#undelivered.ended(entry);
  }

  /**
   * Gives what is undelivered, here or in the store, to another inbox, and forgets it once that one has it in its store.
   * A shared store keeps what is in it for whoever opens it, unless nobody is to any more (`isLast`): then it goes on to
   * take over what other processes leave, for {@link takeOverMs}.
   */
  async handOver(heir: Inbox, { isLast = false } = {}): Promise<void> {
    if (isLast) this.#heir = heir;
    await this.ready().catch(() => {});
    await this.flush();
    const keepsOwn = this.#options.store.shared && !isLast;
    const handed = this.#undelivered.values().filter(({ isStored }) => !(keepsOwn && isStored));
    for (const { entry } of this.#undelivered.values()) this.#remove(entry.id);
    if (handed.length === 0) return;
    await heir.#adopt(handed.map(({ entry }) => entry));
    // Otherwise it stays where it is safe, and may be delivered once more.
    if (heir.#failure) return;
    for (const { entry, identity } of handed) this.#drop(entry, identity, this.#unsaved);
    this.#work();
    await this.flush();
  }

  /** Takes charge of entries of another inbox. Resolves when they are in the store, or cannot be. */
  #adopt(entries: readonly Entry[]): Promise<void> {
    const items = entries.map((entry) => ({ entry, identity: identify(entry.kind, entry.record) }));
    return new Promise((resolve) => this.#do({ type: 'adopt', items, resolve }));
  }

  /** Resolves when nothing is being written any more. */
  async flush(): Promise<void> {
    while (this.#working) await this.#working;
  }

  /** Writes what is unwritten and closes the store, unless it is opened again meanwhile. */
  async close(): Promise<void> {
    this.#isClosing = true;
    // What was polled may come while the store is being closed, and opens it again.
    do {
      await this.flush();
      if (!this.#isClosing) return;
      this.#working = this.#closeStore().finally(() => {
        this.#working = undefined;
        if (this.#tasks.length > 0 || !this.#isClosing) this.#work();
      });
      await this.#working;
    } while (this.#working || this.#isToBeClosed);
  }

  async #closeStore(): Promise<void> {
    clearTimeout(this.#retry);
    this.#recovered();
    if (this.#isOpen && this.#options.store.durable) {
      // What the store has is found again when it opens; what it has not stays here.
      for (const { entry, end } of this.#undelivered.values()) {
        if (this.#unsaved.keep.has(entry.id)) continue;
        this.#remove(entry.id);
        end(false);
      }
    }
    this.#isOpen = false;
    if (!this.#isToBeClosed) return;
    this.#isToBeClosed = false;
    await this.#options.store.close().catch(() => {});
  }

  #do(task: Task): void {
    this.#tasks.push(task);
    this.#work();
  }

  /** Takes one step after the other while there is something to do. */
  #work(): void {
    this.#working ??= this.#steps().finally(() => {
      this.#working = undefined;
      const isRetryDue = this.#isRetryDue && !this.#isClosing;
      if (this.#tasks.length > 0 || isRetryDue || (this.#isOpen && !isNoChange(this.#unsaved))) this.#work();
    });
  }

  async #steps(): Promise<void> {
    // What is asked for in the same turn of the event loop shares a step.
    await undefined;
    const isRetryDue = this.#isRetryDue;
    this.#isRetryDue = false;
    if (!this.#isOpen && (!this.#failure || isRetryDue)) await this.#openStore();
    while (this.#tasks.length > 0 || (this.#isOpen && !isNoChange(this.#unsaved))) {
      await this.#step(this.#tasks.splice(0, largestStep));
      await this.#sweepWhenDue();
    }
    await this.#sweepWhenDue();
  }

  async #sweepWhenDue(): Promise<void> {
    if (!this.#isOpen || this.#rememberedSinceSweep < rememberedPerSweep) return;
    this.#rememberedSinceSweep = 0;
    await this.#options.store.sweep(Date.now()).catch((error) => this.#fail(error));
  }

  async #openStore(): Promise<void> {
    this.#isToBeClosed = true;
    try {
      const { items, held, isReset } = await this.#options.store.open({
        onTakenOver: (taken) => this.#addLeftovers(taken as Entry[]),
        wanted: () => this.#wanted(),
        onFailure: (error) => this.#fail(error),
        isReadable: () => true,
        onUnreadable: () => {},
      });
      this.#isOpen = true;
      const entries = items as Entry[];
      const leftovers = held.flatMap(({ text, letGo, setAside }) => {
        try {
          const { kind, records } = JSON.parse(text) as HeldRecords;
          return [createAcceptTask({ kind, via: 'poll', records }, letGo, true)];
        } catch {
          setAside();
          return [];
        }
      });
      this.#tasks.unshift(...leftovers, ...this.#postponed.splice(0));
      if (this.#options.store.shared) this.#reconcile(entries, isReset === true);
      this.#addLeftovers(entries);
      if (isNoChange(this.#unsaved)) this.#recovered();
    } catch (error) {
      this.#fail(error);
    }
  }

  #wanted(): string[] {
    if (this.#heir) return this.#heir.#wanted();
    return this.#distribution.wanted;
  }

  /** What was stored and is not among the `found` has been taken over by another process, or, after a reset, is lost. */
  #reconcile(found: readonly Entry[], isReset: boolean): void {
    const ids = new Set(found.map(({ id }) => id));
    for (const { entry, isStored, end } of this.#undelivered.values()) {
      if (!isStored || ids.has(entry.id)) continue;
      if (isReset) {
        this.#unsaved.keep.set(entry.id, entry);
      } else {
        this.#remove(entry.id);
        end(false);
      }
    }
  }

  #addLeftovers(entries: readonly Entry[]): void {
    for (const entry of entries) {
      // The clock may have been set back since.
      this.#lastId = Math.max(this.#lastId, Number.parseInt(entry.id.slice(0, idTimeLength), 36));
      if (this.#undelivered.has(entry.id) || this.#unsaved.drop.has(entry.id)) continue;
      const identity = identify(entry.kind, entry.record);
      const [key] = keysOf(identity);
      if (key !== undefined && this.#unsaved.remember.get(key) !== undefined) {
        // Its commit seemed to fail and had not: it has been given out again under another id.
        this.#drop(entry, identity, this.#unsaved);
      } else {
        const undelivered = createUndelivered(entry, identity);
        undelivered.isStored = true;
        this.#undelivered.add(undelivered);
      }
    }
    this.#distribution.handOutSoon();
  }

  /** Applies tasks and saves what they change, together with what is unsaved, in one commit. */
  async #step(tasks: Task[]): Promise<void> {
    const recalled = await this.#recall(tasks);
    const recall: Look = (key) => recalled.get(key);
    if (this.#isOpen) {
      const earlier = this.#unsaved;
      this.#unsaved = createChanges();
      const changes = createChanges(earlier);
      const finish = tasks.map((task) => this.#apply(task, recall, changes));
      this.#undelivered.forgetExpected();
      try {
        if (!isNoChange(changes)) await this.#options.store.commit(changes, recalled);
        this.#rememberedSinceSweep += changes.remember.size;
        this.#recovered();
        for (const task of tasks) if (task.type === 'accept') task.letGo();
        for (const end of finish) end();
        for (const id of changes.keep.keys()) {
          const undelivered = this.#undelivered.get(id);
          if (undelivered) undelivered.isStored = true;
        }
        return;
      } catch (error) {
        this.#unsaved = createChanges(earlier, this.#unsaved);
        if (error instanceof StoreConflict) return this.#step(tasks);
        this.#fail(error);
      }
    }
    for (const task of tasks) {
      if (task.type === 'accept' && task.arrival.via === 'callback') task.reject(this.#unavailable());
      else if (task.type === 'release' && this.#options.store.shared) this.#postpone(task);
      else this.#apply(task, recall, this.#unsaved)();
    }
  }

  /** The service is told at once to bring the entry again; whose the entry is by then is seen when the store is back. */
  #postpone(task: ReleaseTask): void {
    this.#postponed.push(task);
    task.undelivered.end(false);
    task.resolve();
  }

  async #recall(tasks: readonly Task[]): Promise<Map<string, Remembered | undefined>> {
    const keys = new Set<string>();
    for (const task of tasks) {
      for (const { identity } of task.type === 'release' ? [task.undelivered] : task.items) {
        for (const key of keysOf(identity)) keys.add(key);
        if (task.type === 'accept') for (const key of this.#holdKeysOf(task.arrival, identity)) keys.add(key);
      }
    }
    const found = new Map<string, Remembered | undefined>();
    if (keys.size > 0 && this.#isOpen) {
      try {
        const list = [...keys];
        const values = await this.#options.store.recall(list);
        for (const [index, key] of list.entries()) found.set(key, values[index]);
      } catch (error) {
        this.#fail(error);
      }
    }
    return found;
  }

  /** Works a task into `changes`. What it returns is to be called when they are saved, or cannot be. */
  #apply(task: Task, recall: Look, changes: Changes): () => void {
    const look: Look = (key) => {
      for (const { remember } of [changes, this.#unsaved]) if (remember.has(key)) return remember.get(key);
      return recall(key);
    };
    if (task.type === 'accept') return this.#applyAccept(task, look, changes);
    if (task.type === 'release') return this.#applyRelease(task, look, changes);
    if (task.type === 'adopt') return this.#applyAdopt(task, look, changes);
    for (const { identity } of task.items) this.#judge(identity, 'callback', look, changes);
    return () => {};
  }

  /** Says whether a record was seen before, and remembers it. */
  #judge(identity: Identity, via: Via, look: Look, changes: Changes): Verdict['outcome'] {
    const memory = {
      look,
      now: Date.now(),
      forMs: this.#options.dedupeMs(),
      forgets: this.#options.store.shared === true,
    };
    const { outcome, remember } = judge(identity, via, memory);
    for (const [key, value] of remember) changes.remember.set(key, value);
    return outcome;
  }

  #applyAccept(task: AcceptTask, look: Look, changes: Changes): () => void {
    const { arrival, items, isLeftover, resolve } = task;
    const { kind, via } = arrival;
    const audience = this.#distribution.audience(channelOf(arrival), arrival);
    const fresh: Undelivered[] = [];
    const orphans: Undelivered[] = [];
    const acceptances = items.map(({ record, identity }): Acceptance => {
      let orphan: Undelivered | undefined;
      const outcome = this.#judge(identity, via, look, changes);
      if (outcome !== 'new' && (isLeftover || this.#options.dedupe() || kind === 'outbox')) {
        const pending = this.#undelivered.findCalledBack(identity, changes.drop);
        if (pending) {
          if (via === 'poll') {
            pending.entry.twin = record;
            pending.entry.revision = 1;
            changes.keep.set(pending.entry.id, pending.entry);
          }
          return { outcome, entry: pending.entry };
        }
        orphan = via === 'callback' ? this.#findOrphan(kind, identity) : undefined;
        if (!orphan) {
          const heldElsewhere = this.#holdKeysOf(arrival, identity).some((key) => look(key) !== undefined);
          return heldElsewhere ? { outcome, heldElsewhere } : { outcome };
        }
      }
      const undelivered = this.#create(arrival, record, identity, audience.length);
      if (orphan) {
        this.#drop(orphan.entry, orphan.identity, changes);
        orphans.push(orphan);
        undelivered.entry.twin = orphan.entry.record;
      }
      changes.keep.set(undelivered.entry.id, undelivered.entry);
      for (const key of this.#holdKeysOf(arrival, identity))
        changes.remember.set(key, this.#holding(undelivered.entry));
      fresh.push(undelivered);
      return { outcome, entry: undelivered.entry };
    });
    return () => {
      for (const { entry } of orphans) this.#remove(entry.id);
      this.#giveNew(fresh, audience, arrival);
      resolve(acceptances);
    };
  }

  #applyRelease({ undelivered, resolve }: ReleaseTask, look: Look, changes: Changes): () => void {
    const { entry, identity } = undelivered;
    const { twin } = entry;
    if (this.#undelivered.get(entry.id) !== undelivered) return resolve;
    this.#drop(entry, identity, changes);
    if (!twin) {
      for (const [key, value] of forget(identity, look)) changes.remember.set(key, value);
    }
    const arrival: Arrival = { kind: entry.kind, via: 'poll', records: [] };
    const audience = this.#distribution.audience(channelOf(arrival), arrival);
    const standIn = twin && this.#create(arrival, twin, identity, audience.length);
    if (standIn) changes.keep.set(standIn.entry.id, standIn.entry);
    return () => {
      this.#remove(entry.id);
      if (standIn) this.#giveNew([standIn], audience);
      else this.#undelivered.keepReleased(undelivered);
      undelivered.end(false);
      resolve();
    };
  }

  #applyAdopt({ items, resolve }: AdoptTask, look: Look, changes: Changes): () => void {
    const adopted = items.filter(({ entry }) => !this.#undelivered.has(entry.id));
    for (const { entry, identity } of adopted) {
      // Whether it was seen here does not matter: it is undelivered.
      this.#judge(identity, entry.channel === 'callback' ? 'callback' : 'poll', look, changes);
      for (const key of this.#holdKeysOf(entry, identity)) changes.remember.set(key, this.#holding(entry));
      changes.keep.set(entry.id, entry);
    }
    return () => {
      for (const { entry, identity } of adopted) this.#undelivered.add(createUndelivered(entry, identity));
      this.#distribution.handOutSoon();
      resolve();
    };
  }

  #drop(entry: Entry, identity: Identity, changes: Changes): void {
    changes.keep.delete(entry.id);
    changes.drop.set(entry.id, 'inbox');
    for (const key of this.#holdKeysOf(entry, identity)) changes.remember.set(key, undefined);
  }

  /**
   * Keys that stand in a shared store as long as a called-back entry is undelivered, so that no other process tells the
   * service that it has arrived: its holder may still refuse it, and the service is to bring it again then.
   */
  #holdKeysOf(origin: Pick<Arrival, 'kind' | 'address'>, identity: Identity): string[] {
    if (!this.#options.store.shared || channelOf(origin) !== 'callback') return [];
    return keysOf(identity).map((key) => `held:${key}`);
  }

  #holding({ id }: Entry): Remembered {
    return { at: Date.now(), forMs: this.#options.dedupeMs(), value: id };
  }

  #create(arrival: Arrival, record: InboxRecord, identity: Identity, audience: number): Undelivered {
    const { kind, address } = arrival;
    const entry: Entry = {
      id: this.#nextId(),
      part: 'inbox',
      takers: address ? nameTakers(address) : [kind],
      channel: channelOf(arrival),
      kind,
      record,
      ...(address ? { address } : undefined),
      attempts: (address ? this.#undelivered.attemptsBefore(identity) : 0) + (audience > 0 ? 1 : 0),
      // Nobody can say whether another process has delivered it already.
      ...(this.#options.store.shared && !this.#isOpen ? { unsure: true as const } : undefined),
    };
    const undelivered = createUndelivered(entry, identity);
    if (entry.channel === 'callback') this.#undelivered.expect(undelivered);
    return undelivered;
  }

  #remove(id: string): void {
    // An attempt that was counted while a commit dropped it would bring it back.
    if (this.#undelivered.remove(id)) this.#unsaved.keep.delete(id);
  }

  /** What was polled for nodes that are gone: a node that is called back with the same can have it. */
  #findOrphan(kind: Kind, identity: Identity): Undelivered | undefined {
    return this.#distribution.hasTakers(kind) ? undefined : this.#undelivered.findOn(kind, identity);
  }

  #giveNew(fresh: readonly Undelivered[], audience: readonly Taker[], arrival?: Arrival): void {
    for (const undelivered of fresh) this.#undelivered.add(undelivered);
    this.#distribution.giveNew(fresh, audience, arrival);
  }

  #settle(undelivered: Undelivered): void {
    const { entry, identity } = undelivered;
    this.#remove(entry.id);
    this.#drop(entry, identity, this.#unsaved);
    undelivered.end(true);
    this.#work();
  }

  #fail(cause: unknown): void {
    const isNew = !this.#failure;
    this.#isOpen = false;
    this.#failure = isSmsError(cause)
      ? cause
      : new SmsError('storeUnavailable', {
          params: { detail: describeStoreFailure(cause) },
          // One about syntax quotes what it could not read, which may be somebody's message.
          ...(cause instanceof SyntaxError ? undefined : { cause }),
        });
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#isRetryDue = true;
      this.#work();
    }, this.#options.reopenDelayMs ?? reopenDelayMs);
    if (isNew) this.#options.onStore(this.#failure);
  }

  #recovered(): void {
    if (!this.#failure) return;
    this.#failure = undefined;
    this.#options.onStore(undefined);
  }

  #unavailable(): SmsError {
    return this.#failure ?? new SmsError('storeUnavailable', { params: { detail: 'closed' } });
  }

  #nextId(): string {
    this.#lastId = Math.max(this.#lastId + 1, Date.now() * 1_000);
    return this.#lastId.toString(36).padStart(idTimeLength, '0') + this.#idSuffix;
  }
}

function channelOf({ kind, address }: Pick<Arrival, 'kind' | 'address'>): Channel {
  return address ? 'callback' : kind;
}

function createAcceptTask(arrival: Arrival, letGo: () => void, isLeftover = false): AcceptTask {
  const items = arrival.records.map((record) => ({ record, identity: identify(arrival.kind, record) }));
  return { type: 'accept', arrival, items, isLeftover, letGo, resolve: () => {}, reject: () => {} };
}

/** What the operating system or the database calls the failure: `ENOSPC`, `LEVEL_LOCKED`. */
function describeStoreFailure(error: unknown): string {
  const codes: string[] = [];
  if (error instanceof SyntaxError) return 'unreadable content';
  for (let current = error; current instanceof Error && codes.length < 3; current = current.cause) {
    codes.push(String((current as { code?: unknown }).code ?? current.message));
  }
  return codes.join(', ') || 'unknown reason';
}
