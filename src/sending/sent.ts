import { digest } from '../digest';
import type { IncomingRecord, MatchedBy, SentText, StatusRecord } from '../model';
import type { Changes, Look, Remembered } from '../store/store';
import { isBlank, normaliseRecipient } from '../wire/fields';
import type { Heritage } from './heritage';
import type { Duration } from './once';
import { submittedOf, type Text } from './outgoing';

/** A text as it is remembered: under its messageId, found by that or by the handsets that it went to. */
interface StoredText extends Omit<SentText, 'matchedBy'> {
  /** Questions to contacts and groups: whoever replies with the messageId answers one. */
  items?: QuestionReference[];
}

/** What is known of one handset: the texts that it got, the latest last. */
interface Reference {
  /** The part of the key under which the text is remembered. */
  sent: string;
  at: number;
  until: number;
  /** Id of the question that the handset has not answered. */
  question?: string;
}

interface QuestionReference {
  item: string;
  question: string;
}

/** What a record answers. */
export interface Match {
  sent: SentText;
  /** The open question that it answers, with how to close that. */
  question?: { id: string; close(changes: Changes): void };
}

/** Besides its open questions, so many texts to one handset are known; the latest is the one that counts. */
const referencesPerHandset = 8;
/** So many open questions are known by their handset alone: more than a person can answer. By messageId all are. */
const questionsPerHandset = 200;

/** Begins the keys of what is known of handsets. */
const handsetPrefix = 'handset:';
/** Begins the keys of open questions for which there is no place among what is known of their handset. */
const questionPrefix = 'question:';

const sentPrefix = 'sent:';
const sentKey = (reference: string) => sentPrefix + reference;
const handsetKey = (msisdn: unknown) => `${handsetPrefix}${digest(normaliseRecipient(msisdn))}`;
const questionKey = (handset: string, reference: string) => `${questionPrefix}${handset}:${reference}`;

/** Names a text among the remembered ones: by its messageId, or else by what the ledger calls it. */
export function referenceOf(messageId: string | undefined, text: Pick<Text, 'id'>): string {
  return messageId === undefined ? digest('text', text.id) : digest('messageId', messageId);
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

/**
 * Remembers a text for the replies and statuses that answer it.
 *
 * @param questions ids of the questions to open, by recipient
 */
export function rememberSent(
  sent: { text: Text; messageId: string | undefined; questions: ReadonlyMap<string, string> },
  duration: Duration,
  look: Look,
  changes: Changes,
): void {
  const { text, messageId, questions } = sent;
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
    ...(text.options.remember === undefined ? undefined : { remembered: text.options.remember.value }),
    ...(items.length === 0
      ? undefined
      : { items: items.map((item) => ({ item, question: questions.get(item) ?? '' })) }),
  };
  changes.remember.set(sentKey(reference), { ...duration, value: JSON.stringify(remembered) });
  for (const msisdn of to.filter(isHandset)) {
    const question = questions.get(msisdn);
    const added = { sent: reference, at, until: at + forMs, ...(question === undefined ? undefined : { question }) };
    const others = readReferences(handsetKey(msisdn), look).filter((other) => other.sent !== reference);
    writeReferences(handsetKey(msisdn), [...others, added], changes);
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
  const found: Match = { sent: publicSent(sent, 'messageId') };
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
  {
    prefix: handsetPrefix,
    merge(own, other, key, changes) {
      const known = parseReferences(own);
      const added = parseReferences(other).filter(({ sent }) => !known.some((reference) => reference.sent === sent));
      // In which order the two have sent them only their times tell.
      const all = [...added, ...known].sort((a, b) => a.at - b.at);
      writeReferences(key, all, changes);
      return undefined;
    },
  },
];

/** Says whether a recipient is a number, rather than a contact or group. */
export function isHandset(recipient: string): boolean {
  return /^\d+$/.test(recipient);
}

function matchHandset(msisdn: string, look: Look): Match | undefined {
  const reference = latestTo(msisdn, look);
  const sent = reference && readSent(reference.sent, look);
  if (!reference || !sent) return undefined;
  const found: Match = { sent: publicSent(sent, 'handset') };
  const { question: id } = reference;
  if (id === undefined) return found;
  const close = withoutQuestion(handsetKey(msisdn), { id, reference: reference.sent }, look);
  return { ...found, question: { id, close } };
}

function latestTo(msisdn: string, look: Look): Reference | undefined {
  const references = readReferences(handsetKey(msisdn), look);
  return references.filter(({ question }) => question !== undefined).at(-1) ?? references.at(-1);
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
  const id = known?.question ?? look(questionKey(key, reference))?.value;
  return id === undefined ? undefined : { id, close: withoutQuestion(key, { id, reference }, look) };
}

function withoutQuestion(
  key: string,
  { id, reference }: { id: string; reference: string },
  look: Look,
): (changes: Changes) => void {
  const references = readReferences(key, look);
  return (changes) => {
    const answered = references.map((other) => {
      if (other.question !== id) return other;
      const { question: _, ...rest } = other;
      return rest;
    });
    writeReferences(key, answered, changes);
    // It may be there as well, where its text was sent again.
    changes.remember.set(questionKey(key, reference), undefined);
  };
}

function withoutItem(key: string, question: string, look: Look): (changes: Changes) => void {
  const remembered = look(key);
  return (changes) => {
    if (!remembered) return;
    const sent = JSON.parse(remembered.value) as StoredText;
    const items = sent.items?.filter((item) => item.question !== question) ?? [];
    changes.remember.set(key, { ...remembered, value: JSON.stringify({ ...sent, items }) });
  };
}

function readSent(reference: string, look: Look): StoredText | undefined {
  const remembered = look(sentKey(reference));
  return remembered && (JSON.parse(remembered.value) as StoredText);
}

function readReferences(key: string, look: Look): Reference[] {
  return parseReferences(look(key));
}

function parseReferences(remembered: Remembered | undefined): Reference[] {
  return remembered ? (JSON.parse(remembered.value) as Reference[]) : [];
}

/** @param references in the order in which their texts were sent, which says more than their times: the clock may have been set */
function writeReferences(key: string, references: readonly Reference[], changes: Changes): void {
  const open = references.filter(({ question }) => question !== undefined);
  const others = references.filter(({ question }) => question === undefined);
  for (const { sent, at, until, question = '' } of open.slice(0, -questionsPerHandset)) {
    changes.remember.set(questionKey(key, sent), { at, forMs: until - at, value: question });
  }
  const known = new Set([...open.slice(-questionsPerHandset), ...others.slice(-referencesPerHandset)]);
  const kept = references.filter((reference) => known.has(reference));
  const at = Math.max(...kept.map((reference) => reference.at));
  const until = Math.max(...kept.map((reference) => reference.until));
  const remembered = { at, forMs: until - at, value: JSON.stringify(kept) };
  changes.remember.set(key, kept.length === 0 ? undefined : remembered);
}

/** §2.3: `default` stands for a text that had no messageId. */
function answeredId({ inReplyToId }: { inReplyToId?: unknown }): string | undefined {
  if (isBlank(inReplyToId)) return undefined;
  const id = String(inReplyToId).trim();
  return id === 'default' ? undefined : id;
}

function publicSent({ items: _, ...sent }: StoredText, matchedBy: MatchedBy): SentText {
  return { ...sent, matchedBy };
}
