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
  /**
   * True if the record has already been used: a report has counted the status, or a reply request has received the
   * reply.
   */
  isTaken?: true | undefined;
  /** Called when the step is committed or, while the store fails, when the step has run without the store. */
  effect(): void;
}

/** The search for the sent messages that one record answers. */
export interface Correlation {
  /** Whether the record might answer a message. If so, the record waits while the store fails. */
  readonly mayAnswer: boolean;
  /** Keys in the store that `correlate` always reads. */
  readonly keys: readonly string[];
  /** Present if a message that the record might answer has an unknown outcome. Resolves when the outcome is known. */
  readonly outcome?: Promise<void> | undefined;
  /**
   * Notes that the record is evidence: it might prove that a message with an unknown outcome was sent. Returns a
   * function to call after the commit.
   */
  noteEvidence?(readKey: ReadKey, changes: Changes): () => void;
  /**
   * Returns the record with the message that it answers (`sent`). If the record answers an open reply request, also
   * sets `awaited`. Ends a reply request that the record completes.
   */
  correlate(readKey: ReadKey, changes: Changes): CorrelatedRecord;
}

/** Creates the search for the sent messages that a record answers. */
export type Correlator = (event: RecordOfKind) => Correlation;

/** The parts of an inbox, except its unhandled records. */
export interface InboxParts {
  /** Stores the entries. */
  readonly journal: Journal;
  readonly clock: Clock;
  readonly entries: Entries;
  readonly subscribers: Subscribers;
  /** Matches records with sent messages. Absent: no record answers a message. */
  readonly correlator?: Correlator | undefined;
  /**
   * True until a pending import has ended, because the import might bring messages that records answer. Until then,
   * stored records are withheld from the nodes. They are matched after the import.
   */
  isIncomplete: boolean;
  /**
   * The records that nodes have received before the end of an import. This happens only if the store fails. After the
   * import, the inbox finds the messages that these records answer.
   */
  readonly unmatchedRecords: RecordOfKind[];
  /** Returns the opt-out or opt-in that a message asks for. Absent: the account has no list of opted-out numbers. */
  readonly readConsentChange?: ReadConsentChange | undefined;
  /** Called after the list of opted-out numbers has changed. */
  onOptOut?(): void;
  /** Whether duplicates are dropped. Duplicates of outgoing messages are always dropped. */
  dedupe(): boolean;
  /** How long an identifier is remembered, in ms. */
  dedupeMs(): number;
  /** Runs a step of the journal without waiting for its result. */
  run(step: Step<unknown>): void;
  /** Called if a node or a step threw an unexpected error. */
  onFault(error: unknown): void;
}
