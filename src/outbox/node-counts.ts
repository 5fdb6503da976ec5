/** How many of something each node has, and all together. */
export class NodeCounts {
  readonly #byNode = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(node: string): number {
    return this.#byNode.get(node) ?? 0;
  }

  /** @param more less than 0: it has so many fewer */
  add(node: string, more: number): void {
    this.#total += more;
    const count = this.of(node) + more;
    if (count === 0) this.#byNode.delete(node);
    else this.#byNode.set(node, count);
  }

  clear(): void {
    this.#byNode.clear();
    this.#total = 0;
  }
}
