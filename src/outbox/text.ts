import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { leavesOpen } from '../http/failure';
import type { CheckedDraft } from '../message/draft';
import type { Delivery } from '../model';
import type { AnswerChoice } from '../replies/answers';
import type { Item } from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import type { Moment } from './limits';
import { explainWithheld, isWithheldError, type TimeOptions, type Withheld } from './rules';

/** The stored state of a message. Only the steps of `transitions.ts` change it. */
export type TextState =
  /** Nothing of it has been sent. */
  | 'waiting'
  /** The mark that it leaves is written. Until it has an outcome, it may have been sent. */
  | 'leaving'
  /** Its outcome is written, and has not entered the flow yet. */
  | 'settled'
  /** Its outcome is unknown, the flow knows that, and a user can decide. */
  | 'uncertain';

/** Source of the evidence that the service accepted a message with an unknown outcome. */
export type Evidence = 'status' | 'reply' | 'outbox' | 'feed';

/** The outcome of a message that the service accepted, although it may have refused each recipient. */
export interface Sent extends Omit<Delivery, 'statusCode'> {
  /** HTTP status. Absent if only evidence is known. */
  statusCode?: number;
  /** `person`: a user says that the message has arrived. */
  resolvedBy?: Evidence | 'person';
  /** The recipients in `failed` that a rule of the account withheld. */
  withheld?: readonly Withheld[];
}

/** The outcome of a message. */
export type Outcome = Sent | SmsError;

/** The sending options of a node. */
export interface SendOptions extends TimeOptions {
  /** Further tries if the request never reached the service. Does not apply to stored messages. */
  retries: number;
  /** Tries again even if the outcome is unknown, so that the message may be sent twice. */
  retryUncertain: boolean;
  /** Duration of the search for evidence if the outcome is unknown. 0: no search. */
  resolveMs: number;
  /** Among the messages that wait, the highest priority goes first. */
  priority: number;
  /** The limits of the account do not apply. */
  unlimited: boolean;
  /** Deduplication key. */
  once?: string;
  /** The value that replies and statuses to the message carry. */
  remember?: { value: unknown };
  /** Duration of the wait for a reply of each recipient. */
  waitMs?: number;
  /** The answers that count; absent or empty: every reply is an answer. */
  answers?: readonly AnswerChoice[];
  /** The message that follows an unclear reply; its recipient and messageId are set for each handset. */
  again?: CheckedDraft & Pick<SendOptions, 'keep'>;
  /** Duration of the wait for the final statuses of all recipients. */
  reportMs?: number;
}

/** Says which reply request a message `again` belongs to. A reply to the message belongs to that request, too. */
export interface AgainLink {
  /** Id of the reply request. */
  request: string;
  recipient: string;
  reference: string;
  waitMs: number;
}

/** An outgoing message as the store has it. Plain data. */
export interface Text extends Item, CheckedDraft {
  part: 'ledger';
  kind: 'text';
  state: TextState;
  /** Id of the sending node. */
  node: string;
  options: SendOptions;
  /** The flow message as the node wrote it. */
  flowMessage?: string;
  /** The flow message is too long to be written at each step, and is stored under a separate key. */
  isFlowMessageApart?: true;
  /** Time at which it was taken in, in ms. */
  arrivedAt: number;
  /** Time at which it last left, in ms. */
  leftAt?: number;
  /** Recipients that the rules withheld when they were last asked. */
  withheld?: readonly Withheld[] | undefined;
  /** Time at which the other recipients were counted for limits, if they are. */
  countedAt?: Moment;
  outcome?: StoredOutcome;
  /** Time at which its outcome was written, or became unknown to the flow, in ms. */
  settledAt?: number;
  /** Number of unknown outcomes after which it was sent again. */
  repeats?: number;
  /** Recipients of earlier tries with an unknown outcome, and the outcome of the last of them. */
  previousAttempt?: { to: readonly string[]; outcome: StoredOutcome };
  /** Recipients whose replies have entered the flow while the outcome was unknown. They are not asked again. */
  answered?: readonly string[];
  /** The wait that the service asked for (`Retry-After`), as known when the message was put back. */
  retryAfter?: StoredRetryAfter | undefined;
  /** Time at which a user sent it before its time, in ms. It then waits only for its turn. */
  sendNowAt?: number;
  /** The message follows an unclear reply: its outcome does not enter the flow. */
  again?: AgainLink;
  /** A user sent it again: an earlier outcome has entered the flow. */
  isManuallyResent?: true;
}

