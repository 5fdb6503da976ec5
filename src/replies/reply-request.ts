import type { IncomingRecord } from '../model';
import type { Withheld } from '../outbox/rules';
import { type Changes, foreverMs, type Item, unsweptPrefix } from '../store/store';

/** Reason why a recipient did not answer. */
export interface NoReply {
  reason: 'timeout' | 'unclear' | 'undelivered' | 'failed';
  /** Body of the last unclear reply. */
  reply?: string;
  /** Final status of the handset (`undelivered`). */
  statusCode?: string;
  /** Error of the service or of a rule of the account (`failed`). */
  errorCode?: number | string;
  errorMessage?: string;
  /** The rule that refused the recipient. With it, a node can translate the error message. */
  withheld?: Withheld;
}

/** How a reply request ended: with a reply and the value of its answer, or without a reply. */
export type ReplyResult = { reply: IncomingRecord; answer?: string } | NoReply;

/** Fields that reply requests and reports share. */
interface Awaiting extends Item {
  part: 'ledger';
  /** Id of the sending node. */
  node: string;
  /** Id of the message, under which the flow message is stored. */
  text: string;
  /** See `referenceOf` in `sent-index.ts`. */
  reference: string;
  messageId?: string;
  waitMs: number;
}

/** The wait for the answer of one recipient. Plain data. */
export interface ReplyRequest extends Awaiting {
  kind: 'replyRequest';
  recipient: string;
  /** Start of the wait, in ms. Absent until the outcome of the message is known. */
  askedAt?: number;
  /** Present until the flow has received it. */
  result?: ReplyResult;
  /** Whether only some replies are answers; see `answers.ts`. */
  hasAnswers?: true;
  /** Body of the last reply that matched no answer. */
  unclear?: string;
  /** Handsets that have received the message `again`, or will receive it. */
  againTo?: readonly string[];
  /** Those of `againTo` to which the message `again` was not sent yet. */
  againDue?: readonly string[];
}

/** The wait for the final statuses of a message on all its handsets. Plain data. */
export interface Report extends Awaiting {
  kind: 'report';
  /** Recipients that accepted the message. */
  recipients: readonly string[];
  askedAt: number;
  /** The statuses at the end of the wait. Present until the flow has received the report. */
  result?: { statuses: Statuses };
}

/** First final status of each handset. */
export type Statuses = readonly (readonly [msisdn: string, statusCode: string])[];

/** A follow-up of a message: a reply request or a report. */
export type FollowUp = ReplyRequest | Report;

/** The kind of record that an account polls for follow-ups. */
export type AwaitedKind = 'incoming' | 'status';

export const awaitedKindOf: Readonly<Record<FollowUp['kind'], AwaitedKind>> = {
  replyRequest: 'incoming',
  report: 'status',
};

/** How long a follow-up stays after its deadline if its node is not deployed. */
export const followUpGraceMs = 7 * 24 * 3_600_000;

const flowMessagePrefix = `${unsweptPrefix}flowMessage:`;

/** Returns the key of the flow message from which a message was sent. */
export function flowMessageKey(text: string): string {
  return flowMessagePrefix + text;
}

/** Stores the flow message of a message until the last follow-up of the message ends. */
export function keepFlowMessage(
  { id, flowMessage }: { id: string; flowMessage?: string },
  at: number,
  changes: Changes,
): void {
  if (flowMessage !== undefined) {
    changes.remember.set(flowMessageKey(id), { at, forMs: foreverMs, value: flowMessage });
  }
}
