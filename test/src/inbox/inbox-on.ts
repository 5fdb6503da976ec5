import { systemClock } from '../../../src/clock';
import type { InboxOptions } from '../../../src/inbox/inbox';
import { Inbox } from '../../../src/inbox/inbox';
import { Journal, type JournalOptions } from '../../../src/journal/journal';

type Options = Omit<InboxOptions, 'journal'> &
  Omit<JournalOptions, 'clock' | 'onStore'> &
  Partial<Pick<JournalOptions, 'onStore'>>;

/** An inbox that has a store for itself. */
export function createInboxOn({ clock = systemClock, onStore = () => {}, ...options }: Options): Inbox {
  return new Inbox({ ...options, clock, journal: new Journal({ ...options, clock, onStore }) });
}
