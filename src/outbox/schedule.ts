import type { Clock, Timer } from '../clock';
import type { Waiting } from './dispatch-order';
import { type Placed, PriorityQueue } from './queue';

/** The clock may be set, and a machine be asleep, which no timer hears of: it is looked at so often. */
const longestDelayMs = 60_000;

interface Scheduled extends Placed {
  readonly waiting: Waiting;
  /** ms since 1970 */
  readonly dueAt: number;
}

/** Kept texts that may not leave yet, each with its time: one timer runs until the first of them may. */
export class Schedule {
  readonly #clock: Clock;
  readonly #onDue: (waiting: Waiting) => void;
  readonly #byId = new Map<string, Scheduled>();
  readonly #byNode = new Map<string, PriorityQueue<Scheduled>>();
  #timer: Timer | undefined;

  /** @param onDue a text may leave now, and is not here any more; those first that are to leave first */
  constructor(clock: Clock, onDue: (waiting: Waiting) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** When a text may leave, in ms since 1970. */
  dueAt(id: string): number | undefined {
    return this.#byId.get(id)?.dueAt;
  }

  /** How many of a node are here. */
  countOf(node: string): number {
    return this.#byNode.get(node)?.size ?? 0;
  }

  /** When the first text of a node may leave. */
  nextOf(node: string): number | undefined {
    return this.#byNode.get(node)?.first?.dueAt;
  }

  /** Has a text wait until `dueAt`, in ms since 1970. */
  add(waiting: Waiting, dueAt: number): void {
    this.remove(waiting.id);
    const scheduled: Scheduled = { waiting, dueAt };
    const { node } = waiting;
    const queue = this.#byNode.get(node) ?? new PriorityQueue<Scheduled>(isBefore);
    this.#byNode.set(node, queue);
    this.#byId.set(waiting.id, scheduled);
    queue.add(scheduled);
    if (this.#first === scheduled) this.#awaitFirst();
  }

  remove(id: string): void {
    const scheduled = this.#byId.get(id);
    if (!scheduled) return;
    const { node } = scheduled.waiting;
    const queue = this.#byNode.get(node);
    this.#byId.delete(id);
    queue?.delete(scheduled);
    if (queue?.size === 0) this.#byNode.delete(node);
    // Where others are left, the timer finds at worst that none of them is due yet.
    if (this.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#byId.clear();
    this.#byNode.clear();
  }

  get #first(): Scheduled | undefined {
    let first: Scheduled | undefined;
    for (const { first: one } of this.#byNode.values()) if (one && (!first || isBefore(one, first))) first = one;
    return first;
  }

  #awaitFirst(): void {
    this.#timer?.cancel();
    const first = this.#first;
    if (!first) return;
    const delayMs = Math.max(0, Math.min(longestDelayMs, first.dueAt - this.#clock.now()));
    this.#timer = this.#clock.after(delayMs, () => this.#look(), true);
  }

  #look(): void {
    const now = this.#clock.now();
    for (let first = this.#first; first && first.dueAt <= now; first = this.#first) {
      this.remove(first.waiting.id);
      this.#onDue(first.waiting);
    }
    this.#awaitFirst();
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt;
  const [first, second] = [a.waiting, b.waiting];
  return first.priority !== second.priority ? first.priority > second.priority : first.order < second.order;
}
