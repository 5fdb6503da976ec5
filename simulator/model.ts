import type { ServerOptions } from 'node:https';
import type { Clock } from './clock';

/** The five endpoints of the service (§4). */
export type Endpoint = 'send' | 'incoming' | 'status' | 'outbox' | 'feed';

/** The two callback formats that an organisation can choose (§6.1). */
export type CallbackFormat = 'XMLv3' | 'FORMv1';

/** One login at the service, valid for all three authentication methods (§5). */
export interface Credentials {
  userId: string;
  password: string;
  apiKey: string;
}

/** How failed callbacks are retried (§6.1). Times in ms of the simulator's clock. */
export interface CallbackRetries {
  /** Pause before the second attempt. It doubles with each further attempt. Default: 1000. */
  firstMs: number;
  /** Maximum pause. Default: one hour. */
  maxMs: number;
  /** Time from the first attempt until retries end. The event is then only viewable online. Default: 48 hours. */
  windowMs: number;
}

/** Options of a simulator. All are optional. */
export interface SimulatorOptions {
  /** Port of the service. Default: 0, any free port. */
  port?: number;
  /** Default: 127.0.0.1. The control API has no credentials, so use other addresses only in closed networks. */
  host?: string;
  /** Key, certificate and other TLS options, to serve https. Default: http. */
  tls?: ServerOptions;
  /** Path before `/api`, which becomes part of the base URL. Default: none. */
  basePath?: string;
  /** How long a poll waits if nothing is unread (§8), in ms of real time. Default: 30000. */
  waitMs?: number;
  /** Credentials that the service accepts. Default: `demo`, `demo-password`, `demo-api-key`. */
  credentials?: Credentials;
  /** Initial credit. One part to one recipient costs 1. Default: 1000000. */
  balance?: number;
  /** Maximum number of recipients per UTC day of the clock (§8). Default: no limit. */
  dailyLimit?: number;
  /**
   * Delay before the status SNT (sent), and the same delay again before the final status, in ms of the simulator's
   * clock. Infinity: statuses change only manually. Default: 1000.
   */
  statusDelayMs?: number;
  /** Clock of the simulator. Default: the real time. */
  clock?: Clock;
  /** Maximum number of status updates in one answer of the status poll. Default: 1. */
  statusBatch?: number;
  /**
   * If set, outbox and feed identify each message by an id of the service (§2.4, §2.6). Default: by the client's
   * messageId.
   */
  ownRecordIds?: boolean;
  retryCallbacksMs?: Partial<CallbackRetries>;
  /**
   * Maximum number of entries in each of `requests`, `callbackLog` and `mailbox`. The oldest are removed first. Default: 10000.
   */
  keepRequests?: number;
  /**
   * Maximum number of messages in each direction, and of statuses. The oldest are removed first, but polls still return
   * them if they are unread. Default: 10000.
   */
  keepMessages?: number;
  /**
   * Folder that keeps messages, statuses, address book and settings across restarts. It is created if it does not
   * exist. Faults, the log and retries of callbacks are not saved. Default: none.
   */
  dataFolder?: string;
}

/** One request to the service, with its result. */
export interface LoggedRequest {
  /** Real time of arrival, in ms since 1970. */
  at: number;
  endpoint?: Endpoint;
  method: string;
  /** Path without the base path, e.g. `/api/3/sms/out`. */
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: string;
  /** Query and form parameters together. Form parameters take precedence. */
  params: Record<string, string>;
  /** Status of the answer. Absent while the request waits, and if it gets no answer. */
  status?: number;
  /** Beginning of the answer's body. Absent if there is no body. */
  answer?: string;
  /** Whether the answer was written completely. */
  ended?: boolean;
  /** Whether the client disconnected before the answer was complete. */
  aborted?: boolean;
  /** Whether a fault broke the connection. */
  brokenOff?: boolean;
}

/** One status of a recipient. */
export interface RecipientStatus {
  statusCode: string;
  /** ISO 8601 UTC. */
  date: string;
}

/** Result of an outbound message for one handset, or for one refused item of `to`. */
export interface OutboundRecipient {
  /** Item of `to` as submitted: a number, a contact or a group. */
  item: string;
  /** Other items of `to` that mean the same handset. They cause no further message to it. */
  otherItems?: string[];
  /** Number of the handset. If `item` means no handset, `item` itself. */
  msisdn: string;
  name?: string;
  isError: boolean;
  errorCode?: number;
  errorMessage?: string;
  /** `PND` until the first status. `ERR` or `INF` if refused. */
  statusCode: string;
  history: RecipientStatus[];
}

/** One accepted outbound message (§2.1). */
export interface OutboundMessage {
  messageId: string;
  /** Id of the message in outbox and feed if `ownRecordIds` is set. */
  recordId: string;
  /** Whether the client set the messageId. If not, the inReplyToId of replies is `default` (§2.3). */
  messageIdGiven: boolean;
  /** Version of the service's API: 1, 2 or 3, from the path (§9). */
  apiVersion: number;
  /** Recipients as submitted (numbers, contacts and groups), without repetitions. */
  to: string[];
  body: string;
  /**
   * Body that the handsets receive. Absent if it equals `body`. Without the UTF-16 content type, characters outside GSM
   * 03.38 become `?`.
   */
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
  /** Present only if the handset started the conversation. */
  to?: string;
  /** Number on which the message was received. Callbacks report it as `to` (§6.4). */
  receivedOn: string;
  /** Present only for replies. */
  inReplyToId?: string;
  body: string;
  /** ISO 8601 UTC. */
  messageDate: string;
  contentType: string;
  displayName?: string;
  /** Whether a poll has returned the record (§3). */
  read: boolean;
  /** Time at which a poll returned the record, ISO 8601 UTC. */
  readAt?: string;
  /** Time at which the callback of the message was acknowledged, ISO 8601 UTC. */
  calledBackAt?: string;
}

