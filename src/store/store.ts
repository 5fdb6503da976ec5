import type { IncomingRecord, OutboxRecord, StatusRecord } from '../model';
import type { Kind } from '../receiving/identity';

/** Any record that the inbox keeps. */
export type InboxRecord = IncomingRecord | StatusRecord | OutboxRecord;

/** Where an entry is delivered: to the nodes that poll its kind, or to the node that was called back. */
export type Channel = Kind | 'callback';

/** A record that has been read from the service and not been delivered yet. Plain data. */
export interface Entry {
  /** Ascending in the order of arrival. */
  id: string;
  channel: Channel;
  kind: Kind;
  record: InboxRecord;
  /** On channel `callback`: the node and the path that were called. */
  address?: { node: string; path: string };
  /** On channel `callback`: its polled copy, which stands in should the called node refuse. */
  twin?: InboxRecord;
  /** How often it may have been sent into a flow. */
  attempts: number;
  /** It came while what was seen could not be looked up: it may have been delivered before, under another id. */
  unsure?: true;
}

/** Polled records on their way into the store. Plain data. */
export interface HeldRecords {
  kind: Kind;
  records: readonly InboxRecord[];
}

/** What an earlier process left behind. */
export interface Leftovers {
  /** Undelivered, in order. */
  entries: Entry[];
  /** Held; they may be among the entries or delivered already. To be let go of when they are committed. */
  held: { held: HeldRecords; letGo(): void }[];
  /** The store has lost everything since it was last open: what is in hand has to be kept anew. */
  isReset?: boolean;
}

/** What the nodes of this process can take. */
export interface Wanted {
  /** Kinds that are polled. */
  channels: Channel[];
  /** Ids and paths of the nodes that are called back. */
  nodes: string[];
  paths: string[];
}

/** What a store that several processes share tells the inbox by itself. */
export interface StoreEvents {
  /** Another process is gone, and what it had in hand is this one's to deliver. */
  onTakenOver(entries: readonly Entry[]): void;
  /** What may be taken over: the rest is left to processes that can deliver it. */
  wanted(): Wanted;
  /** The store cannot be used any more, as the next call would find out. */
  onFailure(error: unknown): void;
}

/** Another process has changed what a step was based on. Nothing was committed; the step is to be taken anew. */
export class StoreConflict extends Error {}

/** One atomic step. */
export interface Changes {
  /** Entries to keep, new or changed, by id. */
  keep: Map<string, Entry>;
  /** Ids of entries that were delivered. */
  drop: Set<string>;
  /** What to remember of the seen; `undefined` forgets. */
  remember: Map<string, string | undefined>;
}

/**
 * Keeps entries until they are delivered, and remembers what was seen.
 *
 * Calls never overlap: the inbox makes one at a time. Each may reject with any error; the inbox then closes the store,
 * and opens it again later.
 */
export interface Store {
  /** Whether what is kept outlives the process, so that the inbox may let go of it on close. */
  readonly durable: boolean;
  /**
   * Whether several processes use it at once. It then drops what was remembered by itself, in time, and `open` returns
   * all that this process has in it: what is missing is another's.
   */
  readonly shared?: true;
  /** How long after the opening of a shared store everything is taken over that dead processes held. */
  readonly takeOverMs?: number;
  /** Opens or reopens, and returns what was left. */
  open(events: StoreEvents): Promise<Leftovers>;
  /**
   * Puts records where a crash does not reach them, before it returns: a commit takes its time, and the service has
   * forgotten them already. Never throws. Returns how to let go of them when they are committed.
   */
  hold(records: HeldRecords): () => void;
  /** What is remembered under each key, `undefined` where nothing is. */
  recall(keys: readonly string[]): Promise<(string | undefined)[]>;
  /**
   * Makes one atomic step. When it resolves, what it keeps and remembers outlives the process if the store does.
   *
   * @param recalled what the step is based on
   * @throws StoreConflict when that does not hold any more
   */
  commit(changes: Changes, recalled: ReadonlyMap<string, string | undefined>): Promise<void>;
  /** Drops what was remembered before `oldest` (ms). May do a part and continue at the next call. */
  sweep(oldest: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts from nothing, or from earlier changes, the later ones prevailing. */
export function createChanges(...earlier: readonly Changes[]): Changes {
  const changes: Changes = { keep: new Map(), drop: new Set(), remember: new Map() };
  for (const { keep, drop, remember } of earlier) {
    for (const [id, entry] of keep) changes.keep.set(id, entry);
    for (const id of drop) {
      changes.keep.delete(id);
      changes.drop.add(id);
    }
    for (const [key, value] of remember) changes.remember.set(key, value);
  }
  return changes;
}

/** Says whether there is nothing to commit. */
export function isNoChange({ keep, drop, remember }: Changes): boolean {
  return keep.size === 0 && drop.size === 0 && remember.size === 0;
}
