import type { Clock } from '../clock';
import { digest } from '../digest';
import type { Step } from '../journal/journal';
import type { IncomingRecord, MatchedBy, SentText, StatusRecord } from '../model';
import type { Moment } from '../outbox/limits';
import type { Duration } from '../outbox/once';
import type { RuleSettings } from '../outbox/rules';
import { isAccepted, isUnknown, type Outcome, submittedOf, type Text } from '../outbox/text';
import {
  type Changes,
  keepItem,
  type Look,
  type MovedValues,
  parseRememberedValue,
  type Remembered,
} from '../store/store';
import { isBlank, normaliseRecipient } from '../wire/fields';
import { askedKey, type Question, questionGraceMs } from './question';

/** Under this key stands until when anything is remembered of texts that went out. */
export const sentIndexKey = 'remembers';

/** What stands there is put off by so much more than is needed, so that it need not be for each text. */
const slackMs = 3_600_000;

/**
 * Knows whether anything is remembered of texts that went out: while nothing is, nothing has to be looked up for what comes in. Of
 * a store that others share only the store knows, in the reading that is made anyway.
 */
export class SentIndex {
  readonly #isShared: boolean;
  readonly #clock: Clock;
  #isKnown = false;
  /** By {@link Clock.elapsed}; never sooner than was said before. */
  #until = 0;

  constructor(isShared: boolean, clock: Clock) {
    this.#isShared = isShared;
    this.#clock = clock;
  }

  /** Whether something may be remembered. */
  get isExpected(): boolean {
    return !this.#isKnown || this.#until > this.#clock.elapsed();
  }

  /** What to look at along with a record while nothing is expected, to learn what others remember. */
  get keys(): readonly string[] {
    return this.#isShared ? [sentIndexKey] : [];
  }

  /** A text is about to be remembered. */
  expect({ at, forMs }: Duration): void {
    const leftMs = at + forMs - this.#clock.now();
    this.#until = Math.max(this.#until, this.#clock.elapsed() + leftMs);
  }

  /** Somebody has looked at {@link keys}. Says whether something may be remembered. */
  isRemembered(look: Look): boolean {
    const remembered = look(sentIndexKey);
    if (remembered) this.expect(remembered);
    return this.isExpected;
  }

  /** The store has been opened, or others have brought what they remember: finds out what is in it. */
  findOut(): Step<void> {
    this.#isKnown = false;
    return {
      keys: [sentIndexKey],
      whileFailing: 'postpone',
      decide: (look) => () => {
        this.isRemembered(look);
        this.#isKnown = true;
      },
    };
  }
}

/** Writes down that something is remembered for so long, where it is not yet. */
export function noteSentIndex({ at, forMs }: Duration, look: Look, changes: Changes): void {
  const remembered = look(sentIndexKey);
  if (remembered && endOf(remembered) >= at + forMs) return;
  changes.remember.set(sentIndexKey, { at, forMs: forMs + slackMs, value: '' });
}

/** The one that lasts longer. */
export const movedSentIndex: MovedValues = {
  prefix: sentIndexKey,
  merge: (own, other) => (endOf(own) >= endOf(other) ? own : other),
};

function endOf({ at, forMs }: Duration): number {
  return at + forMs;
}

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

/** Says whether an incoming message is matched by its handset, since it names no text that it answers. */
export function isByHandset(record: IncomingRecord): boolean {
  return answeredReference(record) === undefined;
}

/** The keys to look at before {@link match} is asked. */
export function keysOfRecord(kind: 'incoming' | 'status', record: IncomingRecord | StatusRecord): string[] {
  const reference = answeredReference(record);
  const keys = reference === undefined ? [] : [sentKey(reference)];
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
  const reference = answeredReference(record);
  if (reference === undefined) {
    const latest = kind === 'incoming' ? latestTo(record.from, look) : undefined;
    return latest === undefined ? [] : [sentKey(latest.sent)];
  }
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
  const reference = answeredReference(record);
  if (reference === undefined) return kind === 'incoming' ? matchHandset(record.from, look) : undefined;
  const sent = readSent(reference, look);
  if (!sent) return undefined;
  const found = publicMatch(sent, 'messageId');
  const question = kind === 'incoming' ? openQuestion(reference, sent, record.from, look) : undefined;
  return question === undefined ? found : { ...found, question };
}

