import { isOutbound } from './history';
import { keyOf } from './keys';
import { messageOf } from './links';
import { maskCallback, maskRequest } from './masking';
import type { CallbackAttempt, LogEntry, LogGroup, LoggedRequest, Mail } from './model';

/** Selects entries of the log: the newest `limit` entries, of one group or of all. */
export interface LogQuery {
  group?: LogGroup | undefined;
  limit: number;
}

/** The lists that make up the log, each in the order of its keys. */
export interface LogSources {
  requests: readonly LoggedRequest[];
  callbacks: readonly CallbackAttempt[];
  mails: readonly Mail[];
}

/** Returns the newest entries of the log, newest first, with secrets masked. */
export function listLog({ requests, callbacks, mails }: LogSources, { group, limit }: LogQuery): LogEntry[] {
  const newestOf = <T extends object>(kind: LogEntry['kind'], records: readonly T[]) =>
    records
      .filter((record) => group === undefined || groupOf(kind, record) === group)
      .slice(-limit)
      .map((record) => ({ kind, record }));
  return [...newestOf('request', requests), ...newestOf('callback', callbacks), ...newestOf('mail', mails)]
    .sort((a, b) => keyOf(b.record) - keyOf(a.record))
    .slice(0, limit)
    .map(({ kind, record }) => describeEntry(kind, record));
}

/** Returns one entry of the log, with secrets masked. */
function describeEntry(kind: LogEntry['kind'], record: object): LogEntry {
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
