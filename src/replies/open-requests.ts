import {
  type Changes,
  type Duration,
  digest,
  parseRememberedValue,
  type ReadKey,
  type Remembered,
} from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import type { ReplyRequest } from './reply-request';

/** Stored while a reply request is open, so that the account that reads a reply finds the request. */
export interface OpenRequest {
  id: string;
  /** Whether only some replies are answers. */
  hasAnswers?: true;
  /** The outcome of the message is not known yet. Only a reply with the messageId belongs to the request. */
  isPending?: true;
  /** The outcome stays unknown unless a user decides. Until then, a reply is also delivered as an ordinary message. */
  isUndecided?: true;
  /** The first final status of the handset was `RCV`. Later statuses no longer count. */
  isReceived?: true;
}

/** An open request with its key. */
export type FoundRequest = OpenRequest & { key: string };

/** Leads from a message `again` to the request of the message before it. */
interface Alias {
  aliasOf: string;
}

/** If one handset has more open requests than this with the same messageId, their replies are not distinguished. */
const maxPerKey = 50;

const requestPrefix = 'request:';

/** Returns the digest of a recipient or a sender for use in keys. */
export function recipientDigest(recipient: unknown): string {
  return digest(normaliseRecipient(recipient));
}

/** @param recipient see {@link recipientDigest} */
export function requestKey(reference: string, recipient: string): string {
  return `${requestPrefix}${reference}:${recipient}`;
}

/**
 * Opens reply requests in the store. An open request keeps the state of its handset.
 *
 * @param opening duration, and the messages whose outcome is not known yet
 */
export function openRequests(
  requests: readonly ReplyRequest[],
  { duration, ...pending }: Pick<OpenRequest, 'isPending' | 'isUndecided'> & { duration: Duration },
  readKey: ReadKey,
  changes: Changes,
): void {
  for (const { id, recipient, reference, hasAnswers } of requests) {
    const key = requestKey(reference, recipientDigest(recipient));
    const open = parseRequests(readKey(key));
    const isReceived = open.find((one) => one.id === id)?.isReceived;
    const added: OpenRequest = { id, ...(hasAnswers && { hasAnswers }), ...(isReceived && { isReceived }), ...pending };
    write(key, duration, [...open.filter((one) => one.id !== id), added].slice(-maxPerKey), changes);
  }
}

/** Notes the request under the messageId of a message `again`, so that replies to this message end the request. */
export function openAlias(
  { reference, recipient }: Pick<ReplyRequest, 'reference' | 'recipient'>,
  key: string,
  { at, forMs }: Duration,
  changes: Changes,
): void {
  const alias: Alias = { aliasOf: requestKey(reference, recipientDigest(recipient)) };
  changes.remember.set(key, { at, forMs, value: JSON.stringify(alias) });
}

/**
 * Closes a reply request in the store.
 *
 * @param mayBeDecided keeps the request, because a user can still choose `markSent`
 */
export function closeRequest(request: ReplyRequest, readKey: ReadKey, changes: Changes, mayBeDecided = false): void {
  const key = requestKey(request.reference, recipientDigest(request.recipient));
  const remembered = readKey(key);
  if (!remembered || !parseRequests(remembered).some(({ id }) => id === request.id)) return;
  if (mayBeDecided)
    openRequests([request], { isPending: true, isUndecided: true, duration: remembered }, readKey, changes);
  else removeRequest({ id: request.id, key }, readKey, changes);
}

/** Removes an open request. Other requests with the same messageId stay open. */
export function removeRequest({ id, key }: FoundRequest, readKey: ReadKey, changes: Changes): void {
  const remembered = readKey(key);
  const left = parseRequests(remembered).filter((one) => one.id !== id);
  if (remembered) write(key, remembered, left, changes);
}

function write(key: string, { at, forMs }: Duration, open: readonly OpenRequest[], changes: Changes): void {
  changes.remember.set(key, open.length > 0 ? { at, forMs, value: JSON.stringify(open) } : undefined);
}

/** Records that the handset has received the message. */
export function noteReceived({ id, key }: FoundRequest, readKey: ReadKey, changes: Changes): void {
  const remembered = readKey(key);
  const all = parseRequests(remembered);
  const changed = all.map((one) => (one.id === id ? { ...one, isReceived: true as const } : one));
  if (remembered) write(key, remembered, changed, changes);
}

/**
 * Finds the open request of a handset: the latest whose message is known to be accepted, otherwise the latest.
 *
 * @param recipient see {@link recipientDigest}
 */
export function findRequest(reference: string, recipient: string, readKey: ReadKey): FoundRequest | undefined {
  const key = requestKey(reference, recipient);
  const alias = parseRememberedValue(readKey(key), isAlias);
  return alias ? findUnder(alias.aliasOf, readKey) : findUnder(key, readKey);
}

/** Like {@link findRequest}, but finds nothing for a message `again`, which has no request of its own. */
export function findOwnRequest(reference: string, recipient: string, readKey: ReadKey): FoundRequest | undefined {
  return findUnder(requestKey(reference, recipient), readKey);
}

function findUnder(key: string, readKey: ReadKey): FoundRequest | undefined {
  const all = parseRequests(readKey(key));
  const open = [...all].reverse().find(({ isPending }) => !isPending) ?? all.at(-1);
  return open && { ...open, key };
}

function parseRequests(remembered: Remembered | undefined): OpenRequest[] {
  return parseRememberedValue(remembered, isOpenRequests) ?? [];
}

function isOpenRequests(value: unknown): value is OpenRequest[] {
  return Array.isArray(value) && value.every((one) => typeof one?.id === 'string');
}

function isAlias(value: unknown): value is Alias {
  return typeof (value as Alias | null)?.aliasOf === 'string';
}
