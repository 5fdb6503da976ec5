import type { Step } from '../journal';
import { currentEntry, dropEntry, type InboxContext, judgeAndRemember } from './context';
import type { Entry } from './entry';
import { type Identity, keysOf } from './identity';
import type { Undelivered } from './undelivered';

const nothing = () => {};

/** Every node that an entry is for has taken it. */
export function settle(context: InboxContext, undelivered: Undelivered): void {
  const { id } = undelivered.entry;
  context.undelivered.remove(id);
  // What is kept of one that was given up is not written yet.
  if (!undelivered.isGivenUp) context.delivered.note(id);
  context.run(createDrop(context, [undelivered]));
  undelivered.end(true);
  context.reading.goOn();
}

/** Forgets entries that are delivered, or somebody else's to deliver. Losing it merely delivers again, so it waits for the next commit. */
export function createDrop(
  context: InboxContext,
  delivered: readonly Pick<Undelivered, 'entry' | 'identity'>[],
): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    drops: delivered.map(({ entry }) => entry.id),
    lazy: true,
    decide(_look, changes) {
      for (const { entry, identity } of delivered) dropEntry(context, entry, identity, changes);
      return () => {
        for (const { entry } of delivered) context.delivered.forget(entry.id);
      };
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
        changes.keep.set(entry.id, { ...currentEntry(entry, changes), attempts: entry.attempts });
      }
      return nothing;
    },
  };
}

/** Changes nothing: when it is taken, so is all that came before. */
export function createPause(): Step<void> {
  return { keys: [], whileFailing: 'apply', decide: () => nothing };
}

/** Somebody has taken after all what had been released: it is known when the service brings it again. */
export function createLate(context: InboxContext, identity: Identity): Step<void> {
  return {
    keys: keysOf(identity),
    whileFailing: 'apply',
    decide(look, changes) {
      judgeAndRemember(context, { identity, via: 'callback' }, look, changes);
      return nothing;
    },
  };
}
