import { nextTurn, type Timer } from '../clock';
import { type InboxSubscriber, Subscribers } from '../delivery/subscribers';
import { isSmsError } from '../errors';
import type { Journal, Step, WhileFailing } from '../journal/journal';
import { createChange, type HeldItem, type Participant } from '../journal/step';
import type { Kind, RecordsOfKind } from '../model';
import type { PollEvents } from '../polling/poll-loop';
import { type Item, keepItem, parseRememberedValue, timeOf } from '../store/store';
import { type Acceptance, type Arrival, createAccept, giveTogether, type InboxContext } from './accept';
import { currentEntry, dropEntry, type InboxParts, keepEntry, passOver, settle } from './context';
import { DeadLetters } from './dead-letters';
import { type Channel, Entries, type Entry, isEntry, isRecordsOfKind, type KindOn, Pending } from './entries';
import { forget, identify, judge, mergeSeen, movedSeen } from './identity';
import { createLate, createRelease } from './release';

export type { Acceptance, Arrival } from './accept';

/** What the inbox needs. */
export interface InboxOptions extends Pick<InboxParts, 'journal' | 'clock' | 'dedupe' | 'dedupeMs' | 'correlator'> {
  /** For whom it takes over what other processes leave, until it is handed over; `undefined`: for its own nodes. */
  replacedBy(): Inbox | undefined;
  /** A node threw as it was given something. */
  onFault(error: unknown): void;
  /** Counted is what came, and what became of it. */
  counts: ReceiveCounts;
  /** What was given up had to go before its time, since there is too much of it. */
  onDeadLettersFull(): void;
  /** Whether a kind is polled although no node may take it. */
  isPolled(kind: Kind): boolean;
  /** No node takes what is polled of a kind: it is set aside from now on. */
  onUntaken(kind: Kind): void;
}

/** What came in, in messages. */
export interface ReceiveCounts {
  received: number;
  statuses: number;
  /** What had been received before. */
  duplicates: number;
  redelivered: number;
  unhandled: number;
}

/** A reply or a status is delivered without what it answers when the store has not answered for so long. */
const longestMatchWaitMs = 60_000;

/** So many records are taken in one step. */
const largestPiece = 500;

/** What waits in an inbox. */
export interface InboxState {
  undelivered: number;
  /** When the oldest of those came, in ms since 1970. */
  oldestAt?: number;
  /** Given up, and kept for somebody to decide about. */
  unhandled: number;
}

/**
 * Takes charge of what the service gave away (§3): keeps each record until every node that it is for has taken it, and
 * recognises what was seen before, whichever way it came.
 *
 * A record is in the store before a node gets it. While the store fails, polled records are delivered all the same,
 * since nobody else has them, and called-back ones are refused, since the service keeps them.
 */
export class Inbox {
  /** Where it keeps. */
  readonly journal: Journal;
  readonly counts: ReceiveCounts;
  /** What was given up, for somebody to decide about. */
  readonly deadLetters: DeadLetters;
  readonly #context: InboxContext;

