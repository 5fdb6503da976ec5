import { digest } from '../digest';
import type { IncomingRecord, MatchedBy, SentText, StatusRecord } from '../model';
import type { Heritage } from '../outbox/heritage';
import type { Duration } from '../outbox/once';
import { submittedOf, type Text } from '../outbox/outgoing';
import { type Changes, type Look, parseRemembered } from '../store/store';
import { isBlank, normaliseRecipient } from '../wire/fields';
import {
  handsetKey,
  handsetPrefix,
  isHandset,
  latestTo,
  mergeReferences,
  questionKey,
  questionPrefix,
  readReferences,
  withoutQuestion,
  writeReferences,
} from './handsets';

/** A text as it is remembered: under its messageId, found by that or by the handsets that it went to. */
interface StoredText extends Omit<SentText, 'matchedBy'> {
  /** For how long it is known, where that is less than it is remembered for the sake of its questions. */
  knownMs?: number;
  /** Questions to contacts and groups: whoever replies with the messageId answers one. */
  items?: QuestionReference[];
}

interface QuestionReference {
  item: string;
  question: string;
}

/** What is remembered of a text that leaves, or is accepted. */
interface SentNow {
  text: Text;
  messageId: string | undefined;
  /** For how long it is known. */
  sentMs: number;
  /** Ids of the questions to open, by recipient. */
  questions: ReadonlyMap<string, string>;
  /** Who has accepted it; absent while nobody knows: until then its questions are answered by messageId alone. */
  reached?: readonly string[] | undefined;
}

/** What a record answers. */
export interface Match {
  sent: SentText;
  /** Until when it is known to what answers no open question, in ms. */
  knownUntil: number;
  /** The open question that it answers, with how to close that. */
  question?: { id: string; close(changes: Changes): void };
}

const sentPrefix = 'sent:';
const sentKey = (reference: string) => sentPrefix + reference;

/** Names a text among the remembered ones: by its messageId, or else by what the ledger calls it. */
export function referenceOf(messageId: string | undefined, text: Pick<Text, 'id'>): string {
  return messageId === undefined ? digest('text', text.id) : digest('messageId', messageId.trim());
}

/** The keys of a text that went to `recipients`. */
export function keysOfSent(reference: string, recipients: readonly string[]): string[] {
  return [sentKey(reference), ...recipients.filter(isHandset).map(handsetKey)];
}

/** The keys of one question, all that {@link closeQuestion} changes among them. */
export function keysOfQuestion({ reference, recipient }: { reference: string; recipient: string }): string[] {
  const [sent = '', ...handsets] = keysOfSent(reference, [recipient]);
  return [sent, ...handsets.flatMap((handset) => [handset, questionKey(handset, reference)])];
}

/** Remembers a text for the replies and statuses that answer it. */
export function rememberSent(sent: SentNow, duration: Duration, look: Look, changes: Changes): void {
  const { text, messageId, sentMs, questions, reached } = sent;
  const { body, from } = text.message;
  const to = submittedOf(text);
  const { at, forMs } = duration;
  const reference = referenceOf(messageId, text);
  const items = to.filter((item) => !isHandset(item) && questions.has(item));
  const remembered: StoredText = {
    ...(messageId === undefined ? undefined : { messageId }),
    to,
    body,
    ...(from === undefined ? undefined : { from }),
    sentAt: new Date(at).toISOString(),
    node: text.node,
    ...(sentMs < forMs ? { knownMs: sentMs } : undefined),
    ...(text.options.remember === undefined ? undefined : { remembered: text.options.remember.value }),
    ...(items.length === 0
      ? undefined
      : { items: items.map((item) => ({ item, question: questions.get(item) ?? '' })) }),
  };
  changes.remember.set(sentKey(reference), { ...duration, value: JSON.stringify(remembered) });
  for (const msisdn of (reached ?? to).filter(isHandset)) {
    const key = handsetKey(msisdn);
    const question = questions.get(msisdn);
    const asks = question === undefined ? undefined : reached ? { question } : { pending: question };
    const added = { sent: reference, at, until: at + forMs, ...asks };
    const others = readReferences(key, look).filter((other) => other.sent !== reference);
    writeReferences(key, [...others, added], changes);
  }
}

/** Closes a question that is not open to a reply any more. */
export function closeQuestion(
  question: { id: string; recipient: string; reference: string },
  look: Look,
  changes: Changes,
): void {
  const { id, recipient, reference } = question;
  if (isHandset(recipient)) withoutQuestion(handsetKey(recipient), { id, reference }, look)(changes);
  else withoutItem(sentKey(reference), id, look)(changes);
}

/** The keys to look at before {@link match} is asked. */
export function keysOfRecord(kind: 'incoming' | 'status', record: IncomingRecord | StatusRecord): string[] {
  const id = answeredId(record);
  const keys = id === undefined ? [] : [sentKey(digest('messageId', id))];
  return kind === 'incoming' || keys.length > 0 ? [...keys, handsetKey(record.from)] : [];
}

