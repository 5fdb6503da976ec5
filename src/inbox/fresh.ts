import type { Destination } from '../delivery/attendance';
import type { InboxRecord, RecordOfKind } from '../model';
import { channelOf, type InboxContext } from './context';
import { type Entry, nameTakers } from './entry';
import type { Identity } from './identity';
import { Undelivered } from './undelivered';

/** What is to be an entry. */
interface Fresh {
  news: RecordOfKind;
  identity: Identity;
  /** How often it will have been sent into a flow. */
  attempts: number;
  /** How often it had been as an entry that is gone: in whose place it is, or which a process that may be gone has released. */
  attemptsBefore?: number;
  address?: Destination['address'];
  twin?: InboxRecord | undefined;
}

/** Makes an entry of a record, to be kept. */
export function createFresh(
  { journal, undelivered }: InboxContext,
  { news, identity, address, attempts, attemptsBefore = 0, twin }: Fresh,
): Undelivered {
  const { kind } = news;
  const before = address ? Math.max(attemptsBefore, undelivered.attemptsBefore(identity)) : attemptsBefore;
  const item = {
    id: journal.nextId(),
    part: 'inbox' as const,
    takers: address ? nameTakers(address) : [kind],
    channel: channelOf({ kind, address }),
    attempts: attempts + before,
  };
  const entry: Entry = Object.assign(item, news);
  if (address) entry.address = address;
  // Nobody can say whether another process has delivered it already.
  if (journal.isShared && journal.mode !== 'open') entry.unsure = true;
  if (twin) entry.twin = twin;
  return new Undelivered(entry, identity);
}
