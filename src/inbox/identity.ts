import { hash } from 'node:crypto';
import type { Clock } from '../clock';
import type { Journal } from '../journal/journal';
import type { Versions } from '../journal/step';
import { type InboxRecord, kinds, type RecordOfKind, type Via } from '../model';
import {
  type Changes,
  digest,
  type Look,
  type MovedValues,
  parseRememberedValue,
  type Remembered,
} from '../store/store';
import { readInstant } from '../wire/date';
import { isBlank, isObject, normaliseRecipient, present } from '../wire/fields';

/** What identifies a record: its identifier, or for an incoming message also who wrote what and when. */
export interface Identity {
  /** Key of the identifier; absent when the record has none. */
  id?: string;
  /** Key of sender, text and second, with what tells two messages apart within it. */
  text?: { key: string; instant: Instant };
}

const textPrefix = 'text:';
const changePrefix = 'change:';
const answerPrefix = 'answer:';

/** A date as far as it is known: milliseconds when it has a fraction, else only its second counts. */
type Instant = { ms: number; exact: boolean };

/** What is remembered of a message among those of one sender that have one text in one second. */
interface SeenMessage {
  instant: Instant;
  /** Key of the identifier; absent while the message is known without one. */
  id?: string;
  /** It was polled without an identifier. */
  polled?: true;
}

/** Of more equal texts than anybody writes in a second, the oldest are known by their identifiers alone. */
const maxInOneSecond = 100;

/** What the memory of the seen says of a record. `repeated`: had been polled before, which the service would not do if it had marked it read. */
export type Verdict = 'new' | 'duplicate' | 'repeated';

/** By what records are judged, and what they answered is remembered. */
export interface Memory {
  readonly clock: Pick<Clock, 'now'>;
  /** One that is shared forgets in time by itself, whatever the clock of this machine says. */
  readonly journal: Pick<Journal, 'isShared'>;
  /** How long an identifier is remembered. */
  dedupeMs(): number;
}

/**
 * Derives what identifies a record (§2.3, §2.5, §6.4, §6.5). A record without identifier and date, and a status that names no text
 * either, has no identity and is always new.
 */
