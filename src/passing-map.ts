/** Stands for the table of every map that nothing has come into yet. */
const none = new Map<never, never>();

/**
 * A map for what comes and goes all the time, in the order in which it came. What is deleted from a `Map` stays alive through the
 * tables that the map has had before, until the next full collection of garbage, and is copied until then; of what is
 * deleted from this one no more than the key does. It has no table before something comes: of an idle account's most never need one.
 */
export class PassingMap<Key, Value> {
  #places: Map<Key, { value: Value | undefined }> = none;

  get size(): number {
    return this.#places.size;
  }

  has(key: Key): boolean {
    return this.#places.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#places.get(key)?.value;
  }

  set(key: Key, value: Value): void {
    const place = this.#places.get(key);
    if (place) {
      place.value = value;
      return;
    }
    if (this.#places === none) this.#places = new Map();
    this.#places.set(key, { value });
  }

  /** Returns whether it was there. */
  delete(key: Key): boolean {
    const place = this.#places.get(key);
    if (place) place.value = undefined;
    return this.#places.delete(key);
  }

  clear(): void {
    this.#places.clear();
  }

  keys(): IterableIterator<Key> {
    return this.#places.keys();
  }

  /** One after the other; what is added or deleted meanwhile is heeded. */
  *values(): Generator<Value> {
    for (const { value } of this.#places.values()) if (value !== undefined) yield value;
  }
}
