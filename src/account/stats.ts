import type { Clock } from '../clock';
import { Notices, type SmsError } from '../errors';
import type { InboxState, ReceiveCounts } from '../inbox/inbox';
import type { MessageAction, MessageEntry, MessageEntryList, SendState } from '../outbox/admin';
import { Outage } from '../outbox/outage';
import { SendCounts } from '../outbox/send-counts';
import type { PollSummary } from '../polling/endpoint';
import type { WaitingImport } from './import';

/** State of an account. Times are in ms since 1970. */
export interface AccountState {
  /** The endpoints that are polled now. */
  polls: PollSummary[];
  inbox: InboxState;
  sends: SendState;
  /** Number of opted-out numbers when the account last counted them. */
  consent: { optedOut: number };
  store: StoreState;
  /** Counts since the process started. */
  counts: Counts;
}

/** The store of the account. */
export interface StoreState {
  /** `memory`, `disk` or `redis`. */
  kind: string;
  /** Whether the store can be used. */
  ok: boolean;
  /** Why the store fails, or the damage that was found since the process started. */
  error?: SmsError;
  /** The import that waits for its former store, and the reason. */
  former?: WaitingImport;
}

/** Counts of outgoing and incoming messages. */
export type Counts = Omit<SendCounts, 'add'> & ReceiveCounts;

/** A message or status that no flow acknowledged. */
export interface UnhandledEntry {
  id: string;
  state: 'unhandled';
  /** Time at which the record became unhandled, in ms since 1970. */
  at: number;
  /** The node whose flow did not acknowledge the entry. Blank: no node receives it. */
  node: string;
  to?: readonly string[];
  from?: string;
  /** Body of a message, or code of a status. */
  body: string;
  error?: SmsError;
}

/** A message or status about which a user must decide. */
export type AccountEntry = MessageEntry | UnhandledEntry;

/** State of an entry: stored, with an unknown outcome, or unhandled. */
export type EntryState = AccountEntry['state'];

/**
 * Action on an entry: `send` fits outgoing messages, `markSent` unknown outcomes, `deliver` unhandled messages, and
 * `discard` all entries.
 */
export type EntryAction = MessageAction | 'deliver';

/**
 * Result of an action. `gone`: the entry no longer exists. `unfit`: the state of the entry does not allow the action.
 */
export type Decision = 'done' | 'gone' | 'unfit';

/** Result of an action that a user chose for all entries of a state. */
export interface Decided {
  done: number;
  /** Number of entries that the action does not fit. */
  left: number;
}

/** Entries, the oldest first, and the total number. */
export interface EntryList extends Omit<MessageEntryList, 'entries'> {
  entries: AccountEntry[];
}

/** Counters and outages of an account. They remain when the account closes after its last member has left. */
export class Stats {
  readonly sends = new SendCounts();
  readonly outage: Outage;
  readonly #clock: Clock;
  readonly receives: ReceiveCounts = { received: 0, statuses: 0, duplicates: 0, redelivered: 0, unhandled: 0 };
  /** Values of {@link counts} at the last midnight, or zeros if the process started later. */
  #countsAtMidnight = this.counts;
  /** Nodes that received an error about a failing store. */
  readonly storeNotices = new Notices();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.outage = new Outage(clock);
    this.#awaitMidnight();
  }

  get counts(): Counts {
    const { add: _, ...sends } = this.sends;
    return { ...sends, ...this.receives };
  }

  /** Counts since midnight in the time zone of the machine or, if the process started later, since its start. */
  get countsToday(): Counts {
    const { counts } = this;
    for (const [name, count] of Object.entries(this.#countsAtMidnight)) counts[name as keyof Counts] -= count;
    return counts;
  }

  #awaitMidnight(): void {
    const now = this.#clock.now();
    const begin = () => {
      this.#countsAtMidnight = this.counts;
      this.#awaitMidnight();
    };
    // Does not add 24 hours, because a day can have 23 or 25 hours.
    this.#clock.after(new Date(now).setHours(24, 0, 0, 0) - now, begin, true);
  }
}
