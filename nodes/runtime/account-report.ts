/** What the sidebar is told of the accounts, for both sides of the wire; times are ISO 8601. */
export interface AccountsReport {
  /** When it was looked at, by the clock of the server. */
  at: string;
  accounts: RunningAccount[];
}

/** An account as it runs. Nodes that count as one account are one. */
export interface RunningAccount {
  /** Of its nodes; the first one speaks for all. */
  ids: string[];
  name: string;
  /** Of all of them, in the same order. */
  names: string[];
  /** Absent: it cannot be used, for this reason. */
  state?: StateReport;
  error?: ErrorReport;
  /** Counts since midnight, or since the start of the process. */
  today?: CountsReport;
  /** When the process started, where that was after midnight. */
  todaySince?: string | undefined;
  /** Why its polls fail, of those that do, and what to do. */
  failures?: { [Kind in PollReport['kind']]?: string };
  /** Who has opted out is not sent to. */
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
    /** Why kept texts do not leave, while that is so. */
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

/** In the order in which they are shown. */
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

/** What an entry is. */
export type EntryStateName = 'kept' | 'uncertain' | 'unhandled';

/** What can be decided about one. */
export type EntryActionName = 'send' | 'markSent' | 'deliver' | 'discard';

/** Part of a list, and how long that is in all. */
export interface EntriesReport {
  entries: EntryReport[];
  total: number;
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/** What became of a decision about all entries of a state. */
export interface DecidedReport {
  done: number;
  /** Those that it could not be done to, such as texts of a node that is not deployed. */
  left: number;
}

/** Part of the list of those who opted out, the latest first. */
export interface OptOutsReport {
  optouts: { msisdn: string; at: string; via: 'message' | 'person' }[];
  /** Of all, or of those that match. */
  total: number;
  next?: string;
}

/** For how many numbers it was a change. */
export interface OptOutChangedReport {
  changed: number;
}

/** What somebody may decide about. */
export interface EntryReport {
  id: string;
  state: EntryStateName;
  at: string;
  /** When it may leave, where that is not yet. */
  dueAt?: string | undefined;
  /** When it has left, while its outcome is awaited. */
  leftAt?: string | undefined;
  node: string;
  to?: readonly string[];
  from?: string;
  body: string;
  /** The key of *Replace by key*. */
  key?: string | undefined;
  error?: ErrorReport;
}

/** Under what editors are told that something has changed. */
export const changedTopic = 'sms-account/changed';

/** The answer of `POST sms-account/same`: which other account nodes that run have the login of a form, and which have another. */
export interface SameLoginReport {
  same: { id: string; name: string; differs?: ConnectionSetting[] }[];
  others: string[];
}

/** What Node-RED shows in a form for a saved password in its stead. */
export const savedPassword = '__PWRD__';
