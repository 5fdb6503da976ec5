import { SmsError } from '../errors';
import { createChange, type Step } from '../journal/step';
import {
  type FollowUp,
  type FollowUpBook,
  flowMessageKey,
  keepFlowMessage,
  type ReplyRequest,
} from '../replies/follow-ups';
import {
  endUnaccepted,
  type FollowUpContext,
  keysOfSteps,
  noteEnded,
  noteLeft,
  noteUnsent,
  recordAgain,
  requestsOf,
} from '../replies/reply-steps';
import type { Memory } from '../replies/sent-index';
import { type Changes, dropItem, keepItem, type ReadKey } from '../store/store';
import { forgetEvidence } from './evidence';
import { releaseCounts } from './limits';
import {
  afterUnknown,
  asks,
  formatOutcome,
  isReconciled,
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
import { guard, guardAgain, judgeOnce, noteOutcome, type OnceVerdict } from './once';
import {
  createSuperseded,
  noteLeaving,
  noteWithdrawn,
  readHolder,
  readSuperseding,
  releaseKey,
  replaceKeyOf,
  type Superseding,
  takeKey,
} from './replace';
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

/** Result of a step if another step has already moved the message. The caller must then not change the message. */
export const stale = 'stale';
export type Stale = typeof stale;

/** The messages and reply requests of this process, as of the last commit. */
interface CurrentItems {
  readonly messages: Pick<Messages, 'get' | 'has' | 'replaceable'>;
  readonly followUps: FollowUpBook;
}

/** The time, the settings and the messages of this process when the step was requested. */
export interface StepContext extends FollowUpContext {
  current: CurrentItems;
}

/** The values that a step reads, and the changes that it makes. */
interface Commit {
  readKey: ReadKey;
  changes: Changes;
}

/** A message after a step, with its reply requests and reports. */
export interface Moved {
  item: MessageItem;
  newFollowUps: readonly FollowUp[];
  /** Ids of closed reply requests. */
  closedRequests: readonly string[];
  /** Set if the step replaced or withdrew the message. */
  isSuperseded?: true;
}

/**
 * Creates a step of a message. The step of a stored message starts only from the states in {@link startsFrom}. A step
 * of a message that is not stored always starts, because only one caller handles it.
 *
 * @param move returns the result of the step, or an effect that returns the result
 */
function createMove<Result>(
  name: keyof typeof startsFrom,
  item: MessageItem,
  { context, ...options }: Pick<Step<unknown>, 'keys' | 'whileFailing'> & { context: StepContext },
  move: (current: MessageItem, readKey: ReadKey, changes: Changes) => Result | (() => Result),
): Step<Result | Stale> {
  return {
    ...options,
    decide(readKey, changes) {
      const current = startFromOwn(name, item, context, changes);
      if (!current) return () => stale;
      const moved = move(current, readKey, changes);
      return typeof moved === 'function' ? (moved as () => Result) : () => moved;
    },
  };
}

/** Ends a replaced or withdrawn message. */
function supersede(item: MessageItem, why: Superseding, context: StepContext, commit: Commit): Moved {
  return { ...end(item, createSuperseded(item, why), context, commit), isSuperseded: true };
}

/** The result of accepting a new message into the outbox. */
export interface Acceptance {
  verdict: OnceVerdict;
  /** The message as it is stored, or unchanged if it is not stored. */
  item: MessageItem;
  /** The outcome of the replaced message, if that message belongs to this process. */
  replaced?: Moved;
}

/** The circumstances in which a message arrives. */
export interface Arrival {
  /** The error that refuses the message if it would have to wait. */
  busy?: SmsError | undefined;
  /** Id of the first message with the same deduplication key, if this message waited for the outcome of the first. */
  firstId?: string | undefined;
}

/**
 * Accepts a new message. Flushes the message to the store before anything else happens to it, unless another message
 * has its deduplication key. The same commit ends the older message that the new one replaces. If another instance has
 * the older message, that instance ends it: see {@link collectSuperseded}.
 */
export function accept(
  item: MessageItem,
  context: StepContext,
  { busy, firstId }: Arrival,
): Step<Acceptance>['decide'] {
  return (readKey, changes) => {
    const verdict = judgeOnce(item, { readKey, now: context.now, firstId });
    const isNew = verdict.type === 'new';
    // If the message replaces an older message, it uses the queue place of that message, so that `busy` does not apply.
    const mayReplace = isNew && item.options.replaceKey !== undefined;
    const older = mayReplace ? takeKey(item, readKey, changes, (id) => context.current.messages.has(id)) : undefined;
    if (busy && older?.why !== 'replaced' && (isNew ? item.options.keep : verdict.type === 'underway')) {
      // Rejects the whole step, so that nothing is written.
      throw busy;
    }
    const waiting = older && startFrom('replace', older.id, context, changes);
    const replaced = waiting && supersede(waiting, older.why, context, { readKey, changes });
    if (isNew && item.options.once !== undefined) guard(item, readKey, changes, context);
    const stored = isNew ? keepMessage(item, context.now, changes) : item;
    const onTaken = recordAgain(item, context.current.followUps, changes);
    return () => {
      onTaken();
      return { verdict, item: stored, ...(replaced && { replaced }) };
    };
  };
}

/**
 * waiting → settled: an input with `msg.reset` withdraws the message of the node with this `replace` key. Results in
 * the ended message if this process has that message and is not sending it, and otherwise in `undefined`.
 */
export function withdraw(node: string, replaceKey: string, context: StepContext): Step<Moved | undefined> {
  const key = replaceKeyOf(node, replaceKey);
  return {
    whileFailing: 'refuse',
    decide(readKey, changes) {
      const holder = readHolder(key, readKey);
      if (!holder || holder.isWithdrawn) return () => undefined;
      const item = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, context, changes);
      if (!item) {
        noteWithdrawn(key, context.now, readKey, changes);
        return () => undefined;
      }
      const moved = supersede(item, 'withdrawn', context, { readKey, changes });
      return () => moved;
    },
  };
}

