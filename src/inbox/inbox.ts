import type { Taker } from '../delivery/taker';
import type { SmsError } from '../errors';
import type { Backlog } from '../journal/backlog';
import { timeOf } from '../journal/item-ids';
import type { Journal } from '../journal/journal';
import type { PollEvents } from '../polling/poll-loop';
import { createAccept } from './accept';
import type { Acceptance, Arrival } from './acceptance';
import type { InboxContext } from './context';
import { GivenUp } from './dead-letters';
import type { Channel, Entry, KindOn } from './entry';
import { handOverEntries } from './hand-over';
import { createNotes } from './held-record';
import { createInboxContext, type InboxOptions } from './inbox-context';
import { createInboxKeeper } from './leftovers';
import { createRelease, takeLate } from './release';
import { createKeep, settle } from './settle';

export type { Acceptance, Arrival } from './acceptance';

/** How everything is given to another inbox. */
export interface HandOver {
  /** Nobody is to take what a shared store has any more. */
  isLast?: boolean;
  /** Whether nobody is here who takes it; nobody ever when absent. */
  isWanted?(): boolean;
}

/** What waits in an inbox. */
export interface InboxState {
  undelivered: number;
  /** When the oldest of those came, in ms since 1970. */
  oldestAt?: number;
  /** Given up, and kept for somebody to decide about. */
  setAside: number;
}

/**
 * Takes charge of what the service gave away (§3): keeps each record until every node that it is for has taken it, and
 * recognises what was seen before, whichever way it came.
 *
 * A record is in the store before a node gets it. While the store fails, polled records are delivered all the same,
 * since nobody else has them, and called-back ones are refused, since the service keeps them.
 */
export class Inbox {
  /** What was given up, for somebody to decide about. */
  readonly givenUp: GivenUp;
  readonly #context: InboxContext;
  readonly #onAccepted: NonNullable<InboxOptions['onAccepted']>;

