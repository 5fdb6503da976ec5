import { hash } from 'node:crypto';
import type { Clock } from '../clock';
import type { Journal } from '../journal/journal';
import type { Versions } from '../journal/step';
import type { InboxRecord, RecordOfKind, Via } from '../model';
import { type Changes, digest, parseRememberedValue, type ReadKey, type Remembered } from '../store/store';
import { readInstant } from '../wire/date';
import { isBlank, isObject, normaliseRecipient, present } from '../wire/fields';

/** Keys that identify a record: its identifier, and for an incoming message also its sender, body and date. */
export interface Identity {
  /** Key of the identifier. Absent if the record has none. */
  id?: string;
  /**
   * Key of the sender, the body and the date in whole seconds. Messages of the same second can have the same key.
   * `instant` distinguishes them.
   */
  text?: { key: string; instant: Instant };
  /** All keys under which the record is remembered. */
  keys: string[];
}

const textPrefix = 'text:';
const changePrefix = 'change:';

/**
 * Date of a message, in ms since 1970. `exact` is true if the received date had a fraction of a second. Two exact dates
 * are compared to the millisecond, any other two dates to the second.
 */
type Instant = { ms: number; exact: boolean };

/** A callback that brought a polled record again, and therefore counted as a duplicate. */
export interface DuplicateCallback {
  /** Id and path of the called node. */
  node: string;
  path: string;
  /** Query parameters of the request. */
  query: unknown;
}

/**
 * Notes about a record that the service might send twice: in the answer to a poll, and in a callback. The notes ensure
 * that one of the two copies reaches a flow.
 */
interface Notes {
  /** Present if no node received the polled copy, see {@link noteLeftOut}. */
  leftOut?: object | undefined;
  /** Callback that brought the same record, see {@link noteCallback}. */
  callback?: DuplicateCallback | undefined;
}

/** Value stored under the key of an identifier. */
interface SeenId extends Notes {
  polled: boolean;
}

/** One of the messages with the same sender and body whose dates are in the same second. */
interface SeenMessage extends Notes {
  instant: Instant;
  /** Key of the identifier. Absent until a copy with an identifier arrives. */
  id?: string;
  /** Present if the message was polled without an identifier. */
  polled?: true;
}

/**
 * Maximum number of messages with the same sender and body in one second. If there are more, the oldest are recognised
 * only by their identifiers.
 */
const maxInOneSecond = 100;

/**
 * Whether a record is new. `duplicate`: seen before. `repeated`: a second poll returned it, although the service marks
 * polled records as read.
 */
export type Verdict = 'new' | 'duplicate' | 'repeated';

/** Settings for {@link judge}. */
export interface Memory {
  readonly clock: Pick<Clock, 'now'>;
  /**
   * In a shared store, {@link judge} does not check the age of keys, because the server expires keys by its own clock.
   */
  readonly journal: Pick<Journal, 'isShared'>;
  /** How long an identifier is remembered, in ms. */
  dedupeMs(): number;
}

/**
 * Derives the keys that identify a record (§2.3, §2.5, §6.4, §6.5):
 *
 * - its identifier
 * - for an incoming message with a date: also sender, body and date
 * - for a status without an identifier: its fields, if it has a date or the messageId of a sent message
 *
 * A record without keys is always new.
 */
export function identify({ kind, record }: RecordOfKind): Identity {
  const { messageId } = record;
  const identity: Identity = { keys: [] };
  if (kind === 'incoming') {
    const { from, body, messageDate } = record;
    const instant = parseInstant(messageDate);
    if (instant) {
      const second = Math.floor(instant.ms / 1000);
      // Normalises the body, because XML turns every line end into one character, and forms often add white space
      // around it.
      const text = String(body ?? '')
        .replace(/\r\n?/g, '\n')
        .trim();
      identity.text = { key: `${textPrefix}${digest(normaliseRecipient(from), text, second)}`, instant };
    }
  }
  if (typeof messageId === 'string' && messageId.trim()) identity.id = `${kind}:${digest(messageId)}`;
  else if (kind === 'status') {
    const { inReplyToId, from, statusCode, statusDate } = record;
    if (!isBlank(inReplyToId) || !isBlank(statusDate))
      identity.id = `${changePrefix}${digest(inReplyToId, from, statusCode, statusDate)}`;
  }
  identity.keys = [identity.id, identity.text?.key].filter((key) => key !== undefined);
  return identity;
}

