import { hash } from 'node:crypto';
import { isSmsError, SmsError } from '../errors';
import { addCount, type Count, isWithinLimits, joinCounts } from './counts';

/** The part of the library that an item belongs to. */
export type ItemKind = 'inbox' | 'deadLetter' | 'outgoing';

/**
 * A record or message in the store: a received record, an unhandled record or an outgoing message. The store keeps an
 * item until the part of the library that owns the item drops it. Each part adds its own properties. Can be stored as
 * JSON.
 */
export interface Item {
  /** Ids ascend in the order of arrival within the store. */
  id: string;
  part: ItemKind;
  /**
   * Names of nodes. If this process dies, another process that has one of these nodes can claim the item. A name stands
   * for nodes that receive a kind (`incoming`, `status` or `outbox`), for the node with an id (`node ID`), or for nodes
   * with a path (`path PATH`).
   */
  subscribers: readonly string[];
  /** Number of times that the item might have been delivered. */
  attempts: number;
}

/** Start and duration of a remembered value. */
export interface Duration {
  /** Time from which the value is remembered, in ms since 1970. */
  at: number;
  /** Duration, in ms. Afterwards, {@link Store.sweep} drops the value. */
  forMs: number;
}

/** A value that the store remembers under a key. */
export interface Remembered extends Duration {
  /** Any text. Stores do not read it. */
  value: string;
}

/**
 * Prefix of keys that {@link Store.sweep} neither reads nor drops, because their values can be large. The code that
 * writes such a value must also forget it.
 */
export const unsweptPrefix = '~';

/** Duration of values that must not expire: 100 years, in ms. Redis still reads this number as a whole number. */
export const foreverMs = 100 * 365 * 24 * 3_600_000;

