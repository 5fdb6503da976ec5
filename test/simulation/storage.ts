import { type Item, type Remembered, type Store, unsweptPrefix } from '../../src/store/store';
import type { StoreTrouble } from './plan';
import type { Random } from './random';
import type { Owner } from './timeline';
import type { Kind, Message, World } from './world';

/** Storage of a machine, such as a disk. Its data outlives the processes. */
export abstract class MachineStorage {
  /** Faults that this storage has now, for all logins. */
  readonly troubles = new Set<StoreTrouble>();
  readonly #troublesOf = new Map<number, Set<StoreTrouble>>();

  constructor(
    readonly world: World,
    readonly copies: Copies,
  ) {}

  /** The data of each login. */
  protected abstract readonly logins: readonly LoginData[];

  /** Description of an item that must not remain here at the end. Absent if no such item remains. */
  abstract readonly leftoverProblem: string | undefined;

  /** Creates the store that an account with this login uses. */
  abstract createStore(login: string, setup: StoreSetup): Store & ModelStore;

  /** Returns the faults that only the store of one login has now. */
  troublesOf(login: number): Set<StoreTrouble> {
    const troubles = this.#troublesOf.get(login) ?? new Set();
    this.#troublesOf.set(login, troubles);
    return troubles;
  }

  /** Returns the logins whose stores have the message as an item. */
  protected loginsWith(message: Message): LoginData[] {
    return this.logins.filter(({ texts }) => this.copies.isIn(texts, message));
  }

  /** Whether the stores of two logins have the message. */
  isInTwoLogins(message: Message): boolean {
    return this.loginsWith(message).length > 1;
  }

  /** Whether this storage has a message in any form, except as an unhandled message. */
  has(message: Message): boolean {
    return this.copies.has(message);
  }

  /** Whether this storage has a message as an unhandled message. */
  isUnhandled(message: Message): boolean {
    return this.copies.isUnhandled(message);
  }

  /** Whether this storage has committed a message, and therefore flushed it. */
  isCommitted(message: Message): boolean {
    return this.has(message);
  }

  /**
   * Whether a message is in a poll answer that this storage has saved but not committed yet. Such an answer can record
   * the delivery of the message. Always false for a shared store, which does not save poll answers.
   */
  isSavedAhead(_message: Message): boolean {
    return false;
  }

  /** Simulates a power failure of the machine. A shared store has its own power supply. */
  loseUnflushed(_random: Random): void {}

  /** Notes that another store has imported all data of a login. A power failure may restore items here. */
  abandon(_login: string): void {}
}

/** The process and login that use a simulated store, and callbacks for its events. */
export interface StoreSetup {
  process: Owner;
  /** Index of the login that owns the store. */
  login: number;
  random: Random;
  /** Called when a call of the store has failed. */
  onFailure(): void;
  /** Called when the store has claimed messages of a dead process. */
  onTakenOver(messages: readonly Message[]): void;
}

/** An item in a store. */
export interface StoredItem {
  text: string;
  /** Id of the instance that must deliver the item. Empty on a disk, which only one process uses at a time. */
  instance: string;
}

/** A remembered value in a store, as JSON. */
export interface StoredValue {
  text: string;
  /** Time at which the store forgets the value, in ms. */
  untilMs: number;
}

/** The data of one login in a store: items, and remembered values by key. */
export class LoginData {
  readonly items = new Map<string, StoredItem>();
  readonly remembered = new Map<string, StoredValue>();

  constructor(
    readonly world: World,
    readonly copies: Copies,
  ) {}

  get texts(): string[] {
    return [...this.items.values()].map(({ text }) => text);
  }

  /** Sets or removes an item. */
  set(id: string, item: StoredItem | undefined): void {
    const before = this.items.get(id);
    if (before) this.copies.count(before.text, -1);
    if (!item) {
      this.items.delete(id);
      return;
    }
    this.items.set(id, item);
    this.copies.count(item.text, 1);
    this.copies.commit(item.text);
  }

  /** Sets or deletes a value. If an import has staged items in the value, counts them as stored copies. */
  remember(key: string, value: StoredValue | undefined): void {
    const before = this.remembered.get(key);
    if (before) for (const item of stagedIn(key, before.text)) this.copies.count(item, -1);
    if (value) this.remembered.set(key, value);
    else this.remembered.delete(key);
    if (value) for (const item of stagedIn(key, value.text)) this.copies.count(item, 1);
  }

