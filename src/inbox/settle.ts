import type { Step } from '../journal/journal';
import { keepItem } from '../store/store';
import { currentEntry, dropGone, goneOf, holdKeysOf, type InboxContext } from './context';
import type { Gone } from './delivered';
import type { Entry } from './entry';
import type { Undelivered } from './undelivered';

const nothing = () => {};

/** Every node that an entry is for has taken it. */
export function settle(context: InboxContext, undelivered: Undelivered): void {
  const { entry, identity, isGivenUp } = undelivered;
  context.undelivered.remove(entry.id);
  // What is kept of one that was given up is not written yet.
  if (isGivenUp) context.run(createDrop(goneOf(context, [undelivered])));
  else {
    undelivered.held?.done();
    const batch = context.delivered.add(entry.id, holdKeysOf(context, entry, identity));
    if (batch) context.run(createDrop(batch, batch.dropped, batch.close));
  }
  undelivered.end(true);
  context.reading.goOn();
}

/**
 * Forgets entries that are delivered, or somebody else's to deliver. Losing it merely delivers again.
 *
 * @param onDropped told whether that is written
 * @param onTaken called as the step is taken
 */
export function createDrop(
  gone: Gone,
  onDropped: (isWritten: boolean) => void = nothing,
  onTaken: () => void = nothing,
): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    drops: gone.ids,
    decide(_look, changes) {
      onTaken();
      dropGone(gone, changes);
      return onDropped;
    },
  };
}

/** Writes down what has changed of entries, or what a store has lost of them, unless they are done with by then. */
export function createKeep({ undelivered }: InboxContext, entries: readonly Entry[]): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    decide(_look, changes) {
      for (const entry of entries) {
        if (!undelivered.has(entry.id) || changes.drop.has(entry.id)) continue;
        keepItem(changes, { ...currentEntry(entry, changes), attempts: entry.attempts });
      }
      return nothing;
    },
  };
}

/** Changes nothing: when it is taken, so is all that came before. */
export function createPause(): Step<void> {
  return { keys: [], whileFailing: 'apply', decide: () => nothing };
}
