import type { Changes } from '../store/store';
import type { Channel, Entry } from './entry';
import type { Identity } from './identity';
import { MessageIndex } from './message-index';
import type { Taker } from './taker';

/** An entry that is not delivered yet. */
export interface Undelivered {
  readonly entry: Entry;
  readonly identity: Identity;
  /** Nodes that have not answered, and who has it in hand for them: nobody, when its node was taken away. */
  readonly owed: Map<string, Taker | undefined>;
  /** Nodes that have. */
  taken: number;
  /** Which attempt it is for each node that has been given it. */
  readonly attempts: Map<string, number>;
  /** Which it is for a node that was away when it came. */
  firstAttempt: number;
  isStored: boolean;
  /** The service is to bring it again: nobody here gets it any more. */
  isReleased: boolean;
  /** A node's flow does not take it. */
  isGivenUp: boolean;
  /** Another inbox has it in hand. */
  isHandedOver: boolean;
  /** Resolves with whether it was delivered. */
  readonly ended: Promise<boolean>;
  end(delivered: boolean): void;
}

/** Makes one that nobody has been given. */
export function createUndelivered(entry: Entry, identity: Identity): Undelivered {
  let end: (delivered: boolean) => void = () => {};
  const ended = new Promise<boolean>((resolve) => {
    end = resolve;
  });
  return {
    entry,
    identity,
    owed: new Map(),
    attempts: new Map(),
    taken: 0,
    firstAttempt: 1,
    isStored: false,
    isReleased: false,
    isGivenUp: false,
    isHandedOver: false,
    ended,
    end,
  };
}

const maxReleased = 1_000;

/** The undelivered entries of an inbox, found by id and by the message that they are. */
export class UndeliveredEntries {
  readonly #byId = new Map<string, Undelivered>();
  readonly #byMessage = new Map<Channel, MessageIndex<Undelivered>>();
  /** Ids of those that were read from the store, in order. */
  readonly #read = new Map<Channel, Set<string>>();
  /** Called-back entries that a step under way will add. */
  readonly #expected = new WeakMap<Changes, MessageIndex<Undelivered>>();
  /** By id. The oldest are forgotten. */
  readonly #released = new Map<string, Undelivered>();
  readonly #releasedByMessage = new MessageIndex<Undelivered>();
  /** It may be asked for when the end has come already. */
  readonly #endings = new WeakMap<Entry, Promise<boolean>>();

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
    this.#endings.set(entry, undelivered.ended);
    this.#on(entry.channel).add(undelivered);
  }

  /** Adds one that was read from the store. */
  addRead(undelivered: Undelivered): void {
    const { id, channel } = undelivered.entry;
    this.add(undelivered);
    this.#read.set(channel, (this.#read.get(channel) ?? new Set()).add(id));
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
    const expected = this.#expected.get(changes) ?? new MessageIndex();
    this.#expected.set(changes, expected);
    expected.add(undelivered);
  }

  /** The called-back entry of a message, as it will be with these changes. */
  findCalledBack(identity: Identity, changes?: Changes): Undelivered | undefined {
    const found = this.findOn('callback', identity, changes);
    if (found || !changes) return found;
    for (const expected of this.#expected.get(changes)?.find(identity) ?? []) {
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
    return this.#endings.get(entry) ?? Promise.resolve(true);
  }

  /** Remembers one that was released: it may be taken late, and comes again. */
  keepReleased(undelivered: Undelivered): void {
    this.#released.set(undelivered.entry.id, undelivered);
    this.#releasedByMessage.add(undelivered);
    for (const oldest of this.#released.keys()) {
      if (this.#released.size <= maxReleased) break;
      this.takeReleased(oldest);
    }
  }

  /** Finds one that was released, and forgets it. */
  takeReleased(id: string): Undelivered | undefined {
    const released = this.#released.get(id);
    if (!released) return undefined;
    this.#released.delete(id);
    this.#releasedByMessage.delete(released);
    return released;
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
