import type { Clock } from '../clock';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import type { Correlator } from './correlator';
import type { Entries } from './entries';

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
