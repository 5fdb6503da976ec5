import type { CheckedDraft } from '../message/draft';
import {
  asks,
  concernedBy,
  isAccepted,
  isFollowed,
  isRemembered,
  isTracked,
  isUnknown,
  type MessageItem,
  type Outcome,
  type SendOptions,
  type Sent,
  submittedOf,
} from '../outbox/message-item';
import {
  type Changes,
  type Duration,
  dropItem,
  keepItem,
  latest,
  parseRememberedValue,
  type ReadKey,
} from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import type { AnswerChoice } from './answers';
import {
  type FollowUp,
  type FollowUpBook,
  flowMessageKey,
  followUpGraceMs,
  keepFlowMessage,
  type ReplyRequest,
  type ReplyResult,
  type Report,
} from './follow-ups';
import { expectStatuses } from './report';
import {
  acceptSent,
  closeRequest,
  durationOf,
  forgetSent,
  keysOfRecipients,
  type Memory,
  openRequests,
  referenceOf,
  remember,
  type SentKeys,
} from './sent-index';

/** The second message (option `again`), which follows an unclear reply, without its recipient. */
export interface AgainTemplate extends CheckedDraft {
  options: SendOptions;
  /** Whether each second message has a new UUID as its messageId. */
  hasOwnId: boolean;
}

/** The possible answers to a message, and the second message, which follows an unclear reply. */
interface AnswerRules {
  answers: readonly AnswerChoice[];
  again?: AgainTemplate;
}

/**
 * Maximum number of handsets per request that get the second message (option `again`). A group can have more handsets.
 */
const maxAgainPerRequest = 10_000;

export const answerRulesKey = (message: string) => `answers:${message}`;

function hasAnswers({ options }: MessageItem): boolean {
  return options.answers !== undefined && options.answers.length > 0;
}

/** Stores the answer rules only once per message, because a message can have 5,000 reply requests. */
function keepAnswerRules(item: MessageItem, { at, forMs }: Duration, changes: Changes): void {
  const { answers = [], again, remember, retries, priority, unlimited, essential } = item.options;
  const rules: AnswerRules = { answers };
  if (again) {
    const { keep, ...draft } = again;
    const options: SendOptions = {
      retries,
      retryUncertain: false,
      resolveMs: 0,
      priority,
      unlimited,
      ...present({ essential, keep }),
      remember: remember ?? { value: undefined },
    };
    rules.again = { ...draft, options, hasOwnId: item.message.messageId !== undefined };
  }
  changes.remember.set(answerRulesKey(item.id), { at, forMs, value: JSON.stringify(rules) });
}

export function readAnswerRules(message: string, readKey: ReadKey): AnswerRules | undefined {
  return parseRememberedValue(readKey(answerRulesKey(message)), isAnswerRules);
}

function isAnswerRules(value: unknown): value is AnswerRules {
  const { answers } = Object(value) as { answers?: unknown };
  return Array.isArray(answers) && answers.every((answer) => Array.isArray(answer?.words));
}

export function readAgainTemplate(message: string, readKey: ReadKey): AgainTemplate | undefined {
  return readAnswerRules(message, readKey)?.again;
}

/**
 * Adds an unclear reply to a request. The second message (option `again`) then goes to each of `handsets` that has not
 * received it yet.
 */
export function withUnclear(request: ReplyRequest, body: string, handsets: readonly string[]): ReplyRequest {
  const { againTo = [], againDue = [] } = request;
  const newHandsets = handsets
    .filter((handset) => !againTo.includes(handset))
    .slice(0, maxAgainPerRequest - againTo.length);
  if (newHandsets.length === 0) return { ...request, unclear: body };
  return { ...request, unclear: body, againTo: [...againTo, ...newHandsets], againDue: [...againDue, ...newHandsets] };
}

/** Notes in a request that the second message (option `again`) to a handset needs no further try. */
export function withoutDue(request: ReplyRequest, handset: string): ReplyRequest {
  return { ...request, againDue: request.againDue?.filter((dueHandset) => dueHandset !== handset) ?? [] };
}