  constructor(options: InboxOptions) {
    this.#context = createInboxContext(options, (entry, attempt) => this.countAttempt(entry, attempt));
    this.#onAccepted = options.onAccepted ?? (() => {});
    options.journal.join('inbox', createInboxKeeper(this.#context));
    this.givenUp = new GivenUp(this.#context, options.onGivenUpFull ?? (() => {}));
  }

  /** Why the store cannot be used now, if so. */
  get failure(): SmsError | undefined {
    return this.#context.journal.failure;
  }

  /** Whether everything is delivered and written. */
  get isSettled(): boolean {
    return this.state.undelivered === 0 && this.givenUp.size === 0 && this.#context.journal.isWritten;
  }

  get state(): InboxState {
    const { undelivered, unread } = this.#context;
    const oldest = [...undelivered.oldest, ...unread.beginnings].sort()[0];
    return {
      undelivered: undelivered.size + unread.size,
      ...(oldest ? { oldestAt: timeOf({ id: oldest }) } : undefined),
      setAside: this.givenUp.size,
    };
  }

  /** Whether nothing would be lost by forgetting this closed inbox. */
  get isDisposable(): boolean {
    return this.#context.journal.isDurable && this.isSettled;
  }

  /** What the store has that is not here yet. */
  get backlog(): Backlog {
    return this.#context.journal.backlog;
  }

  /** See {@link Journal.open}. */
  open(): void {
    this.#context.journal.open();
  }

  /** See {@link Journal.find}. */
  find(): boolean {
    return this.#context.journal.find();
  }

  /** See {@link Journal.ready}. */
  ready(): Promise<void> {
    return this.#context.journal.ready();
  }

  /** See {@link Journal.flush}. */
  flush(): Promise<void> {
    return this.#context.journal.flush();
  }

  /** See {@link Journal.close}. */
  close(): Promise<void> {
    return this.#context.journal.close();
  }

  /** Adds a node to those that get what comes on a channel. What waits for it is given to it soon. */
  attach<C extends Channel>(channel: C, taker: Taker<KindOn<C>>): void {
    this.#context.distribution.attendance.attach(channel, taker);
    this.open();
  }

  /** Takes a node away. What it has not answered waits for it, or for others. */
  detach<C extends Channel>(channel: C, taker: Taker<KindOn<C>>): void {
    this.#context.distribution.attendance.detach(channel, taker);
  }

  /**
   * Keeps what came and gives the new to the nodes it is for. Resolves when it is in the store, in order with `records`.
   *
   * @param polled of what was polled: told when that is where a crash does not reach it, if there is such a place
   * @throws SmsError `SMS_STORE` for a callback when the store cannot keep it, or is closed
   * @throws what a node threw, when everything is kept and the other nodes have it
   */
  async accept(arrival: Arrival, polled: Partial<Pick<PollEvents, 'onHeld'>> = {}): Promise<Acceptance[]> {
    const { kind, via, records } = arrival;
    const { journal } = this.#context;
    const format = () => JSON.stringify({ kind, records });
    const held = via === 'poll' ? journal.hold(format, createNotes(records.length)) : undefined;
    const taking = journal.run(createAccept(this.#context, arrival, { isLeftover: false, held }));
    if (held) polled.onHeld?.();
    const acceptances = await taking;
    this.#onAccepted(kind, acceptances);
    // Whoever polls asks for no more meanwhile, which would all wait in memory.
    const { slicesGiven } = this.#context.distribution;
    if (slicesGiven) await slicesGiven;
    return acceptances;
  }

  /** A node has taken an entry. It is forgotten when no other is owed it. */
  done(entry: Entry, taker: Taker): void {
    const undelivered = this.#context.undelivered.get(entry.id);
    if (!undelivered?.owed.delete(taker.id)) return;
    undelivered.taken++;
    if (undelivered.owed.size === 0) settle(this.#context, undelivered);
  }

  /** A node's flow does not take an entry. It is kept for somebody to decide about. */
  giveUp(entry: Entry, taker: Taker): void {
    const undelivered = this.#context.undelivered.get(entry.id);
    if (!undelivered?.owed.has(taker.id)) return;
    undelivered.isGivenUp = true;
    this.givenUp.add(entry, taker.id);
    this.done(entry, taker);
  }

  /** A node has taken after all what was released: it is known when the service brings it again, or has already. */
  doneLate(id: string): void {
    takeLate(this.#context, id);
  }

  /**
   * Lets go of a called-back entry that the service shall bring again. It counts as new then, but for its attempts.
   */
  release(entry: Entry): Promise<void> {
    const undelivered = this.#context.undelivered.get(entry.id);
    if (!undelivered) return Promise.resolve();
    undelivered.isReleased = true;
    return new Promise((resolve) => this.#context.run(createRelease(this.#context, undelivered, resolve)));
  }

  /** Which attempt it is for a node that has been given an entry. */
  attemptOf(entry: Entry, { id }: Taker): number {
    return this.#context.undelivered.get(entry.id)?.owed.get(id)?.attempt ?? Math.max(1, entry.attempts);
  }

  /** Writes down that an entry is sent into a flow once more. Nodes that make the same attempt count once. */
  countAttempt(entry: Entry, attempt = entry.attempts + 1): void {
    const undelivered = this.#context.undelivered.get(entry.id);
    if (attempt <= entry.attempts || !undelivered) return;
    entry.attempts = attempt;
    undelivered.held?.given(attempt);
    this.#context.run(createKeep(this.#context, [entry]));
  }

  /** Resolves when an entry has been delivered (`true`), or released or left in a store that was closed (`false`). */
  ended(entry: Entry): Promise<boolean> {
    return this.#context.undelivered.ended(entry);
  }

  /** Takes over what other processes leave for the nodes of another inbox from now on; `undefined`: for its own. */
  yieldTo(heir: Inbox | undefined): void {
    this.#context.heir = heir ? heir.#context : undefined;
  }

  /**
   * Gives what is undelivered, here or in the store, to another inbox, and forgets it once that one has it in its store.
   * A shared store keeps what is in it for whoever opens it, unless nobody is to any more (`isLast`). Whoever comes back meanwhile
   * keeps what is not given away yet: it is not wanted any more then.
   */
  async handOver(heir: Inbox, how: HandOver = {}): Promise<void> {
    const { isLast = false, isWanted = () => true } = how;
    await this.ready().catch(() => {});
    await this.flush();
    const keepsOwn = this.#context.journal.isShared && !isLast;
    if (!(await handOverEntries(this.#context, heir.#context, { keepsOwn, isWanted }))) return;
    if (!isWanted()) return;
    await this.givenUp.handOver(heir.givenUp, keepsOwn);
    await this.flush();
  }
}
