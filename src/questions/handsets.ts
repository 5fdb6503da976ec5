import { digest } from '../digest';
import { type Changes, type Look, parseRemembered, type Remembered } from '../store/store';
import { normaliseRecipient } from '../wire/fields';

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
  return parseRemembered(remembered, isReferences) ?? [];
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