/** An outcome as plain data. */
export type StoredOutcome = { sent: Sent } | { error: StoredError };

interface StoredError extends Omit<SmsErrorDetails<SmsErrorReason>, 'cause'> {
  reason: SmsErrorReason;
}

/** The wait that the service asked for, and the error with it. Plain data, times in ms. */
export interface StoredRetryAfter {
  at: number;
  forMs: number;
  error: StoredOutcome;
}

/** Whether the store has the message: because it is stored until it is sent, or because of its deduplication key. */
export function isTracked({ options }: Pick<Text, 'options'>): boolean {
  return options.keep !== undefined || options.once !== undefined;
}

/** Whether the message is stored until it is sent: because of its options, or because a user sent it again. */
export function isKept({ options, isManuallyResent }: Pick<Text, 'options' | 'isManuallyResent'>): boolean {
  return options.keep !== undefined || isManuallyResent === true;
}

/** Whether replies and statuses are matched to the message. */
export function isRemembered({ options }: Pick<Text, 'options'>): boolean {
  return options.remember !== undefined || options.waitMs !== undefined;
}

/** Whether replies or a report follow the outcome of the message. */
export function asks({ options }: Pick<Text, 'options'>): boolean {
  return options.waitMs !== undefined || options.reportMs !== undefined;
}

/** Whether incoming messages and statuses can concern the message. */
export function isFollowed(text: Pick<Text, 'options'>): boolean {
  return isRemembered(text) || asks(text);
}

/** Whether the account searches for evidence if the outcome of the message is unknown. */
export function isReconciled({ message, options }: Pick<Text, 'message' | 'options'>): boolean {
  return options.resolveMs > 0 && message.messageId !== undefined;
}

/** Recipients that the message is submitted for: all that no rule withholds. */
export function submittedOf({ message, withheld }: Pick<Text, 'message' | 'withheld'>): string[] {
  const gone = new Set(withheld?.map(({ msisdn }) => msisdn));
  return message.to.filter((item) => !gone.has(item));
}

/** The message after a try that may have been accepted. */
export function afterUnknown(text: Text, outcome: StoredOutcome): Text {
  return { ...text, previousAttempt: { to: concernedBy(text), outcome } };
}

/** Recipients that the message is submitted for, or that an earlier try may have reached. */
export function concernedBy(text: Text): string[] {
  const concerned = new Set([...submittedOf(text), ...(text.previousAttempt?.to ?? [])]);
  return text.message.to.filter((item) => concerned.has(item));
}

/** Recipients that were counted for limits, and that the outcome says were not sent to. */
export function uncountedBy(text: Text, outcome: Outcome): string[] {
  if (!text.countedAt || isUnknown(outcome)) return [];
  const submitted = submittedOf(text);
  if (outcome instanceof SmsError) return submitted;
  const failed = new Set(outcome.failed.map(({ msisdn }) => normaliseRecipient(msisdn)));
  return submitted.filter((item) => failed.has(item));
}

/**
 * An outcome with the recipients that a rule withheld among those that failed. It is unknown when only an earlier try may have
 * reached anybody.
 */
