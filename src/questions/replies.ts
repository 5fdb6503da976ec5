import type { Heritage } from '../outbox/heritage';
import { type Changes, type Look, parseRemembered, type Remembered } from '../store/store';
import { type Answer, type Question, questionGraceMs } from './question';

/** Where other instances leave the replies to questions of this one. */
export const mailboxKey = 'answers';

/** A reply that another instance has read. */
export interface Letter {
  question: string;
  at: number;
  answer: Answer;
}

/** All that lie there. */
export function readLetters(look: Look): Letter[] {
  return parseLetters(look(mailboxKey));
}

/** Those questions that nobody has answered, here or there. */
export function unanswered(questions: readonly Question[], look: Look): Question[] {
  const read = new Set(readLetters(look).map(({ question }) => question));
  return questions.filter(({ id, answer }) => answer === undefined && !read.has(id));
}

/** Leaves one, and clears away what nobody has taken for long. */
export function leaveLetter(letter: Letter, look: Look, changes: Changes): void {
  const recent = readLetters(look).filter(({ at }) => at + questionGraceMs > letter.at);
  changes.remember.set(mailboxKey, {
    at: letter.at,
    forMs: questionGraceMs,
    value: JSON.stringify([...recent, letter]),
  });
}

/** Leaves no more than these. */
export function keepLetters(letters: readonly Letter[], look: Look, changes: Changes): void {
  const remembered = look(mailboxKey);
  if (remembered) changes.remember.set(mailboxKey, { ...remembered, value: JSON.stringify(letters) });
}

/** Each letter that lies in the mailbox of either login. */
export const mailboxHeritage: Heritage = {
  prefix: mailboxKey,
  merge(own, other) {
    const letters = parseLetters(own);
    const added = parseLetters(other).filter(({ question }) => !letters.some((letter) => letter.question === question));
    return { ...own, at: Math.max(own.at, other.at), value: JSON.stringify([...added, ...letters]) };
  },
};

function parseLetters(remembered: Remembered | undefined): Letter[] {
  return parseRemembered(remembered, isLetters) ?? [];
}

function isLetters(value: unknown): value is Letter[] {
  return (
    Array.isArray(value) && value.every((one) => typeof one?.question === 'string' && Object(one.answer) === one.answer)
  );
}
