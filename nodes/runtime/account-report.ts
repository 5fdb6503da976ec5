/** Answer of `GET sms-account/state`: the state of each account node by id, or the reason why a node cannot be used. */
export type StatesReport = Record<string, StateReport | { error: ErrorReport }>;

/** Answer of `GET sms-account/overview`, for the sidebar. Times are ISO 8601. */
export interface AccountsReport {
  /** Time of the answer, by the clock of the server. */
  at: string;
  accounts: RunningAccount[];
}

/** A deployed account. Nodes that count as one account appear once. */
export interface RunningAccount {
  /** Ids of its nodes. The first node represents the account. */
  ids: string[];
  name: string;
  /** Names of its nodes, in the same order. */
  names: string[];
  /** Absent if the account cannot be used; `error` then says why. */
  state?: StateReport;
  error?: ErrorReport;
  /** Counts since midnight, or since the start of the process. */
  today?: CountsReport;
  /** Start of the process, if it was after midnight. */
  todaySince?: string | undefined;
  /** Messages of failing polls. */
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
    /** Why stored messages do not leave, during an outage. */
    failing?: ErrorReport & { since: string; nextTryAt?: string | undefined };
  };
  consent: { optedOut: number };
  store: { kind: string; ok: boolean; error?: ErrorReport; former?: { kind: string; error: ErrorReport } };
  /** Another node of the same login whose settings apply in place of those of this node. */
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

/** In the order of the sidebar. */
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

/** Settings of which only one node of a login can decide. */
export type ConnectionSetting = 'proxy' | 'tls';

/** State of an entry. */
export type EntryStateName = 'kept' | 'uncertain' | 'unhandled';

/** Action on an entry. */
export type EntryActionName = 'send' | 'markSent' | 'deliver' | 'discard';

/** A page of entries, and the total number. */
export interface EntriesReport {
  entries: EntryReport[];
  total: number;
  /** Value of `after` for the next page. Absent on the last page. */
  next?: string;
}

/** Result of an action on all entries of a state. */
export interface DecidedReport {
  done: number;
  /** Entries that the action does not fit, such as messages of a node that is not deployed. */
  left: number;
}

/** A page of opted-out numbers, the latest first. */
export interface OptOutsReport {
  optouts: { msisdn: string; at: string; via: 'message' | 'person' }[];
  /** Number of all, or of all that match the search. */
  total: number;
  next?: string;
}

/** The number of changed numbers. */
export interface OptOutChangedReport {
  changed: number;
}

/** An entry that needs a decision. */
export interface EntryReport {
  id: string;
  state: EntryStateName;
  at: string;
  /** Earliest time at which it can leave. */
  dueAt?: string | undefined;
  /** Time at which it left, while its outcome is unknown. */
  leftAt?: string | undefined;
  node: string;
  to?: readonly string[];
  from?: string;
  body: string;
  /** Key of `replace`. */
  key?: string | undefined;
  error?: ErrorReport;
}

/** Topic under which the runtime tells editors about changes. */
export const changedTopic = 'sms-account/changed';

/** Answer of `POST sms-account/same`: other deployed account nodes with the login of a form, and those with another login. */
export interface SameLoginReport {
  same: { id: string; name: string; differs?: ConnectionSetting[] }[];
  others: string[];
}

/** Node-RED shows this value in a form instead of a saved password. */
export const savedPassword = '__PWRD__';
