import { type Clock, onceAborted, type Timer } from '../clock';
import { SmsError } from '../errors';
import { Batched } from './batched';

/** How fast and how far a queue goes. */
export interface QueueSettings {
  /** Tasks at once. */
  concurrency: number;
  /** Tasks that may wait. */
  queueLimit: number;
  /** Tasks that begin per second at most, evenly spaced; absent: no limit. */
  perSecond?: number | undefined;
}

/** What a queue stands on. */
export interface SendQueueOptions {
  clock: Clock;
  /** Looked at each time, since other settings may hold at any moment. See {@link SendQueue.nudge}. */
  settings(): QueueSettings;
  /** How many texts wait that are kept: they count for the limit wherever they wait. Absent: none. */
  kept?(): number;
  /** Other tasks run or wait. */
  onChanged?(): void;
}

/** When a task's turn comes. */
export interface TaskOptions {
  /** Ends its waiting; a task that runs is not stopped. Absent: it waits for as long as it takes. */
  signal?: AbortSignal;
  /** The highest goes first, equals in the order in which they came. 0 when absent. */
  priority?: number;
  /** When it came, by {@link SendQueue.arrive}: it has been taken already, and is not refused. Absent: it comes now. */
  order?: number;
  /** It is one of those that {@link SendQueueOptions.kept} counts. */
  isKept?: boolean;
}

/** A task's turn. */
export interface Turn {
  /** Nothing is sent after all: the pace need not count it. */
  giveBack(): void;
}

interface Waiting extends Placed {
  priority: number;
  readonly order: number;
  readonly isKept: boolean;
  start(): void;
}

/** Timers come late by about so much. A start that is no later counts as punctual, lest the pace fall behind each time. */
const latenessMs = 2;

/** Finer than any clock: less than this is no delay. */
const finestMs = 0.001;

/** Runs so many tasks at once, at a pace; more wait by priority and arrival, up to a limit. */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #waiting = new PriorityQueue<Waiting>(
    (a, b) => a.priority > b.priority || (a.priority === b.priority && a.order < b.order),
  );
  /** Turns that were given back: when many wait that may not leave, they follow each other at once. */
  readonly #givenBack: Batched;
  #keptHere = 0;
  #arrivals = 0;
  #inFlight = 0;
  /** The last start that counts, and when it was due, which is what the next one keeps its distance from. */
  #last: { dueAt: number } | undefined;
  #timer: Timer | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#givenBack = new Batched(options.clock);
  }

  /** Tasks that run. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Tasks that wait, but for those of kept texts. */
  get waitingUnkept(): number {
    return this.#waiting.size - this.#keptHere;
  }

  /** Tasks that wait, and kept texts wherever they wait. */
  get waiting(): number {
    return this.waitingUnkept + (this.#options.kept?.() ?? 0);
  }

  /** Whether the next task need not wait on account of those before it, so that a new queue would be the same. */
  get isRested(): boolean {
    return this.#inFlight === 0 && this.#delayMs() === 0;
  }

  /** How many tasks could begin now. */
  get free(): number {
    if (this.#waiting.size > 0 || this.#delayMs() > 0) return 0;
    const { concurrency, perSecond } = this.#options.settings();
    const places = Math.max(0, concurrency - this.#inFlight);
    return perSecond === undefined ? places : Math.min(1, places);
  }

  /** A place in the order of arrival, for what may come to wait later, or more than once. */
  arrive(): number {
    return this.#arrivals++;
  }

  /**
   * Runs `task` when its turn comes.
   *
   * @throws SmsError `SMS_BUSY` at once when too many wait already; `SMS_CLOSED` when `signal` aborts before its turn
   */
  run<T>(task: (turn: Turn) => Promise<T>, options: TaskOptions): Promise<T> {
    const isNext = !options.signal?.aborted && this.free > 0;
    return isNext ? this.#start(task) : this.#wait(task, options);
  }

  async #wait<T>(task: (turn: Turn) => Promise<T>, options: TaskOptions): Promise<T> {
    const { signal, priority = 0, order, isKept = false } = options;
    if (signal?.aborted) throw new SmsError('closed');
    this.nudge();
    if (order === undefined && this.free === 0) this.assertRoom();
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        priority,
        order: order ?? this.arrive(),
        isKept,
        start: () => {
          leave?.();
          this.#leave(waiting);
          resolve(this.#start(task));
        },
      };
      const leave =
        signal &&
        onceAborted(signal, () => {
          this.#leave(waiting);
          reject(new SmsError('closed'));
        });
      this.#waiting.add(waiting);
      if (isKept) this.#keptHere++;
      this.#options.onChanged?.();
      this.nudge();
    });
  }

  /** Has a task that waits be the next one. @param order which it was run with */
  hasten(order: number): void {
    const waiting = this.#waiting.find((one) => one.order === order);
    if (!waiting) return;
    this.#waiting.delete(waiting);
    waiting.priority = Number.POSITIVE_INFINITY;
    this.#waiting.add(waiting);
  }

  /** @throws SmsError `SMS_BUSY` when one more may not wait, for a text that is about to be kept */
  assertRoom(): void {
    const { queueLimit } = this.#options.settings();
    if (this.waiting >= queueLimit) throw new SmsError('busy', { params: { limit: queueLimit } });
  }

  /** Starts what may start. To be called when the settings have changed. */
  nudge(): void {
    this.#timer?.cancel();
    const { concurrency } = this.#options.settings();
    while (this.#waiting.size > 0 && this.#inFlight < concurrency) {
      const delayMs = this.#delayMs();
      if (delayMs > 0) {
        this.#timer = this.#options.clock.after(delayMs, () => this.nudge());
        return;
      }
      this.#waiting.take()?.start();
    }
  }

  /** How long the pace has the next one wait. */
  #delayMs(): number {
    const dueAt = this.#nextDueAt();
    const delayMs = dueAt === undefined ? 0 : dueAt - this.#options.clock.elapsed();
    return delayMs < finestMs ? 0 : delayMs;
  }

  #nextDueAt(): number | undefined {
    const { perSecond } = this.#options.settings();
    return perSecond === undefined || !this.#last ? undefined : this.#last.dueAt + 1_000 / perSecond;
  }

  async #start<T>(task: (turn: Turn) => Promise<T>): Promise<T> {
    const takeBack = this.#countStart();
    let isGivenBack = false;
    const giveBack = () => {
      isGivenBack = true;
      takeBack();
    };
    this.#inFlight++;
    this.#options.onChanged?.();
    let result: Promise<T>;
    try {
      result = task({ giveBack });
    } catch (error) {
      // It is dealt with later, like any other: at once, ten thousand in a row would nest.
      result = Promise.reject(error);
    }
    try {
      return await result;
    } finally {
      if (isGivenBack) await new Promise<void>((resolve) => this.#givenBack.run(resolve));
      this.#inFlight--;
      this.#options.onChanged?.();
      this.nudge();
    }
  }

  /** Returns how to take it back, as long as it is the last. */
  #countStart(): () => void {
    const before = this.#last;
    const dueAt = this.#nextDueAt();
    const now = this.#options.clock.elapsed();
    const start = { dueAt: dueAt !== undefined && now - dueAt <= latenessMs ? dueAt : now };
    this.#last = start;
    return () => {
      if (this.#last !== start) return;
      this.#last = before;
      this.nudge();
    };
  }

  #leave(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    if (waiting.isKept) this.#keptHere--;
    if (this.#waiting.size === 0) this.#timer?.cancel();
  }
}

