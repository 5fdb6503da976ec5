/** Short enough to be shifted in no time, long enough that a hundred thousand need few of them. */
const longestChunk = 512;

/** Keys that ascend. However many there are, adding, taking out and reading a page look at a few hundred of them. */
export class OrderedKeys {
  /** They ascend within a chunk and from one to the next. None is empty. */
  readonly #chunks: string[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): string | undefined {
    return this.#chunks[0]?.[0];
  }

  add(key: string): void {
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

  delete(key: string): void {
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

  /** At most so many from the first on, or from the first after a key, whether that is still here or not. */
  page(most: number, after = ''): string[] {
    const keys: string[] = [];
    let { chunk: number, index } = this.#find(after);
    if (this.#chunks[number]?.[index] === after) index++;
    for (let chunk = this.#chunks[number]; chunk && keys.length < most; chunk = this.#chunks[++number], index = 0) {
      keys.push(...chunk.slice(index, index + most - keys.length));
    }
    return keys;
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

/** A part of a key that orders numbers of 0 or more, but for their fractions. */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(9, '0');
}
