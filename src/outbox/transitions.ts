import { SmsError } from '../errors';
import { createChange, type Step } from '../journal/step';
import { keepAnswerRules, recordAgain } from '../replies/again';
import type { FollowUpBook } from '../replies/follow-up-book';
import { closeRequest, openRequests } from '../replies/open-requests';
import { type FollowUp, flowMessageKey, keepFlowMessage, type ReplyRequest } from '../replies/reply-request';
import {
  beginReport,
  beginRequests,
  createRequests,
  dropRequests,
  endUnaccepted,
  requestsOf,
  takeForwarded,
  unanswered,
} from '../replies/reply-steps';
import { expectStatuses } from '../replies/report';
import {
  acceptSent,
  durationOf,
  forgetSent,
  type Memory,
  referenceOf,
  remember,
  sentKeysOf,
} from '../replies/sent-index';
import { type Changes, dropItem, keepItem, type Look } from '../store/store';
import { forgetEvidence } from './evidence';
import { releaseCounts } from './limits';
import {
  afterUnknown,
  asks,
  concernedBy,
  formatOutcome,
  isAccepted,
  isRemembered,
  isTracked,
  isUnknown,
  type MessageItem,
  type MessageState,
  type Outcome,
  parseOutcome,
  type StoredOutcome,
  submittedOf,
  uncountedBy,
} from './message-item';
import type { Messages } from './messages';
import { guardAgain, noteOutcome } from './once';
import { createSuperseded, noteLeaving, readSuperseding, releaseKey, type Superseding } from './replace';
import { askedForConsent, askRules, hasRules, passRules, type Verdict } from './rules';

/** Maximum length in characters of a flow message that is stored within the message. */
const maxInlineLength = 1_024;

/**
 * The states from which each step can start. If the message is in another state, or does not exist, the step results in
 * {@link stale} and writes nothing.
 */
export const startsFrom = {
  accept: [],
  replace: ['waiting'],
  withdraw: ['waiting'],
  sendNow: ['waiting'],
  markLeaving: ['waiting'],
  requeue: ['leaving'],
  sendAgain: ['leaving', 'uncertain'],
  settle: ['waiting', 'leaving'],
  expire: ['waiting'],
  markSent: ['uncertain'],
  delivered: ['settled'],
  undecided: ['settled'],
  discard: ['waiting', 'uncertain'],
} as const satisfies Readonly<Record<string, readonly MessageState[]>>;

/** Result of a step if another step has already moved the message. The caller must then leave the message alone. */
export const stale = 'stale';
export type Stale = typeof stale;

/** The messages and reply requests of this process, as of the last commit. */
export interface Books {
  readonly messages: Pick<Messages, 'get' | 'has'>;
  readonly followUps: FollowUpBook;
}

/** The time, the settings and the messages of this process at the time of the request for the step. */
export interface StepContext extends Memory {
  books: Books;
}

/** The values that a step reads, and the changes that it makes. */
interface Commit {
  look: Look;
  changes: Changes;
}

/** A message after a step, with its reply requests and reports. */
export interface Moved {
  text: MessageItem;
  newFollowUps: readonly FollowUp[];
  /** Ids of closed reply requests. */
  closedRequests: readonly string[];
  /** Set if the step replaced or withdrew the message. */
  isSuperseded?: true;
}

/** Ends a replaced or withdrawn message. */
export function supersede(text: MessageItem, why: Superseding, memory: StepContext, commit: Commit): Moved {
  return { ...end(text, createSuperseded(text, why), memory, commit), isSuperseded: true };
}

/** Returns which recipients the rules withhold now, and whether the message must wait. */
export function judge(text: MessageItem, memory: Memory): Step<Verdict> {
  const leaving = { ...memory, text, recipients: text.message.to };
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      const verdict = askRules(leaving, look, changes);
      return () => verdict;
    },
  };
}

/**
 * waiting → leaving: the connection is open, and the first byte is sent as soon as this step is written. If a rule now
 * withholds a recipient or makes the message wait, the step results in `undefined` and changes nothing. The caller must
 * then judge the message again.
 */
