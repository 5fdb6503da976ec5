import type { Taker } from '../delivery/taker';
import type { Changes } from '../store/store';
import type { Channel, Entry } from './entry';
import type { HeldRecord } from './held-record';
import type { Identity } from './identity';
import { MessageIndex } from './message-index';

/** What a node has in hand of an entry, or will have when it is back. */
export interface Share {
  readonly taker: Taker;
  /** Which attempt it is for the node. */
  readonly attempt: number;
}

/** Entries that have ended without being delivered: it may be asked for when that has come already. */
const undone = new WeakSet<Entry>();

/** An entry that is not delivered yet. */
export class Undelivered {
  readonly entry: Entry;
  readonly identity: Identity;
  /** Nodes that have not answered, by id, and what they have in hand: nothing, when a node was taken away. */
  readonly owed = new Map<string, Share | undefined>();
  /** Nodes that have. */
  taken = 0;
  /** Which attempt it is for a node that was away when it came, or was found. */
  firstAttempt: number;
  isStored = false;
  /** Where it is instead, for as long as the store fails. */
  held: HeldRecord | undefined;
  /** The service is to bring it again: nobody here gets it any more. Not when its node has taken it after all before that was written. */
  isReleased = false;
  /** A node's flow does not take it. */
  isGivenUp = false;
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

  /** It was given to somebody so many times at least. Returns whether that was not known. */
  wasGiven(attempts: number): boolean {
    if (this.entry.attempts >= attempts) return false;
    this.entry.attempts = attempts;
    this.firstAttempt = attempts + 1;
    return true;
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
export class UndeliveredEntries {
  readonly #byId = new Map<string, Undelivered>();
  readonly #byMessage = new Map<Channel, MessageIndex<Undelivered>>();
  /** Ids of those that were read from the store, in order. */
  readonly #read = new Map<Channel, Set<string>>();
  /** Called-back entries that the steps under way will add. */
  #expected: { changes: Changes; byMessage: MessageIndex<Undelivered> } | undefined;
  /** By id. The oldest are forgotten. */
  readonly #released = new Map<string, Undelivered>();
  readonly #releasedByMessage = new MessageIndex<Undelivered>();

  get size(): number {
    return this.#byId.size;
  }

  /** Ids one of which is that of the oldest: the one that was added first, and the first that was read of each channel. */
  get oldest(): string[] {
    const [first] = this.#byId.keys();
    const firstRead = [...this.#read.values()].map(([id]) => id);
    return [first, ...firstRead].filter((id) => id !== undefined);
  }

  /** All of them as they are now, in the order in which they were added. */
  values(): Undelivered[] {
    return [...this.#byId.values()];
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  get(id: string): Undelivered | undefined {
    return this.#byId.get(id);
  }

  add(undelivered: Undelivered): void {
    const { entry } = undelivered;
    this.#byId.set(entry.id, undelivered);
    this.#on(entry.channel).add(undelivered);
  }

  /** Adds one that was read from the store. */
  addRead(undelivered: Undelivered): void {
    const { id, channel } = undelivered.entry;
    this.add(undelivered);
    const read = this.#read.get(channel) ?? new Set();
    this.#read.set(channel, read.add(id));
  }

  /** How many of a channel were read from the store. */
  countRead(channel: Channel): number {
    return this.#read.get(channel)?.size ?? 0;
  }

  remove(id: string): void {
    const undelivered = this.#byId.get(id);
    if (!undelivered) return;
    this.#byId.delete(id);
    this.#read.get(undelivered.entry.channel)?.delete(id);
    this.#on(undelivered.entry.channel).delete(undelivered);
  }

  /** Lets {@link findCalledBack} find one that will be added when these changes are saved. */
  expect(undelivered: Undelivered, changes: Changes): void {
    if (this.#expected?.changes !== changes) this.#expected = { changes, byMessage: new MessageIndex() };
    this.#expected.byMessage.add(undelivered);
  }

  /** The called-back entry of a message, as it will be with these changes. */
  findCalledBack(identity: Identity, changes?: Changes): Undelivered | undefined {
    const found = this.findOn('callback', identity, changes);
    if (found || this.#expected === undefined || this.#expected.changes !== changes) return found;
    for (const expected of this.#expected.byMessage.find(identity)) {
      if (!changes.drop.has(expected.entry.id)) return expected;
    }
    return undefined;
  }

  /** The entry of a message on a channel, unless these changes drop it. */
  findOn(channel: Channel, identity: Identity, changes?: Changes): Undelivered | undefined {
    for (const undelivered of this.#on(channel).find(identity)) {
      if (!changes?.drop.has(undelivered.entry.id)) return undelivered;
    }
    return undefined;
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#byId.get(entry.id)?.ended ?? Promise.resolve(!undone.has(entry));
  }

  /** Remembers one that was released: it may be taken late, and comes again. */
  keepReleased(undelivered: Undelivered): void {
    this.#released.set(undelivered.entry.id, undelivered);
    this.#releasedByMessage.add(undelivered);
    for (const oldest of this.#released.keys()) {
      if (this.#released.size <= maxReleased) break;
      this.forgetReleased(oldest);
    }
  }

  /** Finds one that was released. */
  getReleased(id: string): Undelivered | undefined {
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

  #on(channel: Channel): MessageIndex<Undelivered> {
    const index = this.#byMessage.get(channel) ?? new MessageIndex();
    this.#byMessage.set(channel, index);
    return index;
  }
}
