import type { Kind } from '../model';
import type { Item, Look, Page } from '../store/store';
import { parseDelivered } from './delivered';
import { type Channel, type Entry, isEntry } from './entry';
import { type Identity, identify, keysOf } from './identity';
import { Undelivered, type UndeliveredEntries } from './undelivered';

/** Entries of one kind that lie in the store. */
interface Stretch {
  count: number;
  /** They come after this id, among others that are in memory. */
  after: string;
  /** They are to be read whether somebody takes them or not. */
  isWanted: boolean;
}

/** Where nothing is put off: so much of a kind is enough in memory. */
const takenAtATime = 1_000;

/**
 * Undelivered entries that lie in the store and are not in memory: of each kind that is polled those that came last. What was called
 * back, or is for one node alone, is always in memory: there is little of it, and it is asked for by what it is.
 */
export class Unread {
  readonly #undelivered: UndeliveredEntries;
  readonly #pageSize: number | undefined;
  #stretches = new Map<Kind, Stretch>();
  /** Keys of identifiers of those that were given to somebody so many times, which the store does not know. */
  readonly #given = new Map<string, number>();
  /** As the store that is being opened has them. */
  #sifted = new Map<Kind, Stretch>();

  /** @param pageSize so many of a kind are read at a time; absent: all are in memory */
  constructor(undelivered: UndeliveredEntries, pageSize: number | undefined) {
    this.#undelivered = undelivered;
    this.#pageSize = pageSize;
  }

  get size(): number {
    let size = 0;
    for (const { count } of this.#stretches.values()) size += count;
    return size;
  }

  get kinds(): Kind[] {
    return [...this.#stretches.keys()];
  }

  /** Ids that come before all of them, one for each kind. */
  get beginnings(): string[] {
    return [...this.#stretches.values()].map(({ after }) => after).filter((after) => after !== '');
  }

  has(kind: unknown): boolean {
    return this.#stretches.size > 0 && this.#stretches.has(kind as Kind);
  }

  /** Whether more of a kind is wanted in memory, if somebody takes it (`isTaken`). */
  isWanted(kind: Kind, isTaken: boolean): boolean {
    return this.#stretches.get(kind)?.isWanted || (isTaken && this.isLow(kind));
  }

  /** Whether little of a kind, or of a channel, is in memory of what was read. */
  isLow(channel: Channel): boolean {
    return this.#undelivered.countRead(channel) <= (this.#pageSize ?? takenAtATime) / 2;
  }

  /** Says that somebody looks for an entry of a kind that may be among them. */
  want(kind: Kind): void {
    const stretch = this.#stretches.get(kind);
    if (stretch) stretch.isWanted = true;
  }

  /** See {@link Participant.sift}. It counts what is put off; {@link replace} makes that hold. */
  sift(held: readonly string[], unwritten: Look | undefined): (item: Item) => boolean {
    const delivered = new Set(held.flatMap(parseDeliveredIfAny));
    const sifted = new Map<Kind, Stretch>();
    this.#sifted = sifted;
    const rooms = new Map<Kind, number>();
    let previous = '';
    return (item) => {
      const after = previous;
      previous = item.id;
      if (!isEntry(item) || !canWait(item) || this.#undelivered.has(item.id) || delivered.has(item.id)) return false;
      // Its commit seemed to fail and had not: whoever finds it drops it.
      if (unwritten && keysOf(identify(item)).some(unwritten)) return false;
      const { kind } = item;
      const stretch = sifted.get(kind);
      const room = rooms.get(kind) ?? this.#roomFor(kind);
      if (stretch) stretch.count++;
      else if (room > 0) rooms.set(kind, room - 1);
      else sifted.set(kind, { count: 1, after, isWanted: false });
      return sifted.has(kind);
    };
  }

  /** What was sifted is what there is. */
  replace(): void {
    this.#stretches = this.#sifted;
    this.#sifted = new Map();
  }

  /** Puts off an entry that is in the store, where too many are in memory, or others before it are not. Returns whether it did. */
  putOff({ id, kind, ...rest }: Entry): boolean {
    if (!canWait(rest)) return false;
    const stretch = this.#stretches.get(kind);
    if (!stretch && this.#roomFor(kind) > 0) return false;
    // The end of it left out, an id comes before itself.
    const after = id.slice(0, -1);
    if (!stretch) this.#stretches.set(kind, { count: 1, after, isWanted: false });
    else {
      stretch.count++;
      if (after < stretch.after) stretch.after = after;
    }
    return true;
  }

  /** One that was put off a moment ago is about to be dropped. */
  forget({ kind, ...rest }: Entry): void {
    const stretch = this.#stretches.get(kind);
    if (stretch && canWait(rest)) stretch.count = Math.max(0, stretch.count - 1);
  }

  /** One that may be among them was given to somebody so many times. */
  noteGiven(kind: Kind, { id }: Identity, attempts: number): void {
    if (this.has(kind) && id !== undefined) this.#given.set(id, attempts);
  }

  /** Where the next page of a kind begins. */
  placeOf(kind: Kind): string {
    return this.#stretches.get(kind)?.after ?? '';
  }

  /** Takes the entries of a kind out of a page that begins there. */
  take(kind: Kind, { items, next }: Page): Undelivered[] {
    const stretch = this.#stretches.get(kind);
    if (!stretch) return [];
    const taken: Undelivered[] = [];
    for (const item of items) {
      if (!isEntry(item) || item.kind !== kind || !canWait(item) || this.#undelivered.has(item.id)) continue;
      const read = new Undelivered(item, identify(item));
      read.isStored = true;
      read.wasGiven(this.#given.get(read.identity.id ?? '') ?? 0);
      if (read.identity.id !== undefined) this.#given.delete(read.identity.id);
      this.#undelivered.addRead(read);
      taken.push(read);
    }
    stretch.count = Math.max(0, stretch.count - taken.length);
    if (next === undefined) this.#stretches.delete(kind);
    else stretch.after = next;
    return taken;
  }

  clear(): void {
    this.#stretches.clear();
    this.#given.clear();
  }

  #roomFor(kind: Kind): number {
    return (this.#pageSize ?? Number.POSITIVE_INFINITY) - this.#undelivered.countRead(kind);
  }
}

function canWait({ channel, address }: Pick<Entry, 'channel' | 'address'>): boolean {
  return channel !== 'callback' && address === undefined;
}

/** What cannot be read is told when it is recovered. */
function parseDeliveredIfAny(text: string): string[] {
  try {
    return parseDelivered(text) ?? [];
  } catch {
    return [];
  }
}