/**
 * Returns whether a record was seen before, and remembers the record. If the record and an earlier record both have
 * identifiers, only the identifiers are compared. A message without an identifier (XMLv3, §6.4) is recognised by
 * sender, body and date.
 */
export function judge(
  { clock, journal, dedupeMs }: Memory,
  { identity: { id, text }, via, isRecovered }: { identity: Identity; via: Via; isRecovered?: true | undefined },
  readKey: ReadKey,
  { remember }: Changes,
): Verdict {
  const [now, forMs, polled] = [clock.now(), dedupeMs(), via === 'poll'];
  const recall = (key: string) => {
    const remembered = readKey(key);
    // Ignores the age of the key if the record comes from the saved answer of an earlier process, because that process
    // might have committed the answer long ago.
    const isCurrent = isRecovered || journal.isShared || (remembered && remembered.at >= now - forMs);
    return isCurrent ? remembered : undefined;
  };
  const rememberedId = id === undefined ? undefined : recall(id);
  const seenId = rememberedId && parseRememberedValue(rememberedId, isSeenId);
  const verdict = seenId && (polled && seenId.polled ? 'repeated' : 'duplicate');
  if (id !== undefined && (!seenId || (polled && !seenId.polled)))
    remember.set(id, { at: seenId ? rememberedId.at : now, forMs, value: JSON.stringify({ polled }) });
  // Also remembers the sender, body and date of a duplicate. The first copy might have had no date (form callback,
  // §6.4), and the next copy might have no identifier.
  if (!text || verdict === 'repeated') return verdict ?? 'new';

  const rememberedText = recall(text.key);
  const messages = messagesIn(rememberedText).slice(-maxInOneSecond);
  const { at } = messages.length > 0 && rememberedText ? rememberedText : { at: now };
  const equalMessage = messages.find(
    ({ instant, id: other = id }) => isSameInstant(instant, text.instant) && (id === undefined || other === id),
  );
  if (equalMessage && id === undefined && (!polled || equalMessage.polled)) return polled ? 'repeated' : 'duplicate';
  const copyFacts = id !== undefined ? { id } : polled ? { polled } : {};
  if (equalMessage) messages[messages.indexOf(equalMessage)] = { ...equalMessage, ...copyFacts };
  else messages.push({ instant: text.instant, ...copyFacts });
  remember.set(text.key, { at, forMs, value: JSON.stringify({ messages }) });
  return verdict ?? (equalMessage ? 'duplicate' : 'new');
}

/** Returns whether two identities belong to the same message, by the rules of {@link judge}. */
export function isSameMessage(a: Identity, b: Identity): boolean {
  if (a.id !== undefined && b.id !== undefined) return a.id === b.id;
  return a.text !== undefined && a.text.key === b.text?.key && isSameInstant(a.text.instant, b.text.instant);
}

/**
 * Returns the properties that the inbox has added to a received record: the answered message, and an opt-out or opt-in.
 * The object is empty if there are none.
 */
export function answerOf({ sent, awaited, optOut }: InboxRecord): object {
  return present({ sent, awaited, optOut });
}

/**
 * Notes that no node received the polled copy of a record: the filters of all nodes excluded it, or a reply request or
 * report used it. If a callback brings the record later, the callback is still delivered, with the same answered
 * message. Call {@link judge} first.
 *
 * @param answer properties that the inbox has added to the polled copy, see {@link answerOf}; `undefined`: the callback
 *   has arrived
 * @returns the callback that {@link noteCallback} noted earlier; if there is one, nothing is noted
 */
export function noteLeftOut(
  identity: Identity,
  answer: object | undefined,
  readKey: ReadKey,
  changes: Changes,
): DuplicateCallback | undefined {
  const recollection = recall(identity, readKey);
  if (answer && recollection.callback) return recollection.callback;
  note({ leftOut: answer }, identity, recollection, changes);
  return undefined;
}

/** Returns the `answer` that {@link noteLeftOut} noted, or `undefined` if it noted none. */
export function recallLeftOut(identity: Identity, readKey: ReadKey): object | undefined {
  const { seenId, message } = recall(identity, readKey);
  return (seenId ?? message)?.leftOut;
}

/**
 * Notes the first callback that brings a polled record again. If no node receives the polled record in the end, the
 * node that the service called receives it.
 */
