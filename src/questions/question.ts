import type { IncomingRecord } from '../model';
import type { Heritage } from '../outbox/heritage';
import type { Item } from '../store/store';

/** Why no reply comes. */
export type NoReply = { reason: 'timeout' | 'undelivered'; statusCode?: string };

/** How a question ended: with its first reply, or with none. */
export type Answer = { reply: IncomingRecord } | NoReply;

/** A question to one recipient. Plain data. */
export interface Question extends Item {
  part: 'ledger';
  kind: 'question';
  /** Id of the sending node. */
  node: string;
  /** Id of the text that asks, under which the message of the flow is remembered. */
  text: string;
  /** See `referenceOf` in `sent.ts`. */
  reference: string;
  messageId?: string;
  recipient: string;
  waitMs: number;
  /** When the wait began, in ms; absent while the text's outcome is not known. */
  askedAt?: number;
  /** Not sent into the flow yet. */
  answer?: Answer;
}

/** A question and what the flow sent with it stay for so long after its time, should nobody be there to take its end. */
export const questionGraceMs = 7 * 24 * 3_600_000;

const askedPrefix = 'asked:';

/** The messages of the flow that questions are asked with. */
export const askedHeritage: Heritage = { prefix: askedPrefix };

/** The key of the flow's message that questions are asked with. */
export function askedKey(text: string): string {
  return askedPrefix + text;
}

/**
 * How much of a wait is left. The clock may have been set meanwhile: it is never more than the whole.
 *
 * @param now in ms
 */
export function remainingMs(question: Question, now: number): number {
  return remainingOf(question.waitMs, question, now);
}

/** How long a question that has ended stays yet; see {@link remainingMs}. */
export function remainingGraceMs(question: Question, now: number): number {
  return remainingOf(question.waitMs + questionGraceMs, question, now);
}

function remainingOf(wholeMs: number, { askedAt }: Question, now: number): number {
  return askedAt === undefined ? wholeMs : Math.min(wholeMs, Math.max(0, askedAt + wholeMs - now));
}
