import type { Step } from '../journal/step';
import type { IncomingRecord, MatchedBy, SentMessage, StatusRecord } from '../model';
import type { CountTime } from '../outbox/limits';
import type { MessageItem } from '../outbox/message-item';
import type { KeyMemory } from '../outbox/once';
import type { RuleSettings } from '../outbox/rules';
import {
  type Changes,
  type Duration,
  digest,
  foreverMs,
  parseRememberedValue,
  type ReadKey,
  type Remembered,
} from '../store/store';
import { isBlank, normaliseRecipient } from '../wire/fields';
import { followUpGraceMs, type ReplyRequest } from './follow-ups';

/** Key that exists as soon as any message is remembered. From then on, an incoming record can be a reply. */
const sentIndexKey = 'remembers';

/** Sets {@link sentIndexKey}, unless it is already set. */
export function noteSentIndex(at: number, readKey: ReadKey, changes: Changes): void {
  if (!readKey(sentIndexKey)) changes.remember.set(sentIndexKey, { at, forMs: foreverMs, value: '' });
}

export function hasSentIndex(readKey: ReadKey): boolean {
  return readKey(sentIndexKey) !== undefined;
}

/** A remembered message, stored under its reference (see {@link referenceOf}). */
interface StoredMessage extends Omit<SentMessage, 'matchedBy'> {
  messageItemId?: string;
  /**
   * Time for which replies and statuses are matched to the message, in ms. Set only if a reply request or a report
   * keeps the message in the store for longer.
   */
  rememberMs?: number;
}

/** The message that a record answers. */
export interface Match {
  sent: SentMessage;
  /** Until when records that answer no open request are matched to the message, in ms since 1970. */
  rememberedUntil: number;
  /** The open reply request to which the record belongs. */
  request?: FoundRequest;
}

const sentPrefix = 'sent:';
const sentKey = (reference: string) => sentPrefix + reference;

/** Returns the name of a remembered message: a digest of its messageId, or else of its id. */
export function referenceOf(messageId: string | undefined, { id }: Pick<MessageItem, 'id'>): string {
  return messageId === undefined ? digest('text', id) : digest('messageId', messageId.trim());
}

/** The keys that lead to the message that a record answers. */
export interface RecordKeys {
  /**
   * The reference of the message that the record names, see {@link referenceOf}. Absent: the record names no message.
   */
  reference: string | undefined;
  /** Digest of the sender of the record. */
  sender: string;
}

/** Derives the keys of a record. The service calls a message without a messageId `default` (§2.3). */
export function recordKeysOf({ inReplyToId, from }: { inReplyToId?: unknown; from: unknown }): RecordKeys {
  const id = isBlank(inReplyToId) ? 'default' : String(inReplyToId).trim();
  return { sender: recipientDigest(from), reference: id === 'default' ? undefined : digest('messageId', id) };
}

/** Returns the keys that {@link match} always reads. */
export function keysOfMatch(kind: 'incoming' | 'status', { reference, sender }: RecordKeys): string[] {
  if (reference !== undefined) return [sentKey(reference), requestKey(reference, sender)];
  return kind === 'incoming' ? [handsetKey(sender)] : [];
}

/**
 * Finds the message that a record answers, by messageId. If an incoming message names no messageId, finds the latest
 * open reply request of the sending handset, or else the latest message to that handset.
 */
export function match(
  kind: 'incoming' | 'status',
  { from }: IncomingRecord | StatusRecord,
  { reference, sender }: RecordKeys,
  readKey: ReadKey,
): Match | undefined {
  if (reference === undefined) return kind === 'incoming' ? matchByHandset(sender, readKey) : undefined;
  const sent = readSent(reference, readKey);
  if (!sent) return undefined;
  const request =
    kind === 'status' ? requestOfStatus(from, reference, readKey) : requestOfReply(from, sent.to, reference, readKey);
  return { ...publicMatch(sent, 'messageId'), ...(request && { request }) };
}

