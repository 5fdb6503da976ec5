import type { ServerOptions } from 'node:https';
import type { Clock } from './clock';

/** The five endpoints of the service (§4). */
export type Endpoint = 'send' | 'incoming' | 'status' | 'outbox' | 'feed';

/** The two callback formats an organisation chooses from (§6.1). */
export type CallbackFormat = 'XMLv3' | 'FORMv1';

/** One login of the service, good for all three authentications (§5). */
export interface Credentials {
  userId: string;
  password: string;
  apiKey: string;
}

/** How long failed callbacks are tried again (§6.1); milliseconds of the simulator's clock. */
export interface CallbackRetries {
  /** Pause before the second attempt; it doubles with every further one. Default 1000. */
  firstMs: number;
  /** Longest pause. Default one hour. */
  maxMs: number;
  /** After this time the event is only viewable online. Default 48 hours. */
  windowMs: number;
}

/** How a simulator starts. Everything has a default. */
export interface SimulatorOptions {
  /** Default 0: any free port. */
  port?: number;
  /** Default 127.0.0.1. The control API has no credentials, so other addresses are for closed networks. */
  host?: string;
  /** Key, certificate and the like, to answer by https. Default plain http. */
  tls?: ServerOptions;
  /** Path in front of `/api`, so that the base URL carries one. Default none. */
  basePath?: string;
  /** How long a poll waits when nothing is unread (§8), in real milliseconds. Default 30000. */
  waitMs?: number;
  /** Default `demo`, `demo-password`, `demo-api-key`. */
  credentials?: Credentials;
  /** Credit at the start; one part to one recipient costs 1. Default 1000000. */
  balance?: number;
  /** Default `Prepaid`. */
  accountType?: string;
  /** Default `EUR`. */
  currency?: string;
  /** Recipients per UTC day of the clock (§8). Default none. */
  dailyLimit?: number;
  /** The account's own number, for messages without `from`. Default 642100000001. */
  defaultSender?: string;
  /** Clock milliseconds from submission to SNT, and again to the outcome. Infinity: statuses come by hand only. Default 1000. */
  statusDelayMs?: number;
  /** Default the real time. */
  clock?: Clock;
  /** Most status updates in one answer of the status poll. Default 1. */
  statusBatch?: number;
  /** If set, outbox and feed name each message by an id of the service (§2.4, §2.6). Default: by the client's messageId. */
  ownRecordIds?: boolean;
  retryCallbacksMs?: Partial<CallbackRetries>;
  /** Bound of `requests`, `callbackLog`, `mailbox` and `undelivered`; the oldest go first. Default 10000. */
  keepRequests?: number;
  /**
   * Maximum number of messages, in and out. A message to several handsets counts for each of them. The oldest are dropped
   * first, but polls still return them if they are unread. The same number of statuses is kept. Default 10000.
   */
  keepTexts?: number;
  /**
   * Folder that keeps messages, statuses, address book and settings across restarts. It is created if it does not exist.
   * Faults, the log and retries of callbacks are not saved. Default none.
   */
  dataFolder?: string;
}

/** One request to the service, as it came and as it ended. */
export interface LoggedRequest {
  /** Real time of arrival, epoch milliseconds. */
  at: number;
  endpoint?: Endpoint;
  method: string;
  /** Without the base path, e.g. `/api/3/sms/out`. */
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: string;
  /** Query and form parameters in one, the form's first. */
  params: Record<string, string>;
  /** Status answered; absent while the request waits and when it gets no answer. */
  status?: number;
  /** The beginning of the answer's body, when it has one. */
  answer?: string;
  /** The answer was written completely. */
  ended?: boolean;
  /** The client went away before the answer was complete. */
  aborted?: boolean;
  /** A fault broke the connection off. */
  brokenOff?: boolean;
}

/** One status a recipient had. */
export interface RecipientStatus {
  statusCode: string;
  /** ISO 8601 UTC. */
  date: string;
  error?: string;
}

/** One handset, or one refused item, of an outbound message. */
export interface OutboundRecipient {
  /** As submitted: a number, a contact or a group. */
  item: string;
  /** Further items that stand for the same handset, which gets the text once. */
  otherItems?: string[];
  /** The handset; the item itself when it could not be resolved. */
  msisdn: string;
  name?: string;
  isError: boolean;
  errorCode?: number;
  errorMessage?: string;
  /** `PND` until the first change; `ERR` or `INF` when refused. */
  statusCode: string;
  history: RecipientStatus[];
}

/** One accepted outbound message (§2.1). */
export interface OutboundMessage {
  messageId: string;
  /** Id of the message in outbox and feed if `ownRecordIds` is set. */
  recordId: string;
  /** Whether the client gave the messageId (else replies carry `default`, §2.3). */
  messageIdGiven: boolean;
  /** 1, 2 or 3, by the path (§9). */
  apiVersion: number;
  /** Items as submitted, each once. */
  to: string[];
  body: string;
  /** Body that the handsets get if it differs from `body`: without the UTF-16 content type, characters outside GSM 03.38 become `?`. */
  deliveredBody?: string;
  from?: string;
  contentType?: string;
  fragmentationLimit?: number;
  callbackUrl?: string;
  callbackStatusUrl?: string;
  parts: number;
  /** ISO 8601 UTC. */
  messageDate: string;
  deleted: boolean;
  recipients: OutboundRecipient[];
}

