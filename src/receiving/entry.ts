import type { IncomingRecord, OutboxRecord, StatusRecord } from '../model';
import type { Item } from '../store/store';
import type { Kind } from './identity';

/** Any record that the inbox keeps. */
export type InboxRecord = IncomingRecord | StatusRecord | OutboxRecord;

/** Where an entry is delivered: to the nodes that poll its kind, or to the node that was called back. */
export type Channel = Kind | 'callback';

/** A record that has been read from the service and not been delivered yet. Plain data. */
export interface Entry extends Item {
  part: 'inbox';
  channel: Channel;
  kind: Kind;
  record: InboxRecord;
  /** On channel `callback`: the node and the path that were called. */
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

/** Names those who can take over what a node was called back with, as in {@link Item.takers}. */
export function nameTakers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}
