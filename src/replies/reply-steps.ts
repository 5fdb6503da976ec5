import type { Step } from '../journal/step';
import type { MessageItem, Sent } from '../outbox/message-item';
import { type Changes, dropItem, keepItem, latest, parseRememberedValue, type ReadKey } from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import { answerRulesKey, hasAnswers, withUnclear } from './again';
import type { FollowUpBook } from './follow-up-book';
import { closeRequest } from './open-requests';
import {
  type FollowUp,
  flowMessageKey,
  followUpGraceMs,
  keepFlowMessage,
  type ReplyRequest,
  type ReplyResult,
  type Report,
} from './reply-request';
import { statusesOf } from './report';
import { type Memory, referenceOf, type SentKeys } from './sent-index';

/** A reply that another instance received for a reply request. */
interface ForwardedReply {
  result?: ReplyResult;
  unclear?: { body: string; handsets: readonly string[] };
}

const replyPrefix = 'reply:';

/** Returns the key under which an instance stores a reply to a reply request of another instance. */
export function replyKey(request: string): string {
  return replyPrefix + request;
}

export function readForwarded(request: string, readKey: ReadKey): ForwardedReply {
  return parseRememberedValue(readKey(replyKey(request)), isForwardedReply) ?? {};
}

/** Stores a result for another instance. The same commit closes the request, so that no second result follows. */
export function forwardResult(request: string, result: ReplyResult, at: number, changes: Changes): void {
  forward(request, { result }, at, changes);
}

/** Stores an unclear reply for another instance, unless a result is already stored. */
export function forwardUnclear(
  request: string,
  { body, handset, at }: { body: string; handset: string | undefined; at: number },
  readKey: ReadKey,
  changes: Changes,
): void {
  const { result, unclear } = readForwarded(request, readKey);
  if (result) return;
  const handsets = new Set([...(unclear?.handsets ?? []), ...(handset === undefined ? [] : [handset])]);
  forward(request, { unclear: { body, handsets: [...handsets] } }, at, changes);
}

function forward(request: string, forwarded: ForwardedReply, at: number, changes: Changes): void {
  changes.remember.set(replyKey(request), { at, forMs: followUpGraceMs, value: JSON.stringify(forwarded) });
}

/** Returns the reply requests that have no reply, here or on another instance, at the time of the commit. */
export function unanswered(requests: readonly ReplyRequest[], readKey: ReadKey, changes: Changes): ReplyRequest[] {
  for (const { id } of requests) changes.compare.add(replyKey(id));
  return requests.filter(({ id, result }) => result === undefined && readForwarded(id, readKey).result === undefined);
}

function isForwardedReply(value: unknown): value is ForwardedReply {
  const { result, unclear } = Object(value) as { result?: unknown; unclear?: { handsets?: unknown } };
  if (unclear !== undefined) return Array.isArray(unclear.handsets);
  const { reply, reason } = Object(result) as { reply?: unknown; reason?: unknown };
  return typeof reason === 'string' || (typeof reply === 'object' && reply !== null);
}

/** Returns a function that gives the id of a recipient's reply request, by the recipient's position in the message. */
function requestIds({ id, message }: MessageItem): (recipient: string) => string {
  const places = new Map(message.to.map((recipient, index) => [recipient, index]));
  return (recipient) => `${id}-${places.get(recipient)}`;
}

/** Returns the id of the message of a reply request. */
export function textOfRequest(request: string): string {
  return request.slice(0, request.lastIndexOf('-'));
}

