import type { Node } from 'node-red';

/** What fails while a node is being stopped: its Catch node may have been stopped before, and then nobody would hear of it. */
export class LateErrors {
  readonly #node: Node;
  /** How often each has come; `undefined`: the node runs. */
  #counts: Map<string, number> | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  /** The node is being stopped: from now on errors are counted. */
  begin(): void {
    this.#counts = new Map();
  }

  count({ message }: Error): void {
    this.#counts?.set(message, (this.#counts.get(message) ?? 0) + 1);
  }

  /** Writes what has come into the log. */
  tell(): void {
    for (const [text, count] of this.#counts ?? []) this.#node.warn(`${count} × ${text}`);
    this.#counts?.clear();
  }
}
