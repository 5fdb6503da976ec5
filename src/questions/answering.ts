import type { Step } from '../journal/journal';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import { latest, withAnswer } from './asking';
import { keepLetters, mailboxKey, readLetters } from './mailbox';
import { type Answer, askedKey, type Question } from './question';
import type { QuestionBook } from './question-book';
import { closeQuestion, keysOfQuestion } from './sent-index';

/** A question ends without a reply. Results in `undefined`, and changes nothing, where a reply has come first. */
export function endQuestion(
  question: Question,
  answer: Answer,
  known: Pick<QuestionBook, 'get'>,
): Step<Question | undefined> {
  return {
    keys: [...keysOfQuestion(question), mailboxKey],
    whileFailing: 'apply',
    decide(look, changes) {
      const current = known.get(question.id);
      if (!current || changes.drop.has(question.id)) return () => undefined;
      if (latest(current, changes).answer) return () => undefined;
      // Another instance has read its reply, though the handset has got so many texts since that nothing else tells of it.
      if (readLetters(look).some((letter) => letter.question === question.id)) return () => undefined;
      const ended = close(question, answer, look, changes);
      return () => ended;
    },
  };
}

/** Takes what other instances have left for these questions. The first reply to each counts. */
export function collectLetters(findOwn: (id: string) => Question | undefined): Step<Question[]> {
  return {
    keys: [mailboxKey],
    further: (look) =>
      readLetters(look)
        .flatMap(({ question: id }) => findOwn(id) ?? [])
        .flatMap(keysOfQuestion),
    whileFailing: 'postpone',
    decide(look, changes) {
      const letters = readLetters(look);
      const rest = letters.filter(({ question }) => !findOwn(question));
      if (rest.length === letters.length) return () => [];
      keepLetters(rest, look, changes);
      const answered: Question[] = [];
      for (const { question: id, answer } of letters) {
        const own = findOwn(id);
        const question = own && latest(own, changes);
        // It may be open again by now, where its text has left once more since that was read.
        if (question && !question.answer) answered.push(close(question, answer, look, changes));
      }
      return () => answered;
    },
  };
}

/** Answers a question, which is open to no other reply from now on. */
function close(question: Question, answer: Answer, look: Look, changes: Changes): Question {
  const ended = withAnswer(question, answer);
  closeQuestion(question, look, changes);
  keepItem(changes, ended);
  return ended;
}

/** A question's end has entered the flow. */
export function forgetQuestion(question: Question, isLast: boolean): Step<void> {
  const isUnasked = question.askedAt === undefined;
  return {
    keys: isUnasked ? keysOfQuestion(question) : [],
    whileFailing: 'apply',
    drops: [question.id],
    decide(look, changes) {
      dropItem(changes, question.id, 'ledger');
      if (isUnasked) closeQuestion(question, look, changes);
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
