import type { NodeAPI } from 'node-red';
import type { AccountNode } from './account-node';
import { Flows } from './flows';

/** The account nodes that run, in the order of the flows. */
export class AccountNodes {
  readonly #flows: Flows;
  /** By id; without a node while it is closed and may come back. */
  readonly #places = new Map<string, AccountNode | undefined>();
  readonly #forgetClosed = () => {
    for (const [id, node] of this.#places) if (!node) this.#places.delete(id);
  };

  constructor(RED: Pick<NodeAPI, 'events' | 'nodes'>) {
    this.#flows = Flows.of(RED);
  }

  get(id: string): AccountNode | undefined {
    return this.#places.get(id);
  }

  *values(): Iterable<AccountNode> {
    for (const node of this.#places.values()) if (node) yield node;
  }

  enter(node: AccountNode): void {
    this.#places.set(node.id, node);
  }

  /**
   * The node is closed. When it is back by the time that the flows have started, it has its place again: Node-RED itself does not
   * say of a node in a subflow whether it was removed.
   */
  leave(node: AccountNode): void {
    if (this.#places.get(node.id) === node) this.#places.set(node.id, undefined);
    this.#flows.onNextStart(this.#forgetClosed);
  }
}
