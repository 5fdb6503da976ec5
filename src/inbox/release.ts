import type { Step } from '../journal/journal';
import { createPending, giveTogether } from './accept';
import { currentEntry, dropEntry, keepEntry, settle } from './context';
import type { InboxContext } from './dead-letters';
import { newsOf, type Pending } from './entries';
import { forget, judge, rememberAnswer } from './identity';

/**
 * Lets go of a called-back entry that the service shall bring again: it counts as new then, but for its attempts. Its
 * polled copy, which the service will not bring again, takes its place. While a shared store fails the service is told at once: whose the
 * entry is by then is seen when that is back.
 */
export function createRelease(context: InboxContext, released: Pending): Step<void> {
  const { entries, journal } = context;
  const { identity } = released;
  const { id } = released.entry;
  const idOfCopy = journal.nextId();
  return {
    whileFailing: journal.isShared ? 'postpone' : 'apply',
    postponed: () => released.end(false),
    decide(look, changes) {
      if (entries.get(id) !== released || changes.drop.has(id)) return () => {};
      const current = currentEntry(released.entry, changes);
      const { record, attempts, polledCopy } = current;
      dropEntry(context, released.entry, identity, changes);
      rememberAnswer(context, { identity, record, attempts }, look, changes);
      const standIn =
        polledCopy && createPending(context, { id: idOfCopy, news: newsOf(current, polledCopy), identity });
      if (standIn) keepEntry(context, standIn.entry, identity, changes);
      else forget(identity, look, changes);
      return () => {
        entries.delete(id);
        entries.keepReleased(released);
        released.end(false);
        if (released.isReleased) giveTogether(context, standIn ? [standIn] : []);
        else if (standIn) settle(context, standIn);
        else takeLate(context, id);
      };
    },
  };
}

/** A node has taken after all what was released: it is known when the service brings it again, or has already. */
export function takeLate(context: InboxContext, id: string): void {
  const { entries } = context;
  const waiting = entries.get(id);
  if (waiting?.isReleased) {
    // Its release need not come, or comes to nothing: while a shared store fails it waits, and it may be being written.
    waiting.isReleased = false;
    settle(context, waiting);
  }
  const released = entries.released.get(id);
  if (!released) return;
  if (settleSuccessor(context, released)) entries.released.delete(id);
  else context.run(createLate(context, released));
}

/** Says whether the service has brought it again already, which has arrived then. */
function settleSuccessor(context: InboxContext, { identity, entry }: Pending): boolean {
  const { entries, subscribers } = context;
  const { kind } = entry;
  // Its polled copy is for those who poll; where nobody does, it only waits for the service to call again.
  const isForPollers = subscribers.expects(kind);
  const called = entries.findOn('callback', identity);
  const successor = called ?? (isForPollers ? undefined : entries.findOn(kind, identity));
  if (successor) settle(context, successor);
  const deadLetter = successor ? undefined : context.deadLetters.find(kind, identity);
  if (deadLetter) context.deadLetters.discard([deadLetter.id]);
  return successor !== undefined || deadLetter !== undefined;
}

/** What was taken after all is known when the service brings it again. */
function createLate(context: InboxContext, released: Pending): Step<void> {
  const { identity, entry } = released;
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      judge(context, { identity, via: 'callback' }, look, changes);
      return () => {
        context.entries.released.delete(entry.id);
        // It may have come before this was written, and then it was new.
        settleSuccessor(context, released);
      };
    },
  };
}