export function markLeaving(text: MessageItem, memory: StepContext): Step<Moved | Stale | undefined> {
  const { followUps } = memory.books;
  const { messageId } = text.message;
  const { withheld } = text;
  const submitted = submittedOf(text);
  const leaving = { ...memory, text, recipients: submitted };
  const keys = messageId !== undefined && isRemembered(text) ? sentKeysOf(text, messageId, submitted) : undefined;
  // Another instance might have read a reply to an earlier try.
  const asksAgain = text.leftAt !== undefined;
  return {
    whileFailing: isTracked(text) || askedForConsent(leaving).length > 0 ? 'refuse' : 'apply',
    decide(look, changes) {
      const current = startFromOwn('markLeaving', text, memory, changes);
      if (!current) return () => stale;
      const why = readSuperseding(current, look);
      if (why) {
        const superseded = supersede(current, why, memory, { look, changes });
        return () => superseded;
      }
      if (!passRules(leaving, look, changes)) return () => undefined;
      noteLeaving(current, true, look, changes);
      const countedAt = hasRules(memory.rules) ? { countedAt: memory.time } : undefined;
      const mark = { state: 'leaving', leftAt: memory.now, withheld, ...countedAt } as const;
      const left = keepText({ ...current, ...mark }, memory.now, changes);
      const newFollowUps = keys ? createRequests(left, keys, submitted, requestsOf(text, followUps, changes)) : [];
      // Only the first reply counts.
      const open = asksAgain ? unanswered(newFollowUps, look, changes) : newFollowUps;
      if (keys) remember({ text: left, to: submitted, keys, open, isAccepted: false }, memory, look, changes);
      for (const request of newFollowUps) keepItem(changes, request);
      if (newFollowUps.length > 0) keepFlowMessage(left, memory.now, changes);
      if (messageId !== undefined && text.options.reportMs !== undefined) {
        const reference = referenceOf(messageId, text);
        expectStatuses(text, { reference, askedAt: memory.now, known: followUps }, look, changes);
      }
      const onLeft = recordAgain(text, followUps, changes);
      return () => {
        onLeft();
        return { text: left, newFollowUps, closedRequests: [] };
      };
    },
  };
}

/** leaving → waiting: nothing was sent. */
export function requeue(text: MessageItem, change: Partial<MessageItem>, memory: StepContext): Step<Moved | Stale> {
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      const current = startFromOwn('requeue', text, memory, changes);
      if (!current) return () => stale;
      const moved = returnToWaiting({ ...current, ...change }, memory, { look, changes });
      // Recipients of an earlier try can still reply.
      if (text.previousAttempt || moved.text.state !== 'waiting') return () => moved;
      // No recipient has received the message, so no reply can come.
      const { messageId, to } = text.message;
      if (messageId !== undefined && isRemembered(text)) {
        forgetSent(text, { reference: referenceOf(messageId, text), recipients: to }, look, changes);
      }
      const open = unanswered(requestsOf(text, memory.books.followUps, changes), look, changes);
      const closedRequests = dropRequests(open, look, changes);
      dropUnkept(text, changes);
      return () => ({ ...moved, closedRequests });
    },
  };
}

/**
 * leaving or uncertain → waiting: the message is sent again, although the service might have accepted the last try, as
 * `outcome` says. Its recipients stay counted for limits.
 */
export function sendAgain(
  text: MessageItem,
  { outcome, change }: { outcome: StoredOutcome; change: Partial<MessageItem> },
  memory: StepContext,
): Step<Moved | Stale> {
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      const current = startFromOwn('sendAgain', text, memory, changes);
      if (!current) return () => stale;
      const { countedAt: _, ...again } = afterUnknown({ ...current, ...change }, outcome);
      if (current.state === 'uncertain') {
        // A newer message might have the key by now.
        const { replaceKey: __, ...options } = again.options;
        again.options = options;
      }
      const moved = returnToWaiting(again, memory, { look, changes });
      return () => moved;
    },
  };
}

/** Puts a message back, or ends it if it was replaced or withdrawn after it started to leave. */
function returnToWaiting(text: MessageItem, memory: StepContext, { look, changes }: Commit): Moved {
  const { outcome: _, settledAt: __, withheld: ___, countedAt, ...rest } = text;
  if (countedAt) releaseCounts({ ...memory, text, recipients: submittedOf(text) }, countedAt, look, changes);
  const why = readSuperseding(text, look);
  if (why) return supersede(rest, why, memory, { look, changes });
  noteLeaving(text, false, look, changes);
  const back = keepText({ ...rest, state: 'waiting' }, memory.now, changes);
  guardAgain(back, look, changes, memory);
  return { text: back, newFollowUps: [], closedRequests: [] };
}

/** How a message ends. */
export interface Ending {
  /** `settle`: after a try. `expire`: the message did not leave in time. `markSent`: a user says that it was sent. */
  by: 'settle' | 'expire' | 'markSent';
  outcome: Outcome;
  /** Other changes to the message. */
  change?: Partial<MessageItem>;
}

