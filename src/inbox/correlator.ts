import { changeOptOuts, type OptOutChange } from '../consent/opt-outs';
import type { ConsentChange, ReadConsentChange } from '../consent/words';
import type { Journal } from '../journal/journal';
import type { InboxRecord, RecordOfKind } from '../model';
import type { Changes, ReadKey } from '../store/store';
import { removeFormatting } from '../wire/fields';

/** A record after it was matched with sent messages. */
export interface Correlated {
  record: InboxRecord;
  /** True if a report used the record. */
  isTaken?: true | undefined;
  /** Runs when the step is written, or has run without the store. */
  effect(): void;
}

/** The match of one record with the sent messages that it might answer. */
export interface Correlating {
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
  correlate(readKey: ReadKey, changes: Changes): Correlated;
}

/** Prepares the match of a record. */
export type Correlator = (event: RecordOfKind) => Correlating;

/** Dependencies of {@link readConsent}. */
export interface ConsentOptions {
  journal: Journal;
  now(): number;
  /** Finds the opt-out or opt-in that a message asks for. Finds none while `optOut` is off. */
  readConsentChange: ReadConsentChange;
  /** Called after the list has changed. */
  onChanged(): void;
}

/** An opt-out or opt-in, which the step that accepts the message applies. */
export interface Consent {
  /** Value of `optOut` in the record. */
  readonly optOut: ConsentChange;
  /** Changes the list. Returns the effect. */
  change(readKey: ReadKey, changes: Changes): () => void;
}

const digits = /^\d{1,20}$/;

/** Reads an opt-out or an opt-in from a message. `undefined`: the record is neither. */
export function readConsent(
  { journal, now, readConsentChange, onChanged }: ConsentOptions,
  event: RecordOfKind,
): Consent | undefined {
  const optOut = event.kind === 'incoming' ? readConsentChange(event.record.body) : undefined;
  const msisdn = optOut && removeFormatting(String(event.record.from ?? ''));
  if (!optOut || !msisdn || !digits.test(msisdn)) return undefined;
  const change: OptOutChange = { msisdns: [msisdn], change: optOut, at: now(), via: 'message' };
  return {
    optOut,
    change(readKey, changes) {
      if (journal.isOpen) {
        changeOptOuts(change, readKey, changes);
        return onChanged;
      }
      // While the store fails, the list cannot be read and must not be overwritten.
      return () => void journal.run(createOptOutStep(change, 'postpone')).then(onChanged, () => {});
    },
  };
}

/** Creates the step that changes the list of opted-out numbers. Its result is the number of numbers that it changed. */
export function createOptOutStep(change: OptOutChange, whileFailing: 'refuse' | 'postpone') {
  return {
    whileFailing,
    decide(readKey: ReadKey, changes: Changes) {
      const changed = changeOptOuts(change, readKey, changes);
      return () => changed;
    },
  };
}
