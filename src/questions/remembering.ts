import type { Duration } from '../outbox/once';
import { isAccepted, isUnknown, type Outcome, type Text } from '../outbox/outgoing';
import type { RuleSettings } from '../outbox/rule';
import type { Moment } from '../outbox/sliding-window';
import { type Changes, keepItem, type Look } from '../store/store';
import { askedKey, type Question, questionGraceMs } from './question';
import { noteRemembrance } from './remembrance';
import { rememberSent } from './sent-index';

/** What steps go by: the time, and for how long the ledger remembers what, in ms. */
export interface Memory {
  now: number;
  moment: Moment;
  rules: RuleSettings;
  dedupeMs: number;
  sentMs: number;
}

/** From when on, and for how long, a text is remembered that is accepted or leaves now. */
export function durationOf({ options }: Text, { now, sentMs }: Pick<Memory, 'now' | 'sentMs'>): Duration {
  const { waitMs } = options;
  return { at: now, forMs: Math.max(sentMs, waitMs === undefined ? 0 : waitMs + questionGraceMs) };
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
  noteRemembrance(duration, look, changes);
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