  constructor(options: InboxOptions) {
    this.journal = options.journal;
    this.counts = options.counts;
    this.#context = this.#createContext(options);
    this.deadLetters = this.#context.deadLetters;
    this.journal.join('inbox', createInboxParticipant(this.#context));
    this.journal.join('deadLetter', this.deadLetters.createParticipant());
    const isReadable = (item: Item) => parseRedone((item as HeldItem).text) !== undefined;
    this.journal.join('held', { found: () => {}, wanted: () => [], isReadable });
  }

  /** Whether everything is delivered and written. */
  get isSettled(): boolean {
    return this.#context.entries.size === 0 && this.deadLetters.size === 0 && this.journal.isWritten;
  }

  get state(): InboxState {
    const { size, oldest } = this.#context.entries;
    return {
      undelivered: size,
      ...(oldest ? { oldestAt: timeOf({ id: oldest }) } : undefined),
      unhandled: this.deadLetters.size,
    };
  }

  /** Adds a node to those that get what comes on a channel. What waits for it is given to it soon. */
  attach<C extends Channel>(channel: C, subscriber: InboxSubscriber<KindOn<C>>): void {
    this.#context.subscribers.attach(channel, subscriber);
    this.journal.open();
    this.deadLetters.giveUntaken();
  }

  /** The service has no more of a kind for now. What was found of it before it was polled goes to who is here by now, or is set aside. */
  drained(kind: Kind): void {
    const { subscribers } = this.#context;
    if (!subscribers.expects(kind)) subscribers.giveAll();
  }

  /** Takes a node away. What it has not answered waits for it, or for others. */
  detach<C extends Channel>(channel: C, subscriber: InboxSubscriber<KindOn<C>>): void {
    this.#context.subscribers.detach(channel, subscriber);
  }

  /**
   * Keeps what came and gives the new to the nodes it is for. Resolves when it is in the store, in order with `records`.
   *
   * @param onHeld see {@link PollEvents}
   * @throws SmsError `SMS_STORE` for a callback when the store cannot keep it, or is closed
   */
  accept(arrival: Arrival, { onHeld }: Pick<Partial<PollEvents>, 'onHeld'> = {}): Promise<Acceptance[]> {
    const { via, records } = arrival;
    if (via === 'callback' || records.length <= largestPiece) return this.#accept(arrival, onHeld);
    const accepting = this.#acceptInPieces(arrival);
    const end = () => {};
    // All of it is where a kill does not reach it before the first piece is taken, and until the last has been.
    this.#context.run({ ...createChange(end), ...redone(arrival, end), after: accepting.then(end, end) });
    return accepting;
  }

  /**
   * Takes what would stall the event loop a piece at a time, and gives it together: a node may want what the outbox has brought as one
   * list. Whoever polls asks for no more meanwhile, which would come before the rest.
   */
  async #acceptInPieces(arrival: Arrival): Promise<Acceptance[]> {
    const { clock, subscribers } = this.#context;
    const acceptances: Acceptance[] = [];
    const gathered: Pending[] = [];
    for (let start = 0; start < arrival.records.length; start += largestPiece) {
      await nextTurn(clock);
      const records = arrival.records.slice(start, start + largestPiece);
      acceptances.push(...(await this.#accept({ ...arrival, records, gathered } as Arrival)));
    }
    giveTogether(this.#context, gathered, arrival);
    await subscribers.given;
    return acceptances;
  }

  async #accept(arrival: Arrival, onHeld?: PollEvents['onHeld']): Promise<Acceptance[]> {
    const { kind, via, records } = arrival;
    const { journal, subscribers } = this.#context;
    const step = createAccept(this.#context, arrival);
    const isBack = step.after !== undefined;
    const held = redone(arrival, () => onHeld?.(isBack));
    // The service has forgotten what it was polled for: a kill must not reach it before it is committed.
    const accepting = via === 'poll' ? this.#runWaiting({ ...step, ...held }) : journal.run(step);
    // In memory it is as safe as it will ever be.
    if (isBack && !journal.isDurable) onHeld?.(true);
    const acceptances = await accepting;
    const fresh = acceptances.filter(({ outcome }) => outcome === 'new').length;
    this.counts.duplicates += acceptances.length - fresh;
    if (kind === 'incoming') this.counts.received += fresh;
    if (kind === 'status') this.counts.statuses += fresh;
    // Whoever polls asks for no more meanwhile, which would all wait in memory.
    if (via === 'poll' && records.length > 1) await subscribers.given;
    return acceptances;
  }

  /** A node has taken an entry. It is forgotten when no other is owed it. */
  done(entry: Entry, subscriber: InboxSubscriber): void {
    const pending = this.#context.entries.get(entry.id);
    if (!pending?.pendingFor.delete(subscriber.id)) return;
    pending.taken++;
    if (pending.pendingFor.size === 0) settle(this.#context, pending);
  }

  /** A node's flow does not take an entry. It is kept for somebody to decide about. */
  giveUp(entry: Entry, subscriber: InboxSubscriber): void {
    if (!this.#context.entries.get(entry.id)?.pendingFor.has(subscriber.id)) return;
    this.counts.unhandled++;
    this.deadLetters.add(entry, subscriber.id);
    this.done(entry, subscriber);
  }

  /**
   * Lets go of a called-back entry that the service shall bring again. It counts as new then, but for its attempts.
   */
  release(entry: Entry): void {
    const pending = this.#context.entries.get(entry.id);
    if (!pending) return;
    pending.isManuallyResent = true;
    this.#context.run(createRelease(this.#context, pending));
  }

  /** A node has taken after all what was released. */
  doneLate(id: string): void {
    const identity = this.#context.entries.released.get(id);
    if (identity) this.#context.run(createLate(this.#context, identity));
  }

  /** Writes down that an entry is sent into the flow of a node for one time more than any before. */
  countAttempt(entry: Entry, attempt: number, node: string): void {
    const { id } = entry;
    const { entries, run } = this.#context;
    const pending = entries.get(id);
    if (!pending) return;
    const others = Object.fromEntries([...pending.pendingFor.keys()].map((other) => [other, entry.attempts]));
    entry.attemptsOf = { ...others, ...entry.attemptsOf, [node]: attempt };
    entry.attempts = Math.max(entry.attempts, attempt);
    run(
      createChange((changes) => {
        // Unless it is done with by then.
        if (!entries.has(id) || changes.drop.has(id)) return;
        const counted = { ...currentEntry(entry, changes), attempts: entry.attempts, attemptsOf: entry.attemptsOf };
        keepItem(changes, counted);
      }),
    );
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#context.entries.ended(entry);
  }

  /** What may answer something waits for a store that fails, so that it can be matched, but not for long. */
  #runWaiting<Result>(step: Step<Result> & { mayAnswer: boolean }): Promise<Result> {
    const { journal, clock } = this.#context;
    if (!step.mayAnswer) return journal.run(step);
    let timer: Timer | undefined;
    const overdue = () => {
      waiting.whileFailing = 'apply';
      journal.takeOverdue();
    };
    const waiting = {
      ...step,
      whileFailing: 'postpone' as WhileFailing,
      postponed() {
        timer ??= clock.after(longestMatchWaitMs, overdue, true);
      },
    };
    return journal.run(waiting).finally(() => timer?.cancel());
  }

  #createContext(options: InboxOptions): InboxContext {
    const { journal, clock, onFault, dedupe, dedupeMs, correlator, isPolled, onUntaken, onDeadLettersFull } = options;
    const replacedBy = () => {
      const other = options.replacedBy();
      return other ? other.#context : undefined;
    };
    const entries = new Entries();
    const run: InboxParts['run'] = (step, take = (one) => journal.run(one)) => {
      take(step).catch((error: unknown) => {
        // That the store fails it tells by itself.
        if (!isSmsError(error, 'SMS_STORE')) onFault(error);
      });
    };
    const events = {
      onTaken: (taken: Pending) => settle(this.#context, taken),
      onPassedOver: (passedOver: Pending) => {
        const { entry } = passedOver;
        if (!entry.address) return passOver(this.#context, passedOver);
        this.deadLetters.add(entry, entry.address.node);
        settle(this.#context, passedOver);
      },
      onStranded: (stranded: Pending) => this.release(stranded.entry),
      isPolled,
      onUntaken: (untaken: Pending) => {
        this.counts.unhandled++;
        if (this.deadLetters.addUntaken(untaken.entry)) onUntaken(untaken.entry.kind);
        settle(this.#context, untaken);
      },
      onFault,
    };
    const subscribers = new Subscribers(entries, events, clock);
    const parts = { journal, clock, entries, subscribers, replacedBy, correlator, dedupe, dedupeMs, run };
    return Object.assign(parts, { deadLetters: new DeadLetters(parts, onDeadLettersFull) });
  }
}

/** Takes charge of what an earlier process left, of what a dead one held, and lets go of what the store keeps. */
function createInboxParticipant(context: InboxContext): Participant {
  const { entries, subscribers } = context;
  return {
    wanted: () => wantedBy(context),
    isReadable: isEntry,
    found(items) {
      for (const entry of items) {
        if (isEntry(entry) && !entries.has(entry.id)) entries.set(entry.id, new Pending(entry, identify(entry)));
      }
      if (items.length > 0) subscribers.giveAll();
    },
    redo(text, run) {
      const polled = parseRedone(text);
      if (!polled) throw new TypeError('not what was polled');
      context.run(createAccept(context, { ...polled, via: 'poll', wasHeld: true }), run);
      return true;
    },
    merge: mergeSeen,
    itemOf: (id) => entries.get(id)?.entry,
    forget: (id) => entries.letGo(id),
    letGo() {
      for (const id of entries.keys()) entries.letGo(id);
    },
    kept: () => [...entries.values()].map(({ entry }) => entry),
    values: movedSeen,
    moves(item, isHere, look, changes) {
      const entry = item as Entry;
      const identity = identify(entry);
      const isCalled = entry.channel === 'callback';
      if (isHere) {
        judge(context, { identity, via: isCalled ? 'callback' : 'poll' }, look, changes);
        keepEntry(context, entry, identity, changes);
      } else {
        dropEntry(context, entry, identity, changes);
        // Should the other let go of it, and this login come back, the service brings it here.
        if (isCalled && !entry.polledCopy) forget(identity, look, changes);
      }
    },
  };
}

/** How what was polled is taken in by a later process, or by another of those who poll its kind: {@link parseRedone} reads it. */
function redone({ kind, records }: Arrival, onWritten: () => void) {
  const redo = () => JSON.stringify({ kind, records });
  return { redo, redoneFor: [kind], onWritten };
}

function parseRedone(text: string): RecordsOfKind | undefined {
  return parseRememberedValue({ value: text }, isRecordsOfKind);
}

/** Names of those whom an inbox can give more to that others leave, as in `Item.subscribers`. */
function wantedBy({ replacedBy, subscribers }: InboxParts): readonly string[] {
  const other = replacedBy();
  return other ? wantedBy(other) : subscribers.wanted;
}