/** → settled: the message has its outcome, which might be unknown. */
export function settle(text: MessageItem, { by, outcome, change }: Ending, memory: StepContext): Step<Moved | Stale> {
  return {
    whileFailing: 'apply',
    decide(look, changes) {
      const current = startFromOwn(by, text, memory, changes);
      if (!current) return () => stale;
      const moved = end({ ...current, ...change }, outcome, memory, { look, changes });
      return () => moved;
    },
  };
}

function end(text: MessageItem, outcome: Outcome, memory: StepContext, { look, changes }: Commit): Moved {
  const { to } = text.message;
  const completed = outcome instanceof SmsError ? undefined : outcome;
  const sent = isAccepted(outcome) ? outcome : undefined;
  const messageId = text.message.messageId ?? completed?.messageId;
  const isOwn = text.message.messageId !== undefined;
  const accepted = sent?.accepted ?? [];
  const keys = isRemembered(text) ? sentKeysOf(text, messageId, isOwn ? [] : accepted) : undefined;
  const requests = requestsOf(text, memory.books.followUps, changes);
  if (text.countedAt)
    releaseCounts({ ...memory, text, recipients: uncountedBy(text, outcome) }, text.countedAt, look, changes);
  const started = keys && completed ? beginRequests(text, completed, { keys, requests, now: memory.now }) : undefined;
  const { failed = [] } = started ?? {};
  const begun = (started?.begun ?? []).map((request) =>
    text.isManuallyResent ? takeForwarded(request, look, changes) : request,
  );
  const idsOfBegun = new Set([...begun, ...failed].map(({ id }) => id));
  const rest = requests.filter(({ id }) => !idsOfBegun.has(id));
  const mayBeDecided = !sent && isTracked(text) && isUnknown(outcome);
  const { replied, closedRequests } = endUnaccepted(rest, { now: memory.now, mayBeDecided }, look, changes);
  const answered = [...(text.answered ?? []), ...replied.map(({ recipient }) => recipient)];
  const stored = {
    outcome: formatOutcome(outcome),
    settledAt: memory.now,
    ...(answered.length > 0 && { answered }),
  };
  const ended: MessageItem = { ...text, state: 'settled', ...stored };
  // If a power cut undoes this change, the store has the message as left, with an unknown outcome.
  const settled = keepText(ended, memory.now, changes, text.state === 'leaving');
  releaseKey(text, memory.now, look, changes);
  forgetEvidence(text, look, changes);
  noteOutcome(text, outcome, { look, changes }, memory);
  if (keys && isOwn) {
    // Recipients with a reply or an open reply request have received the message.
    const answerable = [...replied, ...begun].map(({ recipient }) => recipient);
    const got = sent ? accepted : isUnknown(outcome) ? to : [];
    const reached = new Set([...got, ...(text.previousAttempt?.to ?? []), ...answerable]);
    const unreached = to.filter((recipient) => !reached.has(recipient));
    forgetSent(text, { reference: keys.reference, recipients: unreached }, look, changes);
    if (sent) acceptSent({ text, to: concernedBy(text), keys }, memory, look, changes);
    const open = unanswered(begun, look, changes);
    const duration = durationOf(text, memory);
    openRequests(open, { duration }, look, changes);
    if (open.length > 0) keepAnswerRules(text, duration, changes);
  } else if (keys && sent) {
    remember({ text: settled, to: concernedBy(text), keys, open: begun, isAccepted: true }, memory, look, changes);
  }
  for (const request of [...begun, ...failed]) keepItem(changes, request);
  for (const request of failed) closeRequest(request, look, changes);
  if (!isOwn && idsOfBegun.size > 0) keepFlowMessage(settled, memory.now, changes);
  const isReported = sent && text.options.reportMs !== undefined;
  const reports = isReported ? [beginReport(settled, sent, memory, changes)] : [];
  if (!isOwn) for (const report of reports) expectStatuses(settled, report, look, changes);
  const newFollowUps = [...begun, ...failed, ...replied, ...reports];
  if (keys && isOwn && newFollowUps.length === 0) dropUnkept(text, changes);
  return { text: settled, newFollowUps, closedRequests };
}

/**
 * Lets a message leave before its scheduled time, because a user wants that.
 *
 * @throws SmsError `SMS_STORE` if the store cannot write this: the message continues to wait for its time
 */
export function sendNow(text: MessageItem, memory: StepContext): Step<Moved | Stale> {
  const { now } = memory;
  return {
    whileFailing: 'refuse',
    decide(_look, changes) {
      const current = startFromOwn('sendNow', text, memory, changes);
      if (!current) return () => stale;
      const next = keepText({ ...current, sendNowAt: now }, now, changes);
      return () => ({ text: next, newFollowUps: [], closedRequests: [] });
    },
  };
}

