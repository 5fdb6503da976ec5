import type { Taker } from './distribution';
import type { Channel, Entry } from './entry';
import { type Identity, isSameMessage, keysOf } from './identity';

/** An entry that is not delivered yet. */
export interface Undelivered {
  readonly entry: Entry;
  readonly identity: Identity;
  /** Nodes that have not answered, and who has it in hand for them: nobody, when its node was taken away. */
  readonly owed: Map<string, Taker | undefined>;
  /** Nodes that have. */
  taken: number;
  isStored: boolean;
  /** The service is to bring it again: nobody here gets it any more. */
  isReleased: boolean;
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
  return { entry, identity, owed: new Map(), taken: 0, isStored: false, isReleased: false, ended, end };
}

const maxReleased = 1_000;

/** The undelivered entries of an inbox, found by id and by the message that they are. */
export class UndeliveredEntries {
  readonly #byId = new Map<string, Undelivered>();
  /** Called-back entries by the keys that identify them. */
  readonly #calledBack = new Map<string, Undelivered[]>();
  #expected: Undelivered[] = [];
  /** By id. The oldest are forgotten. */
  readonly #released = new Map<string, Undelivered>();
  /** It may be asked for when the end has come already. */
  readonly #endings = new WeakMap<Entry, Promise<boolean>>();

  get size(): number {
    return this.#byId.size;
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
    const { entry, identity } = undelivered;
    this.#byId.set(entry.id, undelivered);
    this.#endings.set(entry, undelivered.ended);
    if (entry.channel !== 'callback') return;
    for (const key of keysOf(identity)) this.#calledBack.set(key, [...(this.#calledBack.get(key) ?? []), undelivered]);
  }

  /** Says whether it was there. */
  remove(id: string): boolean {
    const undelivered = this.#byId.get(id);
    if (!undelivered) return false;
    this.#byId.delete(id);
    for (const key of keysOf(undelivered.identity)) {
      const others = this.#calledBack.get(key)?.filter((other) => other !== undelivered) ?? [];
      if (others.length > 0) this.#calledBack.set(key, others);
      else this.#calledBack.delete(key);
    }
    return true;
  }

  /** Lets {@link findCalledBack} find one that will be added when its step is saved. */
  expect(undelivered: Undelivered): void {
    this.#expected.push(undelivered);
  }

  forgetExpected(): void {
    this.#expected = [];
  }

  /** The called-back entry of a message, unless it is among those `dropped`. */
  findCalledBack(identity: Identity, dropped?: ReadonlyMap<string, unknown>): Undelivered | undefined {
    return [...keysOf(identity).flatMap((key) => this.#calledBack.get(key) ?? []), ...this.#expected].find(
      (undelivered) => !dropped?.has(undelivered.entry.id) && isSameMessage(undelivered.identity, identity),
    );
  }

  /** The entry of a message on a channel. */
  findOn(channel: Channel, identity: Identity): Undelivered | undefined {
    return this.values().find(
      (undelivered) => undelivered.entry.channel === channel && isSameMessage(undelivered.identity, identity),
    );
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#endings.get(entry) ?? Promise.resolve(true);
  }

  /** Remembers one that was released: it may be taken late, and comes again. */
  keepReleased(undelivered: Undelivered): void {
    this.#released.set(undelivered.entry.id, undelivered);
    for (const oldest of this.#released.keys()) {
      if (this.#released.size <= maxReleased) break;
      this.#released.delete(oldest);
    }
  }

  /** Finds one that was released, and forgets it. */
  takeReleased(id: string): Undelivered | undefined {
    const released = this.#released.get(id);
    this.#released.delete(id);
    return released;
  }

  /** How often a message that comes as new was sent into a flow before it was released. */
  attemptsBefore(identity: Identity): number {
    const earlier = [...this.#released.values()].filter((released) => isSameMessage(released.identity, identity));
    return Math.max(0, ...earlier.map(({ entry }) => entry.attempts));
  }
}
