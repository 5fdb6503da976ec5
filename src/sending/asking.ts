import type { Changes } from '../store/store';
import type { Sent, Text } from './outgoing';
import type { Question } from './question';
import type { QuestionBook } from './question-book';
import { nextRevision } from './revision';
import { referenceOf } from './sent';

/** Questions to be, of a text that may be answered before it is known to be accepted. */
export function ask(
  text: Text,
  recipients: readonly string[],
  known: Pick<QuestionBook, 'get'>,
  changes: Changes,
): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  return recipients.map((recipient) => {
    const id = questionId(text, text.message.to.indexOf(recipient));
    const asked = known.get(id);
    if (asked) return latest(asked, changes);
    return createQuestion(text, { id, recipient, messageId: text.message.messageId, waitMs });
  });
}

/** Of the question to the recipient at a place in the list. */
function questionId({ id }: Text, index: number): string {
  return `${id}-${index}`;
}

function createQuestion(
  text: Text,
  asked: { id: string; recipient: string; messageId: string | undefined; waitMs: number },
): Question {
  const { messageId, ...rest } = asked;
  return {
    part: 'ledger',
    kind: 'question',
    takers: text.takers,
    attempts: 0,
    node: text.node,
    text: text.id,
    reference: referenceOf(messageId, text),
    ...(messageId === undefined ? undefined : { messageId }),
    ...rest,
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
    .map((_, index) => questionId(text, index))
    .map((id) => (changes.keep.get(id) as Question | undefined) ?? known.get(id))
    .filter((question) => question !== undefined);
}

/** The wait for those who were accepted begins. */
export function begin(text: Text, sent: Sent, questions: readonly Question[], { now }: { now: number }): Question[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const messageId = text.message.messageId ?? sent.messageId;
  const known = new Map(questions.map((question) => [question.recipient, question]));
  return sent.accepted.map((recipient) => {
    const id = questionId(text, text.message.to.indexOf(recipient));
    const question = known.get(recipient) ?? createQuestion(text, { id, recipient, messageId, waitMs });
    return { ...question, askedAt: now, revision: nextRevision(question) };
  });
}
