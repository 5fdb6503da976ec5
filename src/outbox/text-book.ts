import type { Clock, Timer } from '../clock';
import { isKept, type Text } from './outgoing';

const uncertainMs = 7 * 24 * 3_600_000;

/** The texts of this process that are on their way or may be decided about, found by id. */
export class TextBook {
  /** Those that somebody may decide about. */
  readonly entries = new TextEntries();
  readonly #byId = new Map<string, Text>();
  readonly #clock: Clock;
  readonly #onExpired: (text: Text) => void;
  /** Ids of texts whose mark that they leave is being written. */
  readonly #marked = new Set<string>();
  /** An uncertain text can be decided about for so long. */
  readonly #decisions = new Map<string, Timer>();

  /** @param onExpired nobody has decided about a text in time */
  constructor(clock: Clock, onExpired: (text: Text) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
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
    const expire = () => this.#onExpired(text);
    this.#decisions.set(text.id, this.#clock.after(leftMs, expire, true));
  }

  /** Somebody has decided about a text, if that was to be done. */
  decided(id: string): void {
    this.#decisions.get(id)?.cancel();
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

/** Which texts somebody may decide about, by id, and in order. */
export class TextEntries {
  readonly #places = new Map<string, TextEntryPlace>();
  readonly #orders: Readonly<Record<TextEntryState, EntryOrder>> = {
    kept: new EntryOrder(),
    uncertain: new EntryOrder(),
  };

  /** Lists a text, wherever it was before. */
  put(id: string, place: TextEntryPlace): void {
    const former = this.#places.get(id);
    if (former?.state === place.state && former.at === place.at) return;
    this.remove(id);
    this.#places.set(id, place);
    this.#orders[place.state].add(id, place.at);
  }

  remove(id: string): void {
    const former = this.#places.get(id);
    if (!former) return;
    this.#places.delete(id);
    this.#orders[former.state].delete(id, former.at);
  }

  get(id: string): TextEntryPlace | undefined {
    return this.#places.get(id);
  }

  count(state: TextEntryState): number {
    return this.#orders[state].size;
  }

  /** Those of a state that come first, or after an earlier page. See {@link EntryOrder.page}. */
  page(state: TextEntryState, most: number, after?: string): EntryPage {
    return this.#orders[state].page(most, after);
  }
}

/** Digits of a key that say when. */
const timeLength = 9;

/** Short enough to be shifted in no time, long enough that a hundred thousand need few of them. */
const longestChunk = 512;

/** So many ids, and where the next ones begin. */
export interface EntryPage {
  ids: string[];
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/**
 * Ids in the order of their times, those of one time in that of the ids. However many there are, adding, taking out and
 * reading a page look at a few hundred of them.
 */
export class EntryOrder {
  /** Keys that ascend, within a chunk and from one to the next. None is empty. */
  readonly #chunks: string[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param at in ms since 1970 */
  add(id: string, at: number): void {
    const key = keyOf(id, at);
    const place = this.#find(key);
    const chunk = this.#chunks[place.chunk];
    if (!chunk) this.#chunks.push([key]);
    else if (chunk[place.index] === key) return;
    else if (place.index === longestChunk) this.#chunks.splice(place.chunk + 1, 0, [key]);
    else {
      chunk.splice(place.index, 0, key);
      if (chunk.length > longestChunk) this.#chunks.splice(place.chunk + 1, 0, chunk.splice(longestChunk / 2));
    }
    this.#size++;
  }

  /** @param at as it was added */
  delete(id: string, at: number): void {
    const key = keyOf(id, at);
    const place = this.#find(key);
    const chunk = this.#chunks[place.chunk];
    if (chunk?.[place.index] !== key) return;
    chunk.splice(place.index, 1);
    if (chunk.length === 0) this.#chunks.splice(place.chunk, 1);
    this.#size--;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#size = 0;
  }

  /**
   * At most so many, oldest first.
   *
   * @param after what an earlier page gave as its `next`, whether that entry is still here or not; absent: from the first
   */
  page(most: number, after = ''): EntryPage {
    const keys: string[] = [];
    const begin = this.#find(after);
    let { chunk: number, index } = begin;
    if (this.#chunks[number]?.[index] === after) index++;
    for (let chunk = this.#chunks[number]; chunk; chunk = this.#chunks[++number], index = 0) {
      // One more than asked for tells whether there are more.
      for (; index < chunk.length && keys.length <= most; index++) keys.push(chunk[index] ?? '');
      if (keys.length > most) break;
    }
    const page = keys.slice(0, most);
    const last = page.at(-1);
    return { ids: page.map(idOf), ...(keys.length > most && last !== undefined ? { next: last } : undefined) };
  }

  /** Where a key is, or would have to be. */
  #find(key: string): { chunk: number; index: number } {
    // The last chunk that does not begin after it.
    const chunk = Math.max(0, countBelow(this.#chunks, ([first = '']) => first <= key) - 1);
    return { chunk, index: countBelow(this.#chunks[chunk] ?? [], (one) => one < key) };
  }
}

/** How many are below: those for which it holds come first. */
function countBelow<T>(sorted: readonly T[], isBelow: (one: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(sorted[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function keyOf(id: string, at: number): string {
  return Math.max(0, Math.floor(at)).toString(36).padStart(timeLength, '0') + id;
}

function idOf(key: string): string {
  return key.slice(timeLength);
}
