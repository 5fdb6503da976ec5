import type { Timer } from '../clock';

/** A kept text that waits, or is being tried. */
export interface Waiting {
  readonly id: string;
  readonly node: string;
  readonly priority: number;
  /** Its place among equals. See `SendQueue.arrive`. */
  readonly order: number;
  /** Ends a try that has not left. */
  abort?: AbortController;
  /** It is in the queue, or has its turn. */
  isQueued: boolean;
  /** It is left alone for a while, after an outcome that was unknown. */
  pause?: Timer | undefined;
  /** The nodes that were told of the outage whose end it has waited for, and until when it may be the same. */
  endured?: { told: Set<string>; until: number };
}

/** Kept texts that wait or are being tried, found by id and by node. */
export class WaitingRoom {
  readonly #byId = new Map<string, Waiting>();
  readonly #byNode = new Map<string, Set<Waiting>>();
  /** How many of each node are being tried. */
  readonly #tried = new Map<string, number>();
  #triedInAll = 0;

  /** How many wait, and are not being tried. */
  get waiting(): number {
    return this.#byId.size - this.#triedInAll;
  }

  /** All as they are now, in the order in which they came. */
  values(): Waiting[] {
    return [...this.#byId.values()];
  }

  /** Those of a node. */
  of(node: string): Waiting[] {
    return [...(this.#byNode.get(node) ?? [])];
  }

  /** How many a node has. */
  countOf(node: string): number {
    return this.#byNode.get(node)?.size ?? 0;
  }

  /** How many of a node are being tried. */
  triedOf(node: string): number {
    return this.#tried.get(node) ?? 0;
  }

  get(id: string): Waiting | undefined {
    return this.#byId.get(id);
  }

  /** Whether it is this very one that is here, which may have gone and come again under the same id. */
  has(waiting: Waiting): boolean {
    return this.#byId.get(waiting.id) === waiting;
  }

  add(waiting: Waiting): void {
    const { id, node } = waiting;
    this.#byId.set(id, waiting);
    this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(waiting));
  }

  remove(waiting: Waiting): void {
    const { id, node, pause } = waiting;
    pause?.cancel();
    this.#byId.delete(id);
    const others = this.#byNode.get(node);
    others?.delete(waiting);
    if (others?.size === 0) this.#byNode.delete(node);
  }

  /** One more, or one less, of a node is being tried. */
  countTried(node: string, more: 1 | -1): void {
    const tried = this.triedOf(node) + more;
    this.#triedInAll += more;
    if (tried === 0) this.#tried.delete(node);
    else this.#tried.set(node, tried);
  }

  clear(): void {
    this.#byId.clear();
    this.#byNode.clear();
  }
}
