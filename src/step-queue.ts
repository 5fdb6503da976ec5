import { type Clock, nextTurn, turnsOfRequest } from './clock';
import type { Task } from './step';
import type { StepWriter } from './step-writer';
import { largestGroup, WaitingSteps } from './waiting-steps';

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
  readonly #waiting: WaitingSteps;
  /** What comes before any step. */
  readonly #errands: (() => Promise<void>)[] = [];
  #working: Promise<void> | undefined;
  /** The last that were taken had come together, as those do that are there to be fetched: others come along with the next. */
  #hadCompany = false;

  constructor(clock: Clock, writer: StepWriter, events: StepQueueEvents) {
    this.#clock = clock;
    this.#writer = writer;
    this.#events = events;
    this.#waiting = new WaitingSteps(clock, () => this.work());
  }

  /** Whether no step waits. */
  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  get isWorking(): boolean {
    return this.#working !== undefined;
  }

  /** Ids of items that waiting steps drop. */
  get drops(): Set<string> {
    return this.#waiting.drops;
  }

  /** Has a step taken after those that came before. */
  add(task: Task): void {
    this.append([task]);
    if (!task.step.lazy && this.#hasWork) this.work();
  }

  /** Adds steps, in their order, to be taken in the course of what is being done, or when one comes that does not wait. */
  append(tasks: readonly Task[]): void {
    this.#waiting.add(tasks);
  }

  /** Takes out all that wait. */
  takeAll(): Task[] {
    return this.#take(this.#waiting.size);
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
      this.#waiting.hurry();
      this.work();
      await this.#working;
    }
  }

  get #hasWork(): boolean {
    return this.#errands.length > 0 || this.#waiting.areReady || this.#writer.canSave;
  }

  #take(count: number): Task[] {
    const { tasks, urgent } = this.#waiting.take(count);
    this.#hadCompany = urgent > 1;
    return tasks;
  }

  async #workOff(): Promise<void> {
    // What is asked for in the same turn of the event loop shares a commit. Who is alone does not wait for the end of it.
    if (this.#hadCompany) await nextTurn(this.#clock);
    else await undefined;
    await this.#events.begin();
    while (this.#hasWork) {
      const errand = this.#errands.shift();
      if (errand) {
        await errand();
      } else {
        for (let turn = 0; turn < turnsOfRequest && this.#waiting.expectsSequel; turn++) await nextTurn(this.#clock);
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
