/** How a record came: polled (§4.2, §4.4) or called back (§6). */
export type Via = 'poll' | 'callback';

/** Parameters that the service adds in future arrive under their own names (§1). */
export interface Parameters {
  [parameter: string]: unknown;
}

/** How a reply or status was found to answer a text. */
export type MatchedBy = 'messageId' | 'handset';

/** The text that a reply or status answers. */
export interface SentText {
  /** Absent when the service gave none. */
  messageId?: string;
  /** Recipients as handed to the service. */
  to: string[];
  body: string;
  from?: string;
  /** ISO 8601 UTC. */
  sentAt: string;
  /** Id of the node that sent it. */
  node: string;
  /** What the node had remembered with it. */
  remembered?: unknown;
  matchedBy: MatchedBy;
}

/** One incoming message, reply or new (§2.3, §6.4). */
export interface IncomingRecord extends Parameters {
  /** Absent in an XMLv3 callback, which has no identifier of its own. */
  messageId?: string;
  /** MSISDN of the handset. */
  from: string;
  to?: string;
  /** messageId of the outbound message that this one answers, or the word `default`. */
  inReplyToId?: string;
  isReply: boolean;
  body: string;
  /** ISO 8601 UTC, as received. */
  messageDate?: string;
  contentType?: string;
  displayName?: string;
  /** The text that it answers. */
  sent?: SentText;
  /** It is the first reply to a reply request that was open. */
  awaited?: true;
  /** It is one of the words of consent: the handset wants no more texts, or texts again. */
  optOut?: 'out' | 'in';
  via: Via;
  redelivered?: boolean;
  ackId?: string;
}

/** One change of status of an outbound message at one recipient (§2.5, §6.5). */
export interface StatusRecord extends Parameters {
  /** Identifies this status update. */
  messageId: string;
  /** messageId of the outbound message. */
  inReplyToId?: string;
  /** MSISDN of the handset. */
  from: string;
  to?: string;
  statusCode: string;
  /** What the code means; absent for a code that is not known. */
  description?: string;
  /** Whether no further status follows; absent for a code that is not known. */
  final?: boolean;
  /** ISO 8601 UTC, as received. */
  statusDate?: string;
  error?: string;
  /** The text that it is about. */
  sent?: SentText;
  via: Via;
  redelivered?: boolean;
  ackId?: string;
}

/** One recipient of an outbound message (§2.4). */
export interface OutboxRecipient extends Parameters {
  from?: string;
  to?: string;
  name?: string;
  statusCode?: string;
  channel?: string;
}

/** One outbound message as the outgoing poll reports it (§2.4). */
export interface OutboxRecord extends Parameters {
  /** Absent when the service gave none. */
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

/** What is read from the service, by kind. */
export interface Records {
  incoming: IncomingRecord;
  status: StatusRecord;
  outbox: OutboxRecord;
}

/** What a record is. */
export type Kind = keyof Records;

/** @internal */
export const kinds = ['incoming', 'status', 'outbox'] as const satisfies readonly Kind[];

/** Any record that is read from the service. */
export type InboxRecord = Records[Kind];

/** A record and what it is. */
export type RecordOfKind<K extends Kind = Kind> = { [P in K]: { kind: P; record: Records[P] } }[K];

/** Records that came together and what they are. */
export type RecordsOfKind<K extends Kind = Kind> = { [P in K]: { kind: P; records: readonly Records[P][] } }[K];

/** The two values of `contentType` (§2.1). */
export type ContentType = 'text/plain' | 'text/plain; charset=UTF-16';

/** An outbound message, checked and ready to be submitted (§2.1). Absent properties are not sent. */
export interface OutboundMessage {
  /** At least one MSISDN without `+`, or address-book item; no duplicates. */
  to: readonly string[];
  body: string;
  from?: string;
  messageId?: string;
  fragmentationLimit?: number;
  contentType?: ContentType;
  /** Complete URL; the form encoding is added on the way out (§6.3). */
  callbackUrl?: string;
  callbackStatusUrl?: string;
}

/** What the service reports about one recipient (§2.2). */
export interface RecipientResult {
  msisdn: string;
  isError: boolean;
  errorCode?: number | string;
  errorMessage?: string;
}

/** The body of a send answer as it stands (§2.2). */
export interface SendResponse {
  messageId?: string;
  isError: boolean;
  errorCode?: number | string;
  errorMessage?: string;
  recipients: RecipientResult[];
}

/** A send that the service accepted at least formally: recipients may have failed one by one (§7.1). */
export interface Delivery {
  messageId?: string;
  /** HTTP status. */
  statusCode: number;
  recipients: RecipientResult[];
  /** What was submitted less what the service reported as failed. */
  accepted: string[];
  /** Each once. */
  failed: Omit<RecipientResult, 'isError'>[];
}

/** In which form the feed comes (§2.6). */
export type FeedFormat = 'ATOM' | 'RSS';

/** Account details that the feed carries (§2.6). */
export interface FeedAccount {
  /** A number when it reads as one. */
  balance?: number | string;
  type?: string;
  currency?: string;
}

/** One message of the feed, the same for ATOM and RSS. Dates are ISO 8601 UTC. */
export interface FeedEntry {
  id?: string;
  title?: string;
  body?: string;
  published?: string;
  updated?: string;
  author?: string;
  link?: string;
  categories: string[];
  /** Every element of the entry that has no place above, by local name. */
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

/** What to read of the feed (§4.5). */
export interface FeedQuery {
  format?: FeedFormat;
  /** Both when absent. */
  type?: 'out' | 'reply';
  /** 1 to 300; 8 when absent. */
  size?: number;
}