/**
 * Notes in a reply request that its second message (option `again`) is stored or sent. The note and the second message
 * share a commit, so a crash neither loses nor repeats the second message. Call the returned function after the commit:
 * it updates memory.
 */
export function recordAgain({ again, message }: MessageItem, followUps: FollowUpBook, changes: Changes): () => void {
  if (!again) return () => {};
  const [handset = ''] = message.to;
  const request = followUps.get(again.request);
  if (request?.kind !== 'replyRequest') return () => {};
  const current = latest(request, changes);
  if (!current.againDue?.includes(handset)) return () => {};
  keepItem(changes, withoutDue(current, handset));
  return () => {
    const storedRequest = followUps.get(request.id);
    if (storedRequest?.kind === 'replyRequest') followUps.set(withoutDue(storedRequest, handset));
  };
}

/** A reply to a request of another instance, stored until that instance reads it. */
interface ForwardedReply {
  result?: ReplyResult;
  unclear?: { body: string; handsets: readonly string[] };
}

/**
 * Returns a store key. An instance that receives a reply to another instance's reply request stores the reply under
 * this key. The other instance reads it there.
 */
const replyKey = (request: string) => `reply:${request}`;

export function readForwarded(request: string, readKey: ReadKey): ForwardedReply {
  return parseRememberedValue(readKey(replyKey(request)), isForwardedReply) ?? {};
}

/**
 * Stores the result of another instance's reply request, so that the other instance can read it. The caller closes the
 * request in the same commit, so that no second result follows.
 */
export function forwardResult(request: string, result: ReplyResult, at: number, changes: Changes): void {
  forward(request, { result }, at, changes);
}

/** Stores an unclear reply to another instance's reply request, unless the request already has a result. */
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

function forward(request: string, reply: ForwardedReply, at: number, changes: Changes): void {
  changes.remember.set(replyKey(request), { at, forMs: followUpGraceMs, value: JSON.stringify(reply) });
}

/**
 * Returns the requests that have no result at the time of the commit. Also checks results that other instances stored.
 */
function findUnanswered(requests: readonly ReplyRequest[], readKey: ReadKey, changes: Changes): ReplyRequest[] {
  for (const { id } of requests) changes.compare.add(replyKey(id));
  return requests.filter(({ id, result }) => result === undefined && readForwarded(id, readKey).result === undefined);
}

/** Returns a reply request with the reply that another instance stored for it, and removes the stored reply. */
export function collectForwardedReply(request: ReplyRequest, readKey: ReadKey, changes: Changes): ReplyRequest {
  const { result, unclear } = readForwarded(request.id, readKey);
  if (!result && !unclear) return request;
  changes.remember.set(replyKey(request.id), undefined);
  if (request.result) return request;
  return result ? { ...request, result } : withUnclear(request, unclear?.body ?? '', unclear?.handsets ?? []);
}

function isForwardedReply(value: unknown): value is ForwardedReply {
  const { result, unclear } = Object(value) as { result?: unknown; unclear?: { handsets?: unknown } };
  if (unclear !== undefined) return Array.isArray(unclear.handsets);
  const { reply, reason } = Object(result) as { reply?: unknown; reason?: unknown };
  return typeof reason === 'string' || (typeof reply === 'object' && reply !== null);
}

/** The settings and follow-ups that the steps of a message use. */
export interface FollowUpContext extends Memory {
  current: { followUps: FollowUpBook };
}

/**
 * Returns a function that creates the id of a recipient's reply request. The id ends with the position of the
 * recipient.
 */
function requestIds({ id, message }: MessageItem): (recipient: string) => string {
  const positions = new Map(message.to.map((recipient, index) => [recipient, index]));
  return (recipient) => `${id}-${positions.get(recipient)}`;
}

/** Returns the id of a message from the id of one of its reply requests. */
export function messageOfRequest(request: string): string {
  return request.slice(0, request.lastIndexOf('-'));
}

