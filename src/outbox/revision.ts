import type { Item } from '../store/store';

let lastRevision = 0;

/** Differs from every revision that the item has had, here or elsewhere. */
export function nextRevision({ revision = 0 }: Item): number {
  lastRevision = Math.max(lastRevision, revision) + 1;
  return lastRevision;
}
