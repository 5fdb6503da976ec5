import { isSmsError, SmsError, type SmsErrorDetails, type SmsErrorReason } from '../errors';
import { leavesOpen } from '../http/failure';
import type { CheckedDraft } from '../message/draft';
import type { Delivery } from '../model';
import type { AnswerChoice } from '../replies/answers';
import type { Item } from '../store/store';
import { normaliseRecipient } from '../wire/fields';
import type { Moment } from './limits';
import { explainWithheld, isWithheldError, type TimeOptions, type Withheld } from './rules';

/** Where a text stands: the steps of `transitions.ts` are the only ways from one to another. */
export type TextState =
  /** Nothing of it has been sent. */
  | 'waiting'
  /** The mark that it leaves is written: whether it was sent is not known before its outcome. */
  | 'leaving'
  /** Its outcome is written and on its way into the flow. */
  | 'settled'
  /** Its outcome is unknown, the flow knows that, and somebody may decide. */
  | 'uncertain';

/** Where the evidence came from that a text with an unknown outcome was taken. */
export type Evidence = 'status' | 'reply' | 'outbox' | 'feed';

/** How a text ended well, at least for one recipient or formally. */
export interface Sent extends Omit<Delivery, 'statusCode'> {
  /** HTTP status; absent when it is known by evidence alone. */
  statusCode?: number;
  /** `person`: somebody knows that it has arrived. */
  resolvedBy?: Evidence | 'person';
  /** Those of `failed` that a rule of one's own withheld. */
  withheld?: readonly Withheld[];
}

/** How a text ended. */
export type Outcome = Sent | SmsError;

