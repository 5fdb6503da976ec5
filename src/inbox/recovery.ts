import { nextTurn } from '../clock';
import type { Participant, Step } from '../journal/step';
import { adoptedKey, forgetAdopted, type Item, noteAdopted } from '../store/store';
import { createAccept } from './accept';
import { dropEntry, type InboxContext, judgeAndRemember, keepEntry, settle } from './context';
import { isEntry, Pending, parseHeld } from './entries';
import { forget, identify, mergeSeen } from './identity';

/** Entries taken charge of in one turn of the event loop, and handed over in one commit. */
const sliceSize = 500;

/** Takes charge of what an earlier process left, of what a dead one held, and lets go of what the store keeps. */
export function createInboxParticipant(context: InboxContext): Participant {
  const { entries } = context;
  const letGoOf = (id: string) => {
    const one = entries.get(id);
    entries.delete(id);
    one?.end(false);
  };
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
    forget: letGoOf,
    letGo() {
      // What another inbox has is not to be found again.
      for (const [id, { isHandedOver }] of entries) if (!isHandedOver) letGoOf(id);
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

/**
 * Gives undelivered entries, to another inbox, and forgets them once that one has them in
 * its store. Resolves with `false` when it fails, or is not wanted any more, since somebody is here who takes them: they stay where they are
 * then.
 *
 * @param keepsOwn what is in the store stays there, for whoever opens it
 */
export async function handOverEntries(
  context: InboxContext,
  to: InboxContext,
  keepsOwn: boolean,
  isWanted: () => boolean,
): Promise<boolean> {
  const { entries } = context;
  if (!isWanted()) return false;
  const handed: Pending[] = [];
  for (const one of entries.values()) {
    if (keepsOwn && context.journal.isStored(one.entry.id)) entries.delete(one.entry.id);
    else handed.push(one);
  }
  for (let start = 0; start < handed.length; start += sliceSize) {
    const slice = handed.slice(start, start + sliceSize);
    if (!isWanted()) return false;
    const fresh = slice.filter(({ isHandedOver }) => !isHandedOver);
    for (const one of fresh) one.isHandedOver = true;
    await to.journal.run(createAdopt(to, fresh));
    if (!isWanted()) {
      takeBack(to, fresh);
      return false;
    }
    for (const one of fresh) void forgetWhenDelivered(context, to, one);
    // The other delivers them, and may have them nowhere but in its memory: until it is asked again they stay where they are safe.
    if (!(await isKeeping(to))) return false;
    for (const { entry } of slice) entries.delete(entry.id);
    context.run(createAbandon(context, slice));
  }
  return true;
}

/** The other may have it in its memory alone: what it delivers, those who come back meanwhile are not to be given. */
async function forgetWhenDelivered(context: InboxContext, to: InboxContext, handed: Pending): Promise<void> {
  const { id } = handed.entry;
  const adopted = to.entries.get(id);
  const isDelivered = (await adopted?.ended) && !adopted?.isDead;
  if (isDelivered && context.entries.get(id) === handed) settle(context, handed);
}

/** Whether all that it was given is in its store: what could not be written before is written along with the next step. */
function isKeeping({ journal }: InboxContext): Promise<boolean> {
  return journal.run({ whileFailing: 'apply', decide: () => (isWritten) => isWritten });
}

/** Has the other forget entries again: those whom they were for have come back before they were given away. */
function takeBack(to: InboxContext, handed: readonly Pending[]): void {
  for (const one of handed) {
    one.isHandedOver = false;
    to.entries.delete(one.entry.id);
  }
  to.run(createAbandon(to, handed));
}

/**
 * Takes charge of entries of another inbox. Whether they were seen here does not matter: they are entries. But each is taken once:
 * where a process ended before the other had forgotten it, it may be delivered here already.
 */
export function createAdopt(context: InboxContext, given: readonly Pending[]): Step<void> {
  const { entries, subscribers } = context;
  const items = given.map(({ entry }) => ({ entry, identity: identify(entry) }));
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      const adopted = items
        .filter(({ entry }) => !entries.has(entry.id) && look(adoptedKey(entry)) === undefined)
        .map(({ entry, identity }) => new Pending(entry, identity));
      for (const one of adopted) {
        const { entry, identity } = one;
        const isCalled = entry.channel === 'callback';
        noteAdopted(entry, context.clock.now(), changes);
        judgeAndRemember(context, { identity, via: isCalled ? 'callback' : 'poll' }, look, changes);
        keepEntry(context, entry, identity, changes);
      }
      return () => {
        for (const one of adopted) entries.add(one);
        subscribers.giveAll();
      };
    },
  };
}

/**
 * Forgets entries that another inbox has taken charge of, flushed: what a power cut brought back would be delivered here, too, should this
 * login come back. What was called back is new here from now on: should the other let go
 * of it, and this login come back, the service brings it here.
 */
export function createAbandon(context: InboxContext, handed: readonly Pending[]): Step<void> {
  const called = handed.filter(({ entry: { channel, polledCopy } }) => channel === 'callback' && !polledCopy);
  return {
    whileFailing: 'apply',
    drops: handed.map(({ entry }) => entry.id),
    decide(look, changes) {
      for (const { entry, identity } of handed) {
        dropEntry(context, entry, identity, changes);
        forgetAdopted(entry, changes);
      }
      for (const { identity } of called) forget(identity, look, changes);
      changes.firm = true;
      return () => {};
    },
  };
}
