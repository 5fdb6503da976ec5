import type { Step } from '../journal/journal';
import { createPending, giveTogether, isForNobody } from './accept';
import { currentEntry, dropEntry, type InboxParts, keepEntry, settle } from './context';
import { newsOf, type Pending } from './entries';
import { forget, type Identity, judge, rememberAnswer } from './identity';

/**
 * A node has taken after all what was released: that is known when the service brings it again, and done with where it has brought it already. A
 * slow flow is not given it for days.
 */
export function createLate(context: InboxParts, identity: Identity): Step<void> {
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      judge(context, { identity, via: 'callback' }, look, changes);
      return () => {
        const again = context.entries.findOn('callback', identity);
        if (again) settle(context, again);
      };
    },
  };
}

/**
 * Lets go of a called-back entry that the service shall bring again: it counts as new then, but for its attempts. Its
 * polled copy, which the service will not bring again, takes its place where a node that polls wants it. While a shared store fails the service is told at once: whose the
 * entry is by then is seen when that is back.
 */
export function createRelease(context: InboxParts, released: Pending): Step<void> {
  const { entries, journal } = context;
  const { entry, identity } = released;
  const idOfCopy = journal.nextId();
  return {
    whileFailing: journal.isShared ? 'postpone' : 'apply',
    postponed: () => released.end(false),
    decide(look, changes) {
      if (entries.get(entry.id) !== released || changes.drop.has(entry.id)) return () => {};
      const current = currentEntry(entry, changes);
      const { record, attempts, polledCopy } = current;
      dropEntry(context, entry, identity, changes);
      rememberAnswer(context, { identity, record, attempts }, look, changes);
      const isWanted = polledCopy && !isForNobody(context, current.kind, { record: polledCopy });
      const standIn = isWanted && createPending(context, { id: idOfCopy, news: newsOf(current, polledCopy), identity });
      if (standIn) keepEntry(context, standIn.entry, identity, changes);
      else forget(identity, look, changes);
      return () => {
        entries.release(released);
        if (standIn) giveTogether(context, [standIn]);
      };
    },
  };
}
