import type { Step } from '../journal';
import type { Item, Remembered } from '../store/store';
import { isKeyOfLimits, limitPrefix, mergeCounts } from './limits';
import { mailboxKey } from './question';
import { mergeRemembrances, remembranceKey } from './remembrance';
import { handsetPrefix, isKeyOfHandset, mergeReferences } from './sent';

/** The keys that the ledger remembers under begin so. */
export const ledgerPrefixes = ['once:', 'sent:', handsetPrefix, 'asked:', limitPrefix, mailboxKey, remembranceKey];

type Memories = readonly (readonly [key: string, remembered: Remembered])[];

/** Takes over what another ledger has. What is remembered here already is the younger; what either has counted counts. */
export function adopt(items: readonly Item[], memories: Memories): Step<void> {
  return {
    keys: memories.map(([key]) => key),
    // Kept in two stores, a text may be sent by either.
    whileFailing: 'refuse',
    decide(look, changes) {
      for (const item of items) changes.keep.set(item.id, item);
      for (const [key, remembered] of memories) {
        const own = look(key);
        if (!own) changes.remember.set(key, remembered);
        else if (isKeyOfLimits(key)) changes.remember.set(key, mergeCounts(own, remembered));
        else if (isKeyOfHandset(key)) changes.remember.set(key, mergeReferences(own, remembered));
        else if (key === remembranceKey) changes.remember.set(key, mergeRemembrances(own, remembered));
      }
      return () => {};
    },
  };
}

/** Forgets what another ledger has taken over. */
export function abandon(items: readonly Item[], memories: Memories): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look, changes) {
      for (const { id } of items) changes.drop.set(id, 'ledger');
      for (const [key] of memories) changes.remember.set(key, undefined);
      return () => {};
    },
  };
}
