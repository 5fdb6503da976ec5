const keys = new WeakMap<object, number>();
let lastKey = 0;

/** Recognises a record when it comes again, changed; what came later has a greater key. */
export function keyOf(record: object): number {
  let key = keys.get(record);
  if (key === undefined) {
    lastKey += 1;
    key = lastKey;
    keys.set(record, key);
  }
  return key;
}

/** Gives a record of a former process the key it had there. */
export function restoreKey(record: object, key: number): void {
  keys.set(record, key);
  lastKey = Math.max(lastKey, key);
}

/** How many of the records, which are in the order of their keys, have a key below `key`. */
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
