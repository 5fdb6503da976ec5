import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { leavesOutcomeUnknown } from '../http/failure';
import type { CheckedDraft } from '../message/draft';
import type { Delivery } from '../model';
import type { AnswerChoice } from '../replies/answers';
import type { Item } from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import type { CountTime } from './limits';
import { explainWithheld, isWithheldError, type TimeOptions, type Withheld } from './rules';

/** The stored state of a message. Only the steps of `transitions.ts` change it. */
export type MessageState =
  /** Nothing has been sent yet. */
  | 'waiting'
  /**
   * The store has noted that the message is being sent. Until the outcome is known, the message might have been sent.
   */
  | 'leaving'
  /** The outcome is stored, but has not entered the flow yet. */
  | 'settled'
  /** The outcome is unknown. The flow has received SMS_UNCERTAIN, and a user can decide about the message. */
  | 'uncertain';

/** Source of the evidence that the service accepted a message with an unknown outcome. */
export type Evidence = 'status' | 'reply' | 'outbox' | 'feed';

/** The outcome of a message that the service accepted. The service might still have refused some or all recipients. */
export interface Sent extends Omit<Delivery, 'statusCode'> {
  /** HTTP status. Absent if only evidence shows that the service accepted the message. */
  statusCode?: number;
  /** Source of the evidence. `person`: a user marked the message as sent. */
  resolvedBy?: Evidence | 'person';
  /** The recipients in `failed` that a rule of the account withheld. */
  withheld?: readonly Withheld[];
}

/** The outcome of a message. */
export type Outcome = Sent | SmsError;

/** The sending options of a node. */
export interface SendOptions extends TimeOptions {
  /**
   * Maximum number of further tries if the request never reached the service or, with `retryUncertain`, if the outcome
   * is unknown. Ignored for stored messages.
   */
  retries: number;
  /** Tries again even if the outcome is unknown. The message might then be sent twice. */
  retryUncertain: boolean;
  /**
   * If the outcome is unknown, maximum duration of the search for evidence that the service accepted the message, in
   * ms. 0: no search.
   */
  resolveMs: number;
  /** Among waiting messages, those with a higher priority go first. */
  priority: number;
  /** Exempts the message from the limits of the account. */
  unlimited: boolean;
  /** Deduplication key. */
  once?: string;
  /** The value attached to replies and statuses of the message. */
  remember?: { value: unknown };
  /** How long to wait for a reply from each recipient, in ms. */
  waitMs?: number;
  /** The possible answers. Absent or empty: every reply is an answer. */
  answers?: readonly AnswerChoice[];
  /** The second message, to send after an unclear reply. Its recipient and messageId are set for each handset. */
  again?: CheckedDraft & Pick<SendOptions, 'keep'>;
  /** How long to wait for the final statuses of all recipients, in ms. */
  reportMs?: number;
}

/**
 * The reply request to which a second message (option `again`) belongs. A reply to the second message also belongs to
 * the request.
 */
export interface AgainLink {
  /** Id of the reply request. */
  request: string;
  recipient: string;
  reference: string;
  waitMs: number;
}