/** Returns the fields that all follow-ups of a message share. */
function commonOf(
  text: MessageItem,
  { reference, messageId }: Pick<SentKeys, 'reference' | 'messageId'>,
  waitMs: number,
) {
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

/** Returns the reply requests of a message, with the changes of earlier steps in the same commit. */
export function requestsOf(text: MessageItem, known: Pick<FollowUpBook, 'get'>, changes: Changes): ReplyRequest[] {
  if (text.options.waitMs === undefined) return [];
  return text.message.to
    .map(requestIds(text))
    .flatMap((id) => ((changes.keep.get(id) ?? known.get(id)) as ReplyRequest | undefined) ?? []);
}

/**
 * Returns the reply requests of recipients: the existing ones, and new ones. Creates no request for recipients that
 * have already answered.
 */
export function createRequests(
  text: MessageItem,
  keys: SentKeys,
  recipients: readonly string[],
  requests: readonly ReplyRequest[],
): ReplyRequest[] {
  const { waitMs } = text.options;
  if (waitMs === undefined) return [];
  const known = new Map(requests.map((request) => [request.recipient, request]));
  const idOf = requestIds(text);
  const common = { ...commonOf(text, keys, waitMs), ...(hasAnswers(text) && { hasAnswers: true as const }) };
  const answered = new Set(text.answered);
  return recipients
    .filter((recipient) => !answered.has(recipient))
    .map((recipient) => known.get(recipient) ?? { ...common, kind: 'replyRequest', id: idOf(recipient), recipient });
}

/**
 * Creates the reply requests that begin when the outcome of a message is known. Each recipient gets one unless it is
 * known to have failed. The request of a failed recipient ends immediately.
 */
export function beginRequests(
  text: MessageItem,
  sent: Sent,
  { keys, requests, now }: { keys: SentKeys; requests: readonly ReplyRequest[]; now: number },
): { begun: ReplyRequest[]; failed: ReplyRequest[] } {
  const failures = new Map(sent.failed.map((one) => [normaliseRecipient(one.msisdn), one]));
  const withheld = new Map(sent.withheld?.map((one) => [one.msisdn, one]));
  const hasFailed = (recipient: string) => failures.has(normaliseRecipient(recipient));
  const { to } = text.message;
  const waiting = sent.accepted.length === 0 ? [] : to.filter((recipient) => !hasFailed(recipient));
  const begun = createRequests(text, keys, waiting, requests);
  const failed = createRequests(text, keys, to.filter(hasFailed), requests).map((request): ReplyRequest => {
    const { recipient } = request;
    const { errorCode, errorMessage } = failures.get(normaliseRecipient(recipient)) ?? {};
    const result = { reason: 'failed', ...present({ errorCode, errorMessage, withheld: withheld.get(recipient) }) };
    return { ...request, askedAt: now, result: request.result ?? (result as ReplyResult) };
  });
  return { begun: begun.map((request) => ({ ...request, askedAt: now })), failed };
}

/** Stores a report that waits for its statuses, with the flow message. */
export function beginReport(text: MessageItem, sent: Sent, memory: Memory, changes: Changes): Report {
  const { id, message, options } = text;
  const messageId = message.messageId ?? sent.messageId;
  const common = commonOf(text, { reference: referenceOf(messageId, text), messageId }, options.reportMs ?? 0);
  const recipients = sent.accepted;
  const report: Report = { ...common, kind: 'report', id: `${id}-report`, recipients, askedAt: memory.now };
  keepItem(changes, report);
  keepFlowMessage(text, memory.now, changes);
  return report;
}

/** Returns a reply request with the reply that another instance stored for it, and removes the stored reply. */
export function takeForwarded(request: ReplyRequest, readKey: ReadKey, changes: Changes): ReplyRequest {
  const { result, unclear } = readForwarded(request.id, readKey);
  if (!result && !unclear) return request;
  changes.remember.set(replyKey(request.id), undefined);
  if (request.result) return request;
  return result ? { ...request, result } : withUnclear(request, unclear?.body ?? '', unclear?.handsets ?? []);
}

/**
 * Ends the reply requests of a message that is not known to be accepted. A recipient that has replied did get the
 * message, so its request ends with the reply.
 *
 * @param mayBeDecided a user can still say that the message has arrived; until then, a stored reply stays
 */
export function endUnaccepted(
  requests: readonly ReplyRequest[],
  { now, mayBeDecided }: { now: number; mayBeDecided?: boolean },
  readKey: ReadKey,
  changes: Changes,
): { replied: ReplyRequest[]; closedRequests: string[] } {
  const current = requests.map((request) => takeForwarded(request, readKey, changes));
  const isReplied = ({ result }: ReplyRequest) => result !== undefined && !('reason' in result);
  const replied = current.filter(isReplied).map((request) => ({ ...request, askedAt: now }));
  const silent = current.filter((request) => !isReplied(request));
  for (const request of replied) keepItem(changes, request);
  return { replied, closedRequests: dropRequests(silent, readKey, changes, mayBeDecided) };
}

/** Drops reply requests without a result. Returns their ids. */
export function dropRequests(
  requests: readonly ReplyRequest[],
  readKey: ReadKey,
  changes: Changes,
  mayBeDecided = false,
): string[] {
  for (const request of requests) {
    dropItem(changes, request.id, 'ledger');
    closeRequest(request, readKey, changes, mayBeDecided);
  }
  return requests.map(({ id }) => id);
}

/**
 * Ends reply requests with the replies that other instances stored, and reports whose statuses are complete. Ends
 * nothing while the store fails, because a reply could still arrive after a crash. The result contains the changed
 * follow-ups.
 *
 * @param isOver whether the time of the follow-ups is up; if so, all of them end
 */
export function endFollowUps(
  followUps: readonly FollowUp[],
  known: Pick<FollowUpBook, 'get'>,
  isOver = false,
): Step<FollowUp[]> {
  return {
    whileFailing: 'postpone',
    decide(readKey, changes) {
      const changed: FollowUp[] = [];
      for (const { id } of followUps) {
        const own = changes.drop.has(id) ? undefined : known.get(id);
        const current = own && latest(own, changes);
        if (!current) continue;
        if (current.kind === 'report') {
          if (current.result) continue;
          const statuses = statusesOf(current, isOver, readKey);
          if (statuses) changed.push({ ...current, result: { statuses } });
          continue;
        }
        // If the handset has received many messages since then, the reply can be found only by this key.
        const taken = takeForwarded(current, readKey, changes);
        if (current.result) continue;
        const ended = taken.result || !isOver ? taken : { ...taken, result: createTimeout(taken) };
        if (ended === current) continue;
        // The request can be open again here, if its message was sent again after another instance read the reply.
        if (ended.result) closeRequest(current, readKey, changes);
        changed.push(ended);
      }
      for (const one of changed) keepItem(changes, one);
      return () => changed;
    },
  };
}

function createTimeout({ unclear }: ReplyRequest): ReplyResult {
  return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: unclear };
}

/**
 * Drops a follow-up whose result has entered the flow.
 *
 * @param isLast says whether no other follow-up needs the flow message
 */
export function forgetFollowUp(followUp: FollowUp, isLast: () => boolean): Step<void> {
  const unopened = followUp.kind === 'replyRequest' && followUp.askedAt === undefined ? followUp : undefined;
  // Checked now and in the step. If another follow-up ends in between, its commit can be a later one. After a crash
  // before that commit, it still needs the flow message.
  const wasLast = isLast();
  return {
    whileFailing: 'apply',
    decide(readKey, changes) {
      dropItem(changes, followUp.id, 'ledger');
      if (unopened) closeRequest(unopened, readKey, changes);
      if (wasLast && isLast()) {
        changes.remember.set(flowMessageKey(followUp.text), undefined);
        if (followUp.kind === 'replyRequest' && followUp.hasAnswers) {
          changes.remember.set(answerRulesKey(followUp.text), undefined);
        }
      }
      return () => {};
    },
  };
}
