import type { InboxRecord, RecordOfKind } from '../model';
import type { Changes, Look } from '../store/store';

/** What somebody else knows of the records that come in, and makes of them in the step that takes them in. */
export interface Correlator {
  /** Whether anything may be known of what a record answers. */
  readonly isExpected: boolean;
  /** What it has to look at for a record. */
  keys(news: RecordOfKind): readonly string[];
  /** What else, once what is under those is known. */
  furtherKeys(news: RecordOfKind, look: Look): readonly string[];
  /** What a new record becomes; `effect` is run when that is written, or cannot be for now. */
  correlate(news: RecordOfKind, look: Look, changes: Changes): { record: InboxRecord; effect(): void };
}

/** Makes a correlator whose faults are told, and cost no record: it is delivered as it came. */
export function guardCorrelator(correlator: Correlator, onFault: (error: unknown) => void): Correlator {
  const orNone = (look: () => readonly string[]) => {
    try {
      return look();
    } catch (error) {
      onFault(error);
      return [];
    }
  };
  return {
    get isExpected() {
      return correlator.isExpected;
    },
    keys: (news) => orNone(() => correlator.keys(news)),
    furtherKeys: (news, look) => orNone(() => correlator.furtherKeys(news, look)),
    correlate(news, look, changes) {
      try {
        const { record, effect } = correlator.correlate(news, look, changes);
        return { record, effect: () => tell(effect, onFault) };
      } catch (error) {
        return { record: news.record, effect: () => onFault(error) };
      }
    },
  };
}

function tell(effect: () => void, onFault: (error: unknown) => void): void {
  try {
    effect();
  } catch (error) {
    onFault(error);
  }
}
