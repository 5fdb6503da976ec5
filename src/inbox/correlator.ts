import { changeOptOuts, type OptOutChange } from '../consent/opt-outs';
import type { WishOf } from '../consent/words';
import type { Journal } from '../journal/journal';
import type { InboxRecord, RecordOfKind } from '../model';
import type { Changes, Look } from '../store/store';

/** What a record becomes; `effect` is run when that is written, or cannot be for now. */
export interface Correlated {
  record: InboxRecord;
  /** It has gone to whoever waited for it. */
  isTaken?: true | undefined;
  effect(): void;
}

/** What somebody else knows of a record that has come, and makes of it in the step that takes it in. */
export interface Correlating {
  /** Whether it may answer anything: it waits for a store that fails, then. */
  readonly mayAnswer: boolean;
  /** What is looked at in any case. */
  readonly keys: readonly string[];
  /** Pending while it is not known yet what it answers; absent: it is. */
  readonly outcome?: Promise<void> | undefined;
  /**
   * What it becomes when nobody knows yet what it answers.
   *
   * @param isNew it has not come before
   */
  correlate(look: Look, changes: Changes, isNew: boolean): Correlated;
}

/** Says what is known of a record that has come. */
export type Correlator = (news: RecordOfKind) => Correlating;

/** What consent in the inbox stands on. */
export interface ConsentOptions {
  journal: Journal;
  /** What else is known of records. */
  correlator: Correlator;
  now(): number;
  /** Says what people wish; nothing while consent is off. */
  wishOf: WishOf;
  /** The list has changed. */
  onChanged(): void;
}

const formatting = /[()./\s+-]/g;
const digits = /^\d{1,20}$/;

/** Puts on the list, or takes off it, whoever writes one of the words, in the step that takes the message in. */
export function withConsent({ journal, correlator, now, wishOf, onChanged }: ConsentOptions): Correlator {
  return (news) => {
    const wish = news.kind === 'incoming' ? wishOf(news.record.body) : undefined;
    const msisdn = wish && String(news.record.from ?? '').replace(formatting, '');
    if (!wish || !msisdn || !digits.test(msisdn)) return correlator(news);
    // The wish goes along to whoever keeps the record as the answer to a reply request.
    const known = correlator({ ...news, record: { ...news.record, optOut: wish } } as RecordOfKind);
    return {
      ...known,
      correlate(look, changes, isNew) {
        const correlated = known.correlate(look, changes, isNew);
        if (!isNew) return correlated;
        const change: OptOutChange = { msisdns: [msisdn], wish, at: now(), via: 'message' };
        // While the store fails nobody knows what the list is, which must not be written over.
        const isOpen = journal.mode === 'open';
        if (isOpen) changeOptOuts(change, look, changes);
        const effect = () => {
          correlated.effect();
          if (isOpen) onChanged();
          else void journal.run(createOptOutStep(change, 'postpone')).then(onChanged, () => {});
        };
        return { ...correlated, effect };
      },
    };
  };
}

/** Changes who is on the list. Results in for how many that is a change. */
export function createOptOutStep(change: OptOutChange, whileFailing: 'refuse' | 'postpone') {
  return {
    whileFailing,
    decide(look: Look, changes: Changes) {
      const changed = changeOptOuts(change, look, changes);
      return () => changed;
    },
  };
}
