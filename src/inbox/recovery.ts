import { nextTurn } from '../clock';
import type { Circumstances, Participant } from '../journal/step';
import type { Item } from '../store/store';
import { createAccept } from './accept';
import { goneOf, type InboxContext } from './context';
import { Pending } from './entries';
import { isEntry, parseHeld } from './entry';
import { identify, isRemembered, mergeSeen } from './identity';
import { createDrop, createKeep, enough } from './settle';

/** Entries taken charge of in one turn of the event loop. */
const sliceSize = 500;

/** Takes charge of what an earlier process left, of what a dead one held, and lets go of what the store keeps. */
export function createInboxParticipant(context: InboxContext): Participant {
  const { entries } = context;
  return {
    wanted: () => wantedBy(context),
    isReadable: isEntry,
    found: (items, circumstances) => findEntries(context, items, circumstances),
    redo({ text, wasApplied, run }) {
      const arrival = { ...parseHeld(text), via: 'poll' as const };
      context.run(createAccept(context, arrival, { wasGiven: wasApplied }), run);
      return true;
    },
    merge: mergeSeen,
    saved(kept) {
      for (const id of kept.keys()) {
        const saved = entries.get(id);
        if (saved) saved.isStored = true;
      }
    },
    letGo() {
      for (const one of entries.values()) {
        // What another inbox has is not to be found again.
        if (one.isHandedOver) continue;
        entries.remove(one.entry.id);
        one.end(false);
      }
    },
  };
}

/** Names of those whom an inbox can give more to that others leave, as in `Item.takers`. */
function wantedBy({ heir, subscribers, entries }: InboxContext): readonly string[] {
  if (heir) return wantedBy(heir);
  return entries.size <= enough ? [...subscribers.polled, ...subscribers.called] : subscribers.called;
}

async function findEntries(context: InboxContext, items: readonly Item[], how: Circumstances): Promise<void> {
  const { entries, subscribers, clock, journal } = context;
  const { isReset, isOpening, unwritten } = how;
  if (isOpening && (journal.isShared || isReset)) reconcile(context, items, isReset);
  for (const [index, entry] of items.entries()) {
    if (index > 0 && index % sliceSize === 0) await nextTurn(clock);
    if (!isEntry(entry) || entries.has(entry.id)) continue;
    const left = new Pending(entry, identify(entry));
    if (isRemembered(left.identity, unwritten)) {
      // Its commit seemed to fail and had not: it has been given out again under another id.
      context.run(createDrop(goneOf(context, [left])));
    } else {
      left.isStored = true;
      entries.add(left);
    }
  }
  if (items.length > 0) subscribers.giveFound();
}

/** What was stored and is not among the `found` has been taken over by another process, or, after a reset, is lost. */
function reconcile(context: InboxContext, found: readonly Item[], isReset: boolean): void {
  const { entries, journal } = context;
  const ids = new Set(found.map(({ id }) => id));
  const missing = entries.values().filter(({ entry, isStored }) => isStored && !ids.has(entry.id));
  if (isReset) {
    for (const one of missing) one.isStored = false;
    const lost = missing.map(({ entry }) => entry);
    if (lost.length > 0) context.run(createKeep(context, lost));
    return;
  }
  journal.disown(missing.map(({ entry }) => entry.id));
  for (const one of missing) {
    entries.remove(one.entry.id);
    one.end(false);
  }
}
