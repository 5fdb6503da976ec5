import { nextTurn } from '../clock';
import { type InboxSubscriber, Subscribers } from '../delivery/subscribers';
import { isSmsError, SmsError } from '../errors';
import type { Journal, Step } from '../journal/journal';
import { createChange, type Participant } from '../journal/step';
import type { Kind, RecordsOfKind } from '../model';
import { type Page, type PageQuery, pageOf } from '../page';
import type { PollEvents } from '../polling/poll-loop';
import { dropItem, keepItem, latest, type PendingWrite, parseRememberedValue, timeOf } from '../store/store';
import {
  type Arrival,
  acceptRecords,
  distributeGroup,
  holdBack,
  type InboxContext,
  leaveOut,
  matchLate,
} from './accept';
import type { InboxParts } from './context';
import { DeadLetters } from './dead-letters';
import {
  type Channel,
  type Entries,
  type Entry,
  isEntry,
  isRecordsOfKind,
  type KindOn,
  oldestOf,
  Pending,
} from './entries';
import { mergeSeen, type Verdict } from './identity';

export type { Arrival } from './accept';

/** Dependencies of an {@link Inbox}. */
export interface InboxOptions
  extends Omit<InboxParts, 'entries' | 'subscribers' | 'isIncomplete' | 'unmatchedRecords' | 'run'> {
  /** Counters of received records. */
  counts: ReceiveCounts;
  /** Called if the oldest unhandled record was dropped, because there are too many. */
  onDeadLettersFull(): void;
  /** Returns whether the account polls a kind, even if no node receives it. */
  isPolled(kind: Kind): boolean;
  /** Called when the first record of a kind becomes unhandled because no node receives this kind. */
  onUnreceived(kind: Kind): void;
}

/** Counts of records. */
export interface ReceiveCounts {
  received: number;
  statuses: number;
  /** Records that were received before. */
  duplicates: number;
  redelivered: number;
  unhandled: number;
}

/** Maximum number of undelivered entries. If it is reached, further callbacks are refused. */
export const maxWaitingForCallback = 20_000;

/** Maximum number of records in one step of the journal. */
const maxPieceSize = 500;

/** Counts of waiting records. */
export interface InboxState {
  undelivered: number;
  /** When the oldest undelivered record arrived, in ms since 1970. */
  oldestAt?: number;
  /** Number of records that no flow acknowledged, and that wait for a user's decision. */
  unhandled: number;
}

/**
 * Keeps each received record until every node that receives it has acknowledged it. Recognises duplicates.
 *
 * A record is stored before a node gets it. If the store fails, polled records are delivered without being stored,
 * because the service does not return them again. Callbacks are refused, because the service repeats them.
 */
export class Inbox {
  readonly journal: Journal;
  readonly counts: ReceiveCounts;
  /** The unhandled records. */
  readonly deadLetters: DeadLetters;
  readonly subscribers: Subscribers;
  readonly #context: InboxContext;