/** An outgoing message as the store has it. Can be stored as JSON. */
export interface MessageItem extends Item, CheckedDraft {
  part: 'outgoing';
  kind: 'message';
  state: MessageState;
  /** Id of the sending node. */
  node: string;
  options: SendOptions;
  /** The flow message, serialised by the sending node. */
  flowMessage?: string;
  /** Set if the flow message is stored under a separate key, because it is too long to be written at each step. */
  isFlowMessageApart?: true;
  /** Time at which the outbox accepted the message, in ms since 1970. */
  arrivedAt: number;
  /** Time at which the message was last sent, in ms since 1970. */
  leftAt?: number;
  /** Recipients that the rules withheld at the last check. */
  withheld?: readonly Withheld[] | undefined;
  /** Time at which all recipients except the withheld ones were counted for limits. Absent: no recipient is counted. */
  countedAt?: CountTime;
  outcome?: StoredOutcome;
  /** Time at which the outcome was written, or at which the flow received an unknown outcome, in ms since 1970. */
  settledAt?: number;
  /** Number of times that the message was sent again after an unknown outcome. */
  repeats?: number;
  /** Recipients of earlier tries with an unknown outcome, and the outcome of the latest such try. */
  previousAttempt?: { to: readonly string[]; outcome: StoredOutcome };
  /** Recipients whose replies entered the flow while the outcome was unknown. They get no further reply requests. */
  repliedRecipients?: readonly string[];
  /** The wait that the service requested (`Retry-After`), if the message waits again because of it. */
  retryAfter?: StoredRetryAfter | undefined;
  /**
   * Time at which a user chose to send the message before its scheduled time, in ms since 1970. The message then waits
   * only for its turn.
   */
  sendNowAt?: number;
  /** Set for a second message (option `again`), which follows an unclear reply. Its outcome does not enter the flow. */
  again?: AgainLink;
  /** Set if a user sent the message again. Its earlier outcome has already entered the flow. */
  isManuallyResent?: true;
}

/** An outcome as plain data. */
export type StoredOutcome = { sent: Sent } | { error: StoredError };

interface StoredError extends Omit<SmsErrorDetails<SmsErrorReason>, 'cause'> {
  reason: SmsErrorReason;
}

/** The wait that the service requested, and the error that the service returned. Can be stored as JSON. */
export interface StoredRetryAfter {
  /** Start of the wait, in ms since 1970. */
  at: number;
  /** Duration of the wait from `at`, in ms. */
  forMs: number;
  error: StoredOutcome;
}

/** Returns whether the store has the message, either until it is sent or because of its deduplication key. */
export function isTracked({ options }: Pick<MessageItem, 'options'>): boolean {
  return options.keep !== undefined || options.once !== undefined;
}

/** Returns whether the store keeps the message until it is sent: it has the option `keep`, or a user sent it again. */
export function isKept({ options, isManuallyResent }: Pick<MessageItem, 'options' | 'isManuallyResent'>): boolean {
  return options.keep !== undefined || isManuallyResent === true;
}

/** Returns whether replies and statuses are matched to the message. */
export function isRemembered({ options }: Pick<MessageItem, 'options'>): boolean {
  return options.remember !== undefined || options.waitMs !== undefined;
}

/** Returns whether the node waits for replies or a report after the outcome of the message. */
export function asks({ options }: Pick<MessageItem, 'options'>): boolean {
  return options.waitMs !== undefined || options.reportMs !== undefined;
}

/** Returns whether incoming messages and statuses can belong to the message. */
export function isFollowed(item: Pick<MessageItem, 'options'>): boolean {
  return isRemembered(item) || asks(item);
}

/** Returns whether an unknown outcome of the message starts a search for evidence that the service accepted it. */
export function isReconciled({ message, options }: Pick<MessageItem, 'message' | 'options'>): boolean {
  return options.resolveMs > 0 && message.messageId !== undefined;
}

/** Returns the recipients for which the message is submitted: all that no rule withholds. */
export function submittedOf({ message, withheld }: Pick<MessageItem, 'message' | 'withheld'>): string[] {
  const withheldNumbers = new Set(withheld?.map(({ msisdn }) => msisdn));
  return message.to.filter((item) => !withheldNumbers.has(item));
}

/** Returns the message with its last try noted in `previousAttempt`. The service might have accepted that try. */
export function afterUnknown(item: MessageItem, outcome: StoredOutcome): MessageItem {
  return { ...item, previousAttempt: { to: concernedBy(item), outcome } };
}

/** Returns the recipients for which the message is submitted, and those that an earlier try might have reached. */
export function concernedBy(item: MessageItem): string[] {
  const concerned = new Set([...submittedOf(item), ...(item.previousAttempt?.to ?? [])]);
  return item.message.to.filter((recipient) => concerned.has(recipient));
}

/**
 * Returns the recipients whose counts for limits must be removed, because the outcome says that the message did not go
 * to them.
 */
