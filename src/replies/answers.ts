import { normaliseWord } from '../consent/words';
import { SmsError } from '../errors';
import { isBlank } from '../wire/fields';

/** A possible answer, with the words or phrases of a reply that mean this answer. */
export interface AnswerChoice {
  value: string;
  words: readonly string[];
}

export const maxAnswers = 20;
const maxWordsPerAnswer = 20;
const maxValueLength = 64;
const maxWordLength = 160;

/**
 * Checks the answers of an `sms-ask` node.
 *
 * @throws SmsError `SMS_CONFIG` if the list has another shape, is too long, or has the same word in two answers
 */
export function parseAnswers(value: unknown): AnswerChoice[] {
  if (isBlank(value)) return [];
  if (!Array.isArray(value) || value.length > maxAnswers) throw invalidAnswers();
  const answers = value.map(parseAnswer);
  const indexOf = new Map<string, number>();
  for (const [index, { words }] of answers.entries()) {
    for (const word of words) {
      const key = formatWord(word);
      if ((indexOf.get(key) ?? index) !== index) {
        throw new SmsError('answerWordTwice', { params: { word } });
      }
      indexOf.set(key, index);
    }
  }
  return answers;
}

function parseAnswer(answer: unknown): AnswerChoice {
  const { value, words } = Object(answer) as { value?: unknown; words?: unknown };
  if (!isText(value, maxValueLength)) throw invalidAnswers();
  if (!Array.isArray(words) || words.length === 0 || words.length > maxWordsPerAnswer) throw invalidAnswers();
  if (!words.every((word): word is string => isText(word, maxWordLength))) throw invalidAnswers();
  return { value, words };
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && !isBlank(value) && [...value].length <= maxLength;
}

function invalidAnswers(): SmsError {
  return new SmsError('answersInvalid', {
    params: { maxAnswers, maxWords: maxWordsPerAnswer, maxValue: maxValueLength, maxWord: maxWordLength },
  });
}

/** Returns the value of the answer in a reply, or `undefined` if the reply is unclear. */
export function findAnswer(answers: readonly AnswerChoice[], body: string): string | undefined {
  const reply = formatWord(body);
  return answers.find(({ words }) => words.some((word) => formatWord(word) === reply))?.value;
}

/** Returns the form in which words are compared. A word without letters and digits, such as 👍, does not change. */
function formatWord(word: string): string {
  return normaliseWord(word) || word.trim();
}
