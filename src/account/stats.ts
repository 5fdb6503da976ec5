import type { Clock } from '../clock';
import { type SmsError, Told } from '../errors';
import type { InboxState, ReceiveCounts } from '../inbox/inbox';
import type { SendState, TextAction, TextEntry, TextEntryList } from '../outbox/admin';
import { Outage } from '../outbox/outage';
import { SendCounts } from '../outbox/text';
import type { PollSummary } from '../polling/endpoint';
import type { WaitingImport } from './import';

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
  /** Whether it can be used. */
  ok: boolean;
  /** Why not; or what of it was found damaged since the process started. */
  error?: SmsError;
  /** The import that waits, and why. */
  former?: WaitingImport;
}

/** What became of texts, and what came in. */
export type Counts = Omit<SendCounts, 'add'> & ReceiveCounts;

/** A message or status that a flow did not take. */
export interface UnhandledEntry {
  id: string;
  state: 'unhandled';
  /** When it was given up. */
  at: number;
  /** The node whose flow did not take it; blank: no node takes it. */
  node: string;
  to?: readonly string[];
  from?: string;
  /** The text, or the status code. */
  body: string;
  error?: SmsError;
}

/** What somebody may decide about. */
export type AccountEntry = TextEntry | UnhandledEntry;

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
export interface EntryList extends Omit<TextEntryList, 'entries'> {
  entries: AccountEntry[];
}

/**
 * Counts what an account does, and knows of its outages, and who knows that the store fails. It
 * outlives the account, which goes with the last of its members.
 */
export class Stats {
  readonly sends = new SendCounts();
  readonly outage: Outage;
  readonly #clock: Clock;
  readonly receives: ReceiveCounts = { received: 0, statuses: 0, duplicates: 0, redelivered: 0, unhandled: 0 };
  /** What had been counted when this day began. */
  #before = this.counts;
  /** Nodes that know that the store fails. */
  readonly toldOfStore = new Told();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.outage = new Outage(clock);
    this.#awaitMidnight();
  }

  get counts(): Counts {
    const { add: _, ...sends } = this.sends;
    return { ...sends, ...this.receives };
  }

  /** What was counted since the last midnight of the machine's time zone, or since the start. */
  get countsToday(): Counts {
    const { counts } = this;
    for (const [name, before] of Object.entries(this.#before)) counts[name as keyof Counts] -= before;
    return counts;
  }

  #awaitMidnight(): void {
    const now = this.#clock.now();
    const begin = () => {
      this.#before = this.counts;
      this.#awaitMidnight();
    };
    // A day may have 23 or 25 hours.
    this.#clock.after(new Date(now).setHours(24, 0, 0, 0) - now, begin, true);
  }
}
