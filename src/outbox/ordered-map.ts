/** Minimum number of removed keys before the heap is cleaned up. */
const minRemoved = 100;

/** Values by key, with fast access to the smallest key. */
export class OrderedMap<Value> {
  readonly #values = new Map<string, Value>();
  /**
   * A binary heap of the keys, which might still contain removed keys. No key is smaller than its parent at half its
   * index.
   */
  #heap: string[] = [];

  get size(): number {
    return this.#values.size;
  }

  /** The smallest key. */
  get first(): string | undefined {
    while (this.#heap.length > 0 && !this.has(this.#at(0))) {
      const last = this.#heap.pop() ?? '';
      if (this.#heap.length > 0) this.#sink(last, 0);
    }
    return this.#heap[0];
  }

  /** The value of the smallest key. */
  get firstValue(): Value | undefined {
    const { first } = this;
    return first === undefined ? undefined : this.get(first);
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** Returns all keys, in insertion order. */
  keys(): IterableIterator<string> {
    return this.#values.keys();
  }

  set(key: string, value: Value): void {
    if (!this.has(key)) {
      if (this.#heap.length > 2 * this.size + minRemoved) this.#clean();
      let place = this.#heap.length;
      for (let parent = (place - 1) >> 1; place > 0 && key < this.#at(parent); parent = (place - 1) >> 1) {
        this.#heap[place] = this.#at(parent);
        place = parent;
      }
      this.#heap[place] = key;
    }
    this.#values.set(key, value);
  }

  delete(key: string): void {
    this.#values.delete(key);
  }

  clear(): void {
    this.#values.clear();
  }

  #at(place: number): string {
    return this.#heap[place] as string;
  }

  #clean(): void {
    this.#heap = [...this.keys()];
    for (let place = (this.#heap.length >> 1) - 1; place >= 0; place--) this.#sink(this.#at(place), place);
  }

  /** Inserts a key at an index, or moves it further down to restore the heap order. */
  #sink(key: string, at: number): void {
    let place = at;
    for (;;) {
      let child = 2 * place + 1;
      if (this.#at(child + 1) < this.#at(child)) child++;
      if (!(this.#at(child) < key)) break;
      this.#heap[place] = this.#at(child);
      place = child;
    }
    this.#heap[place] = key;
  }
}

/** Formats a non-negative number, rounded down, so that its text sorts like the number. */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(9, '0');
}