/** Ends those messages of the list that another instance has replaced or withdrawn. */
export function collectSuperseded(ids: readonly string[], context: StepContext): Step<Moved[]> {
  return {
    whileFailing: 'refuse',
    decide(readKey, changes) {
      const ended = ids.flatMap((id) => {
        const item = startFrom('replace', id, context, changes);
        const why = item && readSuperseding(item, readKey);
        return why ? [supersede(item, why, context, { readKey, changes })] : [];
      });
      return () => ended;
    },
  };
}

/** Returns which recipients the rules withhold now, and whether the message must wait. */
export function judge(item: MessageItem, memory: Memory): Step<Verdict> {
  const leaving = { ...memory, item, recipients: item.message.to };
  return {
    whileFailing: 'apply',
    decide(readKey, changes) {
      const verdict = askRules(leaving, readKey, changes);
      return () => verdict;
    },
  };
}

/**
 * waiting → leaving: the connection is open, and the first byte is sent as soon as this step is written. If a rule now
 * withholds a recipient or makes the message wait, the step results in `undefined` and changes nothing. The caller must
 * then judge the message again.
 */
export function markLeaving(item: MessageItem, context: StepContext): Step<Moved | Stale | undefined> {
  const { withheld } = item;
  const leaving = { ...context, item, recipients: submittedOf(item) };
  const whileFailing = isTracked(item) || askedForConsent(leaving).length > 0 ? 'refuse' : 'apply';
  const options = { context, whileFailing, keys: keysOfSteps(item) } as const;
  return createMove<Moved | undefined>('markLeaving', item, options, (current, readKey, changes) => {
    const why = readSuperseding(current, readKey);
    if (why) return supersede(current, why, context, { readKey, changes });
    if (!passRules(leaving, readKey, changes)) return undefined;
    noteLeaving(current, true, readKey, changes);
    const countedAt = hasRules(context.rules) ? { countedAt: context.time } : undefined;
    const mark = { state: 'leaving', leftAt: context.now, withheld, ...countedAt } as const;
    const marked = keepMessage({ ...current, ...mark }, context.now, changes);
    const { requests, effect } = noteLeft({ item, marked }, context, readKey, changes);
    return () => {
      effect();
      return { item: marked, newFollowUps: requests, closedRequests: [] };
    };
  });
}

/** leaving → waiting: nothing was sent. */
export function requeue(item: MessageItem, change: Partial<MessageItem>, context: StepContext): Step<Moved | Stale> {
  return createMove('requeue', item, { context, whileFailing: 'apply' }, (current, readKey, changes) => {
    const moved = returnToWaiting({ ...current, ...change }, context, { readKey, changes });
    // Keeps the reply requests if recipients of an earlier try can still reply.
    if (item.previousAttempt || moved.item.state !== 'waiting') return moved;
    // Closes the reply requests, because no recipient has received the message.
    return { ...moved, closedRequests: noteUnsent(item, context, readKey, changes) };
  });
}

/**
 * leaving or uncertain → waiting: the message is sent again after a try with the unknown outcome `outcome`. The
 * recipients of that try stay counted for limits, because the service might have accepted them.
 */
