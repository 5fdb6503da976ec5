import { changeOptOuts, type OptOutChange } from '../consent/opt-outs';
import type { ConsentChange, WishOf } from '../consent/words';
import type { Journal } from '../journal/journal';
import type { InboxRecord, RecordOfKind } from '../model';
import type { Changes, Look } from '../store/store';

/** A record after it was matched with sent messages. */
export interface Correlated {
  record: InboxRecord;
  /** A report has used the record. */
  isTaken?: true | undefined;
  /** Runs when the step is written, or was taken without the store. */
  effect(): void;
}

/** Matches one record with the sent messages that it might answer. */
export interface Correlating {
  /** Whether the record might answer something. It then waits for a store that fails. */
  readonly mayAnswer: boolean;
  /** The keys that `correlate` looks at in any case. */
  readonly keys: readonly string[];
  /** Pending while the outcome is unknown of a message that the record might answer. Absent: all outcomes are known. */
  readonly outcome?: Promise<void> | undefined;
  /** Notes that the record is evidence of a message, although its outcome has to be known first. Returns the effect. */
  noteEvidence?(look: Look, changes: Changes): () => void;
  /** Adds `sent` and `awaited` to the record, and ends the reply request that it answers. */
  correlate(look: Look, changes: Changes): Correlated;
}

/** Prepares the match of a record. */
export type Correlator = (event: RecordOfKind) => Correlating;

/** Dependencies of {@link readConsent}. */
export interface ConsentOptions {
  journal: Journal;
  now(): number;
  /** Finds the change that a message asks for. None while `optOut` is off. */
  wishOf: WishOf;
  /** The list has changed. */
  onChanged(): void;
}

/** An opt-out or opt-in, which the step that accepts the message applies. */
export interface Consent {
  /** Stands in the record as `optOut`. */
  readonly wish: ConsentChange;
  /** Changes the list. Returns the effect. */
  change(look: Look, changes: Changes): () => void;
}

const formatting = /[()./\s+-]/g;
const digits = /^\d{1,20}$/;

/** Reads an opt-out or an opt-in from a message. `undefined`: the record is neither. */
export function readConsent(
  { journal, now, wishOf, onChanged }: ConsentOptions,
  event: RecordOfKind,
): Consent | undefined {
  const wish = event.kind === 'incoming' ? wishOf(event.record.body) : undefined;
  const msisdn = wish && String(event.record.from ?? '').replace(formatting, '');
  if (!wish || !msisdn || !digits.test(msisdn)) return undefined;
  const change: OptOutChange = { msisdns: [msisdn], wish, at: now(), via: 'message' };
  return {
    wish,
    change(look, changes) {
      if (journal.isOpen) {
        changeOptOuts(change, look, changes);
        return onChanged;
      }
      // While the store fails nobody can read the list, and it must not be overwritten.
      return () => void journal.run(createOptOutStep(change, 'postpone')).then(onChanged, () => {});
    },
  };
}

/** Changes the list of opted-out numbers. Results in how many of them that changes. */
export function createOptOutStep(change: OptOutChange, whileFailing: 'refuse' | 'postpone') {
  return {
    whileFailing,
    decide(look: Look, changes: Changes) {
      const changed = changeOptOuts(change, look, changes);
      return () => changed;
    },
  };
}
