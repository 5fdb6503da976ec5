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

/**
 * Result of a step that changed nothing, because another step has already moved the message to another state. The
 * caller must then leave the message alone.
 */
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

/** A message after a step, with the reply requests and reports that the step changed. */
export interface Moved {
  item: MessageItem;
  newFollowUps: readonly FollowUp[];
  /** Ids of closed reply requests. */
  closedRequests: readonly string[];
  /** Set if the step replaced or withdrew the message. */
  isSuperseded?: true;
}

/**
 * Creates a step that changes one message. A stored message must be in one of the states in {@link startsFrom}.
 * Otherwise, the step results in {@link stale}. A message that is not stored always passes this check, because only one
 * caller handles it.
 *
 * @param move makes the changes, and returns the result of the step. Can return a function instead, which runs after
 * the commit and returns the result
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
  /** The message as the store has it. If the message is not stored: the message as it arrived. */
  item: MessageItem;
  /** The outcome of the replaced message, if that message belongs to this process. */
  replaced?: Moved;
}

/** Facts about an arriving message that decide whether it is accepted. */
export interface Arrival {
  /** Set if the queue is full: the error that refuses the message if it would have to wait. */
  busy?: SmsError | undefined;
  /** Set if the message is a duplicate that has waited: id of the first message with the same deduplication key. */
  firstId?: string | undefined;
}

/**
 * Accepts a new message, and flushes it to the store before anything else happens to it. Stores nothing if another
 * message has its deduplication key.
 *
 * If the new message replaces an older message, the same commit ends the older message. If another instance has the
 * older message, that instance ends it: see {@link collectSuperseded}.
 */
export function accept(
  item: MessageItem,
  context: StepContext,
  { busy, firstId }: Arrival,
): Step<Acceptance>['decide'] {
  return (readKey, changes) => {
    const verdict = judgeOnce(item, { readKey, now: context.now, firstId });
    const isNew = verdict.type === 'new';
    // A message that replaces an older message uses the queue place of the older message, so `busy` does not refuse it.
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
 * waiting → settled: an input with `msg.reset` withdraws the message of the node with this `replace` key.
 *
 * - If this process has the message and is not sending it, the step ends the message, and results in the ended message.
 * - If the message is being sent, or another instance has it, the step notes the withdrawal under the key, and results
 *   in `undefined`.
 * - If no message has the key, the step does nothing, and results in `undefined`.
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
 * waiting → leaving: the connection is open, and the first byte is sent as soon as this step is written. The step
 * results in one of these values:
 *
 * - the message in state `leaving`
 * - the ended message, if it was replaced or withdrawn
 * - {@link stale}, if another step has already moved the message
 * - `undefined`, if a rule now withholds a recipient or makes the message wait. The step then changes nothing, and the
 *   caller must judge the message again.
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
 * leaving or uncertain → waiting: the message will be sent again after a try with the unknown outcome `outcome`. The
 * service might have accepted the recipients of that try, so they stay counted for limits.
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
  // If the stored state is `leaving`, the outcome need not be flushed, because the message is resumed with an unknown
  // outcome if a power cut undoes the change.
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
 * For a stored message, does the same as {@link startFrom}. For any other message, returns `item`, which is always
 * current, because only one caller handles such a message.
 */
function startFromOwn(
  step: keyof typeof startsFrom,
  item: MessageItem,
  context: StepContext,
  changes: Changes,
): MessageItem | undefined {
  return isTracked(item) ? startFrom(step, item.id, context, changes) : item;
}

/**
 * Returns the message as earlier steps of the same commit have left it. Returns `undefined` if the step cannot start
 * from the state of the message.
 */
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
 * If the outcome that has entered the flow is unknown, returns the message in state `uncertain`, so that a user can
 * decide about it. Otherwise returns `undefined`: the message is finished.
 */
export function undecided(item: MessageItem, { now }: Pick<Memory, 'now'>): MessageItem | undefined {
  const { outcome } = item;
  if (!outcome || 'sent' in outcome || !isUnknown(parseOutcome(outcome))) return undefined;
  return { ...item, state: 'uncertain', settledAt: now };
}

/**
 * settled → gone or uncertain: the outcome has entered the flow, or was dropped because the node was absent for too
 * long.
 *
 * @param uncertain the result of {@link undecided}, to be stored. If it is `undefined`, the message is removed
 */
export function delivered(item: MessageItem, uncertain: MessageItem | undefined, followUps: FollowUpBook): Step<void> {
  // Changes only the store, because memory already has the message in its new state.
  if (uncertain) return createChange((changes) => keepItem(changes, uncertain));
  // If the message has follow-ups now, keeps its flow message, even if a later commit removes these follow-ups. If the
  // process is killed before that commit, the next process needs the flow message.
  const wasAsking = asks(item) && followUps.hasOf(item.id);
  const isAsking = () => wasAsking || followUps.hasOf(item.id);
  return createChange((changes) => dropMessage(item, isAsking, changes));
}

/**
 * → gone: a user discards the message, or its node has been absent for too long.
 *
 * - The deduplication key becomes free, unless the message might have been sent.
 * - The step is flushed, so that a power cut cannot restore the message. A restored message would be sent.
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
      // Also discards a message that only the store has, because the store can write a message and still report a
      // failure.
      const isUnknownHere = !messages.has(item.id) && !changes.keep.has(item.id);
      // If the message has another state than `item` by now, for example because it waits again, discards nothing.
      const current = startFromOwn('discard', item, context, changes);
      if (!isUnknownHere && current?.state !== item.state) return () => stale;
      if (item.state === 'waiting') {
        // Frees the deduplication key, unless an earlier try might have reached a recipient.
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
 * Stores a message if it is tracked, see {@link isTracked}. Writes a long flow message under a separate key, so that
 * later steps need not write it again.
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
