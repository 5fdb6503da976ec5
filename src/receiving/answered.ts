import type { InboxRecord } from '../model';
import type { Changes, Look } from '../store/store';
import type { InboxContext } from './context';
import { type Identity, isSameMessage, keysOf } from './identity';

/** What a message has answered. */
interface Answered {
  identity: Identity;
  answer: object;
}

/** Of more equal texts than anybody writes in a second, the oldest are forgotten. */
const mostUnderKey = 100;

/** What a record says that it answers; blank when that is nothing. */
export function answerOf({ sent, awaited }: InboxRecord): object {
  return { ...(sent === undefined ? undefined : { sent }), ...(awaited === undefined ? undefined : { awaited }) };
}

/** The keys that {@link recallAnswer} and {@link rememberAnswer} look at. */
export function keysOfAnswer(identity: Identity): string[] {
  return keysOf(identity).map((key) => `answer:${key}`);
}

/** Remembers what a record has answered that counts as new when it comes again: it answers the same then, and nothing else. */
export function rememberAnswer(
  { clock, dedupeMs }: Pick<InboxContext, 'clock' | 'dedupeMs'>,
  { identity, record }: { identity: Identity; record: InboxRecord },
  look: Look,
  changes: Changes,
): void {
  const answer = answerOf(record);
  if (Object.keys(answer).length === 0) return;
  for (const key of keysOfAnswer(identity)) {
    const others = answeredUnder(key, look).filter((one) => !isSameMessage(one.identity, identity));
    const value = JSON.stringify([...others, { identity, answer }].slice(-mostUnderKey));
    changes.remember.set(key, { at: clock.now(), forMs: dedupeMs(), value });
  }
}

/** What a message has answered that came before; `undefined`: nothing, as far as is known. */
export function recallAnswer(identity: Identity, look: Look): object | undefined {
  const known = keysOfAnswer(identity).flatMap((key) => answeredUnder(key, look));
  return known.find((one) => isSameMessage(one.identity, identity))?.answer;
}

function answeredUnder(key: string, look: Look): Answered[] {
  const remembered = look(key);
  return remembered ? (JSON.parse(remembered.value) as Answered[]) : [];
}
