import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import { createChange } from '../journal/step';
import { dropItem } from '../store/store';
import type { Correlator } from './correlator';
import type { Entries, Pending } from './entries';

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