  constructor(options: InboxOptions) {
    this.journal = options.journal;
    this.counts = options.counts;
    this.#context = this.#createContext(options);
    this.deadLetters = this.#context.deadLetters;
    this.subscribers = this.#context.subscribers;
    this.journal.join('inbox', createInboxParticipant(this.#context));
    this.journal.join('deadLetter', this.deadLetters.createParticipant());
  }

  /** Whether no record is undelivered, unmatched or unhandled, and the journal has written everything. */
  get isSettled(): boolean {
    const { entries, unmatchedRecords } = this.#context;
    return entries.size + unmatchedRecords.length + this.deadLetters.size === 0 && this.journal.isWritten;
  }

  get state(): InboxState {
    const { entries } = this.#context;
    const oldest = oldestOf(entries);
    return {
      undelivered: entries.size,
      ...(oldest ? { oldestAt: timeOf({ id: oldest }) } : undefined),
      unhandled: this.deadLetters.size,
    };
  }

  /** Returns a page of the undelivered entries, the oldest first. */
  page(query: PageQuery<Pending>): Page<Pending> {
    return pageOf(this.#context.entries.values(), ({ entry }) => entry.id, query);
  }

  /** Adds a node to a channel. The node receives waiting entries in the next turn of the event loop. */
  attach<C extends Channel>(channel: C, subscriber: InboxSubscriber<KindOn<C>>): void {
    this.subscribers.attach(channel, subscriber);
    this.journal.open();
    this.deadLetters.deliverUnreceived();
  }

  /**
   * Removes a node from a channel. Entries that the node has not acknowledged wait for the same node, or for other
   * nodes.
   */
  detach<C extends Channel>(channel: C, subscriber: InboxSubscriber<KindOn<C>>): void {
    this.subscribers.detach(channel, subscriber);
  }

  /**
   * Stores records and delivers the new ones to their nodes. Resolves when they are stored, with verdicts in the order
   * of `records`.
   *
   * @param onSaved called when the polled answer is saved (see {@link Journal.saveAhead}), before its records are
   *   stored; a crash can then no longer lose the answer; never called for a callback, or if saving fails
   * @throws SmsError for a callback: `SMS_STORE` if the store cannot keep it, or is closed; `SMS_BUSY` if too many
   *   entries wait
   */
  async accept(arrival: Arrival, { onSaved }: Pick<Partial<PollEvents>, 'onSaved'> = {}): Promise<Verdict[]> {
    const { kind, via, records } = arrival;
    const { journal, subscribers } = this;
    if (via === 'callback') {
      const limit = maxWaitingForCallback;
      if (this.#context.entries.size >= limit) throw new SmsError('busyCallbacks', { params: { limit } });
      return this.#acceptPiece(arrival);
    }
    // Saves the answer, because a crash during the commit must not lose it: the service does not return a polled record
    // again.
    const savedAnswer = journal.saveAhead(JSON.stringify({ kind, records }));
    if (savedAnswer) onSaved?.();
    const verdicts =
      records.length <= maxPieceSize
        ? await this.#acceptPiece({ ...arrival, savedAnswer })
        : await this.#acceptInPieces({ ...arrival, savedAnswer });
    // If the answer has several records, waits until nodes have received them. Otherwise, further polls could fill the
    // memory.
    if (records.length > 1) await subscribers.whenDistributed;
    return verdicts;
  }

  /**
   * Stores a large answer in several steps, so that it does not block the event loop. Delivers all records together at
   * the end, because a node might want outgoing messages as one list.
   */
  async #acceptInPieces(arrival: Arrival): Promise<Verdict[]> {
    const verdicts: Verdict[] = [];
    const collectedEntries: Pending[] = [];
    for (let start = 0; start < arrival.records.length; start += maxPieceSize) {
      await nextTurn(this.#context.clock);
      const records = arrival.records.slice(start, start + maxPieceSize);
      const savedAnswer = start + maxPieceSize >= arrival.records.length ? arrival.savedAnswer : undefined;
      verdicts.push(...(await this.#acceptPiece({ ...arrival, records, collectedEntries, savedAnswer } as Arrival)));
    }
    distributeGroup(this.#context, collectedEntries, arrival);
    return verdicts;
  }

  async #acceptPiece(arrival: Arrival): Promise<Verdict[]> {
    const { kind } = arrival;
    const verdicts = await acceptRecords(this.#context, arrival);
    const newCount = verdicts.filter((verdict) => verdict === 'new').length;
    this.counts.duplicates += verdicts.length - newCount;
    if (kind === 'incoming') this.counts.received += newCount;
    if (kind === 'status') this.counts.statuses += newCount;
    return verdicts;
  }

  /** True until a pending import has ended, see {@link InboxParts.isIncomplete}. */
  set isIncomplete(isIncomplete: boolean) {
    this.#context.isIncomplete = isIncomplete;
  }

  /**
   * Finds the sent messages that the unmatched records of `inbox` answer. `inbox` is this inbox, or the inbox of the
   * former login or store. Called after an import, and when the store opens without a pending import.
   */
  matchRecordsOf(inbox: Inbox): void {
    matchLate(this.#context, inbox.#context.unmatchedRecords.splice(0));
  }

  /** Notes that a node has acknowledged an entry. When every node has acknowledged the entry, the inbox drops it. */
  acknowledge(entry: Entry, subscriber: InboxSubscriber): void {
    const pending = this.#context.entries.get(entry.id);
    if (!pending?.pendingFor.delete(subscriber.id)) return;
    pending.acknowledgements++;
    if (pending.pendingFor.size === 0) dropEntry(this.#context, entry.id);
  }

  /** Makes an entry unhandled, because the flow of a node did not acknowledge it. */
  makeUnhandled(entry: Entry, subscriber: InboxSubscriber): void {
    if (!this.#context.entries.get(entry.id)?.pendingFor.has(subscriber.id)) return;
    this.counts.unhandled++;
    this.deadLetters.add(entry, subscriber.id);
    this.acknowledge(entry, subscriber);
  }

  /** Stores the number of the current attempt to deliver an entry to a node. */
  countAttempt(entry: Entry, attempt: number, node: string): void {
    const { id } = entry;
    const { entries, run } = this.#context;
    const pending = entries.get(id);
    if (!pending) return;
    const initialAttempts = Object.fromEntries([...pending.pendingFor.keys()].map((other) => [other, entry.attempts]));
    entry.attemptsOf = { ...initialAttempts, ...entry.attemptsOf, [node]: attempt };
    entry.attempts = Math.max(entry.attempts, attempt);
    run(
      createChange((changes) => {
        // Does nothing if every node has acknowledged the entry in the meantime.
        if (!entries.has(id) || changes.drop.has(id)) return;
        const updatedEntry = { ...latest(entry, changes), attempts: entry.attempts, attemptsOf: entry.attemptsOf };
        keepItem(changes, updatedEntry);
      }),
    );
  }

  #createContext(options: InboxOptions): InboxContext {
    const { journal, clock, onFault, isPolled, onUnreceived, onDeadLettersFull } = options;
    const entries = new Map<string, Pending>();
    const run: InboxParts['run'] = (step) => {
      journal.run(step).catch((error: unknown) => {
        // Ignores failures of the store, because the journal itself reports them.
        if (!isSmsError(error, 'SMS_STORE')) onFault(error);
      });
    };
    const events = {
      onFirstAttempts: (pendings: readonly Pending[]) => journal.run(createFirstAttempts(entries, pendings)),
      onAcknowledged: ({ entry: { id } }: Pending) => dropEntry(this.#context, id),
      onUnwanted: (pending: Pending) => {
        const { entry } = pending;
        if (!entry.address) return leaveOut(this.#context, pending);
        this.deadLetters.add(entry, entry.address.node);
        dropEntry(this.#context, entry.id);
      },
      isPolled,
      onUnreceived: (pending: Pending) => {
        this.counts.unhandled++;
        if (this.deadLetters.addUnreceived(pending.entry)) onUnreceived(pending.entry.kind);
        dropEntry(this.#context, pending.entry.id);
      },
      onFault,
    };
    const subscribers = new Subscribers(entries, events, clock);
    const parts = { ...options, entries, subscribers, isIncomplete: false, unmatchedRecords: [], run };
    return { ...parts, deadLetters: new DeadLetters(parts, onDeadLettersFull) };
  }
}

/**
 * Drops an entry that every node has acknowledged. The change needs no flush: if it is lost, the entry is only
 * delivered again.
 */
function dropEntry({ entries, run }: InboxParts, id: string): void {
  entries.delete(id);
  run(createChange((changes) => dropItem(changes, id, 'inbox')));
}

/**
 * Creates the step that counts the first delivery attempt of entries. The step is written before the nodes receive
 * them.
 */
function createFirstAttempts(entries: Entries, pendings: readonly Pending[]): Step<void> {
  return createChange(
    (changes) => {
      for (const { entry } of pendings) {
        if (entries.has(entry.id) && !changes.drop.has(entry.id)) {
          keepItem(changes, { ...latest(entry, changes), attempts: 1 });
        }
      }
    },
    () => {
      for (const pending of pendings) {
        pending.entry.attempts = 1;
        // Removes the entry from its group, because its nodes might already have received the other entries of the
        // group.
        if (!pending.isNew) pending.together = undefined;
        pending.isNew = true;
      }
    },
  );
}

/** Resumes the entries of an earlier process, and claims the entries of a dead process. */
function createInboxParticipant(context: InboxContext): Participant {
  const { entries, subscribers, run } = context;
  const replay = (records: RecordsOfKind, savedAnswer: PendingWrite) => {
    acceptRecords(context, { ...records, via: 'poll', savedAnswer, isRecovered: true }).catch(context.onFault);
  };
  return {
    wantedNames: () => subscribers.wantedNames,
    isReadable: (item) => isEntry(item) || isRecordsOfKind(item),
    receiveItems(items) {
      for (const entry of items) {
        const { id } = entry;
        if (isRecordsOfKind(entry)) {
          replay(entry, { remove: () => dropEntry(context, id) });
          continue;
        }
        if (!isEntry(entry) || (entries.has(id) && !entry.isHeldBack)) continue;
        const pending = entries.get(id) ?? new Pending(entry);
        entries.set(id, pending);
        // Runs in a step, because a step runs only after all stored messages were read: the entry might answer one of
        // them.
        const hold = () => entries.get(id) === pending && holdBack(context, pending);
        if (pending.entry.isHeldBack) run({ whileFailing: 'apply', decide: () => hold });
      }
      if (items.length > 0) subscribers.onStoreOpened();
    },
    replay(write) {
      const records = parseRememberedValue({ value: write.text }, isRecordsOfKind);
      if (records) replay(records, write);
      return records !== undefined;
    },
    merge: (key, versions) => mergeSeen(key, versions),
    itemOf: (id) => entries.get(id)?.entry,
    forget: (id) => void entries.delete(id),
    releaseAll: () => entries.clear(),
  };
}