/**
 * The keys that {@link match} needs beside those, once they are known: where the handset alone says what is answered, or says
 * nothing of a text that is.
 */
export function furtherKeysOfRecord(
  kind: 'incoming' | 'status',
  record: IncomingRecord | StatusRecord,
  look: Look,
): string[] {
  const id = answeredId(record);
  if (id === undefined) {
    const latest = kind === 'incoming' ? latestTo(record.from, look) : undefined;
    return latest === undefined ? [] : [sentKey(latest.sent)];
  }
  const reference = digest('messageId', id);
  const handset = handsetKey(record.from);
  const isTold = readReferences(handset, look).some(({ sent }) => sent === reference);
  return isTold || !look(sentKey(reference)) ? [] : [questionKey(handset, reference)];
}

/**
 * Finds the text that a record answers: by messageId, or an incoming message without one by its handset: then the
 * latest open question to it, else the latest text.
 */
export function match(
  kind: 'incoming' | 'status',
  record: IncomingRecord | StatusRecord,
  look: Look,
): Match | undefined {
  const id = answeredId(record);
  if (id === undefined) return kind === 'incoming' ? matchHandset(record.from, look) : undefined;
  const reference = digest('messageId', id);
  const sent = readSent(reference, look);
  if (!sent) return undefined;
  const found = publicMatch(sent, 'messageId');
  const question = kind === 'incoming' ? openQuestion(reference, sent, record.from, look) : undefined;
  return question === undefined ? found : { ...found, question };
}

/** Finds the open question that a status ends, since it says that no reply will come. */
export function questionOf(record: StatusRecord, look: Look): Match['question'] {
  const id = answeredId(record);
  if (id === undefined) return undefined;
  const reference = digest('messageId', id);
  const sent = readSent(reference, look);
  return sent && ownQuestion(reference, record.from, look);
}

/** What is known of a handset is put together. */
export const sentHeritage: readonly Heritage[] = [
  { prefix: sentPrefix },
  { prefix: questionPrefix },
  { prefix: handsetPrefix, merge: mergeReferences },
];

function matchHandset(msisdn: string, look: Look): Match | undefined {
  const reference = latestTo(msisdn, look);
  const sent = reference && readSent(reference.sent, look);
  if (!reference || !sent) return undefined;
  const found = publicMatch(sent, 'handset');
  const { question: id } = reference;
  if (id === undefined) return found;
  const close = withoutQuestion(handsetKey(msisdn), { id, reference: reference.sent }, look);
  return { ...found, question: { id, close } };
}

/** The question of a text that its handset has not answered, or else one to a contact or group of it. */
function openQuestion(reference: string, sent: StoredText, msisdn: string, look: Look): Match['question'] {
  const own = ownQuestion(reference, msisdn, look);
  const [item] = sent.items ?? [];
  if (own || !item || sent.to.includes(normaliseRecipient(msisdn))) return own;
  return { id: item.question, close: withoutItem(sentKey(reference), item.question, look) };
}

/** The question of a text that its handset has not answered. */
function ownQuestion(reference: string, msisdn: string, look: Look): Match['question'] {
  const key = handsetKey(msisdn);
  const known = readReferences(key, look).find((other) => other.sent === reference);
  const id = known?.question ?? known?.pending ?? look(questionKey(key, reference))?.value;
  return id === undefined ? undefined : { id, close: withoutQuestion(key, { id, reference }, look) };
}

function withoutItem(key: string, question: string, look: Look): (changes: Changes) => void {
  const remembered = look(key);
  return (changes) => {
    const sent = parseRemembered(remembered, isStoredText);
    if (!remembered || !sent) return;
    const items = sent.items?.filter((item) => item.question !== question) ?? [];
    changes.remember.set(key, { ...remembered, value: JSON.stringify({ ...sent, items }) });
  };
}

/** A text, and until when it is known. */
type KnownText = StoredText & { knownUntil: number };

function readSent(reference: string, look: Look): KnownText | undefined {
  const remembered = look(sentKey(reference));
  const sent = parseRemembered(remembered, isStoredText);
  if (!remembered || !sent) return undefined;
  return { ...sent, knownUntil: remembered.at + (sent.knownMs ?? remembered.forMs) };
}

function isStoredText(value: unknown): value is StoredText {
  const { to, body, items = [] } = Object(value) as Partial<Record<keyof StoredText, unknown>>;
  const areItems = Array.isArray(items) && items.every((one) => typeof one?.question === 'string');
  return Array.isArray(to) && typeof body === 'string' && areItems;
}

/** §2.3: `default` stands for a text that had no messageId. */
function answeredId({ inReplyToId }: { inReplyToId?: unknown }): string | undefined {
  if (isBlank(inReplyToId)) return undefined;
  const id = String(inReplyToId).trim();
  return id === 'default' ? undefined : id;
}

function publicMatch({ items: _, knownMs: __, knownUntil, ...sent }: KnownText, matchedBy: MatchedBy): Match {
  return { sent: { ...sent, matchedBy }, knownUntil };
}
