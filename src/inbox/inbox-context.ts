import { type Clock, systemClock } from '../clock';
import { Distribution } from '../delivery/distribution';
import { isSmsError } from '../errors';
import type { Journal, Step } from '../journal/journal';
import type { Kind } from '../model';
import type { Acceptance } from './acceptance';
import type { InboxContext } from './context';
import { type Correlator, GuardedCorrelator } from './correlator';
import { Delivered } from './delivered';
import type { Entry } from './entry';
import { Reading } from './reading';
import { createRelease } from './release';
import { createPause, settle } from './settle';
import { type Undelivered, UndeliveredEntries } from './undelivered';
import { Unread } from './unread';

/** What the inbox needs. */
export interface InboxOptions {
  /** Where it keeps. It joins it as the part `inbox`. */
  journal: Journal;
  /** The machine's own when absent. */
  clock?: Clock;
  /** Whether duplicates are left out. The outbox always leaves them out. */
  dedupe(): boolean;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
  /** Knows what records answer. */
  correlator?: Correlator;
  /** A node threw as it was given what nobody waits for, or the correlator did; absent: it is thrown. */
  onFault?(error: unknown): void;
  /** Records that came are kept. */
  onAccepted?(kind: Kind, acceptances: readonly Acceptance[]): void;
  /** What was given up had to go before its time, since there is too much of it. */
  onGivenUpFull?(): void;
}

/**
 * Puts together what the steps of an inbox work with.
 *
 * @param onAttempt an entry is given to a node once more
 */
export function createInboxContext(
  options: InboxOptions,
  onAttempt: (entry: Entry, attempt: number) => void,
): InboxContext {
  const { journal, clock = systemClock, onFault = throwLater, dedupe, dedupeMs, correlator } = options;
  const undelivered = new UndeliveredEntries();
  const unread = new Unread(undelivered, journal.backlog.pageSize);
  const events = {
    onAttempt,
    onTaken: (taken: Undelivered) => settle(context, taken),
    onStranded(stranded: Undelivered) {
      stranded.isReleased = true;
      run(createRelease(context, stranded, () => {}));
    },
    written: () => journal.run(createPause()).catch(onFault),
    onHandedOut: () => reading.goOn(),
    onFault,
  };
  const distribution = new Distribution(undelivered, unread, events, clock);
  const reading = new Reading({
    backlog: journal.backlog,
    clock,
    unread,
    attendance: distribution.attendance,
    onRead: (read) => distribution.handOutRead(read),
  });
  const run = (step: Step<unknown>) => {
    journal.run(step).catch((error: unknown) => {
      // That the store fails it tells by itself.
      if (!isSmsError(error, 'SMS_STORE')) onFault(error);
    });
  };
  const guarded = correlator && new GuardedCorrelator(correlator, onFault);
  const context: InboxContext = {
    journal,
    clock,
    undelivered,
    unread,
    reading,
    delivered: new Delivered(journal, () => run(createPause())),
    distribution,
    correlator: guarded,
    dedupe,
    dedupeMs,
    run,
  };
  return context;
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