  /** Returns the remembered value of a key as JSON. */
  textOf(key: string): string | undefined {
    const value = this.remembered.get(key);
    return value && value.untilMs > this.world.timeline.nowMs ? value.text : undefined;
  }

  lookUp(key: string): Remembered | undefined {
    const text = this.textOf(key);
    return text === undefined ? undefined : (JSON.parse(text) as Remembered);
  }

  /** Returns all remembered values that have not expired. */
  get values(): [key: string, value: Remembered][] {
    return [...this.remembered.keys()].flatMap((key) => {
      const value = this.lookUp(key);
      return value ? [[key, value] as [string, Remembered]] : [];
    });
  }
}

/** Calls that the library makes to a store. `save ahead` saves a poll answer before the step that handles it. */
export type StoreCall = 'open' | 'recall' | 'commit' | 'sweep' | 'close' | 'save ahead';

/** A simulated store: its delays and faults, and the members that only the simulation uses. */
export abstract class ModelStore {
  readonly durable = true;
  /** True after a failed call, until a later call writes the missing data. */
  hasFailed = false;
  protected readonly world: World;
  /** The calls in progress. */
  protected readonly running = new Set<StoreCall>();
  #isReady = false;
  /** Number of the event in which the store closed last. */
  #closedIn = -1;

  constructor(
    protected readonly storage: MachineStorage,
    protected readonly setup: StoreSetup,
  ) {
    this.world = storage.world;
  }

  /**
   * Whether the library considers the store open. If the store closes during an event, the library learns that only at
   * the end of the event.
   */
  get isReady(): boolean {
    return this.#isReady || this.#closedIn === this.world.timeline.count;
  }

  #setReady(isReady: boolean): void {
    if (this.#isReady && !isReady) this.#closedIn = this.world.timeline.count;
    this.#isReady = isReady;
  }

  /** Whether the process that uses this store has a message both in the store and in memory. */
  abstract isInMemory(message: Message): boolean;

  /** Number of answers of a kind that are saved, but not committed. */
  abstract pendingWrites(kind: Kind): number;

  /** Ends the process. A write in progress might succeed or be lost. */
  abstract die(): void;

  /** Code of the error of a failed call. */
  protected abstract readonly failureCode: string;

  /** Possible delays of a call, in ms. */
  protected abstract readonly delaysMs: readonly number[];

  /** Whether a call fails if the store is full. */
  protected abstract needsRoom(call: StoreCall): boolean;

  /** Whether the store can be used: it is open, and no other process has opened it since. */
  protected abstract get isUsable(): boolean;

  /** Returns the data of the login. Throws if the store is not open. */
  protected abstract opened(): LoginData;

  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    return this.call('recall', () => {
      const data = this.opened();
      return keys.map((key) => data.lookUp(key));
    });
  }

  /** Whether the store has a fault now. */
  protected has(trouble: StoreTrouble): boolean {
    const { troubles } = this.storage;
    return troubles.has(trouble) || this.storage.troublesOf(this.setup.login).has(trouble);
  }

  protected get isCutOff(): boolean {
    return this.has('fails') || this.has('fails afterwards');
  }

  protected fails(call: StoreCall): boolean {
    if (call === 'close') return false;
    if (this.isCutOff || (this.has('is full') && this.needsRoom(call))) return true;
    return this.has('fails now and then') && this.setup.random.chance(0.3);
  }

  /** Runs the work of a call after a delay, unless the call fails. */
  protected call<Result>(call: StoreCall, work: () => Result): Promise<Result> {
    const { process, random } = this.setup;
    this.running.add(call);
    return new Promise((resolve, reject) => {
      const isSlow = this.has('is slow');
      const delayMs = isSlow ? random.below(3_000) : random.pick(this.delaysMs);
      const finish = () => {
        this.running.delete(call);
        try {
          if (this.fails(call)) {
            if (call === 'commit' && this.has('fails afterwards') && this.isUsable) work();
            throw createFailure(this.failureCode);
          }
          resolve(work());
          // A call that was in flight when the connection broke can still write, but it cannot make the store usable
          // again.
          if (this.isUsable && (call === 'open' || call === 'commit')) this.hasFailed = false;
          if (call === 'open' || call === 'close') this.#setReady(call === 'open');
        } catch (error) {
          const isConflict = this.isConflict(error);
          const result = isConflict ? 'conflicts with another commit' : 'fails';
          this.world.say(() => `${process.name}: ${call} of its store ${result}`);
          if (!isConflict) this.noteFailure();
          reject(error);
        }
      };
      if (this.answersAtOnce(call) && !isSlow) queueMicrotask(finish);
      else this.world.timeline.outside(delayMs, finish, process);
    });
  }

  protected isConflict(_error: unknown): boolean {
    return false;
  }

  protected answersAtOnce(_call: StoreCall): boolean {
    return false;
  }

  /** Notes that a call has failed, or that the connection was lost. */
  protected noteFailure(): void {
    this.#setReady(false);
    this.hasFailed = true;
    this.setup.onFailure();
  }
}

