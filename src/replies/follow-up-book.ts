import type { FollowUp } from './reply-request';

/** Counts per node, and their sum. */
export class NodeCounts {
  total = 0;
  readonly #counts = new Map<string, number>();

  /** @param difference can be negative */
  add(node: string, difference: number): void {
    this.total += difference;
    const count = this.of(node) + difference;
    if (count === 0) this.#counts.delete(node);
    else this.#counts.set(node, count);
  }

  of(node: string): number {
    return this.#counts.get(node) ?? 0;
  }

  clear(): void {
    this.#counts.clear();
    this.total = 0;
  }
}

/** The follow-ups of this process that the flow has not received, by id, by message and, for reports, by reference. */
export class FollowUpBook {
  /** Follow-ups of each node that have no result yet. */
  readonly open: Readonly<Record<FollowUp['kind'], NodeCounts>> = {
    replyRequest: new NodeCounts(),
    report: new NodeCounts(),
  };
  readonly #followUps = new Map<string, FollowUp>();
  /** Ids of follow-ups by message. Ids of reports also by reference, which never equals the id of a message. */
  readonly #ids = new Map<string, Set<string>>();
  readonly #onCount: (node: string, kind: FollowUp['kind']) => void;

  /** @param onCount is called when the number of open follow-ups of a node changes */
  constructor(onCount: (node: string, kind: FollowUp['kind']) => void) {
    this.#onCount = onCount;
  }

  get size(): number {
    return this.#followUps.size;
  }

  get(id: string): FollowUp | undefined {
    return this.#followUps.get(id);
  }

  values(): IterableIterator<FollowUp> {
    return this.#followUps.values();
  }

  /**
   * Returns the follow-ups of a message. For a reference, returns the reports that a status with this reference can
   * end.
   */
  of(textOrReference: string): FollowUp[] {
    return [...(this.#ids.get(textOrReference) ?? [])].flatMap((id) => this.get(id) ?? []);
  }

  hasOf(text: string): boolean {
    return this.#ids.has(text);
  }

  /** Adds a follow-up, or replaces an earlier state of it. */
  put(followUp: FollowUp): void {
    const { id } = followUp;
    const former = this.get(id);
    this.#followUps.set(id, followUp);
    for (const key of keysOf(followUp)) this.#ids.set(key, (this.#ids.get(key) ?? new Set()).add(id));
    this.#count(followUp, countOpen(followUp) - countOpen(former));
  }

  delete(id: string): void {
    const followUp = this.get(id);
    if (!followUp) return;
    this.#followUps.delete(id);
    for (const key of keysOf(followUp)) {
      const ids = this.#ids.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#ids.delete(key);
    }
    this.#count(followUp, -countOpen(followUp));
  }

  /**
   * Removes all follow-ups in one go, because 100,000 single deletions would block the event loop for most of a second.
   */
  clear(): void {
    const nodes = new Set([...this.values()].map(({ node }) => node));
    this.#followUps.clear();
    this.#ids.clear();
    for (const counts of Object.values(this.open)) counts.clear();
    for (const node of nodes) for (const kind of ['replyRequest', 'report'] as const) this.#onCount(node, kind);
  }

  #count({ kind, node }: FollowUp, difference: number): void {
    if (difference === 0) return;
    this.open[kind].add(node, difference);
    this.#onCount(node, kind);
  }
}

function keysOf({ kind, text, reference }: FollowUp): string[] {
  return kind === 'report' ? [text, reference] : [text];
}

function countOpen(followUp: FollowUp | undefined): number {
  return followUp && !followUp.result ? 1 : 0;
}
