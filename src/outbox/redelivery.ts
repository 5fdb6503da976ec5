import type { Clock } from '../clock';
import type { Ledger } from './ledger';
import { DueTimes } from './queue';
import type { SendHandler } from './sender-registrations';
import type { Text } from './text';

/** What has ended, and is to be told to the flow. */
type Ended = Pick<Text, 'id' | 'node'>;

/** What tells things of one kind to the flow. */
export interface RedeliveryOptions<Item extends Ended> {
  clock: Clock;
  /** All that there is of their kind. */
  items: { get(id: string): Item | undefined };
  /** Once it is closed nothing is told, and where it is shared, others may deliver it. */
  ledger: Pick<Ledger, 'isClosed' | 'journal'>;
  /** Who can take it now. */
  handlerOf(item: Item): SendHandler | undefined;
  /** How long it waits from now on for somebody who takes it, in ms; endless: for as long as its node is here. */
  patienceMs(item: Item): number;
  /** Resolves with whether it got into the flow. */
  tell(handler: SendHandler, item: Item, mayBeKnown: boolean): Promise<boolean>;
  /** It got there, or nobody has taken it in time. */
  ended(item: Item, isMissed: boolean): Promise<void>;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** Tells the flow what has ended, each to the node that it is for, now or when that is back. */
export class Redelivery<Item extends Ended> {
  readonly #options: RedeliveryOptions<Item>;
  /** What no node has taken yet, by id: whether an earlier process may have sent it into the flow. */
  readonly #waiting = new Map<string, boolean>();
  /** When it is given up. */
  readonly #deadlines: DueTimes;
  /** Ids of what a node is being told. */
  readonly #told = new Set<string>();

  constructor(options: RedeliveryOptions<Item>) {
    const { clock } = options;
    this.#options = options;
    this.#deadlines = new DueTimes(clock, 'elapsed', (id) => void this.#miss(id));
  }

  /**
   * Tells it, now or when its node is back. Never rejects: what a node throws at waits for the next.
   *
   * @param mayBeKnown an earlier process may have sent it into the flow
   */
  async deliver(item: Item, mayBeKnown: boolean): Promise<void> {
    const { items, ledger, handlerOf, tell, ended, onFault } = this.#options;
    const { id } = item;
    if (ledger.isClosed && ledger.journal.isShared) return;
    const isKnown = this.#waiting.get(id) ?? mayBeKnown;
    this.#waiting.set(id, isKnown);
    if (ledger.isClosed) return;
    const handler = handlerOf(item);
    if (!handler) this.#wait(item);
    if (!handler || this.#told.has(id)) return;
    this.#told.add(id);
    try {
      if (await tell(handler, item, isKnown)) {
        this.#forget(id);
        await ended(item, false);
      }
    } catch (error) {
      onFault(error);
    } finally {
      this.#told.delete(id);
    }
    const current = this.#waiting.has(id) && items.get(id);
    if (!current || ledger.isClosed) return;
    // Another came, or went, while this one was being told.
    if (handlerOf(current) !== handler) await this.deliver(current, isKnown);
    else this.#wait(current);
  }

  /** A node has come, and can take what is for it; or it has gone, and that waits for so long from now on. */
  nodeChanged(node: string): void {
    for (const [id, mayBeKnown] of [...this.#waiting]) {
      const item = this.#options.items.get(id);
      if (item?.node === node) void this.deliver(item, mayBeKnown);
    }
  }

  /** Nothing is told any more: the store has it. What has not entered the flow yet is known to whoever goes on with the ledger. */
  close(): void {
    const { items, ledger } = this.#options;
    this.#deadlines.clear();
    for (const id of [...this.#waiting.keys()]) if (ledger.journal.isShared || !items.get(id)) this.#waiting.delete(id);
  }

  #wait(item: Item): void {
    const { clock, patienceMs } = this.#options;
    this.#deadlines.set(item.id, clock.elapsed() + patienceMs(item));
  }

  async #miss(id: string): Promise<void> {
    const { items, ended, onFault } = this.#options;
    const item = items.get(id);
    // While a node is being told, that decides.
    if (this.#told.has(id)) return;
    this.#forget(id);
    if (item) await ended(item, true).catch(onFault);
  }

  #forget(id: string): void {
    this.#deadlines.delete(id);
    this.#waiting.delete(id);
  }
}