/** Starts a step. If the message is not stored, only one caller handles it, so `text` has the current state. */
function startFromOwn(
  step: keyof typeof startsFrom,
  text: MessageItem,
  context: StepContext,
  changes: Changes,
): MessageItem | undefined {
  return isTracked(text) ? startFrom(step, text.id, context, changes) : text;
}

/** Returns the message as earlier steps have left it, if the step can start from its state. */
export function startFrom(
  step: keyof typeof startsFrom,
  id: string,
  { books: { messages } }: StepContext,
  { keep, drop }: Changes,
): MessageItem | undefined {
  const current = drop.has(id) ? undefined : ((keep.get(id) as MessageItem | undefined) ?? messages.get(id));
  const states: readonly MessageState[] = startsFrom[step];
  return current && states.includes(current.state) ? current : undefined;
}

/**
 * Returns the message after its outcome has entered the flow. If the outcome is unknown, a user can decide.
 * `undefined`: the message is finished.
 */
export function undecided(text: MessageItem, { now }: Pick<Memory, 'now'>): MessageItem | undefined {
  const { outcome } = text;
  if (!outcome || 'sent' in outcome || !isUnknown(parseOutcome(outcome))) return undefined;
  return { ...text, state: 'uncertain', settledAt: now };
}

/**
 * settled → gone or uncertain: the outcome has entered the flow, or the node has been absent for too long. For the
 * second state, see {@link undecided}.
 */
export function delivered(text: MessageItem, uncertain: MessageItem | undefined, known: FollowUpBook): Step<void> {
  // The process already knows the message in its new state.
  if (uncertain) return createChange((changes) => keepItem(changes, uncertain));
  // A later commit might remove follow-ups, and the process might be killed before that.
  const wasAsking = known.hasOf(text.id);
  const isAsking = () => wasAsking || known.hasOf(text.id);
  return { ...createChange((changes) => dropText(text, isAsking, changes)), drops: [text.id] };
}

/**
 * → gone, flushed: a user discards the message, or its node has been absent for too long. The deduplication key becomes
 * free, unless the message might have been sent. The step is flushed, because a message that a power cut restores would
 * be sent.
 */
export function discard(
  text: MessageItem,
  memory: StepContext,
  whileFailing: 'refuse' | 'apply',
): Step<{ newFollowUps: readonly ReplyRequest[]; closedRequests: readonly string[] } | Stale> {
  const { messages, followUps: known } = memory.books;
  return {
    whileFailing,
    drops: [text.id],
    decide(look, changes) {
      // The store might have written a message that it refused. This process does not know that message.
      const isUnknownHere = !messages.has(text.id) && !changes.keep.has(text.id);
      // A decision about an unknown outcome no longer applies if the message waits again.
      const current = startFromOwn('discard', text, memory, changes);
      if (!isUnknownHere && current?.state !== text.state) return () => stale;
      if (text.state === 'waiting') {
        // Only an earlier try can have reached a recipient.
        const outcome = text.previousAttempt ? parseOutcome(text.previousAttempt.outcome) : new SmsError('closed');
        noteOutcome(text, outcome, { look, changes }, memory);
      }
      const requests = requestsOf(text, known, changes).filter(({ askedAt }) => askedAt === undefined);
      const { replied, closedRequests } = endUnaccepted(requests, memory, look, changes);
      dropText(text, () => known.of(text.id).length > closedRequests.length, changes);
      releaseKey(text, memory.now, look, changes);
      changes.firm = true;
      return () => ({ newFollowUps: replied, closedRequests });
    },
  };
}

/** Stores a tracked message. A long flow message is written only once, under a separate key. */
export function keepText(text: MessageItem, now: number, changes: Changes, isLoose = false): MessageItem {
  if (!isTracked(text)) return text;
  const { flowMessage = '', ...rest } = text;
  const isApart = flowMessage.length > maxInlineLength;
  const kept = isApart ? { ...rest, isFlowMessageApart: true as const } : text;
  if (isApart) keepFlowMessage(text, now, changes);
  keepItem(changes, kept, isLoose);
  return kept;
}

/** @param isAsking returns whether open reply requests or reports need the flow message */
function dropText(text: MessageItem, isAsking: () => boolean, changes: Changes): void {
  dropItem(changes, text.id, 'ledger');
  if ((text.isFlowMessageApart || asks(text)) && !isAsking()) changes.remember.set(flowMessageKey(text.id), undefined);
}

/** Forgets the flow message of a message that is not stored, because no reply request needs it. */
function dropUnkept(text: MessageItem, changes: Changes): void {
  if (!isTracked(text) && asks(text)) changes.remember.set(flowMessageKey(text.id), undefined);
}
