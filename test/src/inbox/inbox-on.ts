import { systemClock } from '../../../src/clock';
import type { InboxOptions } from '../../../src/inbox/inbox';
import { Inbox } from '../../../src/inbox/inbox';
import { Journal, type JournalOptions } from '../../../src/journal/journal';

type Options = Omit<Partial<InboxOptions>, 'journal'> &
  Omit<JournalOptions, 'clock' | 'onStore'> &
  Partial<Pick<JournalOptions, 'onStore'>>;

/** Creates an inbox without listeners. If a node throws, the error is uncaught, so that the test fails. */
export function createInbox(options: Partial<InboxOptions> & Pick<InboxOptions, 'journal'>): Inbox {
  return new Inbox({
    clock: systemClock,
    dedupe: () => true,
    dedupeMs: () => 1_000_000_000,
    onFault: (error) =>
      queueMicrotask(() => {
        throw error;
      }),
    counts: { received: 0, statuses: 0, duplicates: 0, redelivered: 0, unhandled: 0 },
    onDeadLettersFull() {},
    isPolled: () => false,
    onUnreceived() {},
    ...options,
  });
}

/** Creates an inbox, and a journal for it on the given store. */
export function createInboxOn({ clock = systemClock, onStore = () => {}, ...options }: Options): Inbox {
  return createInbox({ ...options, clock, journal: new Journal({ ...options, clock, onStore }) });
}
