import type { Changes } from '../store/store';
import { type Channel, type Entry, isEntry } from './entry';
import { type Identity, identify, isSameMessage } from './identity';

/** What a node has in hand of an entry, or will have when it is back. */
export interface Share {
  /** The very node, and not a redeployed one in its place. */
  readonly subscriber: object;
  /** Which attempt it is for the node. */
  readonly attempt: number;
}

/** What came together, as a node is told that gets it in several turns of the event loop. */
export interface Together {
  /** The same for all that came together, and for nothing else. */
  group: string;
  /** So much of it was new; absent until that is known. */
  count?: number;
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
  /** Nodes that have not answered, by id, and what they have in hand: nothing, when a node was taken away. */
  readonly pendingFor = new Map<string, Share | undefined>();
  /** Nodes that have. */
  taken = 0;
  /** Which attempt it is for a node that was away when it came, or was found. */
  firstAttempt: number;
  /** It has just come, and nobody has been looked for who gets it. */
  isNew = false;
  /** Where it stands in what came together. */
  together: Together | undefined;
  index = 0;
  isStored = false;
  /** The service is to bring it again: nobody here gets it any more. Not when its node has taken it after all before that was written. */
  isReleased = false;
  /** A node's flow does not take it. */
  isDead = false;
  /** Another inbox has it in hand. */
  isHandedOver = false;
  #ended: Promise<boolean> | undefined;
  #onEnd: ((delivered: boolean) => void) | undefined;

  /** Begins as one that nobody has been given. */
  constructor(entry: Entry, identity: Identity) {
    this.entry = entry;
    this.identity = identity;
    this.firstAttempt = entry.attempts + 1;
  }

  /** Resolves with whether it was delivered. */
  get ended(): Promise<boolean> {
    this.#ended ??= new Promise((resolve) => {
      this.#onEnd = resolve;
    });
    return this.#ended;
  }

  end(delivered: boolean): void {
    if (!delivered) undone.add(this.entry);
    this.#onEnd?.(delivered);
  }
}

const maxReleased = 1_000;

/** The undelivered entries of an inbox, found by id and by the message that they are. */
export class Entries extends Map<string, Pending> {
  /** What was let go of, by id: it may be taken late. The oldest are forgotten. */
  readonly released = new Map<string, Pending>();

  /** The least of all ids, which is that of the oldest. */
  get oldest(): string | undefined {
    let oldest: string | undefined;
    for (const id of this.keys()) if (oldest === undefined || id < oldest) oldest = id;
    return oldest;
  }

  add(pending: Pending): void {
    this.set(pending.entry.id, pending);
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

  /** Remembers one that was {@link released}. */
  keepReleased(pending: Pending): void {
    this.released.set(pending.entry.id, pending);
    const [oldest = ''] = this.released.keys();
    if (this.released.size > maxReleased) this.released.delete(oldest);
  }
}
