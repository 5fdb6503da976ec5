import type BTree from 'sorted-btree';

/**
 * Rounds a number down, and formats it as text of fixed length. The texts sort like the numbers. Negative numbers
 * become 0.
 */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(9, '0');
}

/** Returns a sort key: by time in ms, then by id. */
export function orderOf(at: number, id: string): string {
  return formatOrder(at) + id;
}

/** Returns the value of the smallest key. */
export function firstValueOf<Value>(sorted: BTree<string, Value>): Value | undefined {
  return sorted.get(sorted.minKey() ?? '');
}
