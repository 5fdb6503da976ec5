import type { Step } from '../journal/journal';
import { keepItem } from '../store/store';
import { currentEntry, dropGone, type Gone, goneOf, type InboxContext } from './context';
import type { Pending } from './entries';
import type { Entry } from './entry';

/** With more in hand nothing is taken over of what dead processes have left for those who poll: others may be faster. */
export const enough = 500;

/** Every node that an entry is for has taken it. */
export function settle(context: InboxContext, pending: Pending): void {
  context.entries.remove(pending.entry.id);
  context.run(createDrop(goneOf(context, [pending])));
  pending.end(true);
  const { entries, subscribers, journal } = context;
  if (entries.size <= enough && subscribers.hasPoller) journal.takeMore?.();
}

/** Forgets entries that are delivered, or somebody else's to deliver. Losing it merely delivers again, so it waits for the next commit. */
export function createDrop(gone: Gone): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    drops: gone.ids,
    decide(_look, changes) {
      dropGone(gone, changes);
      return () => {};
    },
  };
}

/** Writes down what has changed of entries, or what a store has lost of them, unless they are done with by then. */
export function createKeep({ entries }: InboxContext, changed: readonly Entry[]): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look, changes) {
      for (const entry of changed) {
        if (!entries.has(entry.id) || changes.drop.has(entry.id)) continue;
        keepItem(changes, { ...currentEntry(entry, changes), attempts: entry.attempts });
      }
      return () => {};
    },
  };
}
