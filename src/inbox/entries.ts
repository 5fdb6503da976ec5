import type { Changes } from '../store/store';
import type { Channel, Entry } from './entry';
import { type Identity, isSameMessage } from './identity';

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
export class Entries {
  readonly #byId = new Map<string, Pending>();
  readonly #byMessage = new Map<Channel, MessageIndex>();
  /** Called-back entries that the steps under way will add. */
  #expected: { changes: Changes; byMessage: MessageIndex } | undefined;
  /** By id. The oldest are forgotten. */
  readonly #released = new Map<string, Pending>();
  readonly #releasedByMessage = new MessageIndex();

  get size(): number {
    return this.#byId.size;
  }

  /** The least of all ids, which is that of the oldest. */
  get oldest(): string | undefined {
    let oldest: string | undefined;
    for (const id of this.#byId.keys()) if (oldest === undefined || id < oldest) oldest = id;
    return oldest;
  }

  /** All of them as they are now, in the order in which they were added. */
  values(): Pending[] {
    return [...this.#byId.values()];
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  get(id: string): Pending | undefined {
    return this.#byId.get(id);
  }

  add(pending: Pending): void {
    this.#byId.set(pending.entry.id, pending);
    this.#on(pending.entry.channel).add(pending);
  }

  remove(id: string): void {
    const pending = this.#byId.get(id);
    if (!pending) return;
    this.#byId.delete(id);
    this.#on(pending.entry.channel).delete(pending);
  }

  /** Lets {@link findCalledBack} find one that will be added when these changes are saved. */
  expect(pending: Pending, changes: Changes): void {
    if (this.#expected?.changes !== changes) this.#expected = { changes, byMessage: new MessageIndex() };
    this.#expected.byMessage.add(pending);
  }

  /** The called-back entry of a message, as it will be with these changes. */
  findCalledBack(identity: Identity, changes?: Changes): Pending | undefined {
    const found = this.findOn('callback', identity, changes);
    if (found || this.#expected === undefined || this.#expected.changes !== changes) return found;
    for (const expected of this.#expected.byMessage.find(identity)) {
      if (!changes.drop.has(expected.entry.id)) return expected;
    }
    return undefined;
  }

  /** The entry of a message on a channel, unless these changes drop it. */
  findOn(channel: Channel, identity: Identity, changes?: Changes): Pending | undefined {
    for (const pending of this.#on(channel).find(identity)) {
      if (!changes?.drop.has(pending.entry.id)) return pending;
    }
    return undefined;
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#byId.get(entry.id)?.ended ?? Promise.resolve(!undone.has(entry));
  }

  /** Remembers one that was released: it may be taken late, and comes again. */
  keepReleased(pending: Pending): void {
    this.#released.set(pending.entry.id, pending);
    this.#releasedByMessage.add(pending);
    for (const oldest of this.#released.keys()) {
      if (this.#released.size <= maxReleased) break;
      this.forgetReleased(oldest);
    }
  }

  /** Finds one that was released. */
  getReleased(id: string): Pending | undefined {
    return this.#released.get(id);
  }

  forgetReleased(id: string): void {
    const released = this.#released.get(id);
    if (!released) return;
    this.#released.delete(id);
    this.#releasedByMessage.delete(released);
  }

  /** How often a message that comes as new was sent into a flow before it was released, or is about to be. */
  attemptsBefore(identity: Identity): number {
    let attempts = 0;
    for (const { entry } of this.#releasedByMessage.find(identity)) attempts = Math.max(attempts, entry.attempts);
    for (const { entry, isReleased } of this.#on('callback').find(identity)) {
      if (isReleased) attempts = Math.max(attempts, entry.attempts);
    }
    return attempts;
  }

  #on(channel: Channel): MessageIndex {
    const index = this.#byMessage.get(channel) ?? new MessageIndex();
    this.#byMessage.set(channel, index);
    return index;
  }
}

/** Finds entries by the message that they are, however many there are. */
class MessageIndex {
  /** Nearly all keys have one entry, which then stands there by itself. */
  readonly #byKey = new Map<string, Pending | Set<Pending>>();

  add(pending: Pending): void {
    for (const key of placesOf(pending.identity)) {
      const there = this.#byKey.get(key);
      if (there === undefined) this.#byKey.set(key, pending);
      else if (there instanceof Set) there.add(pending);
      else if (there !== pending) this.#byKey.set(key, new Set([there, pending]));
    }
  }

  delete(pending: Pending): void {
    for (const key of placesOf(pending.identity)) {
      const there = this.#byKey.get(key);
      if (there instanceof Set) there.delete(pending);
      if (there === pending || (there instanceof Set && there.size === 0)) this.#byKey.delete(key);
    }
  }

  /** Those of the message, the ones with its identifier first, then in the order in which they were added. */
  *find(identity: Identity): Generator<Pending> {
    for (const key of lookupsOf(identity)) {
      const there = this.#byKey.get(key);
      if (there === undefined) continue;
      for (const pending of there instanceof Set ? there : [there]) {
        if (isSameMessage(pending.identity, identity)) yield pending;
      }
    }
  }
}

/** Two messages that have identifiers are told apart by them alone, so those with the same text need not be looked through. */
function placesOf({ id, text }: Identity): string[] {
  if (id === undefined) return text ? [text.key, anonymous(text.key)] : [];
  return text ? [id, text.key] : [id];
}

function lookupsOf({ id, text }: Identity): string[] {
  if (id === undefined) return text ? [text.key] : [];
  return text ? [id, anonymous(text.key)] : [id];
}

function anonymous(textKey: string): string {
  return `anonymous ${textKey}`;
}