/** One status change at one recipient (§2.5). */
export interface StatusUpdate {
  messageId: string;
  /** Number of the account. */
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
  /** Whether a poll has returned the update (§3). */
  read: boolean;
  /** Time at which a poll returned the update, ISO 8601 UTC. */
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
  /** HTTP status of the client's answer. */
  status?: number;
  /** Reason why the client did not answer. */
  error?: string;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Time by the simulator's clock, in ms since 1970. */
  at: number;
}

/** One e-mail of a mailto callback (§6.3). */
export interface Mail {
  /** Time by the simulator's clock, in ms since 1970. */
  at: number;
  to: string;
  subject: string;
  body: string;
}

/**
 * A fault of an endpoint. Some faults do the work of the request and some do not. The "work" is to send a message, to
 * mark records as read, or to advance the poll date.
 */
export type Fault =
  /**
   * Gives this answer instead of doing the work. If `body` is absent, the answer contains an error page or, for a 401
   * or 403 of a send, the XML of §2.2.
   */
  | { status: number; reason?: string; body?: string; contentType?: string; headers?: Record<string, string> }
  /** Waits, then does the work and answers. A send is performed even if the client disconnects during the wait. */
  | { delayMs: number }
  /**
   * Destroys the socket:
   * - `before`: before the work
   * - `after`: after the work, before the answer
   * - `during`: after the work, within the first line of the answer
   */
  | { drop: 'before' | 'after' | 'during' }
  /** Does the work, sends the headers and half of the body, then destroys the socket. */
  | { half: true }
  /** Answers 200 with a text in no known format, without any work. */
  | { garbage: true }
  /** Answers 200 with an empty body, without any work. */
  | { empty: true }
  /** Does the work, then sends the body one byte at a time, with this pause between bytes. */
  | { dripMs: number }
  /** Never answers and does no work. */
  | { hang: true }
  /**
   * Answers every request with the last answer of status 200, without any work or wait. If there is no such answer yet,
   * does the work of the request.
   */
  | { repeat: true };

/**
 * The kind of a state change. Some kinds:
 * - `read`: an incoming message or a status was fetched, or its callback was acknowledged.
 * - `cleared`: the log was cleared.
 * - `reset`: everything was reset.
 */
export type Change =
  | 'message'
  | 'incoming'
  | 'status'
  | 'request'
  | 'callback'
  | 'mail'
  | 'settings'
  | 'read'
  | 'cleared'
  | 'reset';

/** A message as a handset shows it. */
export interface ShownMessage {
  /** Increases with each message. A message to several handsets has the same key at each handset. */
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
  /** Message to the handset: its sender. Absent if the sender is the account's own number. */
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
  /** Key of the log entry for this message: the request that sent or fetched it, or its callback. */
  call?: number;
}

/** Purpose of a request in the log. */
export type LogGroup = 'send' | 'poll' | 'feed' | 'callback' | 'other';

/** One entry of the log. Keys, passwords and tokens are masked. */
export type LogEntry = {
  /** Increases from entry to entry. */
  key: number;
  group: LogGroup;
  /**
   * The message that the request or callback sent, fetched or reported. If the message went to several handsets,
   * `msisdn` is the first.
   */
  text?: { key: number; msisdn: string };
} & (
  | { kind: 'request'; record: LoggedRequest }
  | { kind: 'callback'; record: CallbackAttempt }
  | { kind: 'mail'; record: Mail }
);

/** One handset with its last message. */
export interface HandsetSummary {
  msisdn: string;
  name?: string;
  last?: ShownMessage;
}

/** A number of the address book or of a group. */
export interface Handset {
  msisdn: string;
  name?: string;
}

/** Settings and counters of the account. */
export interface AccountState {
  balance: number;
  type: string;
  currency: string;
  /** Maximum number of recipients per UTC day. `null`: no limit. */
  dailyLimit: number | null;
  /** A day by the simulator's clock, in days since 1970, and the number of recipients on that day. */
  sentOnDay: [day: number, recipients: number];
  defaultSender: string;
  organisation: Organisation;
  /** Number of each contact, by name of the contact. */
  contacts: Record<string, string>;
  /** Members of each group, by name of the group. */
  groups: Record<string, string[]>;
  /** Result that was chosen for messages to a handset, by number of the handset. */
  outcomes: Record<string, string>;
  /** Result that was chosen for the next message. `null`: none was chosen. */
  nextOutcome: string | null;
}

/** The state of the simulator: its settings, and the last entries of its lists. */
export interface SimulatorState {
  baseUrl: string;
  credentials: Credentials;
  account: AccountState;
  /** Active faults. `left`: number of requests to which a fault still applies, or `null` if the fault never ends. */
  faults: Partial<Record<Endpoint, { fault: Fault; left: number | null }>>;
  /** ISO 8601 UTC, by the simulator's clock. */
  now: string;
  /** Reason why the last changes could not be saved in the data folder. `null`: there is no problem. */
  dataProblem: string | null;
  messages: OutboundMessage[];
  incoming: IncomingMessage[];
  statuses: StatusUpdate[];
  requests: LoggedRequest[];
  callbacks: CallbackAttempt[];
  mailbox: Mail[];
}