function matchByHandset(sender: string, readKey: ReadKey): Match | undefined {
  const references = parseReferences(readKey(handsetKey(sender)));
  const openTo = ({ sent, asks: hasRequest }: Reference) => {
    const open = hasRequest && findRequest(sent, sender, readKey);
    return open?.isPending ? undefined : open;
  };
  const latestReference = [...references].reverse().find(openTo) ?? references.at(-1);
  const sent = latestReference && readSent(latestReference.sent, readKey);
  const request = latestReference && openTo(latestReference);
  return sent && { ...publicMatch(sent, 'handset'), ...(request && { request }) };
}

function requestOfReply(
  from: unknown,
  to: readonly string[],
  reference: string,
  readKey: ReadKey,
): FoundRequest | undefined {
  const request = findRequest(reference, recipientDigest(from), readKey);
  if (request || to.includes(normaliseRecipient(from))) return request;
  // If the sender is not a recipient, it might belong to any address-book item: also looks for requests of such items.
  for (const item of to) {
    const itemRequest = isHandset(item) ? undefined : findRequest(reference, recipientDigest(item), readKey);
    if (itemRequest) return itemRequest;
  }
  return undefined;
}

/**
 * Returns the open request that a status can end, if any. A status never ends the request of an address-book item. A
 * status of a second message (option `again`) ends no request.
 */
function requestOfStatus(from: unknown, reference: string, readKey: ReadKey): FoundRequest | undefined {
  if (!isHandset(normaliseRecipient(from))) return undefined;
  return findUnder(requestKey(reference, recipientDigest(from)), readKey);
}

/** A message, and until when it is remembered, in ms since 1970. */
type RememberedMessage = StoredMessage & { rememberedUntil: number };

function readSent(reference: string, readKey: ReadKey): RememberedMessage | undefined {
  const remembered = readKey(sentKey(reference));
  const sent = parseRememberedValue(remembered, isStoredMessage);
  if (!remembered || !sent) return undefined;
  return { ...sent, rememberedUntil: remembered.at + (sent.rememberMs ?? remembered.forMs) };
}

/** Creates a step that reads the bodies of remembered messages. Its result maps each reference to a body. */
export function createBodyReading(references: readonly string[]): Step<Map<string, string>> {
  const uniqueReferences = [...new Set(references)];
  return {
    keys: uniqueReferences.map(sentKey),
    whileFailing: 'refuse',
    decide(readKey) {
      const bodies = uniqueReferences.flatMap((reference): [string, string][] => {
        const sent = readSent(reference, readKey);
        return sent ? [[reference, sent.body]] : [];
      });
      return () => new Map(bodies);
    },
  };
}

function isStoredMessage(value: unknown): value is StoredMessage {
  const { to, body } = Object(value) as Partial<Record<keyof StoredMessage, unknown>>;
  return Array.isArray(to) && to.every((recipient) => typeof recipient === 'string') && typeof body === 'string';
}

function publicMatch(
  { messageItemId: _, rememberMs: __, rememberedUntil, ...sent }: RememberedMessage,
  matchedBy: MatchedBy,
): Match {
  return { sent: { ...sent, matchedBy }, rememberedUntil };
}

/** An entry in the list of the messages that were sent to one handset. */
interface Reference {
  /** The reference of the message. */
  sent: string;
  at: number;
  until: number;
  /** Whether the handset has, or had, a reply request for this message. */
  asks?: true;
}

/** Maximum number of messages without a reply request, per handset, that a reply without a messageId can answer. */
const maxMessagesPerHandset = 8;
/** Maximum number of messages with a reply request, per handset, that a reply without a messageId can answer. */
const maxRequestsPerHandset = 50;

export const handsetPrefix = 'handset:';
const handsetKey = (recipient: string) => handsetPrefix + recipient;

/** Returns whether a recipient is a number and not an address-book item. */
export function isHandset(recipient: string): boolean {
  return /^\d+$/.test(recipient);
}

function parseReferences(remembered: Remembered | undefined): Reference[] {
  return parseRememberedValue(remembered, isReferences) ?? [];
}

