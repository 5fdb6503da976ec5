import type { IncomingRecord, MatchedBy, SentText, StatusRecord } from '../model';
import type { Moment } from '../outbox/limits';
import type { KeyMemory } from '../outbox/once';
import type { RuleSettings } from '../outbox/rules';
import type { Text } from '../outbox/text';
import {
  type Changes,
  type Duration,
  digest,
  foreverMs,
  type Look,
  type MovedValues,
  parseRememberedValue,
  type Remembered,
} from '../store/store';
import { isBlank, normaliseRecipient } from '../wire/fields';
import { type ReplyRequest, requestGraceMs } from './reply-request';

/** Under this key stands that texts have been remembered, in which case what comes may answer one. */
const sentIndexKey = 'remembers';

/** Writes that down, where it is not yet. */
export function noteSentIndex(at: number, look: Look, changes: Changes): void {
  if (!look(sentIndexKey)) changes.remember.set(sentIndexKey, { at, forMs: foreverMs, value: '' });
}

/** Says whether that is so. */
export function hasSentIndex(look: Look): boolean {
  return look(sentIndexKey) !== undefined;
}

/** A text as it is remembered: under its messageId, found by that or by the handsets that it went to. */
interface StoredText extends Omit<SentText, 'matchedBy'> {
  /** For how long it is known, where that is less than it is remembered for the sake of its reply requests. */
  knownMs?: number;
}

/** What a record answers. */
export interface Match {
  sent: SentText;
  /** Until when it is known to what answers no open reply request, in ms. */
  knownUntil: number;
  /** The open reply request that it answers, or whose wait it ends, and the key that is there while it is open. */
  request?: OpenRequest & { key: string };
}

const sentPrefix = 'sent:';
const sentKey = (reference: string) => sentPrefix + reference;

/** Names a text among the remembered ones: by its messageId, or else by what the ledger calls it. */
export function referenceOf(messageId: string | undefined, text: Pick<Text, 'id'>): string {
  return messageId === undefined ? digest('text', text.id) : digest('messageId', messageId.trim());
}

/** What is to be known of a reply request: to whom it is, and by what its text is remembered. */
type Open = Pick<ReplyRequest, 'id' | 'recipient' | 'reference'>;

/**
 * Opens reply requests to replies.
 *
 * @param pending what is not known of their texts yet
 */
export function openRequests(
  requests: readonly Open[],
  pending: Omit<OpenRequest, 'id'>,
  { at, forMs }: Duration,
  changes: Changes,
): void {
  for (const { id, recipient, reference } of requests) {
    const value = JSON.stringify({ id, ...pending } satisfies OpenRequest);
    changes.remember.set(requestKey(reference, recipientDigest(recipient)), { at, forMs, value });
  }
}

/**
 * Closes a reply request that is not open to a reply any more. Another text with its messageId may have asked since.
 *
 * @param mayBeDecided a reply is left for whoever says that the text has arrived
 */
export function closeRequest(request: Open, look: Look, changes: Changes, mayBeDecided = false): void {
  const open = readOpenRequest(request.reference, recipientDigest(request.recipient), look);
  if (open?.id !== request.id) return;
  const duration = look(open.key);
  if (!mayBeDecided || !duration) changes.remember.set(open.key, undefined);
  else openRequests([request], { isPending: true, isUndecided: true }, duration, changes);
}

/** By what it is looked for what a record answers. */
export interface RecordKeys {
  /** Names the text that the record names, as {@link referenceOf} does; absent: it names none. */
  reference: string | undefined;
  /** Stands for its sender in keys. */
  sender: string;
}

/** Derives them. §2.3: `default` stands for a text that had no messageId. */
export function recordKeysOf({ inReplyToId, from }: { inReplyToId?: unknown; from: unknown }): RecordKeys {
  const id = isBlank(inReplyToId) ? 'default' : String(inReplyToId).trim();
  return { sender: recipientDigest(from), reference: id === 'default' ? undefined : digest('messageId', id) };
}

/** What {@link match} looks at in any case. */
export function keysOfMatch(kind: 'incoming' | 'status', { reference, sender }: RecordKeys): string[] {
  if (reference !== undefined) return [sentKey(reference), requestKey(reference, sender)];
  return kind === 'incoming' ? [handsetKey(sender)] : [];
}

/**
 * Finds the text that a record answers: by messageId, or an incoming message without one by its handset: then the
 * latest open reply request to it, else the latest text.
 */
