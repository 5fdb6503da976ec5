import { type Clock, nextTurn, type Timer } from '../clock';
import type { Task } from './step';
import type { StepWriter } from './writer';

/** Told of the work of a {@link StepQueue}. */
export interface StepQueueEvents {
  /** Awaited whenever there is something to do after there was nothing. Must not reject. */
  begin(): Promise<void>;
  /** A group of steps, or errands, is done. */
  onTaken(): void;
}

/** So many steps at most are taken together, and so many wait for nothing. */
const largestGroup = 256;
const longestLazyMs = 25;

/** What a journal has to do, one after the other: errands first, then steps in the order in which they came, a group of them at a time. */
export class StepQueue {
  readonly #clock: Clock;
  readonly #writer: StepWriter;
  readonly #events: StepQueueEvents;
  #waiting: Task[] = [];
  /** Of those, the ones that are lazy, and have not waited for long enough. */
  #lazy = 0;
  /** Runs while there are such. */
  #timer: Timer | undefined;
  /** What comes before any step. */
  readonly #errands: (() => Promise<void>)[] = [];
  #working: Promise<void> | undefined;

  constructor(clock: Clock, writer: StepWriter, events: StepQueueEvents) {
    this.#clock = clock;
    this.#writer = writer;
    this.#events = events;
  }

  /** Whether no step waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get isWorking(): boolean {
    return this.#working !== undefined;
  }

  /** Ids of items that waiting steps drop. */
  get drops(): Set<string> {
    return new Set(this.#waiting.flatMap(({ step: { drops = [] } }) => drops));
  }

  /** Has a step taken after those that came before. */
  add(task: Task): void {
    this.append([task]);
    if (!task.step.lazy) this.work();
  }

  /** Adds steps, in their order, to be taken in the course of what is being done, or when one comes that does not wait. */
  append(tasks: readonly Task[]): void {
    for (const task of tasks) {
      this.#waiting.push(task);
      if (task.step.lazy) this.#lazy++;
    }
    if (this.#waiting.length >= largestGroup) this.#hurry();
    else if (this.#lazy > 0) this.#timer ??= this.#clock.after(longestLazyMs, () => this.#hurry());
  }

  /** Takes out all that wait. */
  takeAll(): Task[] {
    return this.#take(this.#waiting.length);
  }

  /** Runs something, which must not reject, before the next step is taken. */
  doFirst(errand: () => Promise<void>): void {
    this.#errands.push(errand);
    this.work();
  }

  /** Runs something while no step is taken, when nothing is being done. Goes on then, if `isWanted` or there is something to do. */
  async interpose(errand: () => Promise<void>, isWanted: () => boolean): Promise<void> {
    this.#working = errand().finally(() => {
      this.#working = undefined;
      if (this.#hasWork || isWanted()) this.work();
    });
    await this.#working;
  }

  /** Does what there is to do, beginning before the next turn of the event loop has come to its end. */
  work(): void {
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined;
      if (this.#hasWork) this.work();
    });
  }

  /** Resolves when nothing is being done any more. */
  async flush(): Promise<void> {
    while (this.#working || !this.isEmpty) {
      this.#hurry();
      await this.#working;
    }
  }

  get #hasWork(): boolean {
    return this.#errands.length > 0 || this.#waiting.length > this.#lazy || this.#writer.canSave;
  }

  /** None that is here waits any longer. */
  #hurry(): void {
    this.#lazy = 0;
    this.work();
  }

  #take(count: number): Task[] {
    const tasks = this.#waiting.splice(0, count);
    // What does not fit into one group has waited for long enough.
    this.#lazy = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
    return tasks;
  }

  async #workOff(): Promise<void> {
    // What is asked for together is taken together.
    await undefined;
    await this.#events.begin();
    while (this.#hasWork) {
      const errand = this.#errands.shift();
      if (errand) {
        await errand();
      } else {
        const group = this.#take(largestGroup);
        await this.#writer.write(group);
        await this.#writer.sweepWhenDue(this.#clock);
        this.#events.onTaken();
        if (group.length === largestGroup) await nextTurn(this.#clock);
      }
    }
    await this.#writer.sweepWhenDue(this.#clock);
    this.#events.onTaken();
  }
}
