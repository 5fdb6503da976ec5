import { SmsError } from '../errors';
import type { DeadLetter, Pending } from '../inbox/entries';
import { ClockSkew } from '../journal/clock-skew';
import type { RecordOfKind } from '../model';
import { type EntryQuery, type Page, pageOf, searchIn } from '../page';
import type { ReplyRequest } from '../replies/follow-ups';
import { createBodyReading } from '../replies/sent-index';
import { timeOf } from '../store/store';
import { present } from '../wire/fields';
import { statusCodes } from '../wire/status';
import type { AccountData } from './account-data';
import type { UnhandledEntry } from './stats';

/** A received record that waits for a flow, or an open reply request. No user has to decide about it. */
export interface WaitingEntry {
  id: string;
  /**
   * Time at which the record arrived or, for a reply request, at which the wait for the reply began, in ms since 1970.
   * Absent: the wait has not begun.
   */
  at?: number;
  /** Id of the node that must receive the record or, for a reply request, of the sending node. Blank: no node yet. */
  node: string;
  to?: readonly string[];
  from?: string;
  /** Body of the record or, for a reply request, of the sent message. At most 1,000 characters. */
  body: string;
  /** Time at which the wait of a reply request ends, in ms since 1970. */
  endsAt?: number;
  /** Body of the last reply that matched no answer. */
  unclear?: string;
}

/** The two lists of {@link WaitingEntry}: received records that wait for a flow, and open reply requests. */
export type WaitingListName = 'undelivered' | 'awaitingReply';

/** All values of {@link WaitingListName}, to check a name from a request. */
export const waitingLists: readonly WaitingListName[] = ['undelivered', 'awaitingReply'];

const maxShownBody = 1_000;

/** Returns a page of unhandled records. */
export function listUnhandled({ inbox }: AccountData, query: EntryQuery): Page<UnhandledEntry> {
  const { items, ...pageInfo } = inbox.deadLetters.page(searchIn(query, searchedFieldsOf));
  return { items: items.map(createUnhandledEntry), ...pageInfo };
}

/**
 * Returns a page of the entries that wait.
 *
 * @throws SmsError `SMS_STORE` for reply requests, if the store fails, because only the store has the bodies of their
 * messages
 */
export async function listWaiting(
  data: AccountData,
  list: WaitingListName,
  query: EntryQuery,
): Promise<Page<WaitingEntry>> {
  if (list === 'awaitingReply') return listRequests(data, query);
  const { items, ...pageInfo } = data.inbox.page(searchIn(query, ({ entry }: Pending) => searchedFieldsOf(entry)));
  return { items: items.map(createUndeliveredEntry), ...pageInfo };
}

/**
 * Returns a page of reply requests. A search finds their recipients and messageIds, but not the bodies of the sent
 * messages, because only the store has these bodies.
 */
async function listRequests({ outbox, journal }: AccountData, query: EntryQuery): Promise<Page<WaitingEntry>> {
  const search = searchIn(query, ({ recipient, messageId }: ReplyRequest) => [recipient, messageId]);
  const { items, ...pageInfo } = pageOf(outbox.admin.openRequests, ({ id }) => id, search);
  const questions = await journal.run(createBodyReading(items.map(({ reference }) => reference)));
  const skew = ClockSkew.of(journal.clock);
  const format = ({ id, node, recipient, reference, askedAt, waitMs, unclear }: ReplyRequest): WaitingEntry => {
    const at = askedAt === undefined ? undefined : skew.timeOf(askedAt);
    const body = (questions.get(reference) ?? '').slice(0, maxShownBody);
    const endsAt = at === undefined ? undefined : at + waitMs;
    return { id, node, to: [recipient], body, ...present({ at, endsAt, unclear: unclear?.slice(0, maxShownBody) }) };
  };
  return { items: items.map(format), ...pageInfo };
}

/** Returns the fields of a record that a search compares with the search text. */
function searchedFieldsOf({ record }: RecordOfKind): readonly unknown[] {
  const { to, from, body, messageId, inReplyToId } = record as Partial<Record<string, unknown>>;
  return [to, from, body, messageId, inReplyToId];
}

function createUndeliveredEntry({ entry, pendingFor }: Pending): WaitingEntry {
  const [node = entry.address?.node ?? ''] = pendingFor.keys();
  const { body, ...parties } = describeRecord(entry);
  return { id: entry.id, at: timeOf(entry), node, ...parties, body: body.slice(0, maxShownBody) };
}

function createUnhandledEntry(item: DeadLetter): UnhandledEntry {
  const { id, at, node, attempts } = item;
  const error = node === '' ? undefined : new SmsError('undelivered', { params: { attempts } });
  return { id, state: 'unhandled', at, node, ...describeRecord(item), ...(error && { error }) };
}

function describeRecord({ kind, record }: RecordOfKind): Pick<UnhandledEntry, 'to' | 'from' | 'body'> {
  const { to, from, body, statusCode } = record as Partial<Record<'to' | 'from' | 'body' | 'statusCode', string>>;
  return {
    ...(to === undefined ? undefined : { to: [to] }),
    ...(from === undefined ? undefined : { from }),
    body: kind === 'status' ? describeStatus(statusCode) : String(body ?? ''),
  };
}

/**
 * Formats a status with its description, e.g. `RCV (received by the handset)`, so that it does not look like the body
 * of a message.
 */
function describeStatus(code = ''): string {
  const description = statusCodes.get(code)?.description;
  return description ? `${code} (${description})` : code;
}
