import { isOutbound } from './history';
import { countBefore, keyOf } from './keys';
import { messageOf } from './links';
import { maskCallback, maskRequest } from './masking';
import type { CallbackAttempt, LogEntry, LogGroup, LoggedRequest, Mail } from './model';

/** Which entries of the log are wanted: the last ones, or those before a key; of one group, or of all. */
export interface LogPage {
  before?: number | undefined;
  group?: LogGroup | undefined;
  limit: number;
}

/** What the log is made of, each list in the order of its keys. */
export interface LogSources {
  requests: readonly LoggedRequest[];
  callbacks: readonly CallbackAttempt[];
  mails: readonly Mail[];
}

/** A page of the log, newest first, with secrets masked, and whether there are older entries. */
export function pageLog(
  { requests, callbacks, mails }: LogSources,
  { before = Number.POSITIVE_INFINITY, group, limit }: LogPage,
): { entries: LogEntry[]; hasEarlier: boolean } {
  const lists = [
    { kind: 'request', records: requests, end: countBefore(requests, before) },
    { kind: 'callback', records: callbacks, end: countBefore(callbacks, before) },
    { kind: 'mail', records: mails, end: countBefore(mails, before) },
  ] as const;
  const ends = lists.map(({ end }) => end);
  const entries: LogEntry[] = [];
  for (;;) {
    let latest = -1;
    let latestKey = 0;
    for (const [index, { records }] of lists.entries()) {
      const record = records[(ends[index] ?? 0) - 1];
      if (record === undefined || keyOf(record) <= latestKey) continue;
      latest = index;
      latestKey = keyOf(record);
    }
    const list = lists[latest];
    if (list === undefined) return { entries, hasEarlier: false };
    const end = (ends[latest] ?? 0) - 1;
    ends[latest] = end;
    const record = list.records[end];
    if (record === undefined || (group !== undefined && groupOf(list.kind, record) !== group)) continue;
    if (entries.length === limit) return { entries, hasEarlier: true };
    entries.push(describeEntry(list.kind, record));
  }
}

/** One entry of the log, with secrets masked. */
export function describeEntry(kind: LogEntry['kind'], record: object): LogEntry {
  const message = messageOf(record);
  const msisdn = message && (isOutbound(message) ? message.recipients[0]?.msisdn : message.from);
  return {
    key: keyOf(record),
    kind,
    record: mask(kind, record),
    group: groupOf(kind, record),
    ...(message !== undefined && msisdn !== undefined && { text: { key: keyOf(message), msisdn } }),
  } as LogEntry;
}

function mask(kind: LogEntry['kind'], record: object): object {
  if (kind === 'request') return maskRequest(record as LoggedRequest);
  return kind === 'callback' ? maskCallback(record as CallbackAttempt) : record;
}

function groupOf(kind: LogEntry['kind'], record: object): LogGroup {
  if (kind !== 'request') return 'callback';
  const { endpoint } = record as LoggedRequest;
  if (endpoint === undefined) return 'other';
  return endpoint === 'send' || endpoint === 'feed' ? endpoint : 'poll';
}
