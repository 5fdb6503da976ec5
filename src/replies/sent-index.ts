import type { Step } from '../journal/step';
import type { IncomingRecord, MatchedBy, SentText, StatusRecord } from '../model';
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
import { keepAnswerRules } from './again';
import {
  type FoundRequest,
  findOwnRequest,
  findRequest,
  openAlias,
  openRequests,
  recipientDigest,
  requestKey,
} from './open-requests';
import { followUpGraceMs, type ReplyRequest } from './reply-request';

/** Exists as soon as any message is remembered. From then on, an incoming record can be a reply. */
const sentIndexKey = 'remembers';

/** Records that messages are remembered. */
export function noteSentIndex(at: number, readKey: ReadKey, changes: Changes): void {
  if (!readKey(sentIndexKey)) changes.remember.set(sentIndexKey, { at, forMs: foreverMs, value: '' });
}

export function hasSentIndex(readKey: ReadKey): boolean {
  return readKey(sentIndexKey) !== undefined;
}

/** A remembered message, stored under its reference. */
interface StoredText extends Omit<SentText, 'matchedBy'> {
  /** Id of the message. */
  text?: string;
  /** How long the message is remembered, in ms, if its reply requests need more time than that. */
  knownMs?: number;
}

/** The message that a record answers. */
export interface Match {
  sent: SentText;
  /** Until when records that answer no open request can be matched to the message, in ms since 1970. */
  knownUntil: number;
  /** The open reply request to which the record belongs. */
  request?: FoundRequest;
}

const sentPrefix = 'sent:';
const sentKey = (reference: string) => sentPrefix + reference;

/** Returns the name of a remembered message: its messageId, or else its id. */
export function referenceOf(messageId: string | undefined, text: Pick<MessageItem, 'id'>): string {
  return messageId === undefined ? digest('text', text.id) : digest('messageId', messageId.trim());
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

/** Derives the keys of a record. `default` is the name of a message without a messageId (§2.3). */
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
 * Finds the message that a record answers, by messageId. If an incoming message names no messageId, its handset
 * decides: the latest open reply request, or else the latest message.
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
  const known = parseReferences(readKey(handsetKey(sender)));
  const openTo = ({ sent, asks }: Reference) => {
    const open = asks && findRequest(sent, sender, readKey);
    return open?.isPending ? undefined : open;
  };
  const latest = [...known].reverse().find(openTo) ?? known.at(-1);
  const sent = latest && readSent(latest.sent, readKey);
  const request = latest && openTo(latest);
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
  // Any other handset can belong to an address-book item.
  for (const item of to) {
    const ofItem = isHandset(item) ? undefined : findRequest(reference, recipientDigest(item), readKey);
    if (ofItem) return ofItem;
  }
  return undefined;
}

/** A status never ends the request of an address-book item, and statuses of a message `again` end no request. */
function requestOfStatus(from: unknown, reference: string, readKey: ReadKey): FoundRequest | undefined {
  return isHandset(normaliseRecipient(from)) ? findOwnRequest(reference, recipientDigest(from), readKey) : undefined;
}

/** A message, and until when it is remembered, in ms since 1970. */
type KnownText = StoredText & { knownUntil: number };

function readSent(reference: string, readKey: ReadKey): KnownText | undefined {
  const remembered = readKey(sentKey(reference));
  const sent = parseRememberedValue(remembered, isStoredText);
  if (!remembered || !sent) return undefined;
  return { ...sent, knownUntil: remembered.at + (sent.knownMs ?? remembered.forMs) };
}

/** Creates a step that reads the bodies of remembered messages, by reference. */
export function createBodyReading(references: readonly string[]): Step<Map<string, string>> {
  const different = [...new Set(references)];
  return {
    keys: different.map(sentKey),
    whileFailing: 'refuse',
    decide(readKey) {
      const bodies = different.flatMap((reference): [string, string][] => {
        const sent = readSent(reference, readKey);
        return sent ? [[reference, sent.body]] : [];
      });
      return () => new Map(bodies);
    },
  };
}

function isStoredText(value: unknown): value is StoredText {
  const { to, body } = Object(value) as Partial<Record<keyof StoredText, unknown>>;
  return Array.isArray(to) && to.every((one) => typeof one === 'string') && typeof body === 'string';
}

function publicMatch({ text: _, knownMs: __, knownUntil, ...sent }: KnownText, matchedBy: MatchedBy): Match {
  return { sent: { ...sent, matchedBy }, knownUntil };
}

/** A message that was sent to a handset. */
interface Reference {
  /** The reference of the message. */
  sent: string;
  at: number;
  until: number;
  /** Whether the handset has, or had, a reply request. */
  asks?: true;
}

/**
 * Maximum number of messages per handset that a reply without a messageId can answer: without and with a reply request.
 */
const maxMessagesPerHandset = 8;
const maxRequestsPerHandset = 50;

const handsetPrefix = 'handset:';
const handsetKey = (recipient: string) => handsetPrefix + recipient;

/** Says whether a recipient is a number and not an address-book item. */
export function isHandset(recipient: string): boolean {
  return /^\d+$/.test(recipient);
}

function parseReferences(remembered: Remembered | undefined): Reference[] {
  return parseRememberedValue(remembered, isReferences) ?? [];
}

function isReferences(value: unknown): value is Reference[] {
  return (
    Array.isArray(value) && value.every((one) => typeof one?.sent === 'string' && Number.isFinite(one.at + one.until))
  );
}