/** Parses a value that was remembered as JSON. A damaged value counts as absent, so that the account can continue. */
export function parseRememberedValue<T>(
  remembered: Pick<Remembered, 'value'> | undefined,
  isIntact: (value: unknown) => value is T,
): T | undefined {
  if (!remembered) return undefined;
  try {
    const value: unknown = JSON.parse(remembered.value);
    return isIntact(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Looks up the remembered value of a key. */
export type ReadKey = (key: string) => Remembered | undefined;

/** A text that {@link Store.saveAhead} has saved. */
export interface PendingWrite {
  /** Deletes the text after it is committed. */
  remove(): void;
}

/** A text that an earlier process saved with {@link Store.saveAhead} and did not delete. */
export interface RecoveredWrite extends PendingWrite {
  text: string;
  /** Moves an unreadable text to another place, and returns that place. */
  quarantine(): string;
}

/** The data that a store contains when it is opened. */
export interface RecoveredState {
  /** Items in the order of their ids. */
  items: Item[];
  /**
   * Texts that earlier processes saved. Their records might already be committed, and even be delivered and dropped.
   */
  pendingWrites: RecoveredWrite[];
  /**
   * True if the store has lost data since it was last open. If so, the process must store its items again from memory.
   */
  isReset?: boolean;
}

/** A part of the data of a store, about 1 MiB. */
export interface StorePage {
  items: Item[];
  remembered: [key: string, remembered: Remembered][];
}

/** Functions that a store calls to report an event, or to ask the journal. */
export interface StoreEvents {
  /** Set if the store is opened for an import. `open` then returns no items, because `pages` reads them. */
  isImport?: true;
  /**
   * Called when this process has claimed items of a dead process. Only shared stores call it. If no process with their
   * nodes claims outgoing messages for some time, any process claims them.
   */
  onTakenOver(items: readonly Item[]): void;
  /**
   * Returns the names of this process's nodes, see {@link Item.subscribers}. The process can claim items with these
   * names.
   */
  wantedNames(): readonly string[];
  /** Called when the store has failed, even if no call is running. The next call would fail too. */
  onFailure(error: unknown): void;
  /** Returns whether the part of the library that owns an item can read it. If not, the store quarantines the item. */
  isReadable(item: Item): boolean;
  /** Called when unreadable data was quarantined. `place` says where the data is now. */
  onUnreadable(place: string): void;
  /** Called when the log of the database was damaged. `bytes` is the number of bytes that were dropped. */
  onDropped?(bytes: number, folder: string): void;
}

/**
 * Thrown by `commit` if nothing was committed: another process has changed a value that the step has read, or a limit
 * of a {@link Count} is reached. The step must decide again.
 */
export class StoreConflict extends Error {
  constructor() {
    super('another process has changed a value of this step');
  }
}

/** Reports that the store works, but must be opened again. Other processes might have claimed items of this process. */
export class StoreLapse extends Error {}

/**
 * The changes of one atomic commit. Each id is only in `keep` or in `drop`, and each key only in `remember` or in
 * `count`.
 */
export interface Changes {
  /** New or changed items, by id. */
  keep: Map<string, Item>;
  /** Ids of items in `keep` that need no flush: they survive a crash of the process, but not always a power cut. */
  loose: Set<string>;
  /** Ids of items to drop, with the part of the library that each item belongs to. */
  drop: Map<string, ItemKind>;
  /** Values to remember, by key. `undefined` forgets the key. */
  remember: Map<string, Remembered | undefined>;
  /**
   * Messages to add to stored counts, by key. Other processes can add to the same count without a conflict. The commit
   * fails only if the messages that are already counted exceed a limit of the {@link Count}.
   */
  count: Map<string, Count>;
  /** Keys on whose values the step depends. A shared store commits the step only if these values are unchanged. */
  compare: Set<string>;
  /**
   * True if a power cut must not undo the commit, even if it only drops items and forgets values. The store then
   * flushes it.
   */
  firm: boolean;
}

/**
 * Stores items until they are dropped, and remembers values.
 *
 * Calls never overlap, except `saveAhead`. Each call can reject with any error. The journal then closes the store and
 * opens it again later.
 */
export interface Store {
  /** True if stored data survives the end of the process. The process can then remove the data from memory on close. */
  readonly durable: boolean;
  /**
   * True if several processes use the store at the same time. Such a store drops expired values automatically. If
   * `open` does not return an item that this process has stored, another process has claimed the item.
   */
  readonly shared?: true;
  /**
   * Whether the store might contain data of an earlier process. Can be read while the store is closed. Absent: unknown.
   * The store is then opened only when a node needs it.
   */
  readonly mayHold?: boolean | undefined;
  /**
   * Returns the time of the server, in ms since 1970, or `undefined` if it is not known yet. Only shared stores have
   * this method. All times in a shared store are by the clock of the server.
   */
  now?(): number | undefined;
  /** Opens or reopens the store, and returns the data of earlier processes. */
  open(events: StoreEvents): Promise<RecoveredState>;
  /**
   * Saves an answer of the service synchronously. A crash during the commit then cannot lose the answer, which the
   * service does not return again. Also works while the store is closed. Never throws, and returns `undefined` on
   * failure. Absent: the store cannot do this.
   */
  saveAhead?(text: string): PendingWrite | undefined;
  /**
   * Returns true while this process might still claim items of another process, because it is unknown whether that
   * process is alive. Only shared stores have this method.
   */
  awaitsClaims?(): Promise<boolean>;
  /** Returns the value of each key, or `undefined`. */
  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]>;
  /** Reads all data of this process from the open store, for an import. */
  pages(): AsyncIterable<StorePage>;
  /**
   * Drops everything that {@link pages} reads, in one atomic step. A shared store drops only the items of this process.
   *
   * @param key key under which `mark` is remembered
   * @param mark value that the store then contains
   */
  clear(key: string, mark: Remembered): Promise<void>;
  /**
   * Commits one atomic step. When it resolves, the kept items and remembered values survive the process if the store is
   * durable.
   *
   * @param recalled values that the step depends on, as `recall` returned them. A shared store compares them with its
   *   current values
   * @throws StoreConflict if another process has changed a compared value, or has reached a limit of {@link
   *   Changes.count}
   */
  commit(changes: Changes, recalled: ReadonlyMap<string, Remembered | undefined>): Promise<void>;
  /**
   * Drops expired values. One call might check only some of the values. The next call then continues.
   *
   * @param renew returns the value to keep, or `undefined` if the value has expired
   */
  sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void>;
  close(): Promise<void>;
}

/** Returns a digest. Keys of remembered values contain digests instead of bodies, numbers and user-defined keys. */
export function digest(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22);
}

/** Creates empty changes, or joins earlier changes. Later changes take precedence. */
export function createChanges(...earlier: readonly Changes[]): Changes {
  const changes: Changes = {
    keep: new Map(),
    loose: new Set(),
    drop: new Map(),
    remember: new Map(),
    count: new Map(),
    compare: new Set(),
    firm: false,
  };
  for (const laterChanges of earlier) addChanges(changes, laterChanges);
  return changes;
}

/**
 * Keeps an item, even if an earlier change dropped it.
 *
 * @param isLoose true if a power cut can undo the change; see {@link Changes.loose}
 */
export function keepItem({ keep, loose, drop }: Changes, item: Item, isLoose = false): void {
  const { id } = item;
  drop.delete(id);
  // If an earlier change of the item in this commit needs a flush, the item is flushed, even if this change is loose.
  if (isLoose && (loose.has(id) || !keep.has(id))) loose.add(id);
  else loose.delete(id);
  keep.set(id, item);
}

/**
 * Returns the newest version of an item: the version that an earlier step of the same commit stores, or else `item`.
 */
export function latest<SomeItem extends Item>(item: SomeItem, { keep }: Pick<Changes, 'keep'>): SomeItem {
  return (keep.get(item.id) as SomeItem | undefined) ?? item;
}

/** Drops an item, even if an earlier change kept it. */
export function dropItem({ keep, drop }: Changes, id: string, part: ItemKind): void {
  keep.delete(id);
  drop.set(id, part);
}

/** Remembers a value, or forgets the key. Discards messages that earlier changes have counted under the key. */
export function rememberValue({ remember, count }: Changes, key: string, value: Remembered | undefined): void {
  count.delete(key);
  remember.set(key, value);
}

/** Adds messages to the count of a key, on top of earlier changes of this key. */
export function countMessages({ remember, count }: Changes, key: string, addition: Count): void {
  if (remember.has(key)) remember.set(key, addCount(remember.get(key)?.value, addition));
  else count.set(key, joinCounts(count.get(key), addition));
}

/**
 * Applies the counts of a commit. Returns the new value of each key.
 *
 * @param storedUnder returns the value that the store has under a key
 * @throws StoreConflict if a limit is reached
 */
export function applyCounts(
  { count }: Changes,
  storedUnder: (key: string) => Remembered | undefined,
): [key: string, value: Remembered | undefined][] {
  return [...count].map(([key, addition]) => {
    const value = storedUnder(key)?.value;
    if (!isWithinLimits(value, addition)) throw new StoreConflict();
    return [key, addCount(value, addition)];
  });
}

/** Adds further changes to `changes`. They take precedence over the changes that are already there. */
export function addChanges(changes: Changes, { keep, loose, drop, remember, count, compare, firm }: Changes): void {
  for (const [id, item] of keep) keepItem(changes, item, loose.has(id));
  for (const [id, part] of drop) dropItem(changes, id, part);
  for (const [key, value] of remember) rememberValue(changes, key, value);
  for (const [key, addition] of count) countMessages(changes, key, addition);
  for (const key of compare) changes.compare.add(key);
  changes.firm ||= firm;
}

/**
 * Returns whether the commit must be flushed. If it only drops items, it need not: a lost drop only causes a
 * redelivery.
 */
export function isFlushed({ keep, loose, firm }: Changes): boolean {
  if (firm) return true;
  for (const id of keep.keys()) if (!loose.has(id)) return true;
  return false;
}

/** Returns whether the changes are empty. */
export function isNoChange({ keep, drop, remember, count, compare }: Changes): boolean {
  return [keep, drop, remember, count, compare].every(({ size }) => size === 0);
}

/** Formats a remembered value as one line: start, duration and value. */
export function formatRemembered({ at, forMs, value }: Remembered): string {
  return at === 0 && forMs === 0 ? value : `${at} ${forMs} ${value}`;
}

/** Parses a remembered value. A text in another format becomes a value without a duration, and stays unchanged. */
export function parseRemembered(text: string): Remembered {
  const afterAt = text.indexOf(' ');
  const afterForMs = text.indexOf(' ', afterAt + 1);
  const [at, forMs] = [Number(text.slice(0, afterAt)), Number(text.slice(afterAt + 1, afterForMs))];
  const remembered = { at, forMs, value: text.slice(afterForMs + 1) };
  const isReadable = Number.isFinite(at) && Number.isFinite(forMs) && formatRemembered(remembered) === text;
  return isReadable ? remembered : { at: 0, forMs: 0, value: text };
}

/**
 * Reads items in the listed order.
 *
 * @param quarantine moves an unreadable item to another place, and returns the place
 */
export async function readItems(
  entries: AsyncIterable<[id: string, text: string]> | Iterable<[id: string, text: string]>,
  events: StoreEvents,
  quarantine: (id: string, text: string) => Promise<string>,
): Promise<Item[]> {
  const items: Item[] = [];
  for await (const [id, text] of entries) {
    const isReadable = (item: unknown): item is Item => Object(item).id === id && events.isReadable(item as Item);
    const item = parseRememberedValue({ value: text }, isReadable);
    if (item) items.push(item);
    else events.onUnreadable(await quarantine(id, text));
  }
  return items;
}

/**
 * Describes a failure by its code from the operating system or the database, such as `ENOSPC` or `LEVEL_LOCKED`.
 */
export function describeStoreFailure(error: unknown): string {
  const codes: string[] = [];
  for (let level = error; level instanceof Error && codes.length < 3; level = level.cause) {
    codes.push(String((level as { code?: unknown }).code ?? level.message));
  }
  return codes.join(', ') || 'unknown reason';
}

/** Converts a failure of a store into an `SmsError`. */
export function asStoreError(cause: unknown): SmsError {
  if (isSmsError(cause)) return cause;
  return new SmsError('storeUnavailable', {
    params: { detail: describeStoreFailure(cause) },
    cause,
  });
}

/** Length of the first part of an id, in characters: the time in µs since 1970, in base 36. */
export const idTimeLength = 11;

/**
 * Returns the time at which an item was created, in ms since 1970. If many items were created at the same time, the
 * result is slightly late.
 */
export function timeOf({ id }: Pick<Item, 'id'>): number {
  return Number.parseInt(id.slice(0, idTimeLength), 36) / 1_000;
}

/** Size in bytes after which a page of read data or a commit ends. */
export const maxBytes = 1_048_576;

/** Writes a text under a key, or deletes the key if the text is `undefined`. */
export type Operation = readonly [key: string, text: string | undefined];

/**
 * A database of texts by key, in a folder. Only one process can open it. Calls never overlap. Each call can reject with
 * any error.
 */
export interface Database {
  /** A file that exists for as long as the database does. */
  readonly file: string;
  /** Number of damaged bytes in the log of the database. They were dropped when the database was opened. */
  readonly droppedBytes: number;
  /** Returns the text of each key, or `undefined`. */
  read(keys: readonly string[]): Promise<(string | undefined)[]>;
  /**
   * Lists the texts of all keys from `from` up to, but not including, `before`, in the order of their UTF-8 bytes.
   * Returns at most `limit` texts, fewer if they are large (see {@link maxBytes}), and none at the end.
   */
  list(from: string, before: string, limit: number): Promise<[key: string, text: string][]>;
  /**
   * Writes all operations or none. Without a flush, the operations survive the end of the process, but survive a power
   * cut only after a later flush.
   */
  write(operations: readonly Operation[], options: { isFlushed: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** A kind of database. */
export interface Engine {
  readonly name: string;
  /** Returns whether this engine wrote files with these names. */
  hasWritten(names: readonly string[]): boolean;
  /**
   * Returns the function that opens an existing folder, or `undefined` if the engine is not available on this machine.
   */
  load(): Promise<((folder: string) => Promise<Database>) | undefined>;
}
