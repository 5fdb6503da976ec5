import { wait } from '../clock';
import { Correlation } from '../questions/correlation';
import type { Askers } from '../questions/questions';
import { Remembrance } from '../questions/sent-index';
import { type Desk, nothingSent, type SendState } from './desk';
import { LedgerKeeper } from './ledger-keeper';
import type { Outlet, SendingNode } from './outlet';
import { type SenderOptions, SendingRooms } from './rooms';

/** It may take for ever where a store fails. */
const longestHandingMs = 10_000;

/** How everything is given to another sender. */
export interface HandOver {
  /** Nobody is to take what a shared store has any more. */
  isLast: boolean;
  /** What is remembered stays there as well as it is given: others may go on with it. */
  keepsMemory?: boolean;
  /** Whether nobody is here who sends it; nobody ever when absent. */
  isWanted?(): boolean;
}

/**
 * The sending side of an account: takes texts in, has them sent as their options say, clears up unknown outcomes, waits
 * for replies, and tells each node what became of its texts. What has to outlive the process is in the {@link Ledger}.
 *
 * Many an account only receives: the rooms are made when a node begins to send, or something of one is found in the store.
 */
export class Sender {
  /** What records that come in answer. */
  readonly correlation: Correlation;
  readonly #options: SenderOptions;
  readonly #remembrance: Remembrance;
  readonly #keeper: LedgerKeeper;
  #rooms: SendingRooms | undefined;
  #isClosed = false;
  #expected: Promise<void> | undefined;

  constructor(options: SenderOptions) {
    const { journal, clock } = options;
    const now = () => clock.now();
    const rooms = () => this.#rooms;
    const remembrance = new Remembrance(journal.isShared, clock);
    this.#options = options;
    this.#remembrance = remembrance;
    this.#keeper = new LedgerKeeper({ journal, remembrance, rooms, openRooms: () => this.#opened });
    this.correlation = new Correlation({ remembrance, rooms, isShared: journal.isShared, now });
  }

  /** What goes on here, and what somebody may do about it. */
  get desk(): Desk {
    return this.#opened.desk;
  }

  /** See {@link Desk.state}. */
  get state(): SendState {
    return this.#rooms?.desk.state ?? nothingSent;
  }

  /** How many kept texts wait: they count for the queue's limit. */
  get keptWaiting(): number {
    return this.#rooms?.keptWaiting ?? 0;
  }

  /** Quiet hours are others now. */
  quietHoursChanged(): void {
    this.#rooms?.quietHoursChanged();
  }

  /** Whether nothing would be lost by forgetting it once its store is closed. */
  get isSettled(): boolean {
    return this.#rooms?.ledger.isSettled ?? true;
  }

  /** Whether messages of the flow are here, as they came, whose texts or questions are open: a store has only what can be written of them. */
  get hasMessages(): boolean {
    return this.#rooms?.deliveries.hasOrigins ?? false;
  }

  /** A node begins to send. Its texts from before go on. */
  attach(outlet: Outlet): SendingNode {
    this.#isClosed = false;
    return this.#opened.attach(outlet);
  }

  /** Goes on after {@link close} though no node sends: what waits for one that does not come back is given up in its time. */
  open(): void {
    this.#isClosed = false;
    this.#rooms?.open();
    this.#options.journal.open(true);
  }

  /** The store may have begun to fail, or work again. */
  onStore(): void {
    this.#rooms?.attachments.onStore();
  }

  /** The service has no more replies for now. */
  onRepliesRead(): void {
    this.#rooms?.questions.onRepliesRead();
  }

  /** The nodes with open questions, once there were any that send. */
  get askers(): Askers | undefined {
    return this.#rooms?.askers;
  }

  /**
   * The last node is gone. Resolves when nothing is being sent any more.
   *
   * @param graceMs how long what has left is followed; 10 s when absent
   */
  async close(graceMs?: number): Promise<void> {
    this.#isClosed = true;
    await this.#rooms?.close(graceMs);
  }

  /** Resolves when another sender has given this one what it has, or that takes too long; `undefined`: none is about to. */
  get expected(): Promise<void> | undefined {
    return this.#expected;
  }

  /**
   * Another sender is giving this one what it has: texts with a key, and those under limits, wait for that, and so does what comes in, which may
   * answer a text of the other; though not for long.
   */
  expect(handing: Promise<unknown>): void {
    const { clock } = this.#options;
    const patience = new AbortController();
    const over = Promise.race([handing, wait(clock, longestHandingMs, patience.signal)]).catch(() => {});
    const expected = Promise.all([this.#expected, over]).then(() => {
      patience.abort();
      if (this.#expected === expected) this.#expected = undefined;
    });
    this.#expected = expected;
  }

  /** Takes over what other processes leave for the nodes of another sender from now on; `undefined`: for its own. */
  yieldTo(heir: Sender | undefined): void {
    this.#keeper.yieldTo(heir ? heir.#keeper : undefined);
  }

  /** Gives everything to another sender, unless that is not wanted any more. What a shared store has stays there, unless nobody else is to take it any more. */
  async handOver(heir: Sender, how: HandOver): Promise<void> {
    const { isWanted = () => true } = how;
    if (!isWanted()) return;
    await this.close();
    if (!isWanted()) return;
    const rooms = heir.#opened;
    await this.#opened.handOver(rooms, { ...how, isWanted });
    // Who was absent here is not so there.
    for (const node of rooms.deliveries.nodes) rooms.absences.end(node, true);
  }

  get #opened(): SendingRooms {
    if (this.#rooms) return this.#rooms;
    const remembrance = this.#remembrance;
    this.#rooms = new SendingRooms({ ...this.#options, remembrance, expected: () => this.#expected });
    // Nothing is sent before a node is here again.
    if (this.#isClosed) void this.#rooms.close();
    return this.#rooms;
  }
}
