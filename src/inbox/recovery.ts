import { nextTurn } from '../clock';
import type { Participant } from '../journal/step';
import type { Item } from '../store/store';
import { createAccept } from './accept';
import { dropEntry, type InboxContext, judgeAndRemember, keepEntry } from './context';
import { type Entry, isEntry, Pending, parseHeld } from './entries';
import { forget, identify, mergeSeen, movedSeen } from './identity';

/** Entries taken charge of in one turn of the event loop. */
const sliceSize = 500;

/** Takes charge of what an earlier process left, of what a dead one held, and lets go of what the store keeps. */
export function createInboxParticipant(context: InboxContext): Participant {
  const { entries } = context;
  return {
    wanted: () => wantedBy(context),
    isReadable: isEntry,
    found: (items) => findEntries(context, items),
    redo(text, run) {
      const arrival = { ...parseHeld(text), via: 'poll' as const };
      context.run(createAccept(context, arrival, true), run);
      return true;
    },
    merge: mergeSeen,
    itemOf: (id) => entries.get(id)?.entry,
    forget: (id) => entries.letGo(id),
    letGo() {
      for (const id of entries.keys()) entries.letGo(id);
    },
    kept: () => [...entries.values()].map(({ entry }) => entry),
    values: movedSeen,
    moves(item, isHere, look, changes) {
      const entry = item as Entry;
      const identity = identify(entry);
      const isCalled = entry.channel === 'callback';
      if (isHere) {
        judgeAndRemember(context, { identity, via: isCalled ? 'callback' : 'poll' }, look, changes);
        keepEntry(context, entry, identity, changes);
      } else {
        dropEntry(context, entry, identity, changes);
        // Should the other let go of it, and this login come back, the service brings it here.
        if (isCalled && !entry.polledCopy) forget(identity, look, changes);
      }
    },
  };
}

/** Names of those whom an inbox can give more to that others leave, as in `Item.subscribers`. */
function wantedBy({ replacedBy, subscribers }: InboxContext): readonly string[] {
  const other = replacedBy();
  return other ? wantedBy(other) : [...subscribers.polled, ...subscribers.called];
}

async function findEntries({ entries, subscribers, clock }: InboxContext, items: readonly Item[]): Promise<void> {
  for (const [index, entry] of items.entries()) {
    if (index > 0 && index % sliceSize === 0) await nextTurn(clock);
    if (isEntry(entry) && !entries.has(entry.id)) entries.add(new Pending(entry, identify(entry)));
  }
  if (items.length > 0) subscribers.giveAll();
}
