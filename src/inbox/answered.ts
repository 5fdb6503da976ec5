import type { InboxRecord } from '../model';
import { type Changes, type Look, parseRememberedValue } from '../store/store';
import { present } from '../wire/fields';
import type { InboxContext } from './context';
import { type Identity, isSameMessage, keysOf } from './identity';

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

/** What is to be known of it. */
interface Answering {
  identity: Identity;
  record: InboxRecord;
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
  return keysOf(identity).map((key) => `answer:${key}`);
}

/**
 * Remembers of a record that counts as new when it comes again what it has answered: it answers the same then, and nothing else. And how often
 * it was sent into a flow, since whoever is brought it may be another process.
 */
export function rememberAnswer(
  { clock, dedupeMs }: Pick<InboxContext, 'clock' | 'dedupeMs'>,
  { identity, record, isTaken, attempts: latest = 0 }: Answering,
  look: Look,
  changes: Changes,
): void {
  const answer = answerOf(record);
  const attempts = Math.max(latest, recallAttempts(identity, look));
  if (Object.keys(answer).length === 0 && !isTaken && attempts === 0) return;
  for (const key of keysOfAnswer(identity)) {
    const others = answeredUnder(key, look).filter((one) => !isSameMessage(one.identity, identity));
    const value = JSON.stringify([...others, { identity, answer, isTaken, attempts }].slice(-mostUnderKey));
    changes.remember.set(key, { at: clock.now(), forMs: dedupeMs(), value });
  }
}

/** What a message has answered that came before; `undefined`: nothing, as far as is known. */
export function recallAnswer(identity: Identity, look: Look): Pick<Answered, 'answer' | 'isTaken'> | undefined {
  const known = recall(identity, look);
  return known && (known.isTaken || Object.keys(known.answer).length > 0) ? known : undefined;
}

/** How often a message that comes as new was sent into a flow before, as far as is known. */
export function recallAttempts(identity: Identity, look: Look): number {
  return recall(identity, look)?.attempts ?? 0;
}

function recall(identity: Identity, look: Look): Answered | undefined {
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
  const isObject = (part: unknown) => typeof part === 'object' && part !== null;
  return Array.isArray(value) && value.every((one) => isObject(one?.identity) && isObject(one?.answer));
}
