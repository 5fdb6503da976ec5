/** How a record arrived: polled (§4.2, §4.4) or by callback (§6). */
export type Via = 'poll' | 'callback';

/** Parameters that the service adds in the future, under their own names (§1). */
export interface Parameters {
  [parameter: string]: unknown;
}

/** Way in which a reply or status was matched to a message: by the messageId, or by the number of the handset. */
export type MatchedBy = 'messageId' | 'handset';

/** The outbound message that a reply answers, or that a status is about. */
export interface SentMessage {
  /** Absent if the service returned no messageId. */
  messageId?: string;
  /** Recipients as submitted to the service. */
  to: string[];
  body: string;
  from?: string;
  /** ISO 8601 UTC. */
  sentAt: string;
  /** Id of the sending node. */
  node: string;
  /** Value of the option `remember` of the sending node. */
  remembered?: unknown;
  matchedBy: MatchedBy;
}

/** An incoming message: a reply or a new message (§2.3, §6.4). */
export interface IncomingRecord extends Parameters {
  /** Absent in an XMLv3 callback, which has no identifier of its own. */
  messageId?: string;
  /** MSISDN of the handset. */
  from: string;
  to?: string;
  /** messageId of the answered message, or the word `default`. */
  inReplyToId?: string;
  isReply: boolean;
  body: string;
  /** ISO 8601 UTC, as received. */
  messageDate?: string;
  contentType?: string;
  displayName?: string;
  /** The answered message. */
  sent?: SentMessage;
  /** True if the message answers an open reply request. */
  awaited?: true;
  /** Set if the body is an opt-out or an opt-in word. */
  optOut?: 'out' | 'in';
  via: Via;
  redelivered?: boolean;
  ackId?: string;
}

/** A status update of an outbound message for one recipient (§2.5, §6.5). */
export interface StatusRecord extends Parameters {
  /** Identifies this status update. */
  messageId: string;
  /** messageId of the outbound message. */
  inReplyToId?: string;
  /** MSISDN of the handset. */
  from: string;
  to?: string;
  statusCode: string;
  /** Meaning of the code; absent for an unknown code. */
  description?: string;
  /** Whether this status is the last; absent for an unknown code. */
  final?: boolean;
  /** ISO 8601 UTC, as received. */
  statusDate?: string;
  error?: string;
  /** The outbound message that this status is about. */
  sent?: SentMessage;
  via: Via;
  redelivered?: boolean;
  ackId?: string;
}

/** A recipient of an outbound message (§2.4). */
export interface OutboxRecipient extends Parameters {
  from?: string;
  to?: string;
  name?: string;
  statusCode?: string;
  channel?: string;
}

/** An outbound message in the answer to an outgoing poll (§2.4). */
export interface OutboxRecord extends Parameters {
  /** Absent if the service returned no messageId. */
  messageId?: string;
  body: string;
  recipientCount?: number;
  recipients?: string;
  /** ISO 8601 UTC, as received. */
  messageDate?: string;
  statusCode?: string;
  deleted?: boolean;
  recipientsList: OutboxRecipient[];
}

/** Records of the service by kind. */
export interface Records {
  incoming: IncomingRecord;
  status: StatusRecord;
  outbox: OutboxRecord;
}

/** Kind of a record. */
export type Kind = keyof Records;

/** @internal */
export const kinds = ['incoming', 'status', 'outbox'] as const satisfies readonly Kind[];

/** A record of any kind. */
export type InboxRecord = Records[Kind];

/** A record with its kind. */
export type RecordOfKind<K extends Kind = Kind> = { [P in K]: { kind: P; record: Records[P] } }[K];

/** Records of one answer with their kind. */
export type RecordsOfKind<K extends Kind = Kind> = { [P in K]: { kind: P; records: readonly Records[P][] } }[K];

/** The two values of `contentType` (§2.1). */
export type ContentType = 'text/plain' | 'text/plain; charset=UTF-16';

/** A checked outbound message (§2.1). Absent properties are not sent. */
export interface OutboundMessage {
  /** At least one recipient: MSISDNs without `+`, or address-book items. No repetitions. */
  to: readonly string[];
  body: string;
  from?: string;
  messageId?: string;
  fragmentationLimit?: number;
  contentType?: ContentType;
  /** Complete URL, not encoded for a form. The request encodes it (§6.3). */
  callbackUrl?: string;
  callbackStatusUrl?: string;
}

/** Result of a send for one recipient (§2.2). */
export interface RecipientResult {
  msisdn: string;
  isError: boolean;
  errorCode?: number | string;
  errorMessage?: string;
}

/** Body of the answer to a send (§2.2). */
export interface SendResponse {
  messageId?: string;
  isError: boolean;
  errorCode?: number | string;
  errorMessage?: string;
  recipients: RecipientResult[];
}

/** Result of a send that passed the validation of the service. Single recipients can have failed (§7.1). */
export interface Delivery {
  messageId?: string;
  /** HTTP status. */
  statusCode: number;
  recipients: RecipientResult[];
  /** Submitted recipients without those that the service reported as failed. */
  accepted: string[];
  /** Failed recipients, without repetitions. */
  failed: Omit<RecipientResult, 'isError'>[];
}

/** Format of the feed (§2.6). */
export type FeedFormat = 'ATOM' | 'RSS';

/** Account details in the feed (§2.6). */
export interface FeedAccount {
  /** A number if it reads as a number. */
  balance?: number | string;
  type?: string;
  currency?: string;
}

/** A message in the feed, in the same form for ATOM and RSS. Dates are ISO 8601 UTC. */
export interface FeedEntry {
  id?: string;
  title?: string;
  body?: string;
  published?: string;
  updated?: string;
  author?: string;
  link?: string;
  categories: string[];
  /** All other elements of the entry, by local name. */
  fields: Record<string, unknown>;
}

/** The feed of recent messages (§2.6, §4.5). */
export interface Feed {
  format: FeedFormat;
  title?: string;
  updated?: string;
  account: FeedAccount;
  entries: FeedEntry[];
}

/** Parameters of a feed read (§4.5). */
export interface FeedQuery {
  format?: FeedFormat;
  /** Absent: both types. */
  type?: 'out' | 'reply';
  /** 1 to 300. Absent: 8. */
  size?: number;
}
