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
