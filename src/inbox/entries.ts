import { type Kind, kinds, type RecordOfKind, type Records, type RecordsOfKind } from '../model';
import type { Changes, Item } from '../store/store';
import { isObject } from '../wire/fields';
import { type Identity, identify, isSameMessage } from './identity';

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
  /** The attempts of each node, where they may differ: `attempts` are the most. */
  attemptsOf?: Readonly<Record<string, number>> | undefined;
  /** It came while what was seen could not be looked up: it may have been delivered before, under another id. */
  unsure?: true;
}

/** A record that the flow of a node did not take, or that no node takes, and that somebody may decide about. Plain data. */
export type DeadLetter = RecordOfKind & DeadLetterFacts;

interface DeadLetterFacts extends Item, Pick<Entry, 'unsure'> {
  part: 'deadLetter';
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
  return part === 'deadLetter' && typeof node === 'string' && typeof at === 'number' && isRecordOfKind(item);
}

/** Whether something has a record, and says what it is. */
function isRecordOfKind(value: object): value is RecordOfKind {
  const { kind, record } = value as Partial<Record<keyof RecordOfKind, unknown>>;
  return isKind(kind) && isObject(record);
}

/** Whether something has records, and says what they are. */
export function isRecordsOfKind(value: unknown): value is RecordsOfKind {
  const { kind, records } = Object(value) as Partial<Record<keyof RecordsOfKind, unknown>>;
  return isKind(kind) && Array.isArray(records) && records.every(isObject);
}

/** The record of a thing, or another one of the same kind in its place, and what it is. */
export function newsOf<K extends Kind>(thing: RecordOfKind<K>, record: Records[K] = thing.record): RecordOfKind<K> {
  return { kind: thing.kind, record };
}

function isKind(value: unknown): value is Kind {
  return kinds.some((kind) => kind === value);
}

/** Names those who can take over what a node was called back with, as in {@link Item.subscribers}. */
export function nameSubscribers({ node, path }: { node: string; path?: string | undefined }): string[] {
  return path === undefined ? [`node ${node}`] : [`node ${node}`, `path ${path}`];
}

/** What came together, as a node is told that gets it in several turns of the event loop. */
export interface Together {
  /** The same for all that came together, and for nothing else. */
  group: string;
  /** So much of it was new. */
  count: number;
  /** A node on demand that asked for it, and what it wants to be told with it. */
  asker?: string | undefined;
  context?: unknown;
}

/** Entries that have ended without being delivered: it may be asked for when that has come already. */
const undone = new WeakSet<Entry>();

/** An entry that is not delivered yet. */
export class Pending {
  readonly entry: Entry;
  readonly identity: Identity;
  /** Nodes that have not answered, by id: the very node that has it in hand, and not a redeployed one in its place; nobody, while it is away. */
  readonly pendingFor = new Map<string, object | undefined>();
  /** Nodes that have. */
  taken = 0;
  /** Which attempt it is for a node that was away when it came, or was found. */
  firstAttempt: number;
  /** It has just come, and nobody has been looked for who gets it. */
  isNew = false;
  /** Where it stands in what came together. */
  together: Together | undefined;
  index = 0;
  /** The service is to bring it again: nobody here gets it any more. */
  isManuallyResent = false;
  /** Resolves with whether it was delivered. */
  readonly ended: Promise<boolean>;
  #onEnd = (_delivered: boolean) => {};

  /** Begins as one that nobody has been given. */
  constructor(entry: Entry, identity: Identity) {
    this.entry = entry;
    this.identity = identity;
    this.firstAttempt = entry.attempts + 1;
    this.ended = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  end(delivered: boolean): void {
    if (!delivered) undone.add(this.entry);
    this.#onEnd(delivered);
  }
}

const maxReleased = 1_000;

/** The undelivered entries of an inbox, found by id and by the message that they are. */
export class Entries extends Map<string, Pending> {
  /** What identifies those that the service is to bring again, by id; the latest thousand. */
  readonly released = new Map<string, Identity>();

  /** The least of all ids, which is that of the oldest. */
  get oldest(): string | undefined {
    let oldest: string | undefined;
    for (const id of this.keys()) if (oldest === undefined || id < oldest) oldest = id;
    return oldest;
  }

  /** Forgets one that is not delivered. */
  letGo(id: string): void {
    this.get(id)?.end(false);
    this.delete(id);
  }

  /** Lets go of one that the service is to bring again. */
  release({ entry: { id }, identity }: Pending): void {
    this.letGo(id);
    this.released.set(id, identity);
    const [oldest = ''] = this.released.keys();
    if (this.released.size > maxReleased) this.released.delete(oldest);
  }

  /** The entry of a message on a channel, as it will be with these changes. It is looked for only when a message comes again. */
  findOn(channel: Channel, identity: Identity, changes?: Changes): Pending | undefined {
    for (const pending of this.values()) {
      const { entry } = pending;
      if (entry.channel !== channel || changes?.drop.has(entry.id)) continue;
      if (isSameMessage(pending.identity, identity)) return pending;
    }
    // The steps under way will add it.
    for (const item of changes?.keep.values() ?? []) {
      if (!isEntry(item) || item.channel !== channel || this.has(item.id)) continue;
      const added = new Pending(item, identify(item));
      if (isSameMessage(added.identity, identity)) return added;
    }
    return undefined;
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.get(entry.id)?.ended ?? Promise.resolve(!undone.has(entry));
  }
}
