import type { CheckedDraft } from '../message/draft';
import type { MessageItem, SendOptions } from '../outbox/message-item';
import { type Changes, type Duration, keepItem, latest, parseRememberedValue, type ReadKey } from '../store/store';
import { type AnswerChoice, findAnswer } from './answers';
import type { FollowUpBook } from './follow-up-book';
import type { ReplyRequest } from './reply-request';

/** The message that follows an unclear reply (*again*), without its recipient. */
export interface AgainTemplate extends CheckedDraft {
  options: SendOptions;
  /** Whether each message `again` has a new UUID as its messageId. */
  hasOwnId: boolean;
}

/** The replies to a message that count as answers, and the message that follows an unclear reply. */
interface AnswerRules {
  answers: readonly AnswerChoice[];
  again?: AgainTemplate;
}

/** A group can have more handsets than a message has recipients. Further handsets get no `again`. */
const maxAgainPerRequest = 10_000;

const rulesPrefix = 'answers:';

export function answerRulesKey(text: string): string {
  return rulesPrefix + text;
}

export function hasAnswers({ options }: Pick<MessageItem, 'options'>): boolean {
  return options.answers !== undefined && options.answers.length > 0;
}

/** Stores the answer rules of a message once, because a message can have 5,000 reply requests. */
export function keepAnswerRules(text: MessageItem, { at, forMs }: Duration, changes: Changes): void {
  if (!hasAnswers(text)) return;
  const { answers = [], again, remember, retries, priority, unlimited, essential } = text.options;
  const rules: AnswerRules = { answers };
  if (again) {
    const { keep, ...draft } = again;
    const options: SendOptions = {
      retries,
      retryUncertain: false,
      resolveMs: 0,
      priority,
      unlimited,
      ...(essential && { essential }),
      ...(keep && { keep }),
      remember: remember ?? { value: undefined },
    };
    rules.again = { ...draft, options, hasOwnId: text.message.messageId !== undefined };
  }
  changes.remember.set(answerRulesKey(text.id), { at, forMs, value: JSON.stringify(rules) });
}

function readAnswerRules(text: string, readKey: ReadKey): AnswerRules | undefined {
  return parseRememberedValue(readKey(answerRulesKey(text)), isAnswerRules);
}

function isAnswerRules(value: unknown): value is AnswerRules {
  const { answers } = Object(value) as { answers?: unknown };
  return Array.isArray(answers) && answers.every((answer) => Array.isArray(answer?.words));
}

/** Returns the value of the answer in a reply, or `undefined` if the reply is unclear. */
export function readAnswer(text: string, body: string, readKey: ReadKey): string | undefined {
  return findAnswer(readAnswerRules(text, readKey)?.answers ?? [], body);
}

export function readAgainTemplate(text: string, readKey: ReadKey): AgainTemplate | undefined {
  return readAnswerRules(text, readKey)?.again;
}

/** Records an unclear reply. Each handset receives the message `again` once. */
export function withUnclear(request: ReplyRequest, body: string, handsets: readonly string[]): ReplyRequest {
  const { againTo = [], againDue = [] } = request;
  const added = handsets.filter((handset) => !againTo.includes(handset)).slice(0, maxAgainPerRequest - againTo.length);
  if (added.length === 0) return { ...request, unclear: body };
  return { ...request, unclear: body, againTo: [...againTo, ...added], againDue: [...againDue, ...added] };
}

/** Records that the message `again` to a handset needs no further try. */
export function withoutDue(request: ReplyRequest, handset: string): ReplyRequest {
  return { ...request, againDue: request.againDue?.filter((one) => one !== handset) ?? [] };
}

/**
 * Records, in the same commit, that a message `again` is stored or sent. So a crash neither loses nor repeats the
 * message. Returns the effect.
 */
export function recordAgain({ again, message }: MessageItem, followUps: FollowUpBook, changes: Changes): () => void {
  const [handset = ''] = message.to;
  const known = again && followUps.get(again.request);
  if (known?.kind !== 'replyRequest') return () => {};
  const current = latest(known, changes);
  if (!current.againDue?.includes(handset)) return () => {};
  keepItem(changes, withoutDue(current, handset));
  return () => {
    const present = followUps.get(known.id);
    if (present?.kind === 'replyRequest') followUps.put(withoutDue(present, handset));
  };
}