/** What a node asks for, beside the message. */
export interface SendOptions extends TimeOptions {
  /** Further tries when the request never reached the service. Not for a kept text. */
  retries: number;
  /** Also when the outcome is unknown, which may send twice. */
  retryUncertain: boolean;
  /** How long to look for evidence when the outcome is unknown; 0: not at all. */
  resolveMs: number;
  /** Of the texts that wait the highest goes first. */
  priority: number;
  /** The account's own limits do not hold for it. */
  unlimited: boolean;
  /** Send it once under this key. */
  once?: string;
  /** What replies and statuses to it bring back. */
  remember?: { value: unknown };
  /** How long to wait for a reply of each recipient. */
  waitMs?: number;
  /** The answers that count; absent or empty: every reply is an answer. */
  answers?: readonly AnswerChoice[];
  /** The message that follows an unclear reply; its recipient and messageId are set for each handset. */
  again?: CheckedDraft;
  /** How long to wait for the final statuses of all of them. */
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

/** A text on its way out. Plain data. */
export interface Text extends Item, CheckedDraft {
  part: 'ledger';
  kind: 'text';
  state: TextState;
  /** Id of the sending node. */
  node: string;
  options: SendOptions;
  /** The message of the flow, as the node wrote it. */
  flowMessage?: string;
  /** That is too long to be written at every step, and stands under a key of its own. */
  isFlowMessageApart?: true;
  /** When it was taken in, in ms. */
  arrivedAt: number;
  /** When it left last, in ms. */
  leftAt?: number;
  /** Recipients that it does not go to, as it was judged last. */
  withheld?: readonly Withheld[] | undefined;
  /** When the others were counted, if they are. */
  countedAt?: Moment;
  outcome?: StoredOutcome;
  /** When its outcome was written, or since when it is uncertain, in ms. */
  settledAt?: number;
  /** How often its outcome has been unknown, and it was put back. */
  repeats?: number;
  /** Recipients that earlier tries went to whose outcome is unknown, and why it is, of the last of them. */
  previousAttempt?: { to: readonly string[]; outcome: StoredOutcome };
  /** Recipients whose replies are told, though nobody knew that they had got it: they are not asked again. */
  answered?: readonly string[];
  /** What was known, as it was put back, of until when the service wants to be left alone. */
  retryAfter?: StoredRetryAfter | undefined;
  /** When somebody had it sent before its time, in ms: it waits for nothing but its turn. */
  sendNowAt?: number;
  /** The message follows an unclear reply: its outcome does not enter the flow. */
  again?: AgainLink;
  /** Somebody had it sent again: what comes of it has entered the flow before in another form. */
  isManuallyResent?: true;
}

/** An outcome as plain data. */
export type StoredOutcome = { sent: Sent } | { error: StoredError };

interface StoredError extends Omit<SmsErrorDetails<SmsErrorReason>, 'cause'> {
  reason: SmsErrorReason;
}

/** Until when the service wants to be left alone, and why, as plain data; times in ms. */
export interface StoredRetryAfter {
  at: number;
  forMs: number;
  error: StoredOutcome;
}

/** Says whether a text is in the store: because it is kept, or because its key guards it. */
export function isTracked({ options }: Pick<Text, 'options'>): boolean {
  return options.keep !== undefined || options.once !== undefined;
}

/** Says whether a text waits until it is sent, beyond its node and its process: because it is to be kept, or is sent once more by hand. */
export function isKept({ options, isManuallyResent }: Pick<Text, 'options' | 'isManuallyResent'>): boolean {
  return options.keep !== undefined || isManuallyResent === true;
}

/** Says whether a text is known to replies and statuses. */
export function isRemembered({ options }: Pick<Text, 'options'>): boolean {
  return options.remember !== undefined || options.waitMs !== undefined;
}

/** Says whether something is to come of a text after its outcome: replies, or a report. */
export function asks({ options }: Pick<Text, 'options'>): boolean {
  return options.waitMs !== undefined || options.reportMs !== undefined;
}

/** Says whether what comes in may concern a text. */
export function isFollowed(text: Pick<Text, 'options'>): boolean {
  return isRemembered(text) || asks(text);
}

/** Says whether evidence can be looked for when the outcome of a text is unknown. */
export function isReconciled({ message, options }: Pick<Text, 'message' | 'options'>): boolean {
  return options.resolveMs > 0 && message.messageId !== undefined;
}

/** Whom a text goes to, or went to: its recipients but for those that a rule withholds. */
export function submittedOf({ message, withheld }: Pick<Text, 'message' | 'withheld'>): string[] {
  const gone = new Set(withheld?.map(({ msisdn }) => msisdn));
  return message.to.filter((item) => !gone.has(item));
}

/** A text whose last try may have been accepted, and that may be sent again. */
export function afterUnknown(text: Text, outcome: StoredOutcome): Text {
  return { ...text, previousAttempt: { to: concernedBy(text), outcome } };
}

/** Whom a text goes to, went to, or may have gone to by an earlier try. */
export function concernedBy(text: Text): string[] {
  const concerned = new Set([...submittedOf(text), ...(text.previousAttempt?.to ?? [])]);
  return text.message.to.filter((item) => concerned.has(item));
}

/** Recipients that were counted for the limits, and that an outcome says were not sent to. */
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
 * An outcome, in whose error stands the message ID that the text had of its own: a status that comes later can be matched by it. Of an
 * input that was refused no request has told it to anybody.
 */
export function withMessageId<End extends Outcome>(outcome: End, { message }: Pick<Text, 'message'>): End | SmsError {
  const { messageId } = message;
  if (!(outcome instanceof SmsError) || outcome.code === 'SMS_INPUT' || messageId === undefined) return outcome;
  return outcome.with({ messageId });
}

/** An outcome as it is stored: without the cause of an error, which is no plain data. */
export function formatOutcome(outcome: Outcome): StoredOutcome {
  return outcome instanceof SmsError ? { error: { ...outcome } } : { sent: outcome };
}

/** Reads what {@link formatOutcome} wrote. */
export function parseOutcome(stored: StoredOutcome): Outcome {
  if ('sent' in stored) return stored.sent;
  const { reason, ...details } = stored.error;
  return new SmsError(reason, details as SmsErrorDetails<SmsErrorReason>);
}

/** Says whether the service may have taken a text all the same. */
export function isUnknown(outcome: Outcome): boolean {
  if (!(outcome instanceof SmsError)) return false;
  const { code, statusCode = 0 } = outcome;
  if (code === 'SMS_SERVICE') return leavesOpen(statusCode);
  return code === 'SMS_UNCERTAIN' || code === 'SMS_RESPONSE';
}

/** Says whether nothing was sent by a try, or for want of one: what earlier ones have sent is another matter. */
export function isUnsent(outcome: unknown): outcome is SmsError {
  const isOurs = isSmsError(outcome, 'SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_STORE', 'SMS_BUSY', 'SMS_EXPIRED');
  return isOurs || isSmsError(outcome, 'SMS_REPLACED', 'SMS_WITHDRAWN') || isWithheldError(outcome);
}

/** Says whether a message was replaced or withdrawn. */
export function isSuperseded(outcome: StoredOutcome): boolean {
  return 'error' in outcome && (outcome.error.reason === 'replaced' || outcome.error.reason === 'withdrawn');
}

/** Says whether the service cannot be reached or used now: a kept text goes on waiting, since nothing was sent. */
export function isOutage(error: unknown): error is SmsError {
  if (!(error instanceof SmsError)) return false;
  const { code, statusCode } = error;
  if (code === 'SMS_SERVICE') return statusCode === 429 || statusCode === 503;
  return code === 'SMS_UNREACHABLE' || code === 'SMS_UNAUTHORIZED' || code === 'SMS_STORE';
}

/** The end of a text that was taken, as is known by evidence alone. */
export function createResolved(
  messageId: string | undefined,
  accepted: string[],
  resolvedBy: NonNullable<Sent['resolvedBy']>,
): Sent {
  const recipients = accepted.map((msisdn) => ({ msisdn, isError: false }));
  return { ...(messageId === undefined ? undefined : { messageId }), recipients, accepted, failed: [], resolvedBy };
}

/** Says whether anybody was accepted, as far as is known. */
export function isAccepted(outcome: Outcome): outcome is Sent {
  return !(outcome instanceof SmsError) && outcome.accepted.length > 0;
}