/**
 * @param references in the order in which the messages were sent; their times can be out of order, because clocks can
 * be set
 */
function writeReferences(key: string, references: readonly Reference[], changes: Changes): void {
  const asking = references.filter(({ asks }) => asks);
  const others = references.filter(({ asks }) => !asks);
  const known = new Set([...asking.slice(-maxRequestsPerHandset), ...others.slice(-maxMessagesPerHandset)]);
  const kept = references.filter((reference) => known.has(reference));
  const at = Math.max(...kept.map((reference) => reference.at));
  const until = Math.max(...kept.map((reference) => reference.until));
  const remembered = { at, forMs: until - at, value: JSON.stringify(kept) };
  changes.remember.set(key, kept.length === 0 ? undefined : remembered);
}

/** Forgets a message for the recipients that did not receive it, because it was remembered before it was sent. */
export function forgetSent(
  { id }: Pick<MessageItem, 'id'>,
  { reference: sent, recipients }: { reference: string; recipients: readonly string[] },
  readKey: ReadKey,
  changes: Changes,
): void {
  // A different message with the same messageId is stored here.
  if (readSent(sent, readKey)?.text !== id) return;
  for (const key of handsetKeysOf(recipients).values()) {
    const references = parseReferences(readKey(key));
    const others = references.filter((reference) => reference.sent !== sent);
    if (others.length < references.length) writeReferences(key, others, changes);
  }
}

/** The time and the settings of a step. Durations in ms. */
export interface Memory extends KeyMemory {
  time: CountTime;
  rules: RuleSettings;
  sentMs: number;
}

/** Says how long to remember a message that is sent or accepted now. */
export function durationOf({ options, again }: MessageItem, { now, sentMs }: Pick<Memory, 'now' | 'sentMs'>): Duration {
  const waitsMs = [options.waitMs, options.reportMs, again?.waitMs].filter((waitMs) => waitMs !== undefined);
  return { at: now, forMs: Math.max(sentMs, ...waitsMs.map((waitMs) => waitMs + followUpGraceMs)) };
}

/** The keys that remember a message. */
export interface SentKeys {
  messageId: string | undefined;
  /** See {@link referenceOf}. */
  reference: string;
  /** Keys of the handsets that have received the message, or might have, by number. */
  handsets: ReadonlyMap<string, string>;
}

export function sentKeysOf(text: MessageItem, messageId: string | undefined, recipients: readonly string[]): SentKeys {
  return { messageId, reference: referenceOf(messageId, text), handsets: handsetKeysOf(recipients) };
}

function handsetKeysOf(recipients: readonly string[]): ReadonlyMap<string, string> {
  return new Map(recipients.filter(isHandset).map((msisdn) => [msisdn, handsetKey(recipientDigest(msisdn))]));
}

/** A message to be remembered. */
interface Remembering {
  text: MessageItem;
  /** The recipients to which the message goes. */
  to: string[];
  keys: SentKeys;
  /** The reply requests that a reply can still answer. */
  open: readonly ReplyRequest[];
  /** Whether the message is known to be accepted. */
  isAccepted: boolean;
}

/** Remembers a message, so that replies and statuses can be matched to it. */
export function remember(
  { text, to, keys, open, isAccepted }: Remembering,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  readKey: ReadKey,
  changes: Changes,
): void {
  const { reference, handsets } = keys;
  const duration = durationOf(text, memory);
  const { at, forMs } = duration;
  const asked = new Set(text.again ? to : open.map(({ recipient }) => recipient));
  noteSentIndex(at, readKey, changes);
  // An earlier message with this messageId stays remembered until the new one is accepted.
  const former = readSent(reference, readKey);
  if (isAccepted || !former || former.text === text.id) rememberText({ text, to, keys }, memory, changes);
  for (const [msisdn, key] of handsets) {
    const added = { sent: reference, at, until: at + forMs, ...(asked.has(msisdn) && { asks: true as const }) };
    const others = parseReferences(readKey(key)).filter((other) => other.sent !== reference);
    writeReferences(key, [...others, added], changes);
    if (text.again) openAlias(text.again, requestKey(reference, recipientDigest(msisdn)), duration, changes);
  }
  openRequests(open, isAccepted ? { duration } : { duration, isPending: true }, readKey, changes);
  if (open.length > 0) keepAnswerRules(text, duration, changes);
}

function rememberText(
  { text, to, keys: { messageId, reference } }: Pick<Remembering, 'text' | 'to' | 'keys'>,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  changes: Changes,
): void {
  const { body, from } = text.message;
  const { sentMs } = memory;
  const duration = durationOf(text, memory);
  const remembered: StoredText = {
    text: text.id,
    ...(messageId === undefined ? undefined : { messageId }),
    to,
    body,
    ...(from === undefined ? undefined : { from }),
    sentAt: new Date(duration.at).toISOString(),
    node: text.node,
    ...(sentMs < duration.forMs ? { knownMs: sentMs } : undefined),
    ...(text.options.remember === undefined ? undefined : { remembered: text.options.remember.value }),
  };
  changes.remember.set(sentKey(reference), { ...duration, value: JSON.stringify(remembered) });
}

/** Records that a sent message was accepted. It replaces an earlier message with its messageId. */
export function acceptSent(
  { text, to, keys }: Pick<Remembering, 'text' | 'to' | 'keys'>,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  readKey: ReadKey,
  changes: Changes,
): void {
  if (readSent(keys.reference, readKey)?.text !== text.id) rememberText({ text, to, keys }, memory, changes);
}