/** Finds the open question that a status ends, since it says that no reply will come. */
export function questionOf(record: StatusRecord, look: Look): Match['question'] {
  const reference = answeredReference(record);
  const sent = reference === undefined ? undefined : readSent(reference, look);
  return reference === undefined || !sent ? undefined : ownQuestion(reference, record.from, look);
}

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
    const sent = parseRememberedValue(remembered, isStoredText);
    if (!remembered || !sent) return;
    const items = sent.items?.filter((item) => item.question !== question) ?? [];
    changes.remember.set(key, { ...remembered, value: JSON.stringify({ ...sent, items }) });
  };
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
  const { to, body, items = [] } = Object(value) as Partial<Record<keyof StoredText, unknown>>;
  const areItems = Array.isArray(items) && items.every((one) => typeof one?.question === 'string');
  return Array.isArray(to) && typeof body === 'string' && areItems;
}

/** Names the text that a record says that it answers, as {@link referenceOf} does. §2.3: `default` stands for a text that had no messageId. */
export function answeredReference({ inReplyToId }: { inReplyToId?: unknown }): string | undefined {
  if (isBlank(inReplyToId)) return undefined;
  const id = String(inReplyToId).trim();
  return id === 'default' ? undefined : digest('messageId', id);
}

function publicMatch({ items: _, knownMs: __, knownUntil, ...sent }: KnownText, matchedBy: MatchedBy): Match {
  return { sent: { ...sent, matchedBy }, knownUntil };
}

/** What is known of one handset: the texts that it got, the latest last. */
export interface Reference {
  /** The part of the key under which the text is remembered. */
  sent: string;
  at: number;
  until: number;
  /** Id of the question that the handset has not answered. */
  question?: string;
  /** The same, while nobody knows yet whether its text was accepted: it is answered by messageId alone. */
  pending?: string;
}

/** Besides its open questions, so many texts to one handset are known; the latest is the one that counts. */
const referencesPerHandset = 8;
/** So many open questions are known by their handset alone: more than a person can answer. By messageId all are. */
const questionsPerHandset = 200;

/** Begins the keys of what is known of handsets. */
export const handsetPrefix = 'handset:';
/** Begins the keys of open questions for which there is no place among what is known of their handset. */
export const questionPrefix = 'question:';

export const handsetKey = (msisdn: unknown) => `${handsetPrefix}${digest(normaliseRecipient(msisdn))}`;
export const questionKey = (handset: string, reference: string) => `${questionPrefix}${handset}:${reference}`;

/** Says whether a recipient is a number, rather than a contact or group. */
export function isHandset(recipient: string): boolean {
  return /^\d+$/.test(recipient);
}

/** The text that a message without an id answers: the latest open question, else the latest text. */
export function latestTo(msisdn: string, look: Look): Reference | undefined {
  const references = readReferences(handsetKey(msisdn), look);
  return references.filter(({ question }) => question !== undefined).at(-1) ?? references.at(-1);
}

/** Closes a question of a handset. */
export function withoutQuestion(
  key: string,
  { id, reference }: { id: string; reference: string },
  look: Look,
): (changes: Changes) => void {
  const references = readReferences(key, look);
  return (changes) => {
    const answered = references.map((other) => {
      if (other.question !== id && other.pending !== id) return other;
      const { question: _, pending: __, ...rest } = other;
      return rest;
    });
    writeReferences(key, answered, changes);
    // It may be there as well, where its text was sent again.
    changes.remember.set(questionKey(key, reference), undefined);
  };
}