/** Returns the fields that all follow-ups of a message share. */
function commonOf(item: MessageItem, { reference, messageId }: SentKeys, waitMs: number) {
  return {
    part: 'outgoing' as const,
    subscribers: item.subscribers,
    attempts: 0,
    node: item.node,
    messageItemId: item.id,
    reference,
    ...present({ messageId }),
    waitMs,
  };
}

/** Returns the reply requests of a message, with the changes of earlier steps in the same commit. */
export function requestsOf(item: MessageItem, followUps: FollowUpBook, changes: Changes): ReplyRequest[] {
  if (item.options.waitMs === undefined) return [];
  return item.message.to
    .map(requestIds(item))
    .flatMap((id) => ((changes.keep.get(id) ?? followUps.get(id)) as ReplyRequest | undefined) ?? []);
}

/**
 * Returns one reply request for each recipient: the existing request, or else a new one. Leaves out recipients that
 * have already answered.
 */
function createRequests(
  item: MessageItem,
  keys: SentKeys,
  recipients: readonly string[],
  requests: readonly ReplyRequest[],
): ReplyRequest[] {
  const { waitMs } = item.options;
  if (waitMs === undefined || recipients.length === 0) return [];
  const byRecipient = new Map(requests.map((request) => [request.recipient, request]));
  const idOf = requestIds(item);
  const common = { ...commonOf(item, keys, waitMs), ...(hasAnswers(item) && { hasAnswers: true as const }) };
  const repliedRecipients = new Set(item.repliedRecipients);
  return recipients
    .filter((recipient) => !repliedRecipients.has(recipient))
    .map(
      (recipient) => byRecipient.get(recipient) ?? { ...common, kind: 'replyRequest', id: idOf(recipient), recipient },
    );
}

/**
 * Returns the keys that {@link noteLeft} and {@link noteEnded} read for a message with its own messageId. The journal
 * reads these keys in advance, because it would otherwise have to run the steps twice.
 */
export function keysOfSteps(item: MessageItem): string[] {
  const { messageId, to } = item.message;
  if (messageId === undefined || !isRemembered(item)) return [];
  const replies = item.options.waitMs === undefined ? [] : to.map(requestIds(item)).map(replyKey);
  return [...keysOfRecipients(referenceOf(messageId, item), to), ...replies];
}

/**
 * Stores the reply requests of a message, and prepares for its statuses. Called just before the message is sent,
 * because replies and statuses can arrive as soon as the first byte is sent.
 *
 * If the message has no own messageId, `noteEnded` does this when the service has accepted the message.
 *
 * @param item the message before the step
 * @param marked the message in state `leaving`
 */
export function noteLeft(
  { item, marked }: { item: MessageItem; marked: MessageItem },
  context: FollowUpContext,
  readKey: ReadKey,
  changes: Changes,
): { requests: ReplyRequest[]; effect: () => void } {
  const { followUps } = context.current;
  const { messageId } = item.message;
  const effect = recordAgain(item, followUps, changes);
  if (messageId === undefined || !isFollowed(item)) return { requests: [], effect };
  const reference = referenceOf(messageId, item);
  let requests: ReplyRequest[] = [];
  if (isRemembered(item)) {
    const keys = { messageId, reference };
    const to = submittedOf(item);
    requests = createRequests(marked, keys, to, requestsOf(item, followUps, changes));
    // Does not open requests that already have a reply to an earlier try, because only the first reply is used.
    const open = item.leftAt === undefined ? requests : findUnanswered(requests, readKey, changes);
    remember({ item: marked, keys, to, recipients: to, open, isAccepted: false }, context, readKey, changes);
    if (open.length > 0 && hasAnswers(item)) keepAnswerRules(item, durationOf(item, context), changes);
    for (const request of requests) keepItem(changes, request);
    if (requests.length > 0) keepFlowMessage(marked, context.now, changes);
  }
  if (item.options.reportMs !== undefined) {
    expectStatuses(item, { reference, askedAt: context.now, followUps }, readKey, changes);
  }
  return { requests, effect };
}