/** One incoming message (§2.3). */
export interface IncomingMessage {
  messageId: string;
  /** The handset. */
  from: string;
  /** Present for mobile-initiated messages only. */
  to?: string;
  /** Number on which the message was received; `to` of callbacks (§6.4). */
  receivedOn: string;
  /** Present for replies only. */
  inReplyToId?: string;
  body: string;
  /** ISO 8601 UTC. */
  messageDate: string;
  contentType: string;
  displayName?: string;
  /** Parameters beyond those of the specification. */
  extra: Record<string, string>;
  /** Whether polling has returned it (§3). */
  read: boolean;
  /** When polling returned it, ISO 8601 UTC. */
  readAt?: string;
  /** When a callback that told of it was acknowledged, ISO 8601 UTC. */
  calledBackAt?: string;
}

/** One change of status at one recipient (§2.5). */
export interface StatusUpdate {
  messageId: string;
  /** The account's side. */
  to: string;
  /** The handset. */
  from: string;
  statusCode: string;
  /** messageId of the outbound message. */
  inReplyToId: string;
  error?: string;
  /** ISO 8601 UTC. */
  statusDate: string;
  displayName?: string;
  /** Whether polling has returned it (§3). */
  read: boolean;
  /** When polling returned it, ISO 8601 UTC. */
  readAt?: string;
}

/** Settings of the organisation: the default callbacks and their format (§6). */
export interface Organisation {
  callbackUrl?: string;
  callbackStatusUrl?: string;
  callbackFormat: CallbackFormat;
}

/** One attempt at a callback (§6.1). */
export interface CallbackAttempt {
  event: 'reply' | 'status';
  url: string;
  body: string;
  contentType: string;
  /** Status of the client's answer. */
  status?: number;
  /** Why there was no answer. */
  error?: string;
  /** 1 for the first. */
  attempt: number;
  /** Epoch milliseconds of the simulator's clock. */
  at: number;
}

/** A callback that was never acknowledged within the window (§6.1). */
export interface UndeliveredCallback {
  event: 'reply' | 'status';
  url: string;
  body: string;
  contentType: string;
  attempts: number;
}

/** One e-mail of a mailto callback (§6.3). */
export interface Mail {
  to: string;
  subject: string;
  body: string;
}

/** A fault of an endpoint. "Work" means to send, to mark as read, or to move the poll date. */
export type Fault =
  /** Answers so, without any work. Without a body: a page, and to a 401 or 403 of a send the XML of §2.2. */
  | { status: number; reason?: string; body?: string; contentType?: string; headers?: Record<string, string> }
  /** Waits, then works and answers. A send is carried out even when the client has gone meanwhile. */
  | { delayMs: number }
  /** Destroys the socket: before the work, after it without an answer, or after it within the first line of the answer. */
  | { drop: 'before' | 'after' | 'during' }
  /** Works, then sends the headers and half of the body, then destroys the socket. */
  | { half: true }
  /** 200 with a text that belongs to no protocol, without any work. */
  | { garbage: true }
  /** 200 with an empty body, without any work. */
  | { empty: true }
  /** Works, then sends the body one byte at a time with this pause between. */
  | { dripMs: number }
  /** Never answers and does no work. */
  | { hang: true }
  /** Answers the last good answer for ever, without waiting; the first one is made by the work. */
  | { repeat: true };

/**
 * What changed. `record` is the live object, for messages, requests and the like. `read`: an incoming message or status was
 * fetched or called back. `forgotten`: a record went to make room. `cleared`: the log is empty; `reset`: all is.
 */
export interface Change {
  kind:
    | 'message'
    | 'incoming'
    | 'status'
    | 'request'
    | 'callback'
    | 'mail'
    | 'settings'
    | 'read'
    | 'forgotten'
    | 'cleared'
    | 'reset';
  record?: object;
}

/** A message as a handset shows it. */
export interface Text {
  /** Increases with each message. A message to several handsets has the same key at each. */
  key: number;
  msisdn: string;
  isFromHandset: boolean;
  /** ISO 8601 UTC. */
  at: string;
  /** Body as it arrived. If it was not sent as UTF-16, characters outside GSM 03.38 are `?`. */
  body: string;
  messageId: string;
  /** Message to the handset: number of parts. */
  parts?: number;
  /** Message to the handset: its sender, unless it is the account's own number. */
  sender?: string;
  /** Message to the handset: status code, `PND` before the first status. */
  statusCode?: string;
  /** Message to the handset: why it was not sent. */
  refusal?: string;
  /** Message from the handset: present if it is a reply. */
  inReplyToId?: string;
  /** Message from the handset: time at which a poll returned it. */
  readAt?: string;
  /** Message from the handset: time at which its callback was acknowledged. */
  calledBackAt?: string;
  /** Key of the request that sent or fetched it, or of its callback. */
  call?: number;
}

/** Purpose of a request in the log. */
export type LogGroup = 'send' | 'poll' | 'feed' | 'callback' | 'other';

/** One entry of the log. Keys, passwords and tokens are masked. */
export type LogEntry = {
  /** Grows from entry to entry. */
  key: number;
  group: LogGroup;
  /** The text that it sent, fetched or told of, at the first of its handsets. */
  text?: { key: number; msisdn: string };
} & (
  | { kind: 'request'; record: LoggedRequest }
  | { kind: 'callback'; record: CallbackAttempt }
  | { kind: 'mail'; record: Mail }
);

/** One handset with its last text. */
export interface HandsetSummary {
  msisdn: string;
  name?: string;
  last?: Text;
  /** Whether it has a text to reply to. */
  canReply: boolean;
}

/** A number of the address book or of a group. */
export interface Handset {
  msisdn: string;
  name?: string;
}
