import { hash } from 'node:crypto';
import { isSmsError, SmsError } from '../errors';

/** The part of the library that an item belongs to. `held`: a polled answer that an import has brought. */
export type ItemKind = 'inbox' | 'deadLetter' | 'ledger' | 'held';

/** Something kept until it is done with. Plain data; the parts add properties of their own. */
export interface Item {
  /** Ascending in the order of arrival within the store. */
  id: string;
  part: ItemKind;
  /**
   * Names of those who can take it over from a process that died, one of which suffices: `incoming`, `status`, `outbox`,
   * `node ID`, `path PATH`.
   */
  subscribers: readonly string[];
  /** How often it may have been handed on. */
  attempts: number;
}

/** From when on, and for how long, something is remembered. */
export interface Duration {
  /** When, in ms. */
  at: number;
  /** How long, in ms from then. It is swept some time after. */
  forMs: number;
}

/** What is remembered under a key. */
export interface Remembered extends Duration {
  /** Any text; no store reads it. */
  value: string;
}

/** What is remembered under a key that begins so is never swept, nor read to find that out, since it may be large: whoever remembers it forgets it. */
export const unsweptPrefix = '~';

/** As good as for ever, and longer than any text waits. It has fewer digits than Redis takes for a fraction. */
export const foreverMs = 100 * 365 * 24 * 3_600_000;

/** What was remembered as JSON. A value that is damaged says nothing: it must not keep the rest of the account from going on. */
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

/** Looks up what is remembered under a key. */
export type Look = (key: string) => Remembered | undefined;

/** A text where a crash does not reach it. */
export interface PendingWrite {
  /** To be called when it is committed. */
  letGo(): void;
}

/** Something on its way into the store that an earlier process left. */
export interface RecoveredWrite extends PendingWrite {
  text: string;
  /** Keeps it where nobody looks for it again, since it cannot be read. Returns the place. */
  quarantine(): string;
}

/** What an earlier process left behind. */
export interface RecoveredState {
  /** In order. */
  items: Item[];
  /** It may be among the items or done with already. What this process holds it has in hand: that is not among it. */
  held: RecoveredWrite[];
  /** What is in hand and missing here the store has lost since it was last open: it has to be kept anew. */
  isReset?: boolean;
}

/** A part of what a store has, about 1 MiB. */
export interface StorePage {
  items: Item[];
  remembered: [key: string, remembered: Remembered][];
}

/** What a store asks and tells. */
export interface StoreEvents {
  /** The store is opened for an import: `open` returns no items, because `pages` reads them. */
  isImport?: true;
  /**
   * Another process is gone, and what it had in hand is this one's. Only of a store that is shared. Of the ledger there may be what is not
   * wanted here, when nobody has wanted it for as long as texts wait for a node that is gone.
   */
  onTakenOver(items: readonly Item[]): void;
  /** Names as in {@link Item.subscribers} that may be taken over now: the rest is left to processes that can deliver it. */
  wanted(): readonly string[];
  /** The store cannot be used any more, as the next call would find out. */
  onFailure(error: unknown): void;
  /** Whether those who keep such items can make something of it; if not, it is set aside. */
  isReadable(item: Item): boolean;
  /** Something could not be read and is set aside; `place` says where it is now, and nothing of its content. */
  onUnreadable(place: string): void;
  /** A later version of this package has written an item, which stays as it is. */
  onNewerVersion?(): void;
}

/** A step was based on what is not so, or not any more. Nothing was committed; the step is to be taken anew. */
export class StoreConflict extends Error {
  constructor() {
    super('based on what is not so');
  }
}

/** The store is well, but others may have taken over what this process held in it: it has to be opened again. */
export class StoreLapse extends Error {}

/** One atomic step. An id is in one of `keep` and `drop` at most. */
export interface Changes {
  /** Items to keep, new or changed, by id. */
  keep: Map<string, Item>;
  /** Of those, ids of items that have to outlive the process, but not a power cut: losing the change tells too little, and nothing wrong. */
  loose: Set<string>;
  /** Ids of items that are done with. */
  drop: Map<string, ItemKind>;
  /** `undefined` forgets. */
  remember: Map<string, Remembered | undefined>;
  /** Keys that are only looked at, and that a shared store compares: the step holds only while nobody has changed them. */
  compare: Set<string>;
  /** A power cut must not undo it, though it may only drop and forget. */
  firm: boolean;
}

/**
 * Keeps items until they are done with, and remembers.
 *
 * Calls never overlap, but for `hold`. Each may reject with any error; the store is then closed, and opened again later.
 */
