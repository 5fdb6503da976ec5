import { type Kind, kinds, type RecordOfKind, type RecordsOfKind } from '../model';
import type { Item } from '../store/store';
import { isObject } from '../wire/fields';
import { type DuplicateCallback, type Identity, identify } from './identity';

/**
 * How a record is delivered: to the nodes that poll its kind, or to the `sms-callback-in` node that the service called.
 */
export type Channel = Kind | 'callback';

/** The kinds of records on a channel. */
export type KindOn<C extends Channel> = C extends Kind ? C : Kind;

/** The `sms-callback-in` node that was called, and its path. */
export interface Address {
  node: string;
  path: string;
}

/** A record that the account has received and not delivered yet. Can be stored as JSON. */
export type Entry<K extends Kind = Kind> = { [P in K]: EntryItem & RecordOfKind<P> }[K];

interface EntryItem extends Item {
  part: 'inbox';
  channel: Channel;
  /**
   * On channel `callback`: the node that the service called. On other channels: the only node that receives the entry,
   * because a user redelivered the entry to this node.
   */
  address?: Address;
  /** Number of attempts per node, if the numbers differ. `attempts` is then the highest number. */
  attemptsOf?: Readonly<Record<string, number>> | undefined;
  /**
   * The entry might already have been delivered under another id, because the account could not check for duplicates.
   */
  unsure?: true;
  /**
   * The entry waits until it is known whether a message to the same handset was sent, because it might answer that
   * message.
   */
  isHeldBack?: true;
}

/** A record that no flow acknowledged. It is listed until a user decides about it. Can be stored as JSON. */
export type DeadLetter = RecordOfKind & DeadLetterFacts;

interface DeadLetterFacts extends Item, Pick<Entry, 'unsure'> {
  part: 'deadLetter';
  /**
   * The node whose flow did not acknowledge the record. Blank: no node received the record, and any node can receive it
   * now.
   */
  node: string;
  /** The node that received the callback. Absent: the record was polled. */
  address?: Address;
  /** When the record became unhandled, in ms since 1970. */
  at: number;
}

/** Returns whether an item is an entry that can be delivered. */
export function isEntry(item: Item): item is Entry {
  return item.part === 'inbox' && isRecordOfKind(item);
}

/** Returns whether an item is an unhandled record. */
export function isDeadLetter(item: Item): item is DeadLetter {
  return item.part === 'deadLetter' && isRecordOfKind(item);
}

function isRecordOfKind(value: object): value is RecordOfKind {
  const { kind, record } = value as Partial<Record<keyof RecordOfKind, unknown>>;
  return isKind(kind) && isObject(record);
}

/** Returns whether a value contains records and their kind. */
export function isRecordsOfKind(value: unknown): value is RecordsOfKind {
  const { kind, records } = Object(value) as Partial<Record<keyof RecordsOfKind, unknown>>;
  return isKind(kind) && Array.isArray(records) && records.every(isObject);
}

function isKind(value: unknown): value is Kind {
  return kinds.some((kind) => kind === value);
}

/**
 * Returns the names of a called node for {@link Item.subscribers}. A process that has a node with this id or path can
 * claim its callbacks.
 */
export function nameSubscribers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}

/** Redirects a polled entry to the node that the service called with the same record. */
export function addressTo({ query, ...address }: DuplicateCallback, entry: Entry): Entry {
  return {
    ...entry,
    channel: 'callback',
    address,
    subscribers: nameSubscribers(address),
    record: { ...entry.record, via: 'callback', query },
    attempts: 0,
    attemptsOf: undefined,
    // Marks the entry as redelivered if another node might have received it before.
    ...((entry.unsure || entry.attempts > 0) && { unsure: true }),
  } as Entry;
}

/** A group of entries that arrived together. A node can receive the group over several turns of the event loop. */
export interface EntryGroup {
  /** Identifies the group. */
  group: string;
  /** Number of new entries in the group. */
  count: number;
  /** Id of the node that requested the entries. */
  asker?: string | undefined;
  /** Value that the node passed with this request, and receives back with the entries. */
  context?: unknown;
}

/** An entry and its delivery in this process. */
export class Pending {
  entry: Entry;
  readonly identity: Identity;
  /**
   * Nodes that have not acknowledged the entry, by id. The value is the node object that received the entry, or
   * `undefined` while the node is not attached. A redeployed node with the same id is another object.
   */
  readonly pendingFor = new Map<string, object | undefined>();
  /** Number of nodes that have acknowledged the entry. */
  acknowledgements = 0;
  /**
   * Attempt number of the first delivery to a node that attached after the entry had arrived, or had been found in the
   * store.
   */
  firstAttempt: number;
  /** Whether the first attempt is already stored, but no node has received the entry yet. */
  isNew = false;
  /** The group with which the entry arrived. */
  together: EntryGroup | undefined;
  /** Position of the entry in its group. */
  index = 0;

  constructor(entry: Entry, identity = identify(entry)) {
    this.entry = entry;
    this.identity = identity;
    this.firstAttempt = entry.attempts + 1;
  }
}

/** The undelivered entries of an inbox, by id. */
export type Entries = Map<string, Pending>;

/** Returns the smallest id, which is the id of the oldest entry. */
export function oldestOf(entries: ReadonlyMap<string, Pending>): string | undefined {
  let oldest: string | undefined;
  for (const id of entries.keys()) if (oldest === undefined || id < oldest) oldest = id;
  return oldest;
}
