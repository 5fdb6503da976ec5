import { changeOptOuts, furtherKeysOfOptOuts, keysOfOptOuts, type OptOutChange } from '../consent/opt-outs';
import type { ConsentWords, Wish } from '../consent/words';
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

/** What somebody else knows of the records that come in, and makes of them in the step that takes them in. */
export interface Correlator {
  /** Whether anything may be known of what a record answers. */
  readonly isExpected: boolean;
  /** Pending while it is not known yet what a record answers; absent, or `undefined`: it is. */
  outcomeOf?(news: RecordOfKind): Promise<void> | undefined;
  /** What it has to look at for a record. */
  keys(news: RecordOfKind): readonly string[];
  /** What else, once what is under those is known. */
  furtherKeys(news: RecordOfKind, look: Look): readonly string[];
  /**
   * What a record becomes of which nobody knows yet what it answers.
   *
   * @param isNew it has not come before
   */
  correlate(news: RecordOfKind, look: Look, changes: Changes, isNew: boolean): Correlated;
}

/** What consent in the inbox stands on. */
export interface ConsentOptions {
  journal: Journal;
  /** What else is known of records. */
  correlator: Correlator;
  now(): number;
  /** The words by which people are understood; none while consent is off. */
  words(): ConsentWords;
  /** The list has changed. */
  onChanged(): void;
}

/** A message of one of the words. */
interface Wished {
  wish: Wish;
  msisdn: string;
}

const formatting = /[()./\s+-]/g;
const digits = /^\d{1,20}$/;

/** Puts on the list, or takes off it, whoever writes one of the words, in the step that takes the message in. */
export class ConsentCorrelator implements Correlator {
  readonly #options: ConsentOptions;

  constructor(options: ConsentOptions) {
    this.#options = options;
  }

  get isExpected(): boolean {
    return this.#options.correlator.isExpected;
  }

  keys(news: RecordOfKind): readonly string[] {
    const keys = this.#options.correlator.keys(news);
    const wished = this.#read(news);
    return wished ? [...keys, ...keysOfOptOuts([wished.msisdn])] : keys;
  }

  furtherKeys(news: RecordOfKind, look: Look): readonly string[] {
    const keys = this.#options.correlator.furtherKeys(news, look);
    const wished = this.#read(news);
    return wished ? [...keys, ...keysOfOptOuts([wished.msisdn]), ...furtherKeysOfOptOuts([wished.msisdn], look)] : keys;
  }

  outcomeOf(news: RecordOfKind): Promise<void> | undefined {
    return this.#options.correlator.outcomeOf?.(news);
  }

  correlate(news: RecordOfKind, look: Look, changes: Changes, isNew: boolean): Correlated {
    const wished = this.#read(news);
    // The wish goes along to whoever keeps the record as the answer to a question.
    const passing = wished ? ({ ...news, record: { ...news.record, optOut: wished.wish } } as RecordOfKind) : news;
    const correlated = this.#options.correlator.correlate(passing, look, changes, isNew);
    if (!wished || !isNew) return correlated;
    const { journal, now, onChanged } = this.#options;
    const { wish, msisdn } = wished;
    const createId = () => journal.nextId();
    const change: OptOutChange = { msisdns: [msisdn], wish, at: now(), via: 'message', createId };
    // While the store fails nobody knows what the list is, which must not be written over.
    const isOpen = journal.mode === 'open';
    if (isOpen) changeOptOuts(change, look, changes);
    const effect = () => {
      correlated.effect();
      if (isOpen) onChanged();
      else void journal.run(createOptOutStep(change, 'postpone')).then(onChanged, () => {});
    };
    return { ...correlated, effect };
  }

  #read({ kind, record }: RecordOfKind): Wished | undefined {
    const wish = kind === 'incoming' ? this.#options.words().wishOf(record.body) : undefined;
    const msisdn = wish && String(record.from ?? '').replace(formatting, '');
    return wish && msisdn && digits.test(msisdn) ? { wish, msisdn } : undefined;
  }
}

/** Changes who is on the list. Results in for how many that is a change. */
export function createOptOutStep(change: OptOutChange, whileFailing: 'refuse' | 'postpone') {
  const { msisdns } = change;
  return {
    keys: keysOfOptOuts(msisdns),
    further: (look: Look) => furtherKeysOfOptOuts(msisdns, look),
    whileFailing,
    decide(look: Look, changes: Changes) {
      const changed = changeOptOuts(change, look, changes);
      return () => changed;
    },
  };
}