export interface Store {
  /** Whether what is kept outlives the process, so that it may be let go of on close. */
  readonly durable: boolean;
  /**
   * Whether several processes use it at once. It then drops what was remembered by itself, in time, and `open` returns
   * all that this process has in it: what is missing is another's.
   */
  readonly shared?: true;
  /**
   * Whether an earlier process may have left something there, at less expense than by opening. Absent: nobody knows, but what it
   * has left is found by nobody who does not want it.
   */
  readonly mayHold?: boolean | undefined;
  /** Opens or reopens, and returns what was left. */
  open(events: StoreEvents): Promise<RecoveredState>;
  /**
   * Puts a text where a crash does not reach it, before it returns: a commit takes its time, and whoever sent it has
   * forgotten it already. Never throws. Returns `undefined` when it could not. Absent: there is no such place.
   */
  hold?(text: string): PendingWrite | undefined;
  /**
   * Whether items of a dead process might still come, because it is not known yet of another process whether it lives. Only of a
   * store that is shared.
   */
  awaitsClaims?(): Promise<boolean>;
  /** What is remembered under each key, `undefined` where nothing is. */
  recall(keys: readonly string[]): Promise<(Remembered | undefined)[]>;
  /** Reads all that this process has in the store, for an import. The store is open. */
  pages(): AsyncIterable<StorePage>;
  /**
   * Drops all that {@link pages} reads, in one atomic step. A shared store drops the items of this process only.
   *
   * @param key under which `mark` is remembered from then on
   */
  clear(key: string, mark: Remembered): Promise<void>;
  /**
   * Makes one atomic step. When it resolves, what it keeps and remembers outlives the process if the store does.
   *
   * @param recalled what the step is based on, as `recall` returned it; of that a shared store compares what changes
   * @throws StoreConflict when that does not hold
   */
  commit(changes: Changes, recalled: ReadonlyMap<string, Remembered | undefined>): Promise<void>;
  /**
   * Drops what was remembered for a time that is over. May do a part and continue at the next call.
   *
   * @param renew what is to be there of it from now on; `undefined`: nothing, its time is over
   */
  sweep(renew: (remembered: Remembered) => Remembered | undefined): Promise<void>;
  close(): Promise<void>;
}

/** Texts, numbers and keys stand in keys of what is remembered only as digests. */
export function digest(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22);
}

/** Starts from nothing, or from earlier changes, the later ones prevailing. */
export function createChanges(...earlier: readonly Changes[]): Changes {
  const changes: Changes = {
    keep: new Map(),
    loose: new Set(),
    drop: new Map(),
    remember: new Map(),
    compare: new Set(),
    firm: false,
  };
  for (const later of earlier) addChanges(changes, later);
  return changes;
}

/**
 * Keeps an item, which may have been dropped before.
 *
 * @param isLoose a power cut may undo it; see {@link Changes.loose}
 */
export function keepItem({ keep, loose, drop }: Changes, item: Item, isLoose = false): void {
  const { id } = item;
  drop.delete(id);
  // What was to be flushed before still is.
  if (isLoose && (loose.has(id) || !keep.has(id))) loose.add(id);
  else loose.delete(id);
  keep.set(id, item);
}

/** Drops an item, which may have been kept before. */
export function dropItem({ keep, drop }: Changes, id: string, part: ItemKind): void {
  keep.delete(id);
  drop.set(id, part);
}

/** Adds later changes, which prevail. */
export function addChanges(changes: Changes, { keep, loose, drop, remember, compare, firm }: Changes): void {
  for (const [id, item] of keep) keepItem(changes, item, loose.has(id));
  for (const [id, part] of drop) dropItem(changes, id, part);
  for (const [key, value] of remember) changes.remember.set(key, value);
  for (const key of compare) changes.compare.add(key);
  changes.firm ||= firm;
}

/** Says whether a step has to be flushed: what is merely dropped need not be, since losing that tells twice. */
export function isFlushed({ keep, loose, firm }: Changes): boolean {
  if (firm) return true;
  for (const id of keep.keys()) if (!loose.has(id)) return true;
  return false;
}

/** Says whether there is nothing to commit. */
export function isNoChange({ keep, drop, remember, compare }: Changes): boolean {
  return keep.size === 0 && drop.size === 0 && remember.size === 0 && compare.size === 0;
}

/** Version of the format in which items are stored. */
const itemVersion = 1;

