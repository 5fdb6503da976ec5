import type { Timer } from '../clock';
import { Told } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { Step } from '../journal/journal';
import { createChange, type Participant } from '../journal/step';
import type { Kind, RecordOfKind } from '../model';
import { type Changes, dropItem, keepItem } from '../store/store';
import type { InboxParts } from './context';
import { type DeadLetter, type Entry, isDeadLetter, Pending } from './entries';
import { type Identity, identify, isSameMessage } from './identity';

const keptMs = 7 * 24 * 3_600_000;
const mostKept = 10_000;
const sweepMs = 3_600_000;

/** No clock that has been set says less: one without a battery begins in 1970. */
const earliestTime = Date.UTC(2020, 0, 1);

interface Kept {
  item: DeadLetter;
  /** Since when it has been given up, by {@link Clock.elapsed}: whoever sets the clock makes nothing older. */
  since: number;
  /** It is in the store no more, or in that of another. */
  isGone?: true;
}

/**
 * Keeps what was given up for 7 days, and no more than 10,000 of it: the oldest go first. What was given up before the clock had
 * been set is kept for 7 days from when it was found by the next process.
 */
export class DeadLetters {
  readonly #context: InboxParts;
  readonly #onFull: () => void;
  readonly #kept = new Map<string, Kept>();
  #sweep: Timer | undefined;
  #hasBeenFull = false;
  /** Of what it is known that no node takes it. */
  readonly #untaken = new Told<Kind>();

  /** @param onFull called the first time that something has to go before its time */
  constructor(context: InboxParts, onFull: () => void) {
    this.#context = context;
    this.#onFull = onFull;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(id: string): DeadLetter | undefined {
    return this.#kept.get(id)?.item;
  }

