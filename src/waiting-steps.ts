import type { Clock, Timer } from './clock';
import type { Task } from './step';

/** More than these do not wait for anything. */
export const largestGroup = 256;
const longestLazyMs = 25;
/** For company, which is close by where it is expected. */
const longestExpectingMs = 2;

/** Steps that are to be taken, in their order, and how long they may wait: see `Step.lazy` and `Step.company`. */
export class WaitingSteps {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #tasks: Task[] = [];
  /** Of those, the ones that are not lazy. */
  #urgent = 0;
  /** Of the urgent ones, those that wait for company, and how many urgent ones are enough for one of them. */
  #expectant = 0;
  #enough = Number.POSITIVE_INFINITY;
  /** Run while one waits that is lazy, or has no company yet. */
  #lazy: Timer | undefined;
  #expecting: Timer | undefined;
  #isDue = false;

  /** @param onDue called when none of them may wait any longer */
  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#tasks.length;
  }

  /** Whether they are to be taken now. */
  get areReady(): boolean {
    return this.#isDue || this.#urgent > this.#expectant || this.#urgent >= this.#enough;
  }

  /** Whether one follows the last of them in this turn of the event loop or the next. */
  get expectsSequel(): boolean {
    return this.#tasks.at(-1)?.step.hasSequel === true;
  }

  /** Ids of items that they drop. */
  get drops(): Set<string> {
    return new Set(this.#tasks.flatMap(({ step: { drops = [] } }) => drops));
  }

  add(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const { step } = task;
      this.#tasks.push(task);
      if (step.lazy) continue;
      this.#urgent++;
      if (step.company === undefined) continue;
      this.#expectant++;
      this.#enough = Math.min(this.#enough, step.company);
    }
    if (this.size >= largestGroup) this.#due();
    if (this.#urgent < this.size) this.#lazy ??= this.#clock.after(longestLazyMs, () => this.#due());
    if (this.#expectant > 0) this.#expecting ??= this.#clock.after(longestExpectingMs, () => this.#due());
  }

  /** None that is here waits any longer. */
  hurry(): void {
    this.#isDue = this.size > 0;
  }

  /** Takes out the first of them. Returns them, and how many of them are not lazy. */
  take(count: number): { tasks: Task[]; urgent: number } {
    const tasks = this.#tasks.splice(0, count);
    let urgent = 0;
    for (const { step } of tasks) if (!step.lazy) urgent++;
    this.#urgent -= urgent;
    if (this.size === 0) {
      this.#expectant = 0;
      this.#enough = Number.POSITIVE_INFINITY;
      this.#lazy?.cancel();
      this.#lazy = undefined;
      this.#expecting?.cancel();
      this.#expecting = undefined;
    }
    // What does not fit into one group has waited for long enough, whatever it expects.
    this.hurry();
    return { tasks, urgent };
  }

  #due(): void {
    this.hurry();
    this.#onDue();
  }
}
