import type { SmsError } from '../errors';
import type { InboxState } from '../inbox/inbox';
import type { SendCounts } from '../outbox/counts';
import type { SendState, TextAction, TextEntry } from '../outbox/desk';
import type { PollSummary } from '../polling/endpoint';

/** What an account does and what waits in it. All times are in ms since 1970. */
export interface AccountState {
  /** The endpoints that are polled now. */
  polls: PollSummary[];
  inbox: InboxState;
  sends: SendState;
  /** How many want no more texts, as was known when somebody last looked. */
  consent: { optedOut: number };
  store: StoreState;
  /** Since the process started. */
  counts: Counts;
}

/** The store that the account is kept in. */
export interface StoreState {
  /** `memory`, `disk` or `redis`. */
  kind: string;
  ok: boolean;
  error?: SmsError;
}

/** What came in, in messages. */
export interface ReceiveCounts {
  received: number;
  statuses: number;
  /** What had been received before. */
  duplicates: number;
  redelivered: number;
  setAside: number;
}

/** What became of texts, and what came in. */
export type Counts = Omit<SendCounts, 'add'> & ReceiveCounts;

/** A message or status that a flow did not take. */
export interface AsideEntry {
  id: string;
  state: 'aside';
  /** When it was given up. */
  at: number;
  /** The node whose flow did not take it. */
  node: string;
  to?: readonly string[];
  from?: string;
  /** The text, or the status code. */
  body: string;
  error: { code: string; message: string };
}

/** What somebody may decide about. */
export type AccountEntry = TextEntry | AsideEntry;

/** What an entry is: a text that waits, one whose outcome is unknown, or what a flow did not take. */
export type EntryState = AccountEntry['state'];

/** What can be decided: `send` fits what goes out, `sent` what may have gone out, `deliver` what came in, `discard` all. */
export type EntryAction = TextAction | 'deliver';

/** What became of a decision: the entry is there no more, or the action does not fit its state. */
export type Decision = 'done' | 'gone' | 'unfit';

/** What became of a decision about all entries of a state. */
export interface Decided {
  done: number;
  /** Those that it could not be done to. */
  left: number;
}

/** The oldest entries first, and how many there are in all. */
export interface EntryList {
  entries: AccountEntry[];
  total: number;
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}
