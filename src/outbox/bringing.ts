import type { Clock, Timer } from '../clock';
import type { Outlet } from './outlet';

/** What can be brought into the flow. */
interface Brought {
  id: string;
  /** Id of the node that it is for. */
  node: string;
}

/** What brings things of one kind into the flow. */
export interface BringingOptions<Item extends Brought> {
  clock: Clock;
  /** All that there is of their kind. */
  items: { get(id: string): Item | undefined };
  /** Others may bring it once this is closed. */
  isShared: boolean;
  /** Who can take it now. */
  taker(item: Item): Outlet | undefined;
  /** How long it waits from now on for somebody who takes it, in ms; `undefined`: for as long as its node is here. */
  patienceMs(item: Item): number | undefined;
  /** Resolves with whether it got into the flow. */
  tell(taker: Outlet, item: Item, mayBeKnown: boolean): Promise<boolean>;
  taken(item: Item): Promise<void>;
  /** Nobody has taken it in time. */
  missed(item: Item): Promise<void>;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

interface Waiting {
  readonly id: string;
  /** An earlier process may have sent it into the flow. */
  readonly mayBeKnown: boolean;
  readonly timer: Timer | undefined;
}

/** Brings what has ended into the flow, each to the node that it is for, which may come back later. */
export class Bringing<Item extends Brought> {
  readonly #options: BringingOptions<Item>;
  /** What no node has taken yet, by id. */
  readonly #waiting = new Map<string, Waiting>();
  /** Ids of what a node is being told. */
  readonly #told = new Set<string>();
  #isClosed = false;

  constructor(options: BringingOptions<Item>) {
    this.#options = options;
  }

  /**
   * Brings it into the flow, now or when its node is back. Never rejects: what a node throws at waits for the next.
   *
   * @param mayBeKnown an earlier process may have sent it into the flow
   */
  async bring(item: Item, mayBeKnown: boolean): Promise<void> {
    const { items, isShared, taker, tell, taken, onFault } = this.#options;
    const { id } = item;
    if (this.#isClosed && isShared) return;
    const isKnown = this.#await(item, mayBeKnown);
    const outlet = taker(item);
    if (!outlet || this.#isClosed || this.#told.has(id)) return;
    this.#told.add(id);
    try {
      if (await tell(outlet, item, isKnown)) {
        this.#forget(id);
        await taken(item);
      }
    } catch (error) {
      onFault(error);
    } finally {
      this.#told.delete(id);
    }
    const current = this.#waiting.has(id) && items.get(id);
    // Another came, or went, while this one was being told.
    if (current && taker(current) !== outlet) await this.bring(current, isKnown);
  }

  /** A node has come, and can take what is for it; or it has gone, and that waits for so long from now on. */
  nodeChanged(node: string): void {
    for (const { id, mayBeKnown } of [...this.#waiting.values()]) {
      const item = this.#options.items.get(id);
      if (item?.node === node) void this.bring(item, mayBeKnown);
    }
  }

  /** Takes over what is known of some, from another who brought them. */
  adopt(former: Bringing<Item>, isTheirs: (id: string) => boolean): void {
    for (const { id, mayBeKnown } of former.#waiting.values()) {
      if (!isTheirs(id)) continue;
      this.#waiting.set(id, { id, mayBeKnown, timer: undefined });
      former.#forget(id);
    }
  }

  /** Nothing is brought any more: the store has it. What has not entered the flow yet is known to whoever opens this. */
  close(): void {
    const { items, isShared } = this.#options;
    this.#isClosed = true;
    for (const { id, mayBeKnown, timer } of [...this.#waiting.values()]) {
      timer?.cancel();
      if (!isShared && items.get(id)) this.#waiting.set(id, { id, mayBeKnown, timer: undefined });
      else this.#waiting.delete(id);
    }
  }

  /** Goes on after {@link close} with what is brought from now on. */
  open(): void {
    this.#isClosed = false;
  }

  /** Says whether an earlier process may have sent it into the flow, as it was known first. */
  #await(item: Item, mayBeKnown: boolean): boolean {
    const { clock, patienceMs } = this.#options;
    const { id } = item;
    const former = this.#waiting.get(id);
    former?.timer?.cancel();
    const forMs = this.#isClosed ? undefined : patienceMs(item);
    const timer = forMs === undefined ? undefined : clock.after(forMs, () => void this.#miss(id), true);
    const waiting: Waiting = { id, mayBeKnown: former?.mayBeKnown ?? mayBeKnown, timer };
    this.#waiting.set(id, waiting);
    return waiting.mayBeKnown;
  }

  async #miss(id: string): Promise<void> {
    const { items, missed, onFault } = this.#options;
    const item = items.get(id);
    // While a node is being told, that decides.
    if (this.#told.has(id)) return;
    this.#forget(id);
    try {
      if (item) await missed(item);
    } catch (error) {
      onFault(error);
    }
  }

  #forget(id: string): void {
    this.#waiting.get(id)?.timer?.cancel();
    this.#waiting.delete(id);
  }
}
