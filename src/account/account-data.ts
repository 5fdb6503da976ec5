import type { Clock } from '../clock';
import { mergeOptOuts, optOutPrefix } from '../consent/opt-outs';
import { Inbox, type InboxOptions } from '../inbox/inbox';
import { Journal, type JournalOptions } from '../journal/journal';
import { limitPrefix, mergeLimits } from '../outbox/limits';
import type { OutboxOptions } from '../outbox/options';
import { Outbox } from '../outbox/outbox';
import { mergeStatuses, statusesPrefix } from '../replies/report';
import { handsetPrefix, mergeReferences, mergeRequests, requestPrefix } from '../replies/sent-index';
import type { Store } from '../store/store';
import { type ImportOptions, Imports, importStore, type Merge } from './import';

/** The store of an account, and the options of its journal, inbox and outbox. */
interface AccountDataOptions extends Required<Pick<JournalOptions, 'store' | 'onStore' | 'onSteps' | 'onDamaged'>> {
  storeName: string;
  clock: Clock;
  inbox: Omit<InboxOptions, 'clock' | 'journal' | 'correlator'>;
  outbox: Omit<OutboxOptions, 'clock' | 'journal'>;
  /**
   * Earlier data of the account in the same store, if another store has imported it or is still importing it. This data
   * opens the store only after that import has ended.
   */
  formerData: AccountData | undefined;
  /** Returns whether a deployed account node uses this data. */
  isUsed(): boolean;
}

/** A shared store that has been open for longer than this, in ms, has claimed all items of dead processes. */
const claimedAfterMs = 70_000;

/**
 * The data of an account in one store: an inbox and an outbox on one journal. If a user changes the store or the login,
 * a new object of this class imports the data of the old object.
 */
export class AccountData {
  readonly storeName: string;
  readonly journal: Journal;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly imports: Imports;
  readonly #store: Store;
  readonly #clock: Clock;
  /** Time at which the store was first opened, by {@link Clock.elapsed}. */
  #openedAt = Number.POSITIVE_INFINITY;
  /** The data in another store that is importing or has imported this data. */
  #successor: AccountData | undefined;
  /** Settles when {@link exportTo} has ended. */
  exporting: Promise<void> | undefined;

  constructor({ storeName, store, onStore, onSteps, onDamaged, formerData, ...options }: AccountDataOptions) {
    const clock = withTimeOf(store, options.clock);
    this.storeName = storeName;
    this.#store = store;
    this.#clock = clock;
    const reopen = () => this.journal.reopen();
    this.imports = new Imports({ to: store, clock, merge, isUsed: options.isUsed, reopen });
    const journal = new Journal({
      store,
      clock,
      prepare: async (events) => {
        await formerData?.exporting?.catch(() => {});
        if (formerData) this.#importMemoryOf(formerData);
        await this.imports.finish(events);
        const isIncomplete = this.isImported || this.imports.arePending;
        this.inbox.isIncomplete = isIncomplete;
        if (!isIncomplete) this.inbox.matchRecordsOf(this.inbox);
        this.#openedAt = Math.min(this.#openedAt, clock.elapsed());
      },
      onStore: (error) => {
        onStore(error);
        void this.outbox.registrations.onStore();
      },
      onSteps,
      onDamaged,
    });
    this.journal = journal;
    this.outbox = new Outbox({ ...options.outbox, clock, journal });
    const { replies } = this.outbox;
    this.inbox = new Inbox({
      ...options.inbox,
      clock,
      journal,
      correlator: (event) => replies.correlationOf(event),
    });
  }

  /** Whether another store is importing or has imported this data. If so, nothing new may be stored here. */
  get isImported(): boolean {
    return this.#successor !== undefined;
  }

  /**
   * The inbox that accepts the answers of polls in flight. After the call of {@link exportTo}, this is the inbox of the
   * data that imports this data.
   */
  get receiver(): Inbox {
    return this.#successor?.receiver ?? this.inbox;
  }

  /**
   * Whether the process can drop this object without losing data. With a memory store, for example, the opted-out
   * numbers would be lost.
   */
  get isSettled(): boolean {
    return this.isImported || (this.journal.isDurable && this.inbox.isSettled && this.outbox.isSettled);
  }

  /** Moves everything into the data of another store, and closes this data. */
  exportTo(successor: AccountData, options: Omit<ImportOptions, 'from' | 'hasAllItems'>): Promise<void> {
    this.#successor = successor;
    this.inbox.isIncomplete = true;
    this.exporting = this.#export(successor, options).catch((error: unknown) => {
      this.#successor = undefined;
      throw error;
    });
    return this.exporting;
  }

  async #export(successor: AccountData, options: Omit<ImportOptions, 'from' | 'hasAllItems'>): Promise<void> {
    await this.imports.stop();
    await this.journal.flush();
    // Writes the steps that were not written while the store failed. Also removes messages that the store wrote
    // although their commit failed.
    try {
      if (!this.journal.isWritten || this.outbox.hasRefused) await this.journal.ready();
    } finally {
      // Closes the store even if it failed. Otherwise, the journal would open it again, perhaps while other data uses
      // the same store.
      await this.close();
    }
    const hasAllItems = this.#clock.elapsed() - this.#openedAt > claimedAfterMs;
    await importStore({ ...options, from: this.#store, hasAllItems });
    successor.#importMemoryOf(this);
  }

  /** Imports the inputs of nodes and the unmatched records, because the former store does not contain them. */
  #importMemoryOf({ outbox, inbox }: AccountData): void {
    this.outbox.importInputs(outbox);
    this.inbox.matchRecordsOf(inbox);
  }

  /** Called when an account node begins to use this data. */
  begin(): void {
    this.journal.begin();
    this.imports.begin();
  }

  /** @param isNeeded returns true if an account node has begun to use this data again; the store then stays open */
  async close(isNeeded = () => false): Promise<void> {
    // Stops the time limit after which a record without a receiving node becomes unhandled. While no account node is
    // deployed, the records stay in the store.
    this.inbox.subscribers.stopWaiting();
    // This wait can take seconds, because a call of the former store cannot be aborted.
    await this.imports.stop();
    if (!isNeeded()) await this.journal.close();
  }
}

/** Returns a clock with the time of the store's server, because the clocks of the instances can differ. */
function withTimeOf(store: Store, clock: Clock): Clock {
  if (!store.now) return clock;
  return {
    now: () => store.now?.() ?? clock.now(),
    elapsed: () => clock.elapsed(),
    after: (...delay) => clock.after(...delay),
    nextTurn: (callback) => clock.nextTurn(callback),
    random: () => clock.random(),
  };
}

/**
 * Merges the values that two stores have under one key. Joins opted-out numbers, counts of limits, statuses, reply
 * requests and the messages of a handset. For any other key, keeps the later value.
 */
const merge: Merge = (key, ownValue, formerValue) => {
  if (key.startsWith(optOutPrefix)) return mergeOptOuts(ownValue, formerValue);
  if (key.startsWith(limitPrefix)) return mergeLimits(ownValue, formerValue);
  if (key.startsWith(statusesPrefix)) return mergeStatuses(ownValue, formerValue);
  if (key.startsWith(requestPrefix)) return mergeRequests(ownValue, formerValue);
  if (key.startsWith(handsetPrefix)) return mergeReferences(ownValue, formerValue);
  // If the times are equal, keeps the former value, because the account used the former store last.
  return formerValue.at >= ownValue.at ? formerValue : ownValue;
};