export function noteCallback(
  identity: Identity,
  callback: DuplicateCallback,
  readKey: ReadKey,
  changes: Changes,
): void {
  const recollection = recall(identity, readKey);
  const { seenId, message } = recollection;
  const wasPolled = seenId?.polled ?? (message?.polled || message?.id !== undefined);
  if (!wasPolled || recollection.callback) return;
  note({ callback }, identity, recollection, changes);
  // Protects the note against a power cut, because the service does not repeat this callback.
  changes.firm = true;
}

/** Returns the callback that {@link noteCallback} noted, or `undefined` if it noted none. */
export function recallCallback(identity: Identity, readKey: ReadKey): DuplicateCallback | undefined {
  return recall(identity, readKey).callback;
}

function note(
  notes: Notes,
  { id, text }: Identity,
  { rememberedId, seenId, rememberedText, messages, message: noted }: ReturnType<typeof recall>,
  { remember }: Changes,
): void {
  if (id !== undefined && rememberedId && seenId) {
    remember.set(id, { ...rememberedId, value: JSON.stringify({ ...seenId, ...notes }) });
  }
  if (!text || !rememberedText) return;
  const changedMessages = messages.map((message) => (message === noted ? { ...message, ...notes } : message));
  remember.set(text.key, { ...rememberedText, value: JSON.stringify({ messages: changedMessages }) });
}

/** Reads everything that is remembered about a record. */
function recall(identity: Identity, readKey: ReadKey) {
  const { id, text } = identity;
  const rememberedId = id === undefined ? undefined : readKey(id);
  const seenId = rememberedId && parseRememberedValue(rememberedId, isSeenId);
  const rememberedText = text && readKey(text.key);
  const messages = messagesIn(rememberedText);
  const message = messages.find((message) => isSeenAs(message, identity));
  return { rememberedId, seenId, rememberedText, messages, message, callback: seenId?.callback ?? message?.callback };
}

/**
 * Merges the values that two processes of a shared store have remembered under the same key (see {@link
 * Participant.merge}). Keeps the messages of both values.
 */
export function mergeSeen(key: string, { storeVersion, ownVersion }: Versions): Remembered {
  if (!key.startsWith(textPrefix)) return ownVersion;
  const [storeMessages, ownMessages] = [messagesIn(storeVersion), messagesIn(ownVersion)];
  const mergedMessages = storeMessages.map(
    (message) => (message.id === undefined && findIn(ownMessages, message)) || message,
  );
  const messages = [...mergedMessages, ...ownMessages.filter((message) => !findIn(storeMessages, message))];
  return { ...ownVersion, value: JSON.stringify({ messages }) };
}

function isSeenAs(message: SeenMessage, { id, text }: Identity): boolean {
  return text !== undefined && findIn([message], { instant: text.instant, ...present({ id }) }) !== undefined;
}

/**
 * Finds the same message among messages with the same sender and body. Compares identifiers only if both messages have
 * one.
 */
function findIn(messages: readonly SeenMessage[], { instant, id }: SeenMessage): SeenMessage | undefined {
  return messages.find(
    (message) =>
      isSameInstant(message.instant, instant) && (message.id === undefined || id === undefined || message.id === id),
  );
}

function messagesIn(remembered: Remembered | undefined): readonly SeenMessage[] {
  return (remembered && parseRememberedValue(remembered, isSeenText)?.messages) ?? [];
}

function isSeenId(value: unknown): value is SeenId {
  return isObject(value) && typeof value.polled === 'boolean';
}

function isSeenText(value: unknown): value is { messages: SeenMessage[] } {
  const messages = (value as { messages?: SeenMessage[] } | null)?.messages;
  return Array.isArray(messages) && messages.every((message) => typeof message?.instant?.ms === 'number');
}

function parseInstant(date: unknown): Instant | undefined {
  if (typeof date !== 'string' || !date.trim()) return undefined;
  const ms = readInstant(date) ?? Date.parse(date.trim());
  if (!Number.isNaN(ms)) return { ms, exact: /:\d\d[.,]\d/.test(date) };
  // Derives a number from the text of an unreadable date, so that messages with different dates stay different.
  return { ms: hash('sha256', date.trim(), 'buffer').readUIntBE(0, 6), exact: true };
}

function isSameInstant(a: Instant, b: Instant): boolean {
  return a.exact && b.exact ? a.ms === b.ms : Math.floor(a.ms / 1000) === Math.floor(b.ms / 1000);
}