/** Writes an item as text. */
export function formatItem(item: Item): string {
  return JSON.stringify({ v: itemVersion, ...item });
}

function withoutVersion({ v: _, ...item }: Item & { v?: number }): Item {
  return item;
}

/** Whether a later version of this package has written an item: this one leaves it alone. */
export function isNewerVersion(text: string): boolean {
  const v = /^\{"v":(\d+),/.exec(text)?.[1];
  return Number(v) > itemVersion;
}

/** Writes what is remembered as one line of text: when, how long, and the value. */
export function formatRemembered({ at, forMs, value }: Remembered): string {
  return at === 0 && forMs === 0 ? value : `${at} ${forMs} ${value}`;
}

/** Reads it again. What nobody has written so is remembered for no time, under its whole text, and stays as it is. */
export function parseRemembered(text: string): Remembered {
  const afterAt = text.indexOf(' ');
  const afterForMs = text.indexOf(' ', afterAt + 1);
  const [at, forMs] = [Number(text.slice(0, afterAt)), Number(text.slice(afterAt + 1, afterForMs))];
  const remembered = { at, forMs, value: text.slice(afterForMs + 1) };
  const isReadable = Number.isFinite(at) && Number.isFinite(forMs) && formatRemembered(remembered) === text;
  return isReadable ? remembered : { at: 0, forMs: 0, value: text };
}

/**
 * Reads items, in the order in which they are listed.
 *
 * @param quarantine keeps what cannot be read elsewhere, and returns the place
 */
export async function readItems(
  listed: AsyncIterable<[id: string, text: string]> | Iterable<[id: string, text: string]>,
  events: StoreEvents,
  quarantine: (id: string, text: string) => Promise<string>,
): Promise<Item[]> {
  const items: Item[] = [];
  for await (const [id, text] of listed) {
    if (isNewerVersion(text)) {
      events.onNewerVersion?.();
      continue;
    }
    const isReadable = (item: unknown): item is Item => Object(item).id === id && events.isReadable(item as Item);
    const item = parseRememberedValue({ value: text }, isReadable);
    if (item) items.push(withoutVersion(item));
    else events.onUnreadable(await quarantine(id, text));
  }
  return items;
}

/** What the operating system or the database calls the failure: `ENOSPC`, `LEVEL_LOCKED`. */
export function describeStoreFailure(error: unknown): string {
  const codes: string[] = [];
  for (let current = error; current instanceof Error && codes.length < 3; current = current.cause) {
    codes.push(String((current as { code?: unknown }).code ?? current.message));
  }
  return codes.join(', ') || 'unknown reason';
}

/** Why a store cannot be used. */
export function asStoreError(cause: unknown): SmsError {
  if (isSmsError(cause)) return cause;
  return new SmsError('storeUnavailable', {
    params: { detail: describeStoreFailure(cause) },
    cause,
  });
}

/** So many digits of an id, to the base of 36, say when it was given, in µs since 1970. */
export const idTimeLength = 11;

/** When an item got its id, in ms since 1970: a little later than then where many came at once. */
export function timeOf({ id }: Pick<Item, 'id'>): number {
  return Number.parseInt(id.slice(0, idTimeLength), 36) / 1_000;
}

/** What is listed, or written, at once ends soon after so many bytes. */
export const mostBytes = 1_048_576;

/** A key gets a text, or is deleted where there is none. */
export type Operation = readonly [key: string, text: string | undefined];

/** Texts by key, in a folder that is open for this process alone. Calls never overlap. Each may reject with any error. */
export interface Database {
  /** A file that is in its place for as long as the database is. */
  readonly file: string;
  /** What stands under each key, `undefined` where nothing does. */
  read(keys: readonly string[]): Promise<(string | undefined)[]>;
  /**
   * What stands under the keys from one on and before another, in the order of the bytes of their UTF-8. There are `limit` at most, and fewer
   * where their texts are large, see {@link mostBytes}; none where there are no more.
   */
  list(from: string, before: string, limit: number): Promise<[key: string, text: string][]>;
  /** Does all or nothing. What is not flushed outlives the process, but not a power cut until something later is flushed. */
  write(operations: readonly Operation[], options: { isFlushed: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** A kind of database. */
export interface Engine {
  readonly name: string;
  /** Whether files of these names are its own. */
  hasWritten(names: readonly string[]): boolean;
  /** Returns how to open a folder that exists; `undefined` when this machine, or this Node.js, has no such engine. */
  load(): Promise<((folder: string) => Promise<Database>) | undefined>;
}
