import type { Step } from '../journal';
import { latest } from './asking';
import { keepLetters, type Letter, mailboxKey, readLetters } from './mailbox';
import { type Answer, askedKey, type Question } from './question';
import type { QuestionBook } from './question-book';
import { nextRevision } from './revision';
import { closeQuestion, keysOfSent } from './sent';

/** A question ends without a reply. Results in `undefined`, and changes nothing, where a reply has come first. */
export function endQuestion(
  question: Question,
  answer: Answer,
  known: Pick<QuestionBook, 'get'>,
): Step<Question | undefined> {
  return {
    keys: [...keysOfSent(question.reference, [question.recipient]), mailboxKey],
    whileFailing: 'apply',
    decide(look, changes) {
      const current = known.get(question.id);
      if (!current || changes.drop.has(question.id)) return () => undefined;
      if (latest(current, changes).answer) return () => undefined;
      // Another instance has read its reply, though the handset has got so many texts since that nothing else tells of it.
      if (readLetters(look).some((letter) => letter.question === question.id)) return () => undefined;
      const ended = withAnswer(question, answer);
      closeQuestion(question, look, changes);
      changes.keep.set(question.id, ended);
      return () => ended;
    },
  };
}

/** Takes what other instances have left for these questions. The first reply to each counts. */
export function collectLetters(findOwn: (id: string) => Question | undefined): Step<Question[]> {
  const questionsIn = (letters: readonly Letter[]) => letters.flatMap(({ question: id }) => findOwn(id) ?? []);
  return {
    keys: [mailboxKey],
    further: (look) =>
      questionsIn(readLetters(look)).flatMap(({ reference, recipient }) => keysOfSent(reference, [recipient])),
    whileFailing: 'postpone',
    decide(look, changes) {
      const letters = readLetters(look);
      const rest = letters.filter(({ question }) => !findOwn(question));
      if (rest.length === letters.length) return () => [];
      keepLetters(rest, look, changes);
      const answered = new Map<string, Question>();
      for (const { question: id, answer } of letters) {
        const question = findOwn(id);
        const current = question && latest(question, changes);
        if (!question || !current || current.answer || answered.has(id)) continue;
        answered.set(id, withAnswer(current, answer));
        // It is open again where its text has left once more since that was read.
        closeQuestion(question, look, changes);
      }
      for (const [id, question] of answered) changes.keep.set(id, question);
      return () => [...answered.values()];
    },
  };
}

/** The same question, answered. */
export function withAnswer(question: Question, answer: Answer): Question {
  return { ...question, answer, revision: nextRevision(question) };
}

/** A question's end has entered the flow. */
export function forgetQuestion(question: Question, isLast: boolean): Step<void> {
  return {
    keys: [],
    whileFailing: 'apply',
    drops: [question.id],
    lazy: true,
    decide(_look, changes) {
      changes.keep.delete(question.id);
      changes.drop.set(question.id, 'ledger');
      if (isLast) changes.remember.set(askedKey(question.text), undefined);
      return () => {};
    },
  };
}

/** Looks up the message of the flow that a question was asked with. */
export function readCarried({ text }: Question): Step<string | undefined> {
  const key = askedKey(text);
  return {
    keys: [key],
    whileFailing: 'postpone',
    decide(look) {
      const value = look(key)?.value;
      return () => value;
    },
  };
}