export function sendAgain(
  item: MessageItem,
  { outcome, change }: { outcome: StoredOutcome; change: Partial<MessageItem> },
  context: StepContext,
): Step<Moved | Stale> {
  return createMove('sendAgain', item, { context, whileFailing: 'apply' }, (current, readKey, changes) => {
    const { countedAt: _, ...resent } = afterUnknown({ ...current, ...change }, outcome);
    if (current.state === 'uncertain') {
      // Removes the `replace` key, because a newer message might have it by now.
      const { replaceKey: _replaceKey, ...options } = resent.options;
      resent.options = options;
    }
    return returnToWaiting(resent, context, { readKey, changes });
  });
}

/** Lets a message wait again, or ends it if it was replaced or withdrawn while it was being sent. */
function returnToWaiting(item: MessageItem, context: StepContext, { readKey, changes }: Commit): Moved {
  const { outcome: _, settledAt: _settledAt, withheld: _withheld, countedAt, ...rest } = item;
  if (countedAt) releaseCounts({ ...context, item, recipients: submittedOf(item) }, countedAt, readKey, changes);
  const why = readSuperseding(item, readKey) ?? (isReplacedHere(item, context) ? 'replaced' : undefined);
  if (why) return supersede(rest, why, context, { readKey, changes });
  noteLeaving(item, false, readKey, changes);
  const waiting = keepMessage({ ...rest, state: 'waiting' }, context.now, changes);
  guardAgain(waiting, readKey, changes, context);
  return { item: waiting, newFollowUps: [], closedRequests: [] };
}

/**
 * Returns whether a newer message of this process waits with the same `replace` key. Needed while the store fails,
 * because the key cannot be read then.
 */
function isReplacedHere({ id, node, options }: MessageItem, { current: { messages } }: StepContext): boolean {
  if (options.replaceKey === undefined) return false;
  for (const other of messages.replaceable) {
    const newer = other > id ? messages.get(other) : undefined;
    if (newer?.node === node && newer.options.replaceKey === options.replaceKey) return true;
  }
  return false;
}

/** How a message ends. */
export interface Ending {
  /** `settle`: after a try. `expire`: the message was not sent in time. `markSent`: a user marked it as sent. */
  by: 'settle' | 'expire' | 'markSent';
  outcome: Outcome;
  /** Other changes to the message. */
  change?: Partial<MessageItem>;
}

/** → settled: the message has its outcome, which might be unknown. */
export function settle(item: MessageItem, { by, outcome, change }: Ending, context: StepContext): Step<Moved | Stale> {
  const options = { context, whileFailing: 'apply', keys: keysOfSteps(item) } as const;
  return createMove(by, item, options, (current, readKey, changes) =>
    end({ ...current, ...change }, outcome, context, { readKey, changes }),
  );
}

function end(item: MessageItem, outcome: Outcome, context: StepContext, { readKey, changes }: Commit): Moved {
  const { now } = context;
  if (item.countedAt)
    releaseCounts({ ...context, item, recipients: uncountedBy(item, outcome) }, item.countedAt, readKey, changes);
  const { repliedRecipients, ...followUps } = noteEnded({ item, outcome }, context, readKey, changes);
  const ended: MessageItem = { ...item, state: 'settled', outcome: formatOutcome(outcome), settledAt: now };
  if (repliedRecipients.length > 0) ended.repliedRecipients = repliedRecipients;
  // Does not flush the outcome of a message in state `leaving`: if a power cut undoes the change, the message is
  // resumed with an unknown outcome.
  const settled = keepMessage(ended, now, changes, item.state === 'leaving');
  releaseKey(item, now, readKey, changes);
  if (isReconciled(item)) forgetEvidence(item, readKey, changes);
  noteOutcome(item, outcome, { readKey, changes }, context);
  return { item: settled, ...followUps };
}

/**
 * waiting → waiting: a user sends the message before its scheduled time.
 *
 * @throws SmsError `SMS_STORE` if the store cannot write the change. The message then continues to wait for its time
 */
export function sendNow(item: MessageItem, context: StepContext): Step<Moved | Stale> {
  return createMove('sendNow', item, { context, whileFailing: 'refuse' }, (current, _, changes) => ({
    item: keepMessage({ ...current, sendNowAt: context.now }, context.now, changes),
    newFollowUps: [],
    closedRequests: [],
  }));
}

/**
 * Does the same as {@link startFrom} for a stored message. Otherwise returns `item`, which is always current, because
 * only one caller handles a message that is not stored.
 */
