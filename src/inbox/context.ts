import type { Clock } from '../clock';
import type { ReadConsentChange } from '../consent/words';
import type { Subscribers } from '../delivery/subscribers';
import type { Journal, Step } from '../journal/journal';
import type { InboxRecord, RecordOfKind } from '../model';
import type { Changes, ReadKey } from '../store/store';
import type { Entries } from './entries';

/** A record after it was matched with sent messages. */
export interface CorrelatedRecord {
  record: InboxRecord;
  /** True if a report used the record. */
  isTaken?: true | undefined;
  /** Runs when the step is written, or has run without the store. */
  effect(): void;
}

/** The match of one record with the sent messages that it might answer. */
export interface Correlation {
  /** Whether the record might answer a message. If so, it waits while the store fails. */
  readonly mayAnswer: boolean;
  /** The keys that `correlate` always reads. */
  readonly keys: readonly string[];
  /** Pending while a message that the record might answer has an unknown outcome. Absent: all outcomes are known. */
  readonly outcome?: Promise<void> | undefined;
  /**
   * Notes that the record is evidence for a message, before the outcome of the message is known. Returns the effect.
   */
  noteEvidence?(readKey: ReadKey, changes: Changes): () => void;
  /** Adds `sent` and `awaited` to the record, and ends the reply request that the record answers. */
  correlate(readKey: ReadKey, changes: Changes): CorrelatedRecord;
}

/** Prepares the match of a record. */
export type Correlator = (event: RecordOfKind) => Correlation;

/** The parts of an inbox that its steps work with, except the unhandled records. */
export interface InboxParts {
  /** Stores the entries. The inbox joins the journal as its participant `inbox`. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** Matches records with sent messages. Absent: no record answers a message. */
  readonly correlator?: Correlator | undefined;
  /**
   * Whether the message that a record answers might be in data that is not imported yet. A record that is stored before
   * the import is withheld from the nodes, and is matched after the import.
   */
  isIncomplete: boolean;
  /** Records that were delivered without being matched. They are matched after the import. */
  readonly unmatchedRecords: RecordOfKind[];
  /** Returns the opt-out or opt-in that a message asks for. Absent: the account has no list of opted-out numbers. */
  readonly readConsentChange?: ReadConsentChange | undefined;
  /** Called after the list of opted-out numbers has changed. */
  onOptOut?(): void;
  /** Whether duplicates are dropped. Duplicates of outgoing messages are always dropped. */
  dedupe(): boolean;
  /** How long an identifier is remembered, in ms. */
  dedupeMs(): number;
  /** Runs a step whose result no caller awaits. */
  run(step: Step<unknown>): void;
  /** Called if a node or a step threw an unexpected error. */
  onFault(error: unknown): void;
}
