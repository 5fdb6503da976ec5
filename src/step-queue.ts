import { type Clock, nextTurn, type Timer } from './clock';
import type { StepWriter, Task } from './step';

const largestGroup = 256;
const longestLazyMs = 25;
/** For company, which is close by where it is expected. */
const longestWaitMs = 2;
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
  /** Of the urgent ones, those that wait for company, and how many urgent ones are enough for one of them. */
  #expectant = 0;
  #enough = Number.POSITIVE_INFINITY;
  /** What comes before any step. */
  readonly #errands: (() => Promise<void>)[] = [];
  #working: Promise<void> | undefined;
  /** Run while one waits that is lazy, or has no company yet. */
  #lazy: Timer | undefined;
  #expecting: Timer | undefined;
  /** None that waits may wait any longer. */
  #isDue = false;
  /** The last that were taken had come together, as those do that are there to be fetched: others come along with the next. */
  #hadCompany = false;

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
    if (!task.step.lazy && this.#hasWork) this.work();
  }

  /** Adds steps, in their order, to be taken in the course of what is being done, or when one comes that does not wait. */
  append(tasks: readonly Task[]): void {
    this.#tasks.push(...tasks);
    this.#count(tasks);
    if (this.#tasks.length >= largestGroup) this.#hurry();
    if (this.#urgent < this.#tasks.length) this.#lazy ??= this.#clock.after(longestLazyMs, () => this.#hurry());
    if (this.#expectant > 0) this.#expecting ??= this.#clock.after(longestWaitMs, () => this.#hurry());
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
    const isReady = this.#isDue || this.#urgent > this.#expectant || this.#urgent >= this.#enough;
    return this.#errands.length > 0 || isReady || this.#writer.canSave;
  }

  /** Those that wait do so no longer. */
  #hurry(): void {
    this.#isDue = !this.isEmpty;
    this.work();
  }

  #take(count: number): Task[] {
    const taken = this.#tasks.splice(0, count);
    const urgent = this.#urgent;
    this.#urgent = 0;
    this.#expectant = 0;
    this.#enough = Number.POSITIVE_INFINITY;
    this.#count(this.#tasks);
    this.#hadCompany = urgent - this.#urgent > 1;
    if (this.isEmpty) {
      this.#lazy?.cancel();
      this.#lazy = undefined;
      this.#expecting?.cancel();
      this.#expecting = undefined;
    }
    // What does not fit into one group has waited for long enough.
    this.#isDue = !this.isEmpty;
    return taken;
  }

  #count(tasks: readonly Task[]): void {
    for (const { step } of tasks) {
      if (step.lazy) continue;
      this.#urgent++;
      if (step.company === undefined) continue;
      this.#expectant++;
      this.#enough = Math.min(this.#enough, step.company);
    }
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