export function match(
  kind: 'incoming' | 'status',
  { from }: IncomingRecord | StatusRecord,
  { reference, sender }: RecordKeys,
  look: Look,
): Match | undefined {
  if (reference === undefined) {
    const known = kind === 'incoming' ? parseReferences(look(handsetKey(sender))) : [];
    const openTo = ({ sent, asks }: Reference) => {
      const open = asks && readOpenRequest(sent, sender, look);
      return open?.isPending ? undefined : open;
    };
    const latest = [...known].reverse().find(openTo) ?? known.at(-1);
    const sent = latest && readSent(latest.sent, look);
    const request = latest && openTo(latest);
    return sent && { ...publicMatch(sent, 'handset'), ...(request && { request }) };
  }
  const sent = readSent(reference, look);
  if (!sent) return undefined;
  let request = readOpenRequest(reference, sender, look);
  if (!request && kind === 'incoming' && !sent.to.includes(normaliseRecipient(from))) {
    // Whoever replies with the messageId answers for a contact or group that it asks.
    const items = sent.to.filter((item) => !isHandset(item));
    const answers = items.map((item) => readOpenRequest(reference, recipientDigest(item), look));
    request = answers.find((open) => open !== undefined);
  }
  return { ...publicMatch(sent, 'messageId'), ...(request && { request }) };
}

/** What stands under the key of an open reply request. */
interface OpenRequest {
  id: string;
  /** Nobody knows yet whether its text was accepted: it is answered by messageId alone. */
  isPending?: true;
  /** Nor will it be known before somebody says so, if ever: its reply is an ordinary message, too. */
  isUndecided?: true;
}

/** @param recipient see {@link recipientDigest} */
function readOpenRequest(
  reference: string,
  recipient: string,
  look: Look,
): (OpenRequest & { key: string }) | undefined {
  const key = requestKey(reference, recipient);
  const open = parseRememberedValue(look(key), isOpenRequest);
  return open && { ...open, key };
}

function isOpenRequest(value: unknown): value is OpenRequest {
  return typeof (value as OpenRequest | null)?.id === 'string';
}

/** A text, and until when it is known. */
type KnownText = StoredText & { knownUntil: number };

function readSent(reference: string, look: Look): KnownText | undefined {
  const remembered = look(sentKey(reference));
  const sent = parseRememberedValue(remembered, isStoredText);
  if (!remembered || !sent) return undefined;
  return { ...sent, knownUntil: remembered.at + (sent.knownMs ?? remembered.forMs) };
}

function isStoredText(value: unknown): value is StoredText {
  const { to, body } = Object(value) as Partial<Record<keyof StoredText, unknown>>;
  return Array.isArray(to) && to.every((one) => typeof one === 'string') && typeof body === 'string';
}

function publicMatch({ knownMs: _, knownUntil, ...sent }: KnownText, matchedBy: MatchedBy): Match {
  return { sent: { ...sent, matchedBy }, knownUntil };
}

/** What is known of one handset: the texts that it got, the latest last. */
interface Reference {
  /** The part of the key under which the text is remembered. */
  sent: string;
  at: number;
  until: number;
  /** It asked the handset. */
  asks?: true;
}

/** So many texts to one handset are known that ask nothing; the latest is the one that counts. */
const referencesPerHandset = 8;
/** So many texts that asked are known by the handset alone: more than a person can answer. By messageId all are. */
const maxRequestsPerHandset = 50;

const handsetPrefix = 'handset:';
const requestPrefix = 'request:';

/** What stands for a recipient, or a sender, in keys. */
const recipientDigest = (recipient: unknown) => digest(normaliseRecipient(recipient));
const handsetKey = (recipient: string) => handsetPrefix + recipient;
/** The key of a reply request, which is there while it is open. */
const requestKey = (reference: string, recipient: string) => `${requestPrefix}${reference}:${recipient}`;

/** Says whether a recipient is a number, rather than a contact or group. */
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

/** @param references in the order in which their texts were sent, which says more than their times: the clock may have been set */
function writeReferences(key: string, references: readonly Reference[], changes: Changes): void {
  const asking = references.filter(({ asks }) => asks);
  const others = references.filter(({ asks }) => !asks);
  const known = new Set([...asking.slice(-maxRequestsPerHandset), ...others.slice(-referencesPerHandset)]);
  const kept = references.filter((reference) => known.has(reference));
  const at = Math.max(...kept.map((reference) => reference.at));
  const until = Math.max(...kept.map((reference) => reference.until));
  const remembered = { at, forMs: until - at, value: JSON.stringify(kept) };
  changes.remember.set(key, kept.length === 0 ? undefined : remembered);
}

