import type { Clock } from '../clock';
import { DueTimes, formatOrder, OrderedKeys, orderLength } from './due-times';
import { isKept, type Text } from './text';

const uncertainMs = 7 * 24 * 3_600_000;

/** The texts of this process that are on their way or may be decided about, found by id. */
export class TextBook {
  /** Those that somebody may decide about. */
  readonly entries = new TextEntries();
  /** Ids of texts that ask and are in no store, and whose outcome is on its way into the flow. */
  readonly outcomesComing = new Set<string>();
  readonly #byId = new Map<string, Text>();
  readonly #clock: Clock;
  /** Ids of texts whose mark that they leave is being written. */
  readonly #marked = new Set<string>();
  /** An uncertain text can be decided about for so long. */
  readonly #decisions: DueTimes;

  /** @param onExpired nobody has decided about a text in time */
  constructor(clock: Clock, onExpired: (text: Text) => void) {
    const onDue = (id: string) => {
      const text = this.get(id);
      if (text) onExpired(text);
    };
    this.#clock = clock;
    this.#decisions = new DueTimes(clock, () => clock.elapsed(), onDue);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** In the order of their arrival, or of their being found. */
  values(): IterableIterator<Text> {
    return this.#byId.values();
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  get(id: string): Text | undefined {
    return this.#byId.get(id);
  }

  /** Whether a text waits, so that it can still be stopped: not while its mark is being written. */
  isWaiting(id: string): boolean {
    return this.get(id)?.state === 'waiting' && !this.#marked.has(id);
  }

  /** Whether the outcome of a text is still to come. */
  isUnderWay(id: string): boolean {
    const state = this.get(id)?.state;
    return state === 'waiting' || state === 'leaving';
  }

  /** Whether the outcome of a text is known and has not entered the flow yet. */
  isOutcomeComing(id: string): boolean {
    return this.outcomesComing.has(id) || this.get(id)?.state === 'settled';
  }

  /** A text's mark is being written until `marking` has settled. */
  whileMarked<T>(id: string, marking: Promise<T>): Promise<T> {
    this.#marked.add(id);
    return marking.finally(() => this.#marked.delete(id));
  }

  /** Adds a text, or puts it in the place of an earlier state of it. */
  set(text: Text): void {
    const { id } = text;
    const place = placeOf(text);
    this.#byId.set(id, text);
    if (place) this.entries.put(id, place);
    else this.entries.remove(id);
  }

  /** Adds a text that somebody may decide about for 7 days from its outcome. */
  setUndecided(text: Text): void {
    this.set(text);
    const leftMs = Math.min(uncertainMs, Math.max(0, (text.settledAt ?? 0) + uncertainMs - this.#clock.now()));
    this.#decisions.set(text.id, this.#clock.elapsed() + leftMs);
  }

  /** Somebody has decided about a text, if that was to be done. */
  decided(id: string): void {
    this.#decisions.delete(id);
  }

  delete(id: string): void {
    this.#byId.delete(id);
    this.entries.remove(id);
    this.decided(id);
  }
}

function placeOf(text: Text): TextEntryPlace | undefined {
  const { state, arrivedAt, settledAt } = text;
  if (state === 'waiting' || state === 'leaving') return isKept(text) ? { state: 'kept', at: arrivedAt } : undefined;
  return state === 'uncertain' ? { state, at: settledAt ?? arrivedAt } : undefined;
}

/** What somebody may decide about: a text that waits, or one whose outcome is unknown. */
export type TextEntryState = 'kept' | 'uncertain';

/** As what a text is listed, and since when: when it came, or when its outcome became unknown; in ms. */
export interface TextEntryPlace {
  state: TextEntryState;
  at: number;
}

/** So many ids, and where the next ones begin. */
export interface EntryPage {
  ids: string[];
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/** Which texts somebody may decide about, by id, and in the order of their times, those of one time in that of the ids. */
export class TextEntries {
  readonly #places = new Map<string, TextEntryPlace>();
  readonly #keys: Readonly<Record<TextEntryState, OrderedKeys>> = {
    kept: new OrderedKeys(),
    uncertain: new OrderedKeys(),
  };

  /** Lists a text, wherever it was before. */
  put(id: string, place: TextEntryPlace): void {
    this.remove(id);
    this.#places.set(id, place);
    this.#keys[place.state].add(formatOrder(place.at) + id);
  }

  remove(id: string): void {
    const former = this.#places.get(id);
    if (!former) return;
    this.#places.delete(id);
    this.#keys[former.state].delete(formatOrder(former.at) + id);
  }

  get(id: string): TextEntryPlace | undefined {
    return this.#places.get(id);
  }

  count(state: TextEntryState): number {
    return this.#keys[state].size;
  }

  /**
   * At most so many of a state, oldest first.
   *
   * @param after what an earlier page gave as its `next`, whether that entry is still here or not; absent: from the first
   */
  page(state: TextEntryState, most: number, after?: string): EntryPage {
    // One more than asked for tells whether there are more.
    const keys = this.#keys[state].page(most + 1, after);
    const page = keys.slice(0, most);
    const next = keys.length > most ? page.at(-1) : undefined;
    const ids = page.map((key) => key.slice(orderLength));
    return { ids, ...(next === undefined ? undefined : { next }) };
  }
}