  /**
   * At most so many, the one that was given up first before the others, and what to ask for more with; absent: these were the last.
   *
   * @param after what an earlier page gave as its `next`, whether that one is still here or not; absent: from the first
   */
  page(most: number, after = ''): { items: DeadLetter[]; next?: string } {
    const all = [...this.#kept.values()].map(({ item }) => ({ item, key: keyOf(item) }));
    const rest = all.filter(({ key }) => key > after).sort((a, b) => (a.key < b.key ? -1 : 1));
    const page = rest.slice(0, most);
    const next = rest.length > most ? page.at(-1)?.key : undefined;
    return { items: page.map(({ item }) => item), ...(next !== undefined && { next }) };
  }

  /** A node has given an entry up. What drops the entry in the same turn of the event loop shares the commit. */
  add({ id, kind, attempts, record, unsure }: Entry, node: string): void {
    const { clock } = this.#context;
    const item = {
      // By its name it is the same one, should the entry come again because the drop was not written.
      ...{ id: `${id}~${node}`, part: 'deadLetter' as const, subscribers: [kind], attempts, node, at: clock.now() },
      ...({ kind, record } as RecordOfKind),
      ...(unsure && { unsure }),
    };
    const kept: Kept = { item, since: clock.elapsed() };
    this.#put(kept);
    this.#sweepLater();
    const step = createChange((changes) => {
      // Whoever is called back with it may have taken it by then. It is written also where it is to be given again: what drops the entry may come first.
      if (!kept.isGone && !changes.drop.has(item.id)) keepItem(changes, item);
    });
    this.#context.run(step);
    if (this.#kept.size <= mostKept) return;
    this.discard([...this.#kept.keys()].slice(0, this.#kept.size - mostKept));
    if (!this.#hasBeenFull) this.#onFull();
    this.#hasBeenFull = true;
  }

  /** No node takes an entry. Returns whether that is news. */
  addUntaken(entry: Entry): boolean {
    this.add(entry, '');
    return this.#untaken.tell(entry.kind);
  }

  /** What no node took of a message, unless these changes drop it. */
  find(kind: Kind, identity: Identity, changes?: Changes): DeadLetter | undefined {
    for (const { item } of this.#kept.values()) {
      if (item.node !== '' || item.kind !== kind || changes?.drop.has(item.id)) continue;
      if (isSameMessage(identify(item), identity)) return item;
    }
    return undefined;
  }

  /** Gives what no node took to those that have come and want it. */
  giveUntaken(): void {
    const { subscribers, run } = this.#context;
    const items = [...this.#kept.values()].map(({ item }) => item);
    const wanted = items.filter(({ node, kind, record }) => node === '' && subscribers.hasAny(kind, record));
    for (const kind of this.#untaken) if (subscribers.hasAny(kind)) this.#untaken.delete(kind);
    for (const { id } of wanted) this.#kept.delete(id);
    if (wanted.length > 0) run(createDelivery(this.#context, wanted));
  }

  /** One is in the store no more. */
  forget(id: string): void {
    const kept = this.#kept.get(id);
    if (kept) kept.isGone = true;
    this.#kept.delete(id);
  }

  /** Forgets some. */
  discard(ids: readonly string[]): void {
    for (const id of ids) this.#kept.delete(id);
    const step = createChange((changes) => {
      for (const id of ids) dropItem(changes, id, 'deadLetter');
    });
    this.#context.run({ ...step, drops: ids });
  }

  /** Gives one to its node once more, its attempts counted anew. Returns whether it was there, and its node is. */
  deliver(id: string): boolean {
    const item = this.get(id);
    // For a node that is gone it would wait for ever, out of sight: nobody else gets it.
    if (!item || !this.#context.subscribers.here[item.kind].has(item.node)) return false;
    this.#kept.delete(id);
    this.#context.run(createDelivery(this.#context, [item]));
    return true;
  }

  #put(kept: Kept): void {
    const { id } = kept.item;
    // The same one may come again at another time.
    this.#kept.delete(id);
    this.#kept.set(id, kept);
  }

  #sweepLater(): void {
    if (this.#sweep || this.#kept.size === 0) return;
    const { clock } = this.#context;
    const sweep = () => {
      this.#sweep = undefined;
      const longAgo = clock.elapsed() - keptMs;
      const outdated = [...this.#kept.values()].filter(({ since }) => since <= longAgo);
      if (outdated.length > 0) this.discard(outdated.map(({ item }) => item.id));
      this.#sweepLater();
    };
    this.#sweep = clock.after(sweepMs, sweep, true);
  }

  /** Since when an item has been given up that was found, as far as that is known. */
  #sinceOf({ id, at }: DeadLetter): number {
    const { clock } = this.#context;
    const age = at < earliestTime ? 0 : Math.max(0, clock.now() - ClockSkew.of(clock).timeOf(at));
    return this.#kept.get(id)?.since ?? clock.elapsed() - age;
  }

  /** Finds what an earlier process has given up. */
  createParticipant(): Participant {
    return {
      // What is polled for is taken over, and what was given up of it too.
      wanted: () => [],
      isReadable: isDeadLetter,
      found: (items) => {
        for (const item of items.filter(isDeadLetter)) this.#put({ item, since: this.#sinceOf(item) });
        this.giveUntaken();
        this.#sweepLater();
      },
      itemOf: (id) => this.get(id),
      kept: () => [...this.#kept.values()].map(({ item }) => item),
      forget: (id) => this.forget(id),
      letGo: () => {
        this.#kept.clear();
        this.#sweep?.cancel();
        this.#sweep = undefined;
      },
    };
  }
}

/** Orders them by their times, those of one time by their ids. */
function keyOf({ at, id }: DeadLetter): string {
  return String(at).padStart(16, '0') + id;
}

/** Makes entries of them again: of each for the node that had given it up, or for all when none has taken it. */
function createDelivery(
  { journal, entries, subscribers }: Pick<InboxParts, 'journal' | 'entries' | 'subscribers'>,
  items: readonly DeadLetter[],
): Step<void> {
  const found = items.map(({ id, kind, record, node, attempts, unsure }) => {
    const own = { id: journal.nextId(), part: 'inbox' as const, subscribers: [kind], channel: kind };
    const again =
      node === ''
        ? { attempts, ...(unsure && { unsure }) }
        : { attempts: 0, unsure: true as const, address: { node, path: '' } };
    return { id, entry: { ...own, kind, record, ...again } as Entry };
  });
  return {
    whileFailing: 'apply',
    drops: items.map(({ id }) => id),
    decide(_look, changes) {
      // Whoever is called back with one may have taken it in the same commit.
      const given = found.filter(({ id }) => !changes.drop.has(id)).map(({ entry }) => entry);
      for (const { id } of items) dropItem(changes, id, 'deadLetter');
      for (const entry of given) keepItem(changes, entry);
      return () => {
        for (const entry of given) entries.set(entry.id, new Pending(entry, identify(entry)));
        subscribers.giveAll();
      };
    },
  };
}