/** It is known who has not got a text that was remembered as it left. */
export function forgetSent(sent: string, recipients: readonly string[], look: Look, changes: Changes): void {
  for (const key of handsetKeysOf(recipients).values()) {
    const references = parseReferences(look(key));
    const others = references.filter((reference) => reference.sent !== sent);
    if (others.length < references.length) writeReferences(key, others, changes);
  }
}

/** What two logins know of one handset, put together: in which order they have sent only their times tell. */
function mergeReferences(own: Remembered, other: Remembered, key: string, changes: Changes): undefined {
  const known = parseReferences(own);
  const added = parseReferences(other).filter(({ sent }) => !known.some((reference) => reference.sent === sent));
  const all = [...added, ...known].sort((a, b) => a.at - b.at);
  writeReferences(key, all, changes);
  return undefined;
}

/** What steps go by: the time, and for how long the ledger remembers what, in ms. */
export interface Memory extends KeyMemory {
  moment: Moment;
  rules: RuleSettings;
  sentMs: number;
}

/** From when on, and for how long, a text is remembered that is accepted or leaves now. */
export function durationOf({ options }: Text, { now, sentMs }: Pick<Memory, 'now' | 'sentMs'>): Duration {
  const waitsMs = [options.waitMs, options.reportMs].filter((waitMs) => waitMs !== undefined);
  return { at: now, forMs: Math.max(sentMs, ...waitsMs.map((waitMs) => waitMs + requestGraceMs)) };
}

/** By what a text is remembered, as it leaves or is accepted. */
export interface SentKeys {
  messageId: string | undefined;
  /** See {@link referenceOf}. */
  reference: string;
  /** Under these keys is what is known of the handsets that have got it, or may have, by their numbers. */
  handsets: ReadonlyMap<string, string>;
}

export function sentKeysOf(text: Text, messageId: string | undefined, recipients: readonly string[]): SentKeys {
  return { messageId, reference: referenceOf(messageId, text), handsets: handsetKeysOf(recipients) };
}

function handsetKeysOf(recipients: readonly string[]): ReadonlyMap<string, string> {
  return new Map(recipients.filter(isHandset).map((msisdn) => [msisdn, handsetKey(recipientDigest(msisdn))]));
}

/** What is remembered of a text. */
interface Remembering {
  text: Text;
  /** Whom it goes to. */
  to: string[];
  keys: SentKeys;
  /** Its reply requests that a reply may answer yet. */
  open: readonly ReplyRequest[];
  /** Whether it is known to be accepted. */
  isAccepted: boolean;
}

/** Remembers a text for the replies and statuses that answer it. */
export function remember(
  { text, to, keys, open, isAccepted }: Remembering,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  look: Look,
  changes: Changes,
): void {
  const { body, from } = text.message;
  const { messageId, reference, handsets } = keys;
  const { sentMs } = memory;
  const duration = durationOf(text, memory);
  const { at, forMs } = duration;
  const recipients = new Set(open.map(({ recipient }) => recipient));
  noteSentIndex(at, look, changes);
  const remembered: StoredText = {
    ...(messageId === undefined ? undefined : { messageId }),
    to,
    body,
    ...(from === undefined ? undefined : { from }),
    sentAt: new Date(at).toISOString(),
    node: text.node,
    ...(sentMs < forMs ? { knownMs: sentMs } : undefined),
    ...(text.options.remember === undefined ? undefined : { remembered: text.options.remember.value }),
  };
  changes.remember.set(sentKey(reference), { ...duration, value: JSON.stringify(remembered) });
  for (const [msisdn, key] of handsets) {
    const added = { sent: reference, at, until: at + forMs, ...(recipients.has(msisdn) && { asks: true as const }) };
    const others = parseReferences(look(key)).filter((other) => other.sent !== reference);
    writeReferences(key, [...others, added], changes);
  }
  openRequests(open, isAccepted ? {} : { isPending: true }, duration, changes);
}

/** What is known of a handset is put together. */
export const movedSent: readonly MovedValues[] = [
  { prefix: sentPrefix },
  { prefix: requestPrefix },
  { prefix: handsetPrefix, merge: mergeReferences },
  { prefix: sentIndexKey },
];
