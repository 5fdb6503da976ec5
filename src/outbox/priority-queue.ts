/** What can be in one queue at a time, which notes in it where. */
export interface Placed {
  place?: number | undefined;
}

/** Items in the order of a comparison: adding one, taking the first and leaving from anywhere cost O(log n). */
export class PriorityQueue<Item extends Placed> {
  readonly #isBefore: (a: Item, b: Item) => boolean;
  /** Each item is before the two at twice its place and one or two more. */
  readonly #heap: Item[] = [];

  /** @param isBefore a strict order that does not change while its items are here */
  constructor(isBefore: (a: Item, b: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#heap.length;
  }

  get first(): Item | undefined {
    return this.#heap[0];
  }

  /** An item may be here once. */
  add(item: Item): void {
    this.#settle(item, this.#heap.length);
  }

  /** Finds an item, in whatever order it looks through them. */
  find(isMeant: (item: Item) => boolean): Item | undefined {
    return this.#heap.find(isMeant);
  }

  /** Takes the first. */
  take(): Item | undefined {
    const { first } = this;
    if (first !== undefined) this.delete(first);
    return first;
  }

  /** Says whether it was here. */
  delete(item: Item): boolean {
    const { place } = item;
    if (place === undefined) return false;
    item.place = undefined;
    const last = this.#heap.pop();
    if (last !== undefined && last !== item) this.#settle(last, place);
    return true;
  }

  /** Puts an item where it belongs, up or down from a place that is free. */
  #settle(item: Item, free: number): void {
    let place = free;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above] as Item;
      if (!this.#isBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    for (let below = 2 * place + 1; below < this.#heap.length; below = 2 * place + 1) {
      const right = below + 1 < this.#heap.length ? below + 1 : below;
      if (this.#isBefore(this.#heap[right] as Item, this.#heap[below] as Item)) below = right;
      const child = this.#heap[below] as Item;
      if (!this.#isBefore(child, item)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }

  #put(item: Item, place: number): void {
    this.#heap[place] = item;
    item.place = place;
  }
}
