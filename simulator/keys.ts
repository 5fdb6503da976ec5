const keys = new WeakMap<object, number>();
let lastKey = 0;

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

/** Counts the records with a key below `key`. The records are in the order of their keys. */
export function countBefore(records: readonly object[], key: number): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const record = records[middle];
    if (record !== undefined && keyOf(record) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