/** Forgets a message that was not sent, and closes its open reply requests. Returns the ids of these requests. */
export function noteUnsent(item: MessageItem, context: FollowUpContext, readKey: ReadKey, changes: Changes): string[] {
  if (!isFollowed(item)) return [];
  const { messageId, to } = item.message;
  if (messageId !== undefined && isRemembered(item)) {
    forgetSent(item, { reference: referenceOf(messageId, item), recipients: to }, readKey, changes);
  }
  const open = findUnanswered(requestsOf(item, context.current.followUps, changes), readKey, changes);
  forgetFlowMessage(item, changes);
  return dropRequests(open, readKey, changes);
}

/** How the follow-ups of a message change when its outcome is known. */
interface EndedFollowUps {
  /** Recipients that have replied, to this try or an earlier one, although the message was not known to be accepted. */
  repliedRecipients: string[];
  newFollowUps: FollowUp[];
  closedRequests: string[];
}

/**
 * Called when a message has an outcome. If the message was accepted, remembers it, and begins to wait for its replies
 * and statuses. Ends all other waits.
 */
export function noteEnded(
  { item, outcome }: { item: MessageItem; outcome: Outcome },
  context: FollowUpContext,
  readKey: ReadKey,
  changes: Changes,
): EndedFollowUps {
  if (!isFollowed(item)) return { repliedRecipients: [], newFollowUps: [], closedRequests: [] };
  const { now, current } = context;
  const { to, messageId: ownId } = item.message;
  const completed = 'accepted' in outcome ? outcome : undefined;
  const sent = isAccepted(outcome) ? outcome : undefined;
  const messageId = ownId ?? completed?.messageId;
  const keys = { messageId, reference: referenceOf(messageId, item) };
  const requests = requestsOf(item, current.followUps, changes);
  const { begun, failed } = completed
    ? beginRequests({ item, sent: completed }, { keys, requests, now }, readKey, changes)
    : { begun: [], failed: [] };
  const idsOfBegun = new Set([...begun, ...failed].map(({ id }) => id));
  const otherRequests = requests.filter(({ id }) => !idsOfBegun.has(id));
  const mayBeDecided = !sent && isTracked(item) && isUnknown(outcome);
  const { replied, closedRequests } = endUnaccepted(otherRequests, { now, mayBeDecided }, readKey, changes);
  const duration = durationOf(item, context);
  let open: readonly ReplyRequest[] = begun;
  if (isRemembered(item) && ownId !== undefined) {
    // A recipient that has a reply or an open reply request counts as reached: the message stays remembered for it.
    const answerableRecipients = [...replied, ...begun].map(({ recipient }) => recipient);
    const acceptedRecipients = sent ? sent.accepted : isUnknown(outcome) ? to : [];
    const reachedRecipients = new Set([
      ...acceptedRecipients,
      ...(item.previousAttempt?.to ?? []),
      ...answerableRecipients,
    ]);
    const recipients = to.filter((recipient) => !reachedRecipients.has(recipient));
    forgetSent(item, { reference: keys.reference, recipients }, readKey, changes);
    if (sent) acceptSent({ item, to: concernedBy(item), keys }, context, readKey, changes);
    open = findUnanswered(begun, readKey, changes);
    openRequests(open, { duration }, readKey, changes);
  } else if (isRemembered(item) && sent) {
    const recipients = sent.accepted;
    remember({ item, keys, to: concernedBy(item), recipients, open, isAccepted: true }, context, readKey, changes);
  }
  if (open.length > 0 && hasAnswers(item)) keepAnswerRules(item, duration, changes);
  for (const request of [...begun, ...failed]) keepItem(changes, request);
  for (const request of failed) closeRequest(request, readKey, changes);
  const { reportMs } = item.options;
  const report: Report | undefined =
    sent && reportMs !== undefined
      ? {
          ...commonOf(item, keys, reportMs),
          kind: 'report',
          id: `${item.id}-report`,
          recipients: sent.accepted,
          askedAt: now,
        }
      : undefined;
  if (report) {
    keepItem(changes, report);
    if (ownId === undefined) expectStatuses(item, report, readKey, changes);
  }
  if (report || (ownId === undefined && idsOfBegun.size > 0)) keepFlowMessage(item, now, changes);
  const newFollowUps = [...begun, ...failed, ...replied, ...(report ? [report] : [])];
  if (isRemembered(item) && ownId !== undefined && newFollowUps.length === 0) forgetFlowMessage(item, changes);
  const repliedRecipients = [...(item.repliedRecipients ?? []), ...replied.map(({ recipient }) => recipient)];
  return { repliedRecipients, newFollowUps, closedRequests };
}

