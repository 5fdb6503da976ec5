import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import { type Changes, dropItem, keepItem, type Look, latest } from '../store/store';
import type { Correlator } from './correlator';
import { addressTo, type Entries, type Entry, Pending } from './entries';
import { answerOf, keysOf, noteLeftOut, recallCallback } from './identity';

/** The parts of an inbox that its steps work with, except the unhandled records. */
export interface InboxParts {
  /** Stores the entries. The inbox joins the journal as its participant `inbox`. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** Matches records with sent messages. Absent: no record answers a message. */
  readonly correlator?: Correlator | undefined;
  /** Whether duplicates are dropped. Duplicates of outgoing messages are always dropped. */
  dedupe(): boolean;
  /** How long an identifier is remembered, in ms. */
  dedupeMs(): number;
  /** Runs a step whose result no caller awaits. */
  run(step: Step<unknown>): void;
}

/**
 * Drops an entry that every node has acknowledged. The change can wait for the next flush, because losing it only
 * delivers the entry again.
 */
export function settle({ entries, run }: InboxParts, { entry: { id } }: Pending): void {
  entries.delete(id);
  run({ ...createChange((changes) => dropItem(changes, id, 'inbox')), drops: [id] });
}

/**
 * Ends a polled entry that every filter leaves out, once the store works. A node that wants the entry might have
 * attached in the meantime.
 */
export function leaveOut(parts: InboxParts, pending: Pending): void {
  const { id } = pending.entry;
  parts.run({
    keys: keysOf(pending.identity),
    whileFailing: 'postpone',
    decide(look, changes) {
      const isLeft = parts.entries.get(id) === pending && pending.pendingFor.size === 0;
      return isLeft ? createLeaveOut(parts, pending, latest(pending.entry, changes))(look, changes) : () => {};
    },
  });
}

/**
 * Creates the decision about a polled entry that every filter leaves out. If the service has called back with a copy,
 * the called node receives the entry. Otherwise, the called node receives a copy that comes later.
 */
export function createLeaveOut({ entries, subscribers }: InboxParts, pending: Pending, entry: Entry) {
  const { id, record } = entry;
  return (look: Look, changes: Changes): (() => void) => {
    const callback = recallCallback(pending.identity, look);
    if (!callback) {
      dropItem(changes, id, 'inbox');
      noteLeftOut(pending.identity, answerOf(record), look, changes);
      return () => void entries.delete(id);
    }
    const called = addressTo(callback, entry);
    keepItem(changes, called);
    return () => {
      if (entries.get(id) !== pending) return;
      const redirected = new Pending(called, pending.identity);
      entries.set(id, redirected);
      subscribers.give([redirected]);
    };
  };
}