/** Counts the stored items that contain each message. */
export class Copies {
  readonly #counts = new Map<Message, number>();
  /** Unhandled messages, with their number of copies. */
  readonly #unhandled = new Map<Message, number>();

  constructor(private readonly world: World) {}

  has(message: Message): boolean {
    return (this.#counts.get(message) ?? 0) > 0;
  }

  isUnhandled(message: Message): boolean {
    return (this.#unhandled.get(message) ?? 0) > 0;
  }

  count(text: string, by: number): void {
    this.world.outgoing?.count(text, by);
    if (isUnhandledItem(text)) {
      const { kind, record } = JSON.parse(text) as { kind: Kind; record: Record<string, unknown> };
      const message = this.world.find(kind, record);
      if (message) this.#unhandled.set(message, (this.#unhandled.get(message) ?? 0) + by);
    }
    for (const message of this.in(text)) {
      this.#counts.set(message, (this.#counts.get(message) ?? 0) + by);
      message.wasEverStored = true;
    }
  }

  /** Notes that a store committed an item. */
  commit(text: string): void {
    const { outgoing, plan } = this.world;
    if (!plan.outgoing?.consent) return;
    for (const message of this.in(text)) outgoing?.noteConsent(message);
    // An earlier commit might already have stored this reply as an item.
    const { result } = JSON.parse(text) as { result?: { reply?: Record<string, unknown> } };
    const reply = result?.reply && this.world.find('incoming', result.reply);
    if (reply) outgoing?.noteConsent(reply, true);
  }

  /** Returns the messages in a stored item or a saved answer. An import stores a saved answer as an item. */
  in(text: string): Message[] {
    if (isUndecided(text)) return [];
    const { kind, record, records } = JSON.parse(text) as {
      kind: Kind;
      record?: Record<string, unknown>;
      records?: Record<string, unknown>[];
    };
    const all = [...(records ?? []), record].filter((found) => found !== undefined);
    const messages = all.map((found) => this.world.find(kind, found)).filter((message) => message !== undefined);
    return [...new Set(messages)];
  }

  /** Whether any of these items contains a message. */
  isIn(texts: readonly string[], message: Message): boolean {
    return texts.some((text) => this.in(text).includes(message));
  }
}

/** Returns the items in a value that an import has staged, each as JSON. */
function stagedIn(key: string, text: string): string[] {
  if (!key.startsWith(`${unsweptPrefix}importPage:`)) return [];
  const items = JSON.parse((JSON.parse(text) as Remembered).value) as Item[];
  return items.map((item) => JSON.stringify(item));
}

/**
 * Finds an item that must not remain at the end. Only items that wait for a decision of a user or for a missing node
 * may remain.
 */
export function findRemainingItem(texts: Iterable<string>, { plan }: World): string | undefined {
  for (const text of texts) {
    if (isUndecided(text)) continue;
    const { part, kind } = JSON.parse(text) as { part: string; kind: string };
    if (part !== 'inbox' || !plan.outgoing || plan.nodes.some((node) => node.kind === kind)) return text;
  }
  return undefined;
}

/**
 * Whether a user can still decide about the item: an unhandled message, or an outgoing message with an unknown
 * outcome.
 */
function isUndecided(text: string): boolean {
  return isUnhandledItem(text) || text.includes('"state":"uncertain"');
}

function isUnhandledItem(text: string): boolean {
  return text.includes('"part":"deadLetter"');
}

/** Creates the error that a fault causes. */
export function createFailure(code: string): Error {
  return Object.assign(new Error(`made to fail with ${code}`), { code });
}
