import { type Changes, type Duration, digest, type Look, parseRememberedValue, type Remembered } from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import type { ReplyRequest } from './reply-request';

/** Stands in the store while a reply request is open, so that the account that reads a reply finds the request. */
export interface OpenRequest {
  id: string;
  /** Whether only some replies are answers. */
  hasAnswers?: true;
  /** The outcome of the message is not known yet: only a reply with the messageId belongs to the request. */
  isPending?: true;
  /** The outcome stays unknown until a user decides, if ever: a reply is an ordinary message, too. */
  isUndecided?: true;
  /** The first final status of the handset was `RCV`, so that later statuses count no longer. */
  isReceived?: true;
}

/** An open request, and the key under which it stands. */
export type FoundRequest = OpenRequest & { key: string };

/** A message `again` leads to the request of the message before it. */
interface Alias {
  aliasOf: string;
}

/** More messages with one messageId to one handset are not told apart. */
const maxPerKey = 50;

const requestPrefix = 'request:';

/** Stands for a recipient or a sender in keys. */
export function recipientDigest(recipient: unknown): string {
  return digest(normaliseRecipient(recipient));
}

/** @param recipient see {@link recipientDigest} */
export function requestKey(reference: string, recipient: string): string {
  return `${requestPrefix}${reference}:${recipient}`;
}

/**
 * Opens requests to replies. An open request keeps the state of its handset.
 *
 * @param opening duration, and the messages whose outcome is not known yet
 */
export function openRequests(
  requests: readonly ReplyRequest[],
  { duration, ...pending }: Pick<OpenRequest, 'isPending' | 'isUndecided'> & { duration: Duration },
  look: Look,
  changes: Changes,
): void {
  for (const { id, recipient, reference, hasAnswers } of requests) {
    const key = requestKey(reference, recipientDigest(recipient));
    const open = parseRequests(look(key));
    const isReceived = open.find((one) => one.id === id)?.isReceived;
    const added: OpenRequest = { id, ...(hasAnswers && { hasAnswers }), ...(isReceived && { isReceived }), ...pending };
    write(key, duration, [...open.filter((one) => one.id !== id), added].slice(-maxPerKey), changes);
  }
}

/** Opens a request to replies to a message `again`, for as long as the request is open. */
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
 * Closes a request to replies.
 *
 * @param mayBeDecided keeps the request, because a user can choose `markSent`
 */
export function closeRequest(request: ReplyRequest, look: Look, changes: Changes, mayBeDecided = false): void {
  const key = requestKey(request.reference, recipientDigest(request.recipient));
  const remembered = look(key);
  const all = parseRequests(remembered);
  if (!remembered || !all.some(({ id }) => id === request.id)) return;
  if (mayBeDecided)
    openRequests([request], { isPending: true, isUndecided: true, duration: remembered }, look, changes);
  else
    write(
      key,
      remembered,
      all.filter(({ id }) => id !== request.id),
      changes,
    );
}

/** Removes an open request. Other messages with its messageId stay open. */
export function removeRequest({ id, key }: FoundRequest, look: Look, changes: Changes): void {
  const remembered = look(key);
  const left = parseRequests(remembered).filter((one) => one.id !== id);
  if (remembered) write(key, remembered, left, changes);
}

function write(key: string, { at, forMs }: Duration, open: readonly OpenRequest[], changes: Changes): void {
  changes.remember.set(key, open.length > 0 ? { at, forMs, value: JSON.stringify(open) } : undefined);
}

/** Records that the handset has received the message. */
export function noteReceived({ id, key }: FoundRequest, look: Look, changes: Changes): void {
  const remembered = look(key);
  const all = parseRequests(remembered);
  const changed = all.map((one) => (one.id === id ? { ...one, isReceived: true as const } : one));
  if (remembered) write(key, remembered, changed, changes);
}

/**
 * Finds the open request of a handset: the latest whose message is known to be accepted, or else the latest.
 *
 * @param recipient see {@link recipientDigest}
 */
export function findRequest(reference: string, recipient: string, look: Look): FoundRequest | undefined {
  const key = requestKey(reference, recipient);
  const alias = parseRememberedValue(look(key), isAlias);
  return alias ? findUnder(alias.aliasOf, look) : findUnder(key, look);
}

/** As {@link findRequest}, but a message `again` has no request of its own. */
export function findOwnRequest(reference: string, recipient: string, look: Look): FoundRequest | undefined {
  return findUnder(requestKey(reference, recipient), look);
}

function findUnder(key: string, look: Look): FoundRequest | undefined {
  const all = parseRequests(look(key));
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