export function uncountedBy(item: MessageItem, outcome: Outcome): string[] {
  if (!item.countedAt || isUnknown(outcome)) return [];
  const submitted = submittedOf(item);
  if (outcome instanceof SmsError) return submitted;
  const failed = new Set(outcome.failed.map(({ msisdn }) => normaliseRecipient(msisdn)));
  return submitted.filter((item) => failed.has(item));
}

/**
 * Adds the withheld recipients to the failed recipients of an outcome. If this try reached no recipient, but an earlier
 * try might have, returns the unknown outcome of the earlier try.
 */
export function withWithheld(outcome: Sent, item: MessageItem): Outcome {
  const { withheld = [], previousAttempt } = item;
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
 * Adds the messageId of the message to an error, so that a later status can be matched. The error of a refused input
 * gets no messageId, because no request was made.
 */
export function withMessageId<End extends Outcome>(
  outcome: End,
  { message }: Pick<MessageItem, 'message'>,
): End | SmsError {
  const { messageId } = message;
  if (!(outcome instanceof SmsError) || outcome.code === 'SMS_INPUT' || messageId === undefined) return outcome;
  return outcome.with({ messageId });
}

/** Converts an outcome to plain data, without the cause of an error. */
export function formatOutcome(outcome: Outcome): StoredOutcome {
  return outcome instanceof SmsError ? { error: { ...outcome } } : { sent: outcome };
}

/** Converts the result of {@link formatOutcome} back to an outcome. */
export function parseOutcome(stored: StoredOutcome): Outcome {
  if ('sent' in stored) return stored.sent;
  const { reason, ...details } = stored.error;
  return new SmsError(reason, details as SmsErrorDetails<SmsErrorReason>);
}

/** Returns whether the outcome is unknown: the service might have accepted the message. */
export function isUnknown(outcome: Outcome): boolean {
  if (!(outcome instanceof SmsError)) return false;
  const { code, statusCode = 0 } = outcome;
  if (code === 'SMS_SERVICE') return leavesOutcomeUnknown(statusCode);
  return code === 'SMS_UNCERTAIN' || code === 'SMS_RESPONSE';
}

/** Returns whether the last try sent nothing, or no try was made. Earlier tries might have sent the message. */
export function isUnsent(outcome: unknown): outcome is SmsError {
  const isOurs = isSmsError(outcome, 'SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_STORE', 'SMS_BUSY', 'SMS_EXPIRED');
  return isOurs || isSmsError(outcome, 'SMS_REPLACED', 'SMS_WITHDRAWN') || isWithheldError(outcome);
}

/** Returns whether the outcome is that the message was replaced or withdrawn. */
export function isSuperseded(outcome: StoredOutcome): boolean {
  return 'error' in outcome && (outcome.error.reason === 'replaced' || outcome.error.reason === 'withdrawn');
}

/**
 * Returns whether the error means that the service cannot be reached or used now. If so, nothing was sent, and stored
 * messages continue to wait.
 */
export function isOutage(error: unknown): error is SmsError {
  if (!(error instanceof SmsError)) return false;
  const { code, statusCode } = error;
  if (code === 'SMS_SERVICE') return statusCode === 429 || statusCode === 503;
  return code === 'SMS_UNREACHABLE' || code === 'SMS_UNAUTHORIZED' || code === 'SMS_STORE';
}

/** Creates the outcome of a message whose unknown outcome was resolved by evidence or by a user. */
export function createResolved(
  messageId: string | undefined,
  accepted: string[],
  resolvedBy: NonNullable<Sent['resolvedBy']>,
): Sent {
  const recipients = accepted.map((msisdn) => ({ msisdn, isError: false }));
  return { ...(messageId === undefined ? undefined : { messageId }), recipients, accepted, failed: [], resolvedBy };
}

/** Returns whether the service is known to have accepted at least one recipient. */
export function isAccepted(outcome: Outcome): outcome is Sent {
  return !(outcome instanceof SmsError) && outcome.accepted.length > 0;
}