export function withWithheld(outcome: Sent, text: Text): Outcome {
  const { withheld = [], previousAttempt } = text;
  const accepted = new Set(outcome.accepted);
  const reached = new Set(previousAttempt?.to);
  const unsent = withheld
    .filter(({ msisdn }) => !accepted.has(msisdn))
    .map((one): Withheld => (reached.has(one.msisdn) ? { ...one, mayBeSent: true } : one));
  if (unsent.length === 0) return outcome;
  const isUnknown = accepted.size === 0 && unsent.some(({ mayBeSent }) => mayBeSent);
  if (previousAttempt && isUnknown) return parseOutcome(previousAttempt.outcome);
  const failed = unsent.map((one) => {
    const { code, message } = explainWithheld(one);
    return { msisdn: one.msisdn, errorCode: code, errorMessage: message };
  });
  return {
    ...outcome,
    recipients: [...outcome.recipients, ...failed.map((one) => ({ ...one, isError: true }))],
    failed: [...outcome.failed, ...failed],
    withheld: unsent,
  };
}

/**
 * Adds the own messageId of the message to an error, so that a status that comes later can be matched. A refused input was not requested, so
 * its error has none.
 */
export function withMessageId<End extends Outcome>(outcome: End, { message }: Pick<Text, 'message'>): End | SmsError {
  const { messageId } = message;
  if (!(outcome instanceof SmsError) || outcome.code === 'SMS_INPUT' || messageId === undefined) return outcome;
  return outcome.with({ messageId });
}

/** The outcome as plain data: without the cause of an error. */
export function formatOutcome(outcome: Outcome): StoredOutcome {
  return outcome instanceof SmsError ? { error: { ...outcome } } : { sent: outcome };
}

/** Reads the result of {@link formatOutcome}. */
export function parseOutcome(stored: StoredOutcome): Outcome {
  if ('sent' in stored) return stored.sent;
  const { reason, ...details } = stored.error;
  return new SmsError(reason, details as SmsErrorDetails<SmsErrorReason>);
}

/** Whether the outcome is unknown: the service may have accepted the message. */
export function isUnknown(outcome: Outcome): boolean {
  if (!(outcome instanceof SmsError)) return false;
  const { code, statusCode = 0 } = outcome;
  if (code === 'SMS_SERVICE') return leavesOpen(statusCode);
  return code === 'SMS_UNCERTAIN' || code === 'SMS_RESPONSE';
}

/** Whether the last try sent nothing, or no try was made. Earlier tries may have sent the message. */
export function isUnsent(outcome: unknown): outcome is SmsError {
  const isOurs = isSmsError(outcome, 'SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_STORE', 'SMS_BUSY', 'SMS_EXPIRED');
  return isOurs || isSmsError(outcome, 'SMS_REPLACED', 'SMS_WITHDRAWN') || isWithheldError(outcome);
}

/** Whether the outcome is that the message was replaced or withdrawn. */
export function isSuperseded(outcome: StoredOutcome): boolean {
  return 'error' in outcome && (outcome.error.reason === 'replaced' || outcome.error.reason === 'withdrawn');
}

/** Whether the service cannot be reached or used now. Stored messages continue to wait, because nothing was sent. */
export function isOutage(error: unknown): error is SmsError {
  if (!(error instanceof SmsError)) return false;
  const { code, statusCode } = error;
  if (code === 'SMS_SERVICE') return statusCode === 429 || statusCode === 503;
  return code === 'SMS_UNREACHABLE' || code === 'SMS_UNAUTHORIZED' || code === 'SMS_STORE';
}

/** The outcome of a message that evidence or a user resolved. */
export function createResolved(
  messageId: string | undefined,
  accepted: string[],
  resolvedBy: NonNullable<Sent['resolvedBy']>,
): Sent {
  const recipients = accepted.map((msisdn) => ({ msisdn, isError: false }));
  return { ...(messageId === undefined ? undefined : { messageId }), recipients, accepted, failed: [], resolvedBy };
}

/** Whether the service accepted at least one recipient, as far as is known. */
export function isAccepted(outcome: Outcome): outcome is Sent {
  return !(outcome instanceof SmsError) && outcome.accepted.length > 0;
}