export function identify({ kind, record }: RecordOfKind): Identity {
  const { messageId } = record;
  const identity: Identity = {};
  if (kind === 'incoming') {
    const { from, body, messageDate } = record;
    const instant = parseInstant(messageDate);
    if (instant) {
      const second = Math.floor(instant.ms / 1000);
      // XML turns every line end into one character and forms often pad the text.
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
  return identity;
}

/** The keys to recall before {@link judge} is asked. */
export function keysOf(identity: Identity): string[] {
  return [identity.id, identity.text?.key].filter((key) => key !== undefined);
}

/**
 * Judges whether a record was seen before, and remembers it; what an earlier process had in hand (`isLeft`) may have been so however long ago.
 * Identifiers decide where both have one; a message without identifier (XMLv3, §6.4) is recognised by sender, text and date.
 */
export function judge(
  { clock, journal, dedupeMs }: Memory,
  { identity: { id, text }, via, isLeft = false }: { identity: Identity; via: Via; isLeft?: boolean },
  look: Look,
  { remember }: Changes,
): Verdict {
  const [now, forMs, polled] = [clock.now(), dedupeMs(), via === 'poll'];
  const recall = (key: string) => {
    const remembered = look(key);
    return remembered && (journal.isShared || isLeft || remembered.at >= now - forMs) ? remembered : undefined;
  };
  const known = id === undefined ? undefined : recall(id);
  const seenId = known && parseRememberedValue(known, isSeenId);
  const verdict = seenId && (polled && seenId.polled ? 'repeated' : 'duplicate');
  if (id !== undefined && (!seenId || (polled && !seenId.polled)))
    remember.set(id, { at: seenId ? known.at : now, forMs, value: JSON.stringify({ polled }) });
  // A form has brought it without its date (§6.4): what comes without its identifier is known by that from now on.
  if (!text || verdict === 'repeated') return verdict ?? 'new';

  const knownText = recall(text.key);
  const messages = messagesIn(knownText).slice(-maxInOneSecond);
  const { at } = messages.length > 0 && knownText ? knownText : { at: now };
  const same = messages.find(
    ({ instant, id: other = id }) => isSameInstant(instant, text.instant) && (id === undefined || other === id),
  );
  if (same && id === undefined && (!polled || same.polled)) return polled ? 'repeated' : 'duplicate';
  const own = id !== undefined ? { id } : polled ? { polled } : {};
  if (same) messages[messages.indexOf(same)] = { ...same, ...own };
  else messages.push({ instant: text.instant, ...own });
  remember.set(text.key, { at, forMs, value: JSON.stringify({ messages }) });
  return verdict ?? (same ? 'duplicate' : 'new');
}

/** Says whether two identities are of one message, as {@link judge} sees it. */
export function isSameMessage(a: Identity, b: Identity): boolean {
  if (a.id !== undefined && b.id !== undefined) return a.id === b.id;
  return a.text !== undefined && a.text.key === b.text?.key && isSameInstant(a.text.instant, b.text.instant);
}

/** Undoes what {@link judge} remembered of a new record, so that it will be new again. */
export function forget({ id, text }: Identity, look: Look, { remember }: Changes): void {
  if (id !== undefined) remember.set(id, undefined);
  if (!text) return;
  const remembered = look(text.key);
  // One without identifier is also forgotten under the identifier that a polled copy has given it meanwhile.
  const messages = messagesIn(remembered).filter(
    (message) => !isSameInstant(message.instant, text.instant) || (id !== undefined && message.id !== id),
  );
  const rest = remembered && { ...remembered, value: JSON.stringify({ messages }) };
  remember.set(text.key, messages.length > 0 ? rest : undefined);
}

/**
 * See {@link Participant.merge}: of the texts of one second each process may have seen others. What was there before and is not any more, another
 * has let go of, also where it was polled here since.
 */
export function mergeSeen(key: string, { base, theirs, mine }: Versions): Remembered | undefined {
  if (!key.startsWith(textPrefix)) return base && !theirs && parseRememberedValue(mine, isSeenId) ? undefined : mine;
  const [before, others, own] = [messagesIn(base), messagesIn(theirs), messagesIn(mine)];
  const kept = others
    .filter((message) => !findIn(before, message) || findIn(own, message))
    .map((message) => (message.id === undefined && findIn(own, message)) || message);
  const messages = [...kept, ...own.filter((message) => !findIn(before, message) && !findIn(others, message))];
  return messages.length > 0 ? { ...mine, value: JSON.stringify({ messages }) } : undefined;
}

const isCommon = true;

/** What was seen, and what it has answered. */
export const movedSeen: readonly MovedValues[] = [
  ...[...kinds.map((kind) => `${kind}:`), changePrefix, answerPrefix].map((prefix) => ({ prefix, isCommon })),
  { prefix: textPrefix, isCommon, merge: (mine, theirs, key) => mergeSeen(key, { base: undefined, theirs, mine }) },
];

/** A message among others of its sender and text, where either may have no identifier. */
function findIn(messages: readonly SeenMessage[], { instant, id }: SeenMessage): SeenMessage | undefined {
  return messages.find(
    (one) => isSameInstant(one.instant, instant) && (one.id === undefined || id === undefined || one.id === id),
  );
}

function messagesIn(remembered: Remembered | undefined): readonly SeenMessage[] {
  return parseRememberedValue(remembered, isSeenText)?.messages ?? [];
}

function isSeenId(value: unknown): value is { polled: boolean } {
  return typeof (value as { polled?: unknown } | null)?.polled === 'boolean';
}

function isSeenText(value: unknown): value is { messages: SeenMessage[] } {
  const messages = (value as { messages?: SeenMessage[] } | null)?.messages;
  return Array.isArray(messages) && messages.every((message) => typeof message?.instant?.ms === 'number');
}

function parseInstant(date: unknown): Instant | undefined {
  if (typeof date !== 'string' || !date.trim()) return undefined;
  const ms = readInstant(date) ?? Date.parse(date.trim());
  if (!Number.isNaN(ms)) return { ms, exact: /:\d\d[.,]\d/.test(date) };
  // A date that cannot be read still tells two messages apart.
  return { ms: hash('sha256', date.trim(), 'buffer').readUIntBE(0, 6), exact: true };
}

function isSameInstant(a: Instant, b: Instant): boolean {
  return a.exact && b.exact ? a.ms === b.ms : Math.floor(a.ms / 1000) === Math.floor(b.ms / 1000);
}

/** What is known of a message that counts as new when it comes again. */
interface Answered {
  identity: Identity;
  /** What it has answered. */
  answer: object;
  /** See {@link Correlated}. */
  isTaken?: true | undefined;
  /** How often it was sent into a flow. */
  attempts?: number;
}

/** Of more equal texts than anybody writes in a second, the oldest are forgotten. */
const mostUnderKey = 100;

/** What a record says that it answers; blank when that is nothing. */
export function answerOf({ sent, awaited, optOut }: InboxRecord): object {
  return present({ sent, awaited, optOut });
}

/** The keys that {@link recallAnswer} and {@link rememberAnswer} look at. */
export function keysOfAnswer(identity: Identity): string[] {
  return keysOf(identity).map((key) => answerPrefix + key);
}

/**
 * Remembers of a record that counts as new when it comes again what it has answered: it answers the same then, and nothing else. And how often
 * it was sent into a flow, since whoever is brought it may be another process.
 */
export function rememberAnswer(
  { clock, dedupeMs }: Memory,
  { identity, record, isTaken, attempts: latest = 0 }: Omit<Answered, 'answer'> & { record: InboxRecord },
  look: Look,
  changes: Changes,
): void {
  const answer = answerOf(record);
  const attempts = Math.max(latest, recallAttempts(identity, look));
  if (Object.keys(answer).length === 0 && !isTaken && attempts === 0) return;
  const [at, forMs] = [clock.now(), dedupeMs()];
  for (const key of keysOfAnswer(identity)) {
    const others = answeredUnder(key, look).filter((one) => !isSameMessage(one.identity, identity));
    const value = JSON.stringify([...others, { identity, answer, isTaken, attempts }].slice(-mostUnderKey));
    changes.remember.set(key, { at, forMs, value });
  }
}

/** What a message has answered that came before; `undefined`: nothing, as far as is known. */
export function recallAnswer(identity: Identity, look: Look): Pick<Answered, 'answer' | 'isTaken'> | undefined {
  const known = recallAnswered(identity, look);
  return known && (known.isTaken || Object.keys(known.answer).length > 0) ? known : undefined;
}

/** How often a message that comes as new was sent into a flow before, as far as is known. */
export function recallAttempts(identity: Identity, look: Look): number {
  return recallAnswered(identity, look)?.attempts ?? 0;
}

function recallAnswered(identity: Identity, look: Look): Answered | undefined {
  for (const key of keysOfAnswer(identity)) {
    const known = answeredUnder(key, look).find((one) => isSameMessage(one.identity, identity));
    if (known) return known;
  }
  return undefined;
}

function answeredUnder(key: string, look: Look): Answered[] {
  return parseRememberedValue(look(key), isAnsweredList) ?? [];
}

function isAnsweredList(value: unknown): value is Answered[] {
  return Array.isArray(value) && value.every((one) => isObject(one?.identity) && isObject(one?.answer));
}
