import type { Clock, Timer } from '../clock';

/** The clock may be set, and a machine be asleep, which no timer hears of: it is looked at so often. */
const longestDelayMs = 60_000;

/** What may come due by the ten thousand in one moment is dealt with a few hundred in each turn of the event loop. */
const mostInTurn = 250;

/** What is due some time, with one timer on the first of it. */
export class DueTimes {
  readonly #clock: Clock;
  readonly #time: 'now' | 'elapsed';
  readonly #onDue: (id: string) => void;
  readonly #keys = new OrderedKeys();
  readonly #times = new Map<string, number>();
  #timer: Timer | undefined;

  /**
   * @param time by which of the clock's it goes
   * @param onDue something is due, and is not here any more
   */
  constructor(clock: Clock, time: 'now' | 'elapsed', onDue: (id: string) => void) {
    this.#clock = clock;
    this.#time = time;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#times.size;
  }

  /** When the first is due. */
  get first(): number | undefined {
    return this.get(this.#first);
  }

  /** When something is due. */
  get(id: string): number | undefined {
    return this.#times.get(id);
  }

  /** Those that are due in one moment come in the order of their ids. */
  set(id: string, at: number): void {
    if (this.get(id) === at) return;
    this.#remove(id);
    this.#keys.add(formatOrder(at) + id);
    this.#times.set(id, at);
    if (this.#first === id) this.#wait();
  }

  delete(id: string): void {
    this.#remove(id);
    // Where others are left, the timer finds at worst that none of them is due yet.
    if (this.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#keys.clear();
    this.#times.clear();
  }

  get #first(): string {
    return this.#keys.first?.slice(orderLength) ?? '';
  }

  #remove(id: string): void {
    const at = this.get(id);
    if (at === undefined) return;
    this.#keys.delete(formatOrder(at) + id);
    this.#times.delete(id);
  }

  #wait(): void {
    this.#timer?.cancel();
    const { first } = this;
    if (first === undefined) return;
    const delayMs = Math.max(0, Math.min(longestDelayMs, first - this.#clock[this.#time]()));
    this.#timer = this.#clock.after(delayMs, () => this.#look(), true);
  }

  #look(): void {
    for (let count = 0; count < mostInTurn; count++) {
      const id = this.#first;
      if (!(Number(this.get(id)) <= this.#clock[this.#time]())) {
        this.#wait();
        return;
      }
      this.#remove(id);
      this.#onDue(id);
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.nextTurn(() => this.#look());
  }
}

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

/** In characters. */
export const orderLength = 9;

/** A part of a key that orders numbers of 0 or more, but for their fractions. */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(orderLength, '0');
}