function isReferences(value: unknown): value is Reference[] {
  return (
    Array.isArray(value) &&
    value.every((reference) => typeof reference?.sent === 'string' && Number.isFinite(reference.at + reference.until))
  );
}

/**
 * @param references in the order in which the messages were sent; their times can be out of order, because clocks can
 * be set
 */
function formatReferences(references: readonly Reference[]): Remembered | undefined {
  const withRequest = references.filter(({ asks }) => asks);
  const otherReferences = references.filter(({ asks }) => !asks);
  const latestReferences = new Set([
    ...withRequest.slice(-maxRequestsPerHandset),
    ...otherReferences.slice(-maxMessagesPerHandset),
  ]);
  const remainingReferences = references.filter((reference) => latestReferences.has(reference));
  const at = Math.max(...remainingReferences.map((reference) => reference.at));
  const until = Math.max(...remainingReferences.map((reference) => reference.until));
  if (remainingReferences.length === 0) return undefined;
  return { at, forMs: until - at, value: JSON.stringify(remainingReferences) };
}

/** Joins the lists of messages to one handset from two stores. If both lists have a message, keeps the later entry. */
export function mergeReferences(ownValue: Remembered, formerValue: Remembered): Remembered {
  const byTime = (a: Reference, b: Reference) => a.at - b.at;
  const all = [...parseReferences(formerValue), ...parseReferences(ownValue)].sort(byTime);
  const references = [...new Map(all.map((reference) => [reference.sent, reference])).values()];
  return formatReferences(references.sort(byTime)) ?? ownValue;
}

/** Forgets a message for recipients that did not receive it. The message was remembered for them before it was sent. */
export function forgetSent(
  { id }: Pick<MessageItem, 'id'>,
  { reference: sent, recipients }: { reference: string; recipients: readonly string[] },
  readKey: ReadKey,
  changes: Changes,
): void {
  // Changes nothing if a different message with the same messageId is remembered.
  if (readSent(sent, readKey)?.messageItemId !== id) return;
  for (const key of handsetKeysOf(recipients).values()) {
    const references = parseReferences(readKey(key));
    const otherReferences = references.filter((reference) => reference.sent !== sent);
    if (otherReferences.length < references.length) changes.remember.set(key, formatReferences(otherReferences));
  }
}

/** The time at which a step runs, and the settings that the step uses. Durations in ms. */
export interface Memory extends KeyMemory {
  time: CountTime;
  rules: RuleSettings;
  sentMs: number;
}

/** Returns for how long the store remembers a message that is sent or accepted now. */
export function durationOf({ options, again }: MessageItem, { now, sentMs }: Pick<Memory, 'now' | 'sentMs'>): Duration {
  const waitsMs = [options.waitMs, options.reportMs, again?.waitMs].filter((waitMs) => waitMs !== undefined);
  return { at: now, forMs: Math.max(sentMs, ...waitsMs.map((waitMs) => waitMs + followUpGraceMs)) };
}

/** The names under which a message is remembered. */
export interface SentKeys {
  messageId: string | undefined;
  /** See {@link referenceOf}. */
  reference: string;
}

/** Returns the key of each recipient that is a handset, by number. */
function handsetKeysOf(recipients: readonly string[]): ReadonlyMap<string, string> {
  return new Map(recipients.filter(isHandset).map((msisdn) => [msisdn, handsetKey(recipientDigest(msisdn))]));
}

/** Returns the keys under which a message to these recipients is remembered. */
export function keysOfRecipients(reference: string, recipients: readonly string[]): string[] {
  const digests = recipients.map(recipientDigest);
  const ofRecipients = digests.flatMap((recipient) => [handsetKey(recipient), requestKey(reference, recipient)]);
  return [sentIndexKey, sentKey(reference), ...ofRecipients];
}

