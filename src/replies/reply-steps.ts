import type { Step } from '../journal/step';
import type { Sent, Text } from '../outbox/text';
import { type Changes, dropItem, keepItem, type Look, type MovedValues, parseRememberedValue } from '../store/store';
import { present } from '../wire/fields';
import {
  type Answer,
  type FollowUp,
  flowMessageKey,
  keepFlowMessage,
  type ReplyRequest,
  type Report,
  requestGraceMs,
} from './reply-request';
import { statusesOf } from './report';
import { closeRequest, type Memory, referenceOf, type SentKeys } from './sent-index';

const replyPrefix = 'reply:';

/** The key under which an instance leaves the reply that it has read to a reply request of another. */
export function replyKey(request: string): string {
  return replyPrefix + request;
}

/** What another instance has left. */
export function readReply(request: string, look: Look): Answer | undefined {
  return parseRememberedValue(look(replyKey(request)), isAnswer);
}

/** Leaves a reply. It closes the reply request in the same commit, so that no other comes. */
export function leaveReply(request: string, answer: Answer, at: number, changes: Changes): void {
  changes.remember.set(replyKey(request), { at, forMs: requestGraceMs, value: JSON.stringify(answer) });
}

/** Those reply requests that nobody has answered, here or elsewhere, by the time that the changes are written. */
export function unanswered(requests: readonly ReplyRequest[], look: Look, changes: Changes): ReplyRequest[] {
  for (const { id } of requests) changes.compare.add(replyKey(id));
  return requests.filter(({ id, answer }) => answer === undefined && readReply(id, look) === undefined);
}

/** Each reply that lies there for either login. */
export const movedReplies: MovedValues = { prefix: replyPrefix };

function isAnswer(value: unknown): value is Answer {
  const { reply, reason } = Object(value) as { reply?: unknown; reason?: unknown };
  return typeof reason === 'string' || (typeof reply === 'object' && reply !== null);
}

/** How the reply requests to the recipients of a text are called: by their places in its list. */
function requestIds({ id, message }: Text): (recipient: string) => string {
  const places = new Map(message.to.map((recipient, index) => [recipient, index]));
  return (recipient) => `${id}-${places.get(recipient)}`;
}

/** What all that a text asks has in common. */
function commonOf(text: Text, { reference, messageId }: Pick<SentKeys, 'reference' | 'messageId'>, waitMs: number) {
  return {
    part: 'ledger' as const,
    subscribers: text.subscribers,
    attempts: 0,
    node: text.node,
    text: text.id,
    reference,
    ...(messageId === undefined ? undefined : { messageId }),
    waitMs,
  };
}

/** A reply request or report as the steps before it in the same commit leave it. */
export function latest<One extends FollowUp>(asked: One, changes: Changes): One {
  return (changes.keep.get(asked.id) as One | undefined) ?? asked;
}

/** What a text asks, as it stands now: its mark may be written, or a reply come, in the same commit. */
export function requestsOf(text: Text, known: ReadonlyMap<string, FollowUp>, changes: Changes): ReplyRequest[] {
  if (text.options.waitMs === undefined) return [];
  return text.message.to
    .map(requestIds(text))
    .flatMap((id) => ((changes.keep.get(id) ?? known.get(id)) as ReplyRequest | undefined) ?? []);
}

/** Those of the reply requests of a text that are to these recipients, and new ones to whom there is none yet: none to who has answered. */
export function ask(
  text: Text,
  keys: SentKeys,
  recipients: readonly string[],
  requests: readonly ReplyRequest[],
): ReplyRequest[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const known = new Map(requests.map((request) => [request.recipient, request]));
  const idOf = requestIds(text);
  const common = commonOf(text, keys, waitMs);
  const answered = new Set(text.answered);
  return recipients
    .filter((recipient) => !answered.has(recipient))
    .map((recipient) => known.get(recipient) ?? { ...common, kind: 'replyRequest', id: idOf(recipient), recipient });
}

