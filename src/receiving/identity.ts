import { hash } from 'node:crypto';
import type { IncomingRecord, OutboxRecord, StatusRecord, Via } from '../model';
import { parseDate } from '../wire/date';

/** What a record is, and with that what identifies it. */
export type Kind = 'incoming' | 'status' | 'outbox';

/** What identifies a record: its identifier, or for an incoming message also who wrote what and when. */
export interface Identity {
  /** Key of the identifier; absent when the record has none. */
  id?: string;
  /** Key of sender, text and second, with what tells two messages apart within it. */
  text?: { key: string; instant: Instant };
}

/** A date as far as it is known: milliseconds when it has a fraction, else only its second counts. */
type Instant = { ms: number; exact: boolean };

/** What is remembered of an identifier. */
interface SeenId {
  at: number;
  polled: boolean;
}

/** What is remembered of one second of one sender's text. */
interface SeenText {
  at: number;
  /** `id` is the key of the identifier; absent while the message is known without one. */
  messages: { instant: Instant; id?: string }[];
}

/** What the memory of the seen says of a record. */
export interface Verdict {
  /** `repeated`: had been polled before, which the service would not do if it had marked it read. */
  outcome: 'new' | 'duplicate' | 'repeated';
  /** What to remember from now on. */
  remember: [key: string, value: string][];
}

/** Looks up what is remembered under a key. */
export type Recall = (key: string) => string | undefined;

/**
 * Derives what identifies a record (§2.3, §2.5, §6.4, §6.5). A record without identifier and date has no identity and
 * is always new.
 */
export function identify(kind: Kind, record: IncomingRecord | StatusRecord | OutboxRecord): Identity {
  const { messageId } = record;
  const identity: Identity = {};
  if (typeof messageId === 'string' && messageId.trim()) identity.id = `${kind}:${digest(messageId)}`;
  if (kind === 'incoming') {
    const { from, body, messageDate } = record as IncomingRecord;
    const instant = parseInstant(messageDate);
    if (instant) {
      const second = Math.floor(instant.ms / 1000);
      identity.text = { key: `text:${digest(normaliseSender(from), normaliseText(body), second)}`, instant };
    }
  } else if (kind === 'status' && !identity.id) {
    const { inReplyToId, from, statusCode, statusDate } = record as StatusRecord;
    identity.id = `change:${digest(inReplyToId, from, statusCode, statusDate)}`;
  }
  return identity;
}

/** The keys to recall before {@link judge} is asked. */
export function keysOf(identity: Identity): string[] {
  return [identity.id, identity.text?.key].filter((key) => key !== undefined);
}

/**
 * Judges whether a record was seen before. Identifiers decide where both have one; a message without identifier
 * (XMLv3, §6.4) is recognised by sender, text and date.
 *
 * @param oldest time in ms before which nothing counts as seen
 */
export function judge(identity: Identity, via: Via, recall: Recall, now: number, oldest: number): Verdict {
  const remember: [string, string][] = [];
  const { id, text } = identity;
  const polled = via === 'poll';
  const seenId = id === undefined ? undefined : read<SeenId>(recall(id), oldest);
  if (id !== undefined && seenId) {
    if (polled && !seenId.polled) remember.push([id, JSON.stringify({ ...seenId, polled })]);
    return { outcome: polled && seenId.polled ? 'repeated' : 'duplicate', remember };
  }
  if (id !== undefined) remember.push([id, JSON.stringify({ at: now, polled } satisfies SeenId)]);
  if (!text) return { outcome: 'new', remember };

  const seenText = read<SeenText>(recall(text.key), oldest) ?? { at: now, messages: [] };
  const twin = seenText.messages.find(
    (message) => isSameInstant(message.instant, text.instant) && (id === undefined || message.id === undefined),
  );
  if (!twin) {
    seenText.messages.push({ instant: text.instant, ...(id === undefined ? undefined : { id }) });
  } else if (id !== undefined) {
    twin.id = id;
  } else {
    return { outcome: 'duplicate', remember };
  }
  remember.push([text.key, JSON.stringify(seenText)]);
  return { outcome: twin ? 'duplicate' : 'new', remember };
}

/** Says whether two identities are of one message, as {@link judge} sees it. */
export function isSameMessage(a: Identity, b: Identity): boolean {
  if (a.id !== undefined && b.id !== undefined) return a.id === b.id;
  return a.text !== undefined && a.text.key === b.text?.key && isSameInstant(a.text.instant, b.text.instant);
}

/** Undoes what {@link judge} remembered of a new record, so that it will be new again. */
export function forget(identity: Identity, recall: Recall): { remember: [string, string][]; forget: string[] } {
  const gone: string[] = [];
  const remember: [string, string][] = [];
  const { id, text } = identity;
  if (id !== undefined) gone.push(id);
  if (text) {
    const seen = read<SeenText>(recall(text.key), 0);
    // One without identifier is also forgotten under the identifier that a polled copy has given it meanwhile.
    const messages = seen?.messages.filter(
      (message) => !isSameInstant(message.instant, text.instant) || (id !== undefined && message.id !== id),
    );
    if (seen && messages?.length) remember.push([text.key, JSON.stringify({ ...seen, messages })]);
    else gone.push(text.key);
  }
  return { remember, forget: gone };
}

/** Says when something was remembered, in ms. */
export function rememberedAt(value: string): number {
  return read<SeenId>(value, 0)?.at ?? 0;
}

function read<T extends { at: number }>(value: string | undefined, oldest: number): T | undefined {
  if (value === undefined) return undefined;
  const seen = JSON.parse(value) as T;
  return seen.at >= oldest ? seen : undefined;
}

function parseInstant(date: unknown): Instant | undefined {
  if (typeof date !== 'string' || !date.trim()) return undefined;
  const ms = Date.parse(parseDate(date));
  if (!Number.isNaN(ms)) return { ms, exact: /:\d\d[.,]\d/.test(date) };
  // A date that cannot be read still tells two messages apart.
  return { ms: hash('sha256', date.trim(), 'buffer').readUIntBE(0, 6), exact: true };
}

function isSameInstant(a: Instant, b: Instant): boolean {
  return a.exact && b.exact ? a.ms === b.ms : Math.floor(a.ms / 1000) === Math.floor(b.ms / 1000);
}

function normaliseSender(from: unknown): string {
  return String(from ?? '')
    .trim()
    .replace(/^\+/, '');
}

/** XML turns every line end into one character and forms often pad the text. */
function normaliseText(body: unknown): string {
  return String(body ?? '')
    .replace(/\r\n?/g, '\n')
    .trim();
}

/** Message texts and numbers are remembered only as digests. */
function digest(...parts: unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 22);
}
