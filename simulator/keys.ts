const keys = new WeakMap<object, number>();
/** Starts at the current time in µs, so that a page that stays open during a restart never sees an old key reused. */
let lastKey = Date.now() * 1000;

/** Returns the key of a record. The key stays the same if the record changes. Later records have greater keys. */
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

/**
 * Gives a record a key, and adds the record to a list. If the list then has more than `max` records, removes the oldest
 * one and returns it.
 */
export function addBounded<T extends object>(records: T[], record: T, max: number): T | undefined {
  keyOf(record);
  records.push(record);
  return records.length > max ? records.shift() : undefined;
}