/** What can be in one queue at a time, which notes in it where. */
export interface Placed {
  place?: number | undefined;
}

/** Items in the order of a comparison: adding one, taking the first and leaving from anywhere cost O(log n). */
export class PriorityQueue<Item extends Placed> {
  readonly #isBefore: (a: Item, b: Item) => boolean;
  /** Each item is before the two at twice its place and one or two more. */
  readonly #heap: Item[] = [];

  /** @param isBefore a strict order that does not change while its items are here */
  constructor(isBefore: (a: Item, b: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#heap.length;
  }

  get first(): Item | undefined {
    return this.#heap[0];
  }

  /** An item may be here once. */
  add(item: Item): void {
    this.#settle(item, this.#heap.length);
  }

  /** Finds an item, in whatever order it looks through them. */
  find(isMeant: (item: Item) => boolean): Item | undefined {
    return this.#heap.find(isMeant);
  }

  /** Takes the first. */
  take(): Item | undefined {
    const { first } = this;
    if (first !== undefined) this.delete(first);
    return first;
  }

  /** Says whether it was here. */
  delete(item: Item): boolean {
    const { place } = item;
    if (place === undefined) return false;
    item.place = undefined;
    const last = this.#heap.pop();
    if (last !== undefined && last !== item) this.#settle(last, place);
    return true;
  }

  /** Puts an item where it belongs, up or down from a place that is free. */
  #settle(item: Item, free: number): void {
    let place = free;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above] as Item;
      if (!this.#isBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    for (let below = 2 * place + 1; below < this.#heap.length; below = 2 * place + 1) {
      const right = below + 1 < this.#heap.length ? below + 1 : below;
      if (this.#isBefore(this.#heap[right] as Item, this.#heap[below] as Item)) below = right;
      const child = this.#heap[below] as Item;
      if (!this.#isBefore(child, item)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }

  #put(item: Item, place: number): void {
    this.#heap[place] = item;
    item.place = place;
  }
}