/** A message to be remembered. */
interface MessageToRemember {
  item: MessageItem;
  /** The recipients to which the message goes. */
  to: string[];
  keys: SentKeys;
  /** Recipients that have received the message, or might have. */
  recipients: readonly string[];
  /** The reply requests that a reply can still answer. */
  open: readonly ReplyRequest[];
  /** Whether the message is known to be accepted. */
  isAccepted: boolean;
}

/** Remembers a message, so that replies and statuses can be matched to it. */
export function remember(
  { item, to, keys, recipients, open, isAccepted }: MessageToRemember,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  readKey: ReadKey,
  changes: Changes,
): void {
  const { reference } = keys;
  const duration = durationOf(item, memory);
  const { at, forMs } = duration;
  const askedHandsets = new Set(item.again ? to : open.map(({ recipient }) => recipient));
  noteSentIndex(at, readKey, changes);
  // If an earlier message with this messageId is remembered, replaces it only when the new message is accepted.
  const earlier = readSent(reference, readKey);
  if (isAccepted || !earlier || earlier.messageItemId === item.id) rememberMessage({ item, to, keys }, memory, changes);
  for (const [msisdn, key] of handsetKeysOf(recipients)) {
    const added = { sent: reference, at, until: at + forMs, ...(askedHandsets.has(msisdn) && { asks: true as const }) };
    const otherReferences = parseReferences(readKey(key)).filter((other) => other.sent !== reference);
    changes.remember.set(key, formatReferences([...otherReferences, added]));
    if (item.again) {
      // A reply to the second message (option `again`) ends the request of the first message.
      const alias: Alias = { aliasOf: requestKey(item.again.reference, recipientDigest(item.again.recipient)) };
      const aliasKey = requestKey(reference, recipientDigest(msisdn));
      changes.remember.set(aliasKey, { at, forMs, value: JSON.stringify(alias) });
    }
  }
  openRequests(open, isAccepted ? { duration } : { duration, isPending: true }, readKey, changes);
}

function rememberMessage(
  { item, to, keys: { messageId, reference } }: Pick<MessageToRemember, 'item' | 'to' | 'keys'>,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  changes: Changes,
): void {
  const { body, from } = item.message;
  const { sentMs } = memory;
  const duration = durationOf(item, memory);
  const remembered: StoredMessage = {
    messageItemId: item.id,
    ...(messageId === undefined ? undefined : { messageId }),
    to,
    body,
    ...(from === undefined ? undefined : { from }),
    sentAt: new Date(duration.at).toISOString(),
    node: item.node,
    ...(sentMs < duration.forMs ? { rememberMs: sentMs } : undefined),
    ...(item.options.remember === undefined ? undefined : { remembered: item.options.remember.value }),
  };
  changes.remember.set(sentKey(reference), { ...duration, value: JSON.stringify(remembered) });
}

/** Notes that a sent message was accepted. The message replaces an earlier message with the same messageId. */
export function acceptSent(
  { item, to, keys }: Pick<MessageToRemember, 'item' | 'to' | 'keys'>,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  readKey: ReadKey,
  changes: Changes,
): void {
  if (readSent(keys.reference, readKey)?.messageItemId !== item.id)
    rememberMessage({ item, to, keys }, memory, changes);
}

/** An open reply request in the store, so that any instance that receives a reply finds the request. */
interface OpenRequest {
  id: string;
  /** Set if only some replies count as answers. */
  hasAnswers?: true;
  /** Set until the outcome of the message is known. Only a reply with the messageId then belongs to the request. */
  isPending?: true;
  /** Set while a user can decide about the unknown outcome. A reply is then also delivered as an ordinary message. */
  isUndecided?: true;
  /** Set if the first final status of the handset was `RCV` (received). Later statuses then do not end the request. */
  isReceived?: true;
}

/** An open request with its key. */
export type FoundRequest = OpenRequest & { key: string };

/** Stored under the key of a second message (option `again`). Leads to the request of the first message. */
interface Alias {
  aliasOf: string;
}

/** Maximum number of open requests of one handset with the same messageId. The store forgets older requests. */
const maxPerKey = 50;

