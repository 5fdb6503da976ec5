/**
 * Random numbers that a seed determines. Streams with different names are independent, so an extra number from one
 * does not change the others.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(
    private readonly seed: number,
    private readonly name = '',
  ) {
    let hash = 0x811c9dc5 ^ seed;
    for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    this.#a = hash >>> 0;
    this.#b = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    this.#c = Math.imul(hash ^ (seed >>> 3), 0xc2b2ae35) >>> 0;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** Returns a number from 0 to below 1 (generator sfc32). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  }

  /** Returns a whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Returns a whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<Item>(list: readonly Item[]): Item {
    const item = list[this.below(list.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  /** Picks an item at random by weight. */
  weigh<Item>(list: readonly (readonly [item: Item, weight: number])[]): Item {
    let rest = this.next() * list.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [item, weight] of list) {
      rest -= weight;
      if (rest < 0) return item;
    }
    return this.pick(list)[0];
  }

  /** Creates an independent stream. */
  fork(name: string): Random {
    return new Random(this.seed, `${this.name}/${name}`);
  }

  /** Random hexadecimal digits. */
  hex(length: number): string {
    let digits = '';
    while (digits.length < length) digits += this.below(16).toString(16);
    return digits;
  }
}
