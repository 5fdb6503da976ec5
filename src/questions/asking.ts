import type { Sent, Text } from '../outbox/outgoing';
import { nextRevision } from '../outbox/revision';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import { readLetters } from './mailbox';
import type { Answer, Question } from './question';
import type { QuestionBook } from './question-book';
import { closeQuestion, referenceOf } from './sent-index';

/** Questions to be, of a text that may be answered before it is known to be accepted. */
export function ask(
  text: Text,
  recipients: readonly string[],
  known: Pick<QuestionBook, 'get'>,
  changes: Changes,
): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const idOf = questionIds(text);
  const common = commonOf(text, text.message.messageId, waitMs);
  return recipients.map((recipient) => {
    const id = idOf(recipient);
    const asked = known.get(id);
    return asked ? latest(asked, changes) : { ...common, id, recipient };
  });
}

/** How the questions to the recipients of a text are called: by their places in its list. */
function questionIds({ id, message }: Text): (recipient: string) => string {
  const places = new Map(message.to.map((recipient, index) => [recipient, index]));
  return (recipient) => `${id}-${places.get(recipient)}`;
}

/** What the questions to all recipients of a text have in common. */
function commonOf(text: Text, messageId: string | undefined, waitMs: number): Omit<Question, 'id' | 'recipient'> {
  return {
    part: 'ledger',
    kind: 'question',
    takers: text.takers,
    attempts: 0,
    node: text.node,
    text: text.id,
    reference: referenceOf(messageId, text),
    ...(messageId === undefined ? undefined : { messageId }),
    waitMs,
  };
}

/** A question as the steps before it in the same commit leave it. */
export function latest(question: Question, changes: Changes): Question {
  return (changes.keep.get(question.id) as Question | undefined) ?? question;
}

/** What a text asks, as it stands now: its mark may be written, or a reply come, in the same commit. */
export function questionsOf(text: Text, known: Pick<QuestionBook, 'get'>, changes: Changes): Question[] {
  if (text.options.waitMs === undefined) return [];
  return text.message.to
    .map(questionIds(text))
    .map((id) => (changes.keep.get(id) as Question | undefined) ?? known.get(id))
    .filter((question) => question !== undefined);
}

/** The wait for those who were accepted begins. */
export function begin(text: Text, sent: Sent, questions: readonly Question[], { now }: { now: number }): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const messageId = text.message.messageId ?? sent.messageId;
  const known = new Map(questions.map((question) => [question.recipient, question]));
  const idOf = questionIds(text);
  const common = commonOf(text, messageId, waitMs);
  return sent.accepted.map((recipient) => {
    const question = known.get(recipient) ?? { ...common, id: idOf(recipient), recipient };
    return { ...question, askedAt: now, revision: nextRevision(question) };
  });
}

/**
 * Nobody is asked whose text is not known to be accepted. Who has replied all the same has got it: that is what the wait was for, and is
 * told.
 */
export function endAsking(
  questions: readonly Question[],
  { now }: { now: number },
  look: Look,
  changes: Changes,
): { replied: Question[]; unasked: string[] } {
  const letters = readLetters(look);
  const replied: Question[] = [];
  const silent: Question[] = [];
  for (const question of questions) {
    const answer = question.answer ?? letters.find((letter) => letter.question === question.id)?.answer;
    if (answer && 'reply' in answer) replied.push({ ...withAnswer(question, answer), askedAt: now });
    else silent.push(question);
  }
  for (const question of replied) keepItem(changes, question);
  return { replied, unasked: unask(silent, look, changes) };
}

/** Asks no more. Returns the ids of the questions. */
export function unask(questions: readonly Question[], look: Look, changes: Changes): string[] {
  for (const question of questions) {
    dropItem(changes, question.id, 'ledger');
    closeQuestion(question, look, changes);
  }
  return questions.map(({ id }) => id);
}

/** The same question, answered. */
export function withAnswer(question: Question, answer: Answer): Question {
  return { ...question, answer, revision: nextRevision(question) };
}
