import type { Heritage } from '../outbox/heritage';
import { type Changes, type Look, parseRemembered } from '../store/store';
import { type Answer, type Question, questionGraceMs } from './question';

const replyPrefix = 'reply:';

/** The key under which an instance leaves the reply that it has read to a question of another. */
export function replyKey(question: string): string {
  return replyPrefix + question;
}

/** What another instance has left. */
export function readReply(question: string, look: Look): Answer | undefined {
  return parseRemembered(look(replyKey(question)), isAnswer);
}

/** Leaves a reply. It closes the question in the same commit, so that no other comes. */
export function leaveReply(question: string, answer: Answer, at: number, changes: Changes): void {
  changes.remember.set(replyKey(question), { at, forMs: questionGraceMs, value: JSON.stringify(answer) });
}

/** It is where the question is. */
export function takeReply(question: string, changes: Changes): void {
  changes.remember.set(replyKey(question), undefined);
}

/** Those questions that nobody has answered, here or elsewhere. */
export function unanswered(questions: readonly Question[], look: Look): Question[] {
  return questions.filter(({ id, answer }) => answer === undefined && readReply(id, look) === undefined);
}

/** Each reply that lies there for either login. */
export const replyHeritage: Heritage = { prefix: replyPrefix };

function isAnswer(value: unknown): value is Answer {
  const { reply, reason } = Object(value) as { reply?: unknown; reason?: unknown };
  return typeof reason === 'string' || (typeof reply === 'object' && reply !== null);
}