/** Keeps the report to be on a text that was accepted, with the message of the flow. */
export function beginReport(text: Text, sent: Sent, memory: Memory, changes: Changes): Report {
  const { id, message, options } = text;
  const messageId = message.messageId ?? sent.messageId;
  const common = commonOf(text, { reference: referenceOf(messageId, text), messageId }, options.reportMs ?? 0);
  const recipients = sent.accepted;
  const report: Report = { ...common, kind: 'report', id: `${id}-report`, recipients, askedAt: memory.now };
  keepItem(changes, report);
  keepFlowMessage(text, memory.now, changes);
  return report;
}

/** The answer to a reply request, which may have been left for it: that is taken. */
export function takeAnswer({ id, answer }: ReplyRequest, look: Look, changes: Changes): Pick<ReplyRequest, 'answer'> {
  const left = readReply(id, look);
  if (left) changes.remember.set(replyKey(id), undefined);
  return present({ answer: answer ?? left });
}

/**
 * Nobody is asked whose text is not known to be accepted. Who has replied all the same has got it: that is what the wait was for, and is
 * told.
 *
 * @param mayBeDecided somebody may say yet that it has arrived: a reply is left until then
 */
export function endUnaccepted(
  requests: readonly ReplyRequest[],
  { now, mayBeDecided }: { now: number; mayBeDecided?: boolean },
  look: Look,
  changes: Changes,
): { replied: ReplyRequest[]; closedRequests: string[] } {
  const replied: ReplyRequest[] = [];
  const silent: ReplyRequest[] = [];
  for (const request of requests) {
    const { answer } = takeAnswer(request, look, changes);
    if (answer && 'reply' in answer) replied.push({ ...request, answer, askedAt: now });
    else silent.push(request);
  }
  for (const request of replied) keepItem(changes, request);
  return { replied, closedRequests: unask(silent, look, changes, mayBeDecided) };
}

/** Asks no more. Returns the ids of the reply requests. */
export function unask(requests: readonly ReplyRequest[], look: Look, changes: Changes, mayBeDecided = false): string[] {
  for (const request of requests) {
    dropItem(changes, request.id, 'ledger');
    closeRequest(request, look, changes, mayBeDecided);
  }
  return requests.map(({ id }) => id);
}

/**
 * Ends reply requests with the replies that other instances have left for them, and reports of which all is known; not before that is written,
 * since a reply may come after a kill. Results in those that have ended by this: what is answered already stays as it is.
 *
 * @param isOver their time is up: those end too of which that is not so
 */
export function endAsked(
  asked: readonly FollowUp[],
  known: ReadonlyMap<string, FollowUp>,
  isOver = false,
): Step<FollowUp[]> {
  return {
    whileFailing: 'postpone',
    decide(look, changes) {
      const ended: FollowUp[] = [];
      for (const { id } of asked) {
        const own = changes.drop.has(id) ? undefined : known.get(id);
        const current = own && latest(own, changes);
        if (current?.kind === 'report') {
          const statuses = current.answer ? undefined : statusesOf(current, isOver, look);
          if (statuses) ended.push({ ...current, answer: { statuses } });
        } else if (current) {
          // The handset may have got so many texts since that nothing else tells of it. What another has by now it ends itself.
          const reply = readReply(id, look);
          if (reply) changes.remember.set(replyKey(id), undefined);
          const answer = reply ?? (isOver ? { reason: 'timeout' as const } : undefined);
          if (!answer || current.answer) continue;
          // It may be open again by now, where its text has left once more since that was read.
          closeRequest(current, look, changes);
          ended.push({ ...current, answer });
        }
      }
      for (const one of ended) keepItem(changes, one);
      return () => ended;
    },
  };
}

/**
 * The end of a reply request or report has entered the flow.
 *
 * @param isLast nothing else needs what its text carries
 */
export function forgetFollowUp(asked: FollowUp, isLast: () => boolean): Step<void> {
  const closedRequests = asked.kind === 'replyRequest' && asked.askedAt === undefined ? asked : undefined;
  // Those that go later may be in a later commit, which a kill may come before.
  const wasLast = isLast();
  return {
    whileFailing: 'apply',
    drops: [asked.id],
    decide(look, changes) {
      dropItem(changes, asked.id, 'ledger');
      if (closedRequests) closeRequest(closedRequests, look, changes);
      if (wasLast && isLast()) changes.remember.set(flowMessageKey(asked.text), undefined);
      return () => {};
    },
  };
}
