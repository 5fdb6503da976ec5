import type { IncomingRecord, OutboxRecord, StatusRecord } from '../model';
import type { Item } from '../store/store';
import type { Kind } from './identity';

/** Any record that the inbox keeps. */
export type InboxRecord = IncomingRecord | StatusRecord | OutboxRecord;

/** A record and what it is. */
export type RecordOfKind =
  | { kind: 'incoming'; record: IncomingRecord }
  | { kind: 'status'; record: StatusRecord }
  | { kind: 'outbox'; record: OutboxRecord };

/** Where an entry is delivered: to the nodes that poll its kind, or to the node that was called back. */
export type Channel = Kind | 'callback';

/** A record that has been read from the service and not been delivered yet. Plain data. */
export interface Entry extends Item {
  part: 'inbox';
  channel: Channel;
  kind: Kind;
  record: InboxRecord;
  /** On channel `callback`: the node and the path that were called. On another: the only node that gets it, which had given it up. */
  address?: { node: string; path: string };
  /** On channel `callback`: its polled copy, which stands in should the called node refuse. */
  twin?: InboxRecord;
  /** It came while what was seen could not be looked up: it may have been delivered before, under another id. */
  unsure?: true;
}

/** Polled records on their way into the store. Plain data. */
export interface HeldRecords {
  kind: Kind;
  records: readonly InboxRecord[];
}

const kinds: ReadonlySet<unknown> = new Set<Kind>(['incoming', 'status', 'outbox']);

/** Whether an item is an entry that can be delivered. */
export function isEntry(item: Item): item is Entry {
  const { part, kind, channel, address } = item as Partial<Record<keyof Entry, unknown>>;
  if (part !== 'inbox' || !isRecordOfKind(item)) return false;
  if (channel !== 'callback') return channel === kind;
  const { node, path } = (address ?? {}) as Partial<Record<'node' | 'path', unknown>>;
  return typeof node === 'string' && typeof path === 'string';
}

/** Whether something has a record, and says what it is. */
export function isRecordOfKind(value: object): value is Pick<Entry, 'kind' | 'record'> {
  const { kind, record } = value as Partial<Record<keyof Entry, unknown>>;
  return kinds.has(kind) && isRecord(record);
}

/**
 * Reads what was on its way into the store when a process died.
 *
 * @throws any error when it cannot be read
 */
export function parseHeld(text: string): HeldRecords {
  const { kind, records } = JSON.parse(text) as Partial<Record<keyof HeldRecords, unknown>>;
  if (!kinds.has(kind) || !Array.isArray(records) || !records.every(isRecord)) throw new TypeError('not held records');
  return { kind: kind as Kind, records };
}

function isRecord(value: unknown): value is InboxRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names those who can take over what a node was called back with, as in {@link Item.takers}. */
export function nameTakers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}
