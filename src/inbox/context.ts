import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import { type Changes, dropItem } from '../store/store';
import type { Correlator } from './correlator';
import { type Entries, type Entry, isEntry, type Pending } from './entries';
import { answerOf, noteLeftOut } from './identity';

/** The parts of an inbox that its steps work with, except the unhandled records. */
export interface InboxParts {
  /** Keeps the entries. The inbox joins it as the part `inbox`. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** Matches records with sent messages. Absent: no record answers anything. */
  readonly correlator?: Correlator | undefined;
  /** Whether duplicates are left out. Duplicates of outgoing messages always are. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Takes a step that nobody waits for. */
  run(step: Step<unknown>): void;
}

/** An entry with the changes of earlier steps in the same commit. */
export function currentEntry(entry: Entry, changes: Changes): Entry {
  const changed = changes.keep.get(entry.id);
  return changed && isEntry(changed) ? changed : entry;
}

/** Drops an entry that every node has taken. Losing that only delivers the entry again, so it waits for the next flush. */
export function settle({ entries, run }: InboxParts, { entry: { id } }: Pending): void {
  entries.delete(id);
  run({ ...createChange((changes) => dropItem(changes, id, 'inbox')), drops: [id] });
}

/** Drops a polled entry that every filter leaves out, so that its called-back copy is delivered. */
export function leaveOut({ entries, run }: InboxParts, pending: Pending): void {
  const { entry, identity } = pending;
  const { id } = entry;
  run({
    whileFailing: 'apply',
    decide(look, changes) {
      // A node that wants the entry might have come.
      const isLeft = entries.get(id) === pending && pending.pendingFor.size === 0;
      if (!isLeft || changes.drop.has(id)) return () => {};
      const { record } = currentEntry(entry, changes);
      dropItem(changes, id, 'inbox');
      noteLeftOut(identity, answerOf(record), look, changes);
      return () => void entries.delete(id);
    },
  });
}
