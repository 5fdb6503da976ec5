import { systemClock } from '../../../src/clock';
import type { Entry } from '../../../src/inbox/entries';
import type { InboxOptions } from '../../../src/inbox/inbox';
import { Inbox } from '../../../src/inbox/inbox';
import { Journal, type JournalOptions } from '../../../src/journal/journal';
import { type Move, moveAll } from '../../../src/journal/move';

type Options = Omit<Partial<InboxOptions>, 'journal'> &
  Omit<JournalOptions, 'clock' | 'onStore'> &
  Partial<Pick<JournalOptions, 'onStore'>>;

/** An inbox that nobody listens to. What a node throws is thrown. */
export function createInbox(options: Partial<InboxOptions> & Pick<InboxOptions, 'journal'>): Inbox {
  return new Inbox({
    clock: systemClock,
    dedupe: () => true,
    dedupeMs: () => 1_000_000_000,
    replacedBy: () => undefined,
    onFault: (error) =>
      queueMicrotask(() => {
        throw error;
      }),
    counts: { received: 0, statuses: 0, duplicates: 0, redelivered: 0, unhandled: 0 },
    onDeadLettersFull() {},
    isPolled: () => false,
    onUntaken() {},
    ...options,
  });
}

/** Lets go of a called-back entry. Resolves when that is written. */
export function release(inbox: Inbox, entry: Entry): Promise<void> {
  inbox.release(entry);
  return inbox.journal.flush();
}

/** Another takes over from an inbox what has not been delivered there. */
export function handOver(from: Inbox, to: Inbox, how: Move = {}): Promise<void> {
  return moveAll(from.journal, to.journal, { ...how, parts: ['inbox', 'deadLetter'] });
}

/** An inbox that has a store for itself. */
export function createInboxOn({ clock = systemClock, onStore = () => {}, ...options }: Options): Inbox {
  return createInbox({ ...options, clock, journal: new Journal({ ...options, clock, onStore }) });
}
