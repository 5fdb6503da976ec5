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

/** A correlator whose faults are told, and cost no record: it is delivered as it came. */
export class GuardedCorrelator implements Correlator {
  readonly #correlator: Correlator;
  readonly #onFault: (error: unknown) => void;

  constructor(correlator: Correlator, onFault: (error: unknown) => void) {
    this.#correlator = correlator;
    this.#onFault = onFault;
  }

  get isExpected(): boolean {
    return this.#correlator.isExpected;
  }

  outcomeOf(news: RecordOfKind): Promise<void> | undefined {
    return this.#correlator.outcomeOf?.(news);
  }

  keys(news: RecordOfKind): readonly string[] {
    return this.#orNone(() => this.#correlator.keys(news));
  }

  furtherKeys(news: RecordOfKind, look: Look): readonly string[] {
    return this.#orNone(() => this.#correlator.furtherKeys(news, look));
  }

  correlate(news: RecordOfKind, look: Look, changes: Changes, isNew: boolean): Correlated {
    try {
      const correlated = this.#correlator.correlate(news, look, changes, isNew);
      return { ...correlated, effect: () => tell(correlated.effect, this.#onFault) };
    } catch (error) {
      return { record: news.record, effect: () => this.#onFault(error) };
    }
  }

  #orNone(look: () => readonly string[]): readonly string[] {
    try {
      return look();
    } catch (error) {
      this.#onFault(error);
      return [];
    }
  }
}

function tell(effect: () => void, onFault: (error: unknown) => void): void {
  try {
    effect();
  } catch (error) {
    onFault(error);
  }
}
