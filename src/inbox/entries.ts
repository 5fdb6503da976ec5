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
   * because a user has redelivered an unhandled record to this node.
   */
  address?: Address;
  /**
   * Number of delivery attempts for each node. Absent: `attempts` applies to every node. If present, `attempts` is the
   * highest of these numbers.
   */
  attemptsOf?: Readonly<Record<string, number>> | undefined;
  /**
   * True if the record might already have been delivered under another id, for example because the account could not
   * check for duplicates.
   */
  unsure?: true;
  /**
   * True while the entry is withheld from the nodes, because the message that it might answer has an unknown outcome,
   * or because an import is pending.
   */
  isHeldBack?: true;
}

/** A record that no flow acknowledged. It is listed until a user decides about it. Can be stored as JSON. */
export type DeadLetter = RecordOfKind & DeadLetterFacts;

interface DeadLetterFacts extends Item, Pick<Entry, 'unsure'> {
  part: 'deadLetter';
  /**
   * Id of the node whose flow did not acknowledge the record. Blank: no node received the record, so any node can still
   * receive it.
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
 * Returns the names that stand for a callback node in {@link Item.subscribers}. A process that has a node with the same
 * id or path can claim the callbacks of this node.
 */
export function nameSubscribers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}

/** Redirects a polled entry to a callback node, because the service has also sent the same record to this node. */
export function addressTo({ query, ...address }: DuplicateCallback, entry: Entry): Entry {
  return {
    ...entry,
    channel: 'callback',
    address,
    subscribers: nameSubscribers(address),
    record: { ...entry.record, via: 'callback', query },
    attempts: 0,
    attemptsOf: undefined,
    // If another node might have received the entry before, marks it as redelivered.
    ...((entry.unsure || entry.attempts > 0) && { unsure: true }),
  } as Entry;
}

/** A group of entries that arrived together. A node can receive the group over several turns of the event loop. */
export interface EntryGroup {
  /** Id of the group. No other group has this id. */
  group: string;
  /** Number of entries in the group, without duplicates. */
  count: number;
  /** Id of the node whose request brought the entries. Absent: no node requested them. */
  asker?: string | undefined;
  /** Value that this node passed with its request. The node receives the value back with the entries. */
  context?: unknown;
}

/** An undelivered entry, with the state of its delivery in this process. */
export class Pending {
  entry: Entry;
  readonly identity: Identity;
  /**
   * Nodes that still have to acknowledge the entry, by id. The value is the node object that received the entry, or
   * `undefined` if the node was away. A redeployed node has the same id, but is another object.
   */
  readonly pendingFor = new Map<string, object | undefined>();
  /** Number of nodes that have acknowledged the entry. */
  acknowledgements = 0;
  /**
   * Number of the attempt with which a node first receives the entry: 1 for an entry that has just arrived. For an
   * entry from the store, one more than the stored `attempts`.
   */
  firstAttempt: number;
  /** True if the first attempt is stored and no node has received the entry yet. */
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
