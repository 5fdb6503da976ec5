import type { Clock } from '../clock';
import { DueTimes } from './due-times';
import type { Ledger } from './ledger';
import type { SendHandler } from './sender-registrations';
import type { Text } from './text';

/** An outcome or a follow-up that has ended, and that has to enter the flow. */
type Ended = Pick<Text, 'id' | 'node'>;

/** How items of one kind enter the flow. */
export interface RedeliveryOptions<Item extends Ended> {
  clock: Clock;
  /** All items of the kind. */
  items: { get(id: string): Item | undefined };
  /** While it is closed, nothing enters the flow. On a shared store, other instances can deliver the items. */
  ledger: Pick<Ledger, 'isClosed' | 'journal'>;
  /** The node that can take an item now. */
  handlerOf(item: Item): SendHandler | undefined;
  /** Time for which an item waits for its node from now on, in ms. Infinite: as long as its node is here. */
  patienceMs(item: Item): number;
  /** Resolves with whether the item entered the flow. */
  tell(handler: SendHandler, item: Item, mayBeKnown: boolean): Promise<boolean>;
  /** The item entered the flow, or no node took it in time. */
  ended(item: Item, isMissed: boolean): Promise<void>;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/** Brings ended items into the flow, each through its node, now or when the node comes back. */
export class Redelivery<Item extends Ended> {
  readonly #options: RedeliveryOptions<Item>;
  /** Items that no node has taken yet, by id, with whether an earlier process may have sent them into the flow. */
  readonly #waiting = new Map<string, boolean>();
  /** Times at which items are given up, by id. */
  readonly #deadlines: DueTimes;
  /** Ids of items that a node is being given. */
  readonly #told = new Set<string>();

  constructor(options: RedeliveryOptions<Item>) {
    const { clock } = options;
    this.#options = options;
    this.#deadlines = new DueTimes(clock, 'elapsed', (id) => void this.#miss(id));
  }

  /**
   * Delivers an item, now or when its node comes back. Never rejects: if a node throws, the item waits for the next one.
   *
   * @param mayBeKnown whether an earlier process may have sent it into the flow
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
    // Another node came or went in the meantime.
    if (handlerOf(current) !== handler) await this.deliver(current, isKnown);
    else this.#wait(current);
  }

  /** A node has come and can take its items, or has gone, so that they wait for it. */
  nodeChanged(node: string): void {
    for (const [id, mayBeKnown] of [...this.#waiting]) {
      const item = this.#options.items.get(id);
      if (item?.node === node) void this.deliver(item, mayBeKnown);
    }
  }

  /** Stops deliveries. Items that have not entered the flow are in the store, or stay known here until it opens. */
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
    // If a node is being given the item, the node decides.
    if (this.#told.has(id)) return;
    this.#forget(id);
    if (item) await ended(item, true).catch(onFault);
  }

  #forget(id: string): void {
    this.#deadlines.delete(id);
    this.#waiting.delete(id);
  }
}
