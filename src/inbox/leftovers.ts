import { nextTurn } from '../clock';
import type { Circumstances, Participant } from '../journal/participant';
import type { Held, Item } from '../store/store';
import { createAccept } from './accept';
import type { Arrival } from './acceptance';
import { goneOf, type InboxContext, wantedBy } from './context';
import { parseDelivered } from './delivered';
import { isEntry, parseHeld, separate } from './entry';
import { parseNote } from './held-record';
import { identify, isRemembered, mergeSeen } from './identity';
import { createDrop, createKeep } from './settle';
import { Undelivered } from './undelivered';

/** Entries taken charge of in one turn of the event loop. */
const sliceSize = 500;

/** Takes charge of what an earlier process left, of what a dead one held, and lets go of what the store keeps. */
export function createInboxKeeper(context: InboxContext): Participant {
  const { undelivered, unread } = context;
  return {
    sift: (held, unwritten) => unread.sift(held, unwritten),
    wanted: () => wantedBy(context),
    isReadable: isEntry,
    found: (items, circumstances) => findEntries(context, items, circumstances),
    recover(held) {
      const delivered = parseDelivered(held.text);
      if (delivered) {
        dropDelivered(context, delivered, held);
        return;
      }
      const handling = { isLeftover: true, held, notes: held.notes };
      const arrival: Arrival = { ...parseHeld(held.text), via: 'poll' };
      heedNotes(context, arrival, held.notes);
      context.run(createAccept(context, arrival, handling));
    },
    merge: mergeSeen,
    saved(kept) {
      for (const id of kept.keys()) {
        const saved = undelivered.get(id);
        if (!saved) continue;
        saved.isStored = true;
        saved.held?.done();
        saved.held = undefined;
      }
    },
    letGo() {
      unread.clear();
      for (const one of undelivered.values()) {
        // What another inbox has is not to be found again.
        if (one.isHandedOver) continue;
        undelivered.remove(one.entry.id);
        one.end(false);
      }
    },
  };
}

/** Forgets what had been delivered when an earlier process died, before it is handed out. */
function dropDelivered(context: InboxContext, ids: readonly string[], held: Held): void {
  const { undelivered } = context;
  const found = ids.map((id) => undelivered.get(id)).filter((one) => one !== undefined);
  for (const one of found) {
    undelivered.remove(one.entry.id);
    one.end(true);
  }
  const onDropped = (isWritten: boolean) => {
    if (isWritten) held.letGo();
  };
  context.run(createDrop(goneOf(context, found), onDropped));
}

/** A commit seemed to fail and had not: how often its records have been given since is noted where they are held alone. */
function heedNotes(context: InboxContext, arrival: Arrival, notes: string): void {
  const { undelivered, unread } = context;
  for (const [index, one] of separate(arrival).entries()) {
    const { attempts, isDone } = parseNote(notes[index]);
    const given = isDone ? 1 : attempts;
    if (given === 0) continue;
    const identity = identify(one);
    const found = undelivered.findOn(one.kind, identity);
    if (!found) unread.noteGiven(one.kind, identity, given);
    else if (found.wasGiven(given)) context.run(createKeep(context, [found.entry]));
  }
}

async function findEntries(
  context: InboxContext,
  items: readonly Item[],
  { isReset, isOpening, unwritten }: Circumstances,
): Promise<void> {
  const { undelivered, unread, distribution, clock, journal } = context;
  if (isOpening) unread.replace();
  if (isOpening && journal.isShared) reconcile(context, items, isReset);
  for (const [index, entry] of items.entries()) {
    if (index > 0 && index % sliceSize === 0) await nextTurn(clock);
    if (!isEntry(entry) || undelivered.has(entry.id)) continue;
    const left = new Undelivered(entry, identify(entry));
    if (isRemembered(left.identity, unwritten)) {
      // Its commit seemed to fail and had not: it has been given out again under another id.
      context.run(createDrop(goneOf(context, [left])));
    } else {
      left.isStored = true;
      undelivered.addRead(left);
    }
  }
  if (items.length > sliceSize) distribution.handOutFirst();
  else distribution.handOutSoon();
}

/** What was stored and is not among the `found` has been taken over by another process, or, after a reset, is lost. */
function reconcile(context: InboxContext, found: readonly Item[], isReset: boolean): void {
  const { undelivered, journal } = context;
  const ids = new Set(found.map(({ id }) => id));
  const missing = undelivered.values().filter(({ entry, isStored }) => isStored && !ids.has(entry.id));
  if (isReset) {
    for (const one of missing) one.isStored = false;
    const entries = missing.map(({ entry }) => entry);
    if (entries.length > 0) context.run(createKeep(context, entries));
    return;
  }
  journal.disown(missing.map(({ entry }) => entry.id));
  for (const one of missing) {
    undelivered.remove(one.entry.id);
    one.end(false);
  }
}