export const requestPrefix = 'request:';

/** Returns the digest of a recipient or a sender for use in keys. */
function recipientDigest(recipient: unknown): string {
  return digest(normaliseRecipient(recipient));
}

/** @param recipient see {@link recipientDigest} */
function requestKey(reference: string, recipient: string): string {
  return `${requestPrefix}${reference}:${recipient}`;
}

/**
 * Opens reply requests in the store. A request that is already open keeps `isReceived`.
 *
 * @param opening how long the requests are stored, and flags for an outcome that is not known yet
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
    const isReceived = open.find((request) => request.id === id)?.isReceived;
    const added: OpenRequest = { id, ...(hasAnswers && { hasAnswers }), ...(isReceived && { isReceived }), ...pending };
    writeRequests(key, duration, [...open.filter((request) => request.id !== id), added].slice(-maxPerKey), changes);
  }
}

/**
 * Closes a reply request in the store: removes it or, if `mayBeDecided`, marks it as undecided.
 *
 * @param mayBeDecided true if a user can still choose `markSent`, which needs the request
 */
export function closeRequest(
  { id, reference, recipient }: ReplyRequest,
  readKey: ReadKey,
  changes: Changes,
  mayBeDecided = false,
): void {
  const key = requestKey(reference, recipientDigest(recipient));
  changeRequest({ id, key }, mayBeDecided ? { isPending: true, isUndecided: true } : undefined, readKey, changes);
}

/** Changes an open request, or removes it. Other requests with the same messageId stay open. */
export function changeRequest(
  { id, key }: Pick<FoundRequest, 'id' | 'key'>,
  change: Partial<OpenRequest> | undefined,
  readKey: ReadKey,
  changes: Changes,
): void {
  const remembered = readKey(key);
  const open = parseRequests(remembered);
  if (!remembered || !open.some((request) => request.id === id)) return;
  const changedRequests = open.flatMap((request) =>
    request.id !== id ? request : change ? { ...request, ...change } : [],
  );
  writeRequests(key, remembered, changedRequests, changes);
}

/**
 * Merges the open requests that two stores have under one key. If the values have the same time, keeps the requests
 * that are open in both. Otherwise, keeps the later value.
 */
export function mergeRequests(ownValue: Remembered, formerValue: Remembered): Remembered {
  // Returns equal values unchanged. The code below can merge only lists. A value of type `Alias` is not a list, but is
  // always the same in both stores.
  if (ownValue.value === formerValue.value) return ownValue;
  if (ownValue.at !== formerValue.at) return ownValue.at > formerValue.at ? ownValue : formerValue;
  const ownRequests = new Map(parseRequests(ownValue).map((request) => [request.id, request]));
  const open = parseRequests(formerValue).flatMap((request) => {
    const ownRequest = ownRequests.get(request.id);
    return ownRequest ? { ...request, ...ownRequest } : [];
  });
  return { ...ownValue, value: JSON.stringify(open) };
}

/**
 * Writes the open requests. If none is open, writes an empty list instead of removing the key. If a user later changes
 * back to an earlier login, this list then replaces the outdated list in the store of that login.
 */
function writeRequests(key: string, { at, forMs }: Duration, open: readonly OpenRequest[], changes: Changes): void {
  changes.remember.set(key, { at, forMs, value: JSON.stringify(open) });
}

/**
 * Finds an open request of a handset: the latest request whose message is known to be accepted, or else the latest
 * request.
 *
 * @param recipient see {@link recipientDigest}
 */
function findRequest(reference: string, recipient: string, readKey: ReadKey): FoundRequest | undefined {
  const key = requestKey(reference, recipient);
  const alias = parseRememberedValue(readKey(key), isAlias);
  return alias ? findUnder(alias.aliasOf, readKey) : findUnder(key, readKey);
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
  return Array.isArray(value) && value.every((request) => typeof request?.id === 'string');
}

function isAlias(value: unknown): value is Alias {
  return typeof (value as Alias | null)?.aliasOf === 'string';
}