/**
 * Creates the reply requests of a message whose outcome is known. The wait begins for each recipient that has not
 * failed. The request of a failed recipient ends immediately.
 */
function beginRequests(
  { item, sent }: { item: MessageItem; sent: Sent },
  { keys, requests, now }: { keys: SentKeys; requests: readonly ReplyRequest[]; now: number },
  readKey: ReadKey,
  changes: Changes,
): { begun: ReplyRequest[]; failed: ReplyRequest[] } {
  const failures = new Map(sent.failed.map((failure) => [normaliseRecipient(failure.msisdn), failure]));
  const withheld = new Map(sent.withheld?.map((refusal) => [refusal.msisdn, refusal]));
  const hasFailed = (recipient: string) => failures.has(normaliseRecipient(recipient));
  const { to } = item.message;
  const waitingRecipients = sent.accepted.length === 0 ? [] : to.filter((recipient) => !hasFailed(recipient));
  const begun = createRequests(item, keys, waitingRecipients, requests).map((request): ReplyRequest => {
    const begunRequest = { ...request, askedAt: now };
    return item.isManuallyResent ? collectForwardedReply(begunRequest, readKey, changes) : begunRequest;
  });
  const failed = createRequests(item, keys, to.filter(hasFailed), requests).map((request): ReplyRequest => {
    const { recipient } = request;
    const { errorCode, errorMessage } = failures.get(normaliseRecipient(recipient)) ?? {};
    const result = { reason: 'failed', ...present({ errorCode, errorMessage, withheld: withheld.get(recipient) }) };
    return { ...request, askedAt: now, result: request.result ?? (result as ReplyResult) };
  });
  return { begun, failed };
}

/**
 * Ends the reply requests of a message that is not known to be accepted. If a recipient has replied anyway, the request
 * of this recipient ends with the reply. All other requests end without a result.
 *
 * @param mayBeDecided true if a user can still mark the message as sent; requests without a reply then stay open in the
 *   store, marked as undecided
 */
export function endUnaccepted(
  requests: readonly ReplyRequest[],
  { now, mayBeDecided }: { now: number; mayBeDecided?: boolean },
  readKey: ReadKey,
  changes: Changes,
): { replied: ReplyRequest[]; closedRequests: string[] } {
  const current = requests.map((request) => collectForwardedReply(request, readKey, changes));
  const isReplied = ({ result }: ReplyRequest) => result !== undefined && !('reason' in result);
  const replied = current.filter(isReplied).map((request) => ({ ...request, askedAt: now }));
  const silentRequests = current.filter((request) => !isReplied(request));
  for (const request of replied) keepItem(changes, request);
  return { replied, closedRequests: dropRequests(silentRequests, readKey, changes, mayBeDecided) };
}

/** Drops reply requests without a result. Returns the ids of these requests. */
function dropRequests(
  requests: readonly ReplyRequest[],
  readKey: ReadKey,
  changes: Changes,
  mayBeDecided = false,
): string[] {
  for (const request of requests) {
    dropItem(changes, request.id, 'outgoing');
    closeRequest(request, readKey, changes, mayBeDecided);
  }
  return requests.map(({ id }) => id);
}

/** Forgets the flow message when no follow-up needs it. Does nothing for a stored message. */
function forgetFlowMessage(item: MessageItem, changes: Changes): void {
  if (!isTracked(item) && asks(item)) changes.remember.set(flowMessageKey(item.id), undefined);
}