export function readReferences(key: string, look: Look): Reference[] {
  return parseReferences(look(key));
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
export function writeReferences(key: string, references: readonly Reference[], changes: Changes): void {
  const isAsking = ({ question, pending }: Reference) => (question ?? pending) !== undefined;
  const open = references.filter(isAsking);
  const others = references.filter((reference) => !isAsking(reference));
  for (const { sent, at, until, pending = '', question = pending } of open.slice(0, -questionsPerHandset)) {
    changes.remember.set(questionKey(key, sent), { at, forMs: until - at, value: question });
  }
  const known = new Set([...open.slice(-questionsPerHandset), ...others.slice(-referencesPerHandset)]);
  const kept = references.filter((reference) => known.has(reference));
  const at = Math.max(...kept.map((reference) => reference.at));
  const until = Math.max(...kept.map((reference) => reference.until));
  const remembered = { at, forMs: until - at, value: JSON.stringify(kept) };
  changes.remember.set(key, kept.length === 0 ? undefined : remembered);
}

/** Whom a text has reached, or may have, of those to whom it left: with the id of the question that is open to each, if there is one. */
export interface Reached {
  recipients: readonly string[];
  reached: ReadonlyMap<string, string | undefined>;
}

/** It is known whom a text that was remembered as it left has reached: of it nobody else is asked, nor has got it. */
export function noteReached(sent: string, { recipients, reached }: Reached, look: Look, changes: Changes): void {
  for (const msisdn of recipients.filter(isHandset)) {
    const key = handsetKey(msisdn);
    const references = readReferences(key, look);
    const known = references.find((reference) => reference.sent === sent);
    const question = reached.get(msisdn);
    if (!known || (reached.has(msisdn) && question === undefined)) continue;
    const { pending: _, ...rest } = known;
    const now = question === undefined ? [] : [{ ...rest, question }];
    writeReferences(
      key,
      references.flatMap((reference) => (reference === known ? now : [reference])),
      changes,
    );
  }
}

/** What two logins know of one handset, put together: in which order they have sent only their times tell. */
export function mergeReferences(own: Remembered, other: Remembered, key: string, changes: Changes): undefined {
  const known = parseReferences(own);
  const added = parseReferences(other).filter(({ sent }) => !known.some((reference) => reference.sent === sent));
  const all = [...added, ...known].sort((a, b) => a.at - b.at);
  writeReferences(key, all, changes);
  return undefined;
}

/** What steps go by: the time, and for how long the ledger remembers what, in ms. */
export interface Memory {
  now: number;
  moment: Moment;
  rules: RuleSettings;
  dedupeMs: number;
  sentMs: number;
  /** Whether other instances read replies, too. */
  isShared: boolean;
}

/** From when on, and for how long, a text is remembered that is accepted or leaves now. */
export function durationOf({ options }: Text, { now, sentMs }: Pick<Memory, 'now' | 'sentMs'>): Duration {
  const waitsMs = [options.waitMs, options.reportMs].filter((waitMs) => waitMs !== undefined);
  return { at: now, forMs: Math.max(sentMs, ...waitsMs.map((waitMs) => waitMs + questionGraceMs)) };
}

/** What is remembered of a text as it leaves, or is accepted. */
interface Remembering {
  text: Text;
  messageId: string | undefined;
  asked: readonly Question[];
  /** Those of them that a reply may answer yet. */
  open: readonly Question[];
  /** Who has accepted it, once that is known. */
  reached?: readonly string[];
}

export function remember(
  { text, messageId, asked, open, reached }: Remembering,
  memory: Pick<Memory, 'now' | 'sentMs'>,
  look: Look,
  changes: Changes,
): void {
  const duration = durationOf(text, memory);
  noteSentIndex(duration, look, changes);
  const questions = new Map(open.map(({ recipient, id }) => [recipient, id]));
  rememberSent({ text, messageId, sentMs: memory.sentMs, questions, reached }, duration, look, changes);
  for (const question of asked) keepItem(changes, question);
  if (asked.length > 0 && text.carried !== undefined) {
    changes.remember.set(askedKey(text.id), { ...duration, value: text.carried });
  }
}

/**
 * Whom a text has reached, or may have, that was remembered as it left.
 *
 * @param replied who has got it, whatever else is known
 * @param open questions that wait for a reply
 */
export function whomItReached(
  { message, mayHaveReached = [] }: Text,
  outcome: Outcome,
  replied: readonly Question[],
  open: readonly Question[],
): Map<string, string | undefined> {
  const reached = new Map<string, string | undefined>();
  const got = isAccepted(outcome) ? outcome.accepted : isUnknown(outcome) ? message.to : [];
  for (const recipient of [...got, ...mayHaveReached]) reached.set(recipient, undefined);
  for (const { recipient } of replied) reached.set(recipient, undefined);
  for (const { recipient, id } of open) reached.set(recipient, id);
  return reached;
}

/** What is known of a handset is put together. */
export const movedSent: readonly MovedValues[] = [
  { prefix: sentPrefix },
  { prefix: questionPrefix },
  { prefix: handsetPrefix, merge: mergeReferences },
];
