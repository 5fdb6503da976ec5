import { type Kind, kinds, type RecordOfKind, type Records, type RecordsOfKind } from '../model';
import type { Item } from '../store/store';

/** Where an entry is delivered: to the nodes that poll its kind, or to the node that was called back. */
export type Channel = Kind | 'callback';

/** The kinds that are delivered on a channel. */
export type KindOn<C extends Channel> = C extends Kind ? C : Kind;

/** A record that has been read from the service and not been delivered yet. Plain data. */
export type Entry<K extends Kind = Kind> = {
  [P in K]: EntryItem &
    RecordOfKind<P> & {
      /** On channel `callback`: its polled copy, which stands in should the called node refuse. */
      polledCopy?: Records[P];
    };
}[K];

interface EntryItem extends Item {
  part: 'inbox';
  channel: Channel;
  /** On channel `callback`: the node and the path that were called. On another: the only node that gets it, which had given it up. */
  address?: { node: string; path: string };
  /** It came while what was seen could not be looked up: it may have been delivered before, under another id. */
  unsure?: true;
}

/** A record that the flow of a node did not take, or that no node takes, and that somebody may decide about. Plain data. */
export type DeadLetter = RecordOfKind & DeadLetterFacts;

interface DeadLetterFacts extends Item, Pick<Entry, 'unsure'> {
  part: 'givenUp';
  /** Whose flow did not take it; blank: no node takes it, and the first that comes gets it. */
  node: string;
  /** When it was given up, in ms since 1970. */
  at: number;
}

/** Whether an item is an entry that can be delivered. */
export function isEntry(item: Item): item is Entry {
  const { part, kind, channel, address } = item as Partial<Record<keyof Entry, unknown>>;
  if (part !== 'inbox' || !isRecordOfKind(item)) return false;
  if (channel !== 'callback') return channel === kind;
  const { node, path } = (address ?? {}) as Partial<Record<'node' | 'path', unknown>>;
  return typeof node === 'string' && typeof path === 'string';
}

/** Whether an item is one that somebody may decide about. */
export function isDeadLetter(item: Item): item is DeadLetter {
  const { part, node, at } = item as Partial<Record<keyof DeadLetterFacts, unknown>>;
  return part === 'givenUp' && typeof node === 'string' && typeof at === 'number' && isRecordOfKind(item);
}

/** Whether something has a record, and says what it is. */
export function isRecordOfKind(value: object): value is RecordOfKind {
  const { kind, record } = value as Partial<Record<keyof RecordOfKind, unknown>>;
  return isKind(kind) && isRecord(record);
}

/**
 * Reads polled records that were on their way into the store when a process died.
 *
 * @throws any error when it cannot be read
 */
export function parseHeld(text: string): RecordsOfKind {
  const { kind, records } = JSON.parse(text) as Partial<Record<keyof RecordsOfKind, unknown>>;
  if (!isKind(kind) || !Array.isArray(records) || !records.every(isRecord)) throw new TypeError('not held records');
  return { kind, records } as RecordsOfKind;
}

/** Takes apart what came together. */
export function separate<K extends Kind>({ kind, records }: RecordsOfKind<K>): RecordOfKind<K>[] {
  return records.map((record) => ({ kind, record }));
}

/** The record of a thing, or another one of the same kind in its place, and what it is. */
export function newsOf<K extends Kind>(thing: RecordOfKind<K>, record: Records[K] = thing.record): RecordOfKind<K> {
  return { kind: thing.kind, record };
}

function isKind(value: unknown): value is Kind {
  return kinds.some((kind) => kind === value);
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names those who can take over what a node was called back with, as in {@link Item.subscribers}. */
export function nameSubscribers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}
