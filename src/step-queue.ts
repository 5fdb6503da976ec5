import { type Clock, nextTurn, type Timer } from './clock';
import type { StepWriter, Task } from './step';

const largestGroup = 256;
const longestLazyMs = 25;
/** A request leaves a turn later than it is made: undici looks first whether its idle connection is still there. */
const turnsOfSequel = 2;

/** Told of the work of a {@link StepQueue}. */
export interface StepQueueEvents {
  /** Awaited whenever there is something to do after there was nothing. Must not reject. */
  begin(): Promise<void>;
  /** A group of steps, or errands, is done. */
  onTaken(): void;
}

/** What a journal has to do, one after the other: errands first, then steps, a group of them at a time. */
export class StepQueue {
  readonly #clock: Clock;
  readonly #writer: StepWriter;
  readonly #events: StepQueueEvents;
  #tasks: Task[] = [];
  /** Of those, the ones that are not lazy. */
  #urgent = 0;
  /** What comes before any step. */
  readonly #errands: (() => Promise<void>)[] = [];
  #working: Promise<void> | undefined;
  /** Runs while a lazy one waits that is not due. */
  #lazy: Timer | undefined;
  #isLazyDue = false;
  /** The last that were taken had come together, as those do that are there to be fetched: others come along with the next. */
  #hasCompany = false;

  constructor(clock: Clock, writer: StepWriter, events: StepQueueEvents) {
    this.#clock = clock;
    this.#writer = writer;
    this.#events = events;
  }

  /** Whether no step waits. */
  get isEmpty(): boolean {
    return this.#tasks.length === 0;
  }

  get isWorking(): boolean {
    return this.#working !== undefined;
  }

  /** Ids of items that waiting steps drop. */
  get drops(): Set<string> {
    return new Set(this.#tasks.flatMap(({ step: { drops = [] } }) => drops));
  }

  /** Has a step taken after those that came before. */
  add(task: Task): void {
    this.append([task]);
    if (!task.step.lazy) this.work();
  }

  /** Adds steps, in their order, to be taken in the course of what is being done, or when one comes that is not lazy. */
  append(tasks: readonly Task[]): void {
    this.#tasks.push(...tasks);
    this.#urgent += countUrgent(tasks);
    if (this.#tasks.length >= largestGroup) this.#hurry();
    else if (this.#urgent < this.#tasks.length) this.#lazy ??= this.#clock.after(longestLazyMs, () => this.#hurry());
  }

  /** Takes out all that wait. */
  takeAll(): Task[] {
    return this.#take(this.#tasks.length);
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
    return this.#errands.length > 0 || this.#urgent > 0 || this.#isLazyDue || this.#writer.canSave;
  }

  /** Lazy ones wait no longer. */
  #hurry(): void {
    this.#isLazyDue = !this.isEmpty;
    this.work();
  }

  #take(count: number): Task[] {
    const taken = this.#tasks.splice(0, count);
    const urgent = countUrgent(taken);
    this.#urgent -= urgent;
    this.#hasCompany = urgent > 1;
    if (this.isEmpty) {
      this.#lazy?.cancel();
      this.#lazy = undefined;
      this.#isLazyDue = false;
    }
    return taken;
  }

  async #workOff(): Promise<void> {
    // What is asked for in the same turn of the event loop shares a commit. Who is alone does not wait for the end of it.
    if (this.#hasCompany) await nextTurn(this.#clock);
    else await undefined;
    await this.#events.begin();
    while (this.#hasWork) {
      const errand = this.#errands.shift();
      if (errand) {
        await errand();
      } else {
        for (let turn = 0; turn < turnsOfSequel && this.#tasks.at(-1)?.step.hasSequel; turn++)
          await nextTurn(this.#clock);
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

function countUrgent(tasks: readonly Task[]): number {
  let urgent = 0;
  for (const { step } of tasks) if (!step.lazy) urgent++;
  return urgent;
}
