/** Answer of `GET sms-account/state`: the state of each account node by id, or the reason why a node cannot be used. */
export type StatesReport = Record<string, StateReport | { error: ErrorReport }>;

/** Answer of `GET sms-account/overview`, for the sidebar. Times are ISO 8601. */
export interface AccountsReport {
  /** Time of the answer, by the clock of the server. */
  at: string;
  accounts: RunningAccount[];
}

/** A deployed account. Nodes of the same account share one entry. */
export interface RunningAccount {
  /** Ids of the account nodes. The first node represents the account. */
  ids: string[];
  name: string;
  /** Names of the account nodes, in the order of `ids`. */
  names: string[];
  /** Absent if the account cannot be used. `error` then has the reason. */
  state?: StateReport;
  error?: ErrorReport;
  /** Counts since midnight, or since the start of the process if that was later. */
  today?: CountsReport;
  /** Start of the process, if it started after midnight. */
  todaySince?: string | undefined;
  /** Error messages of failing polls. */
  failures?: { [Kind in PollReport['kind']]?: string };
  /** Whether *Opt-out* is set. */
  optOut?: boolean;
}

export interface ErrorReport {
  code: string;
  message: string;
}

/** The answer of `GET sms-account/:id/state`. */
export interface StateReport {
  polls: PollReport[];
  inbox: { undelivered: number; oldestAt?: string | undefined; unhandled: number };
  sends: {
    inFlight: number;
    waiting: number;
    kept: number;
    scheduled: number;
    oldestKeptAt?: string | undefined;
    uncertain: number;
    awaitingReply: number;
    awaitingReport: number;
    /** The error that keeps stored messages from being sent. Set only during an outage. */
    failing?: ErrorReport & { since: string; nextTryAt?: string | undefined };
  };
  consent: { optedOut: number };
  store: { kind: string; ok: boolean; error?: ErrorReport; former?: { kind: string; error: ErrorReport } };
  /** Another node of the same login whose settings apply instead of this node's. */
  connection?: { name: string; settings: ConnectionSetting[] };
  counts: CountsReport;
}

export interface PollReport {
  kind: 'incoming' | 'status' | 'outbox';
  state: 'connecting' | 'listening' | 'waiting' | 'paused' | 'failing';
  since: string;
  lastAnswerAt?: string | undefined;
}

export type CountsReport = Record<CountName, number>;

/** Names of the counts, in the order of the sidebar. */
export const countNames = [
  'sent',
  'received',
  'statuses',
  'failed',
  'refused',
  'notAllowed',
  'optedOut',
  'limited',
  'quiet',
  'uncertain',
  'resolved',
  'expired',
  'replaced',
  'withdrawn',
  'duplicates',
  'redelivered',
  'unhandled',
] as const;

type CountName = (typeof countNames)[number];

/** Settings in which the first deployed node of a login decides for all nodes of this login. */
export type ConnectionSetting = 'proxy' | 'tls';

/** State of an {@link EntryReport}: stored message, unknown outcome, or unhandled message. */
export type EntryStateName = 'kept' | 'uncertain' | 'unhandled';

/** Action that a user can choose for an {@link EntryReport}. */
export type EntryActionName = 'send' | 'markSent' | 'deliver' | 'discard';

/** A page of entries, and the total number. */
export interface EntriesReport {
  entries: EntryReport[];
  total: number;
  /** Value of `after` for the next page. Absent on the last page. */
  next?: string;
}

/** Names of the lists of waiting entries: received records that wait for a flow, and open reply requests. */
export type WaitingName = 'undelivered' | 'awaitingReply';

/** One page of the entries that wait: received records, or open reply requests. */
export interface WaitingReport {
  entries: WaitingEntryReport[];
  total: number;
  next?: string;
}

/** A received record that waits for a flow, or an open reply request. Times are ISO 8601. */
export interface WaitingEntryReport extends Pick<EntryReport, 'id' | 'node' | 'to' | 'from' | 'body'> {
  /** Time at which the record arrived or the wait for a reply began. Absent if the wait has not begun. */
  at?: string | undefined;
  /** End of the wait of a reply request. */
  endsAt?: string | undefined;
  /** Last reply that matched none of the answers. */
  unclear?: string;
}

/** Result of an action on all entries of one state, e.g. all stored messages. */
export interface DecidedReport {
  done: number;
  /** Number of unchanged entries. The action is not possible for them, e.g. because their node is not deployed. */
  left: number;
}

/** A page of opted-out numbers, the latest first. */
export interface OptOutsReport {
  optouts: { msisdn: string; at: string; via: 'message' | 'person' }[];
  /** Number of opted-out phone numbers on all pages. In a search, only matching phone numbers count. */
  total: number;
  next?: string;
}

/** Result of a change of the opt-out list, with the number of changed entries. */
export interface OptOutChangedReport {
  changed: number;
}

/** An entry of a list in the sidebar: a stored message, a message with an unknown outcome, or an unhandled message. */
export interface EntryReport {
  id: string;
  state: EntryStateName;
  at: string;
  /** Earliest time at which the message can be sent. */
  dueAt?: string | undefined;
  /** Time at which the message was sent. Set only while its outcome is unknown. */
  leftAt?: string | undefined;
  node: string;
  to?: readonly string[];
  from?: string;
  body: string;
  /** Value of `replace`. */
  key?: string | undefined;
  error?: ErrorReport;
}

/** Topic under which the runtime notifies editors of changes. */
export const changedTopic = 'sms-account/changed';

/**
 * Answer of `POST sms-account/same`: the other deployed account nodes that have the same login as the open account
 * form.
 */
export interface SameLoginReport {
  same: { id: string; name: string; differs?: ConnectionSetting[] }[];
}

/** Node-RED puts this value into a form instead of a saved password. */
export const savedPassword = '__PWRD__';