function startFromOwn(
  step: keyof typeof startsFrom,
  item: MessageItem,
  context: StepContext,
  changes: Changes,
): MessageItem | undefined {
  return isTracked(item) ? startFrom(step, item.id, context, changes) : item;
}

/** Returns the message after the earlier steps of the commit, if this step can start from its state. */
function startFrom(
  step: keyof typeof startsFrom,
  id: string,
  { current: { messages } }: StepContext,
  { keep, drop }: Changes,
): MessageItem | undefined {
  const current = drop.has(id) ? undefined : ((keep.get(id) as MessageItem | undefined) ?? messages.get(id));
  const states: readonly MessageState[] = startsFrom[step];
  return current && states.includes(current.state) ? current : undefined;
}

/**
 * Returns the message in the state `uncertain`, if the outcome that has entered the flow is unknown. A user can then
 * decide about it. `undefined`: the message is finished.
 */
export function undecided(item: MessageItem, { now }: Pick<Memory, 'now'>): MessageItem | undefined {
  const { outcome } = item;
  if (!outcome || 'sent' in outcome || !isUnknown(parseOutcome(outcome))) return undefined;
  return { ...item, state: 'uncertain', settledAt: now };
}

/**
 * settled → gone or uncertain: the outcome has entered the flow, or the node has been absent for too long. Stores
 * `uncertain`, the result of {@link undecided}, or else removes the message.
 */
export function delivered(item: MessageItem, uncertain: MessageItem | undefined, followUps: FollowUpBook): Step<void> {
  // Changes only the store, because memory already has the message in its new state.
  if (uncertain) return createChange((changes) => keepItem(changes, uncertain));
  // Keeps the flow message for follow-ups that exist now, even if a later commit removes them. The process might be
  // killed before that commit.
  const wasAsking = asks(item) && followUps.hasOf(item.id);
  const isAsking = () => wasAsking || followUps.hasOf(item.id);
  return createChange((changes) => dropMessage(item, isAsking, changes));
}

/**
 * → gone, flushed: a user discards the message, or its node has been absent for too long. The deduplication key becomes
 * free, unless the message might have been sent. The step is flushed. Otherwise, a power cut could restore the message,
 * and it would then be sent.
 */
export function discard(
  item: MessageItem,
  context: StepContext,
  whileFailing: 'refuse' | 'apply',
): Step<{ newFollowUps: readonly ReplyRequest[]; closedRequests: readonly string[] } | Stale> {
  const { messages, followUps } = context.current;
  return {
    whileFailing,
    decide(readKey, changes) {
      // Also discards a message that is not in memory, because the store can write a message and still report a
      // failure.
      const isUnknownHere = !messages.has(item.id) && !changes.keep.has(item.id);
      // Discards nothing if the message is in another state than `item`, for example because it waits again.
      const current = startFromOwn('discard', item, context, changes);
      if (!isUnknownHere && current?.state !== item.state) return () => stale;
      if (item.state === 'waiting') {
        // Only an earlier try can have reached a recipient, because the message is waiting.
        const outcome = item.previousAttempt ? parseOutcome(item.previousAttempt.outcome) : new SmsError('closed');
        noteOutcome(item, outcome, { readKey, changes }, context);
      }
      const requests = requestsOf(item, followUps, changes).filter(({ askedAt }) => askedAt === undefined);
      const { replied, closedRequests } = endUnaccepted(requests, context, readKey, changes);
      dropMessage(item, () => followUps.of(item.id).length > closedRequests.length, changes);
      releaseKey(item, context.now, readKey, changes);
      changes.firm = true;
      return () => ({ newFollowUps: replied, closedRequests });
    },
  };
}

/**
 * Stores a message if it is tracked, see {@link isTracked}. A long flow message is written only once, under a separate
 * key.
 */
function keepMessage(item: MessageItem, now: number, changes: Changes, isLoose = false): MessageItem {
  if (!isTracked(item)) return item;
  const { flowMessage = '', ...rest } = item;
  const isApart = flowMessage.length > maxInlineLength;
  const stored = isApart ? { ...rest, isFlowMessageApart: true as const } : item;
  if (isApart) keepFlowMessage(item, now, changes);
  keepItem(changes, stored, isLoose);
  return stored;
}

/** @param isAsking returns whether open reply requests or reports need the flow message */
function dropMessage(item: MessageItem, isAsking: () => boolean, changes: Changes): void {
  dropItem(changes, item.id, 'outgoing');
  if ((item.isFlowMessageApart || asks(item)) && !isAsking()) changes.remember.set(flowMessageKey(item.id), undefined);
}
