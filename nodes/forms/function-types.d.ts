// Types for the code completion of function nodes. The editor plugin contains the text of this file.

/** A message, a status or an outcome. Its fields depend on the node that sent the flow message. */
interface SmsRecord {
  /** Identifier of the message or of the status update. */
  messageId?: string;
  /** Identifier of the sent message to which this reply or status belongs. */
  inReplyToId?: string;
  /** Number of the handset. */
  from?: string;
  to?: string;
  body?: string;
  isReply?: boolean;
  /** ISO 8601, UTC. */
  messageDate?: string;
  contentType?: string;
  displayName?: string;
  /** Set if the body is an opt-out word or an opt-in word. */
  optOut?: 'out' | 'in';
  /** Whether an open reply request of an `sms-ask` node waited for this message. */
  awaited?: boolean;
  /** How the record arrived. */
  via?: 'poll' | 'callback';
  /** Query parameters of a callback. */
  query?: Record<string, string | string[]>;
  /** The sent message to which this reply or status belongs. */
  sent?: {
    messageId?: string;
    to: string[];
    body: string;
    from?: string;
    /** ISO 8601, UTC. */
    sentAt: string;
    /** Id of the sending node. */
    node: string;
    /** Value of the field *Remember* of sms-send. */
    // biome-ignore lint/suspicious/noExplicitAny: the flow chooses the value.
    remembered?: any;
    matchedBy: 'messageId' | 'handset';
  };

  /** Code of a status, or the HTTP status of a send. */
  statusCode?: string | number;
  /** Meaning of a known status code. */
  description?: string;
  /** Whether no further status follows. */
  final?: boolean;
  /** ISO 8601, UTC. */
  statusDate?: string;

  /** Result for each recipient of a send. In a record of the outbox: a summary of the recipients in words. */
  recipients?: { msisdn: string; isError: boolean; errorCode?: number | string; errorMessage?: string }[] | string;
  /** The accepted recipients. */
  accepted?: string[];
  /** The recipients that the service or a rule refused. */
  failed?: { msisdn: string; errorCode?: number | string; errorMessage?: string }[];
  isError?: boolean;
  encoding?: 'GSM-7' | 'UCS-2';
  /** Number of SMS parts. */
  parts?: number;
  /** Number of replaced characters. */
  replacements?: number;
  /** True if an earlier message had the same key of *Send once per*, so that nothing was sent. */
  duplicate?: boolean;
  /** The source that later showed the outcome, if the outcome was unknown at first. */
  resolvedBy?: 'status' | 'reply' | 'outbox' | 'feed' | 'person';

  /** The recipient that failed or did not answer. */
  msisdn?: string;
  errorCode?: number | string;
  errorMessage?: string;
  /** Value of the answer. */
  answer?: string;
  /** Reason why a recipient did not answer. */
  reason?: 'timeout' | 'unclear' | 'undelivered' | 'failed';
  /** Last reply that matched none of the expected answers. */
  reply?: string;

  /** In a delivery report: the numbers that received the message. */
  delivered?: string[];
  /** In a delivery report: the numbers that did not receive the message. */
  undelivered?: { msisdn: string; statusCode: string; description?: string }[];
  /** In a delivery report: the recipients without a final status. */
  pending?: string[];

  /** In a record of the outbox: number of recipients. */
  recipientCount?: number;
  /** In a record of the outbox: the recipients. */
  recipientsList?: { from?: string; to?: string; name?: string; statusCode?: string; channel?: string }[];
  /** In a record of the outbox: whether the message was deleted at the service. */
  deleted?: boolean;

  /** In a flow message of sms-feed: the account at the service. */
  account?: { balance?: number | string; type?: string; currency?: string };
  title?: string;
  /** ISO 8601, UTC. */
  updated?: string;
  format?: 'ATOM' | 'RSS';

  /** Error of a status, or the error that a Catch node receives. */
  error?: string | SmsErrorRecord;
  /** Whether the flow might have received this record before. */
  redelivered?: boolean;
  /** To acknowledge the record, the flow sends a flow message with this id back to the input of the node. */
  ackId?: string;
}

/** An error of an sms node. */
interface SmsErrorRecord {
  /** For example `SMS_UNREACHABLE`. */
  code: string;
  message: string;
  /** HTTP status. */
  statusCode?: number;
  errorCode?: number | string;
  errorMessage?: string;
  /** The property at fault. */
  field?: string;
  messageId?: string;
  /** Number of stored messages that wait. If set, the error reports an outage, not the outcome of a message. */
  waiting?: number;
  /** Sources that the account checked without finding the outcome of the message. */
  searched?: readonly string[];
  /** End of the quiet hours, ISO 8601. */
  until?: string;
}

/** Node-RED's own type of `msg` in a function node. */
interface NodeMessage {
  /** The record of an sms node. */
  sms?: SmsRecord;
}
