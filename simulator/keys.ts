const keys = new WeakMap<object, number>();
/** Begins at the time in µs, so that a page which stays open across a restart of the simulator sees no key twice. */
let lastKey = Date.now() * 1000;

/** Returns the key of a record, which stays the same if the record changes. A later record has a greater key. */
export function keyOf(record: object): number {
  let key = keys.get(record);
  if (key === undefined) {
    lastKey += 1;
    key = lastKey;
    keys.set(record, key);
  }
  return key;
}

export function restoreKey(record: object, key: number): void {
  keys.set(record, key);
  lastKey = Math.max(lastKey, key);
}

export function byKey(a: object, b: object): number {
  return keyOf(a) - keyOf(b);
}

/** Adds a record to a list of at most `max` records, and gives it a key. Removes and returns the oldest if necessary. */
export function addBounded<T extends object>(records: T[], record: T, max: number): T | undefined {
  keyOf(record);
  records.push(record);
  return records.length > max ? records.shift() : undefined;
}
