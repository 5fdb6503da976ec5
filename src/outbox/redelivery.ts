import type { Clock } from '../clock';
import type { MessageItem } from './message-item';
import type { MessageRepository } from './message-repository';
import type { SendHandler } from './sender-registrations';

/** An item that must still enter the flow: an outcome, or the result of a reply request or report. */
type Ended = Pick<MessageItem, 'id' | 'node'>;

/** Settings and callbacks for delivering items of one kind into the flow. */
export interface RedeliveryOptions<Item extends Ended> {
  clock: Clock;
  /** The items, by id. */
  items: { get(id: string): Item | undefined };
  /**
   * While the repository is closed, items do not enter the flow. New items of a shared store are then not even kept in
   * memory, because another instance can deliver them.
   */
  repository: Pick<MessageRepository, 'dueTimes' | 'isClosed' | 'journal'>;
  /** Returns the handler of the node that can receive an item now. `undefined`: no node can. */
  handlerOf(item: Item): SendHandler | undefined;
  /** Returns how long an item still waits for its node, in ms. Infinite: without limit. */
  patienceMs(item: Item): number;
  /**
   * Sends an item into the flow, and resolves with whether it entered the flow. `mayBeKnown` marks the item as
   * redelivered, because the flow might have received it before.
   */
  report(handler: SendHandler, item: Item, mayBeKnown: boolean): Promise<boolean>;
  /**
   * Called when the item has entered the flow, or is dropped (`isMissed`) because no node received it in time.
   */
  ended(item: Item, isMissed: boolean): Promise<void>;
  /** Called when a node throws. */
  onFault(error: unknown): void;
}

/**
 * Delivers each item (an outcome, or the result of a reply request or report) into the flow, through the node that sent
 * the message. If that node is not deployed, the item waits for it.
 */
export class Redelivery<Item extends Ended> {
  readonly #options: RedeliveryOptions<Item>;
  /** Items that no node has received yet: by id, whether an earlier process might have sent the item into the flow. */
  readonly #waiting = new Map<string, boolean>();
  /** Ids of items that are being handed to a node now. */
  readonly #reporting = new Set<string>();

  constructor(options: RedeliveryOptions<Item>) {
    this.#options = options;
  }

  /**
   * Delivers an item now, or when its node is deployed. Never rejects: if the node throws, the item waits for the next
   * deployment.
   *
   * @param mayBeKnown whether an earlier process might have sent the item into the flow
   */
  async deliver(item: Item, mayBeKnown: boolean): Promise<void> {
    const { items, repository, handlerOf, report, ended, onFault } = this.#options;
    const { id } = item;
    if (repository.isClosed && repository.journal.isShared) return;
    const isKnown = this.#waiting.get(id) ?? mayBeKnown;
    this.#waiting.set(id, isKnown);
    if (repository.isClosed) return;
    const handler = handlerOf(item);
    if (!handler) this.#wait(item);
    if (!handler || this.#reporting.has(id)) return;
    this.#reporting.add(id);
    try {
      if (await report(handler, item, isKnown)) {
        this.#forget(id);
        await ended(item, false);
      }
    } catch (error) {
      onFault(error);
    } finally {
      this.#reporting.delete(id);
    }
    const current = this.#waiting.has(id) && items.get(id);
    if (!current || repository.isClosed) return;
    // The item is still undelivered. If its node was deployed or removed in the meantime, tries again: the new node
    // receives the item, or the item waits for one.
    if (handlerOf(current) !== handler) await this.deliver(current, isKnown);
    else this.#wait(current);
  }

  /** Called when a node was deployed or removed. Its items enter the flow, or wait for the node. */
  nodeChanged(node: string): void {
    for (const [id, mayBeKnown] of [...this.#waiting]) {
      const item = this.#options.items.get(id);
      if (item?.node === node) void this.deliver(item, mayBeKnown);
    }
  }

  /**
   * Called when the repository closes. Forgets items of a shared store, because another instance can deliver them.
   * Other items wait until the repository opens again.
   */
  close(): void {
    const { items, repository } = this.#options;
    for (const id of [...this.#waiting.keys()])
      if (repository.journal.isShared || !items.get(id)) this.#waiting.delete(id);
  }

  #wait(item: Item): void {
    const { clock, patienceMs, repository } = this.#options;
    repository.dueTimes.set(item.id, clock.elapsed() + patienceMs(item), (id) => void this.#miss(id));
  }

  async #miss(id: string): Promise<void> {
    const { items, ended, onFault } = this.#options;
    const item = items.get(id);
    // Does nothing while the node is receiving the item. If that delivery fails, the item waits again.
    if (this.#reporting.has(id)) return;
    this.#forget(id);
    if (item) await ended(item, true).catch(onFault);
  }

  #forget(id: string): void {
    this.#options.repository.dueTimes.delete(id);
    this.#waiting.delete(id);
  }
}
