import { type Clock, nextTurn, onceAborted, type Timer } from '../clock';
import { SmsError } from '../errors';
import { formatOrder, OrderedMap } from './ordered-map';

/** Limits of a queue. */
export interface QueueSettings {
  /** Maximum number of tasks at the same time. */
  concurrency: number;
  /** Maximum number of tasks that wait. */
  queueLimit: number;
  /** Maximum number of tasks that start per second, evenly spaced. Absent: no limit. */
  perSecond?: number | undefined;
}

/** The environment of a queue. */
export interface SendQueueOptions {
  clock: Clock;
  /** Read each time, because the settings can change. See {@link SendQueue.nudge}. */
  settings(): QueueSettings;
  /** Called when other tasks run or wait. */
  onChanged?(): void;
}

/** Order and end of a task that waits. */
export interface TaskOptions {
  /** Ends the wait. Does not stop a task that runs. */
  signal: AbortSignal;
  /** The highest priority goes first, equal ones in the order of arrival. Default: 0. */
  priority?: number;
  /** Place in the order of arrival, from {@link SendQueue.arrive}: the task is not refused. Absent: the task comes now. */
  order?: number;
}

/** A source of tasks that wait outside the queue, in any number. */
export interface TurnSource {
  /** Number of its tasks that count for the limit. */
  readonly waiting: number;
  /** Place of its first task that can start now, if any. See {@link placeOf}. */
  readonly first: string | undefined;
  /** Starts the task at a place. Never rejects. See {@link SendQueue.run}. */
  take(first: string, giveBack: () => void): Promise<void>;
}

/** Timers are late by about this time. A start that is no later counts as punctual, so that the pace does not fall behind. */
const latenessMs = 2;

/** A shorter delay is none, because no clock is that fine. */
const finestMs = 0.001;

const highestPriority = 10;

/** Sorts tasks by priority and arrival. The least place is the first. */
export function placeOf(priority: number, order: number): string {
  return formatOrder(highestPriority - priority) + formatOrder(order);
}

/** Runs a limited number of tasks at the same time, at a pace. Others wait by priority and arrival, up to a limit. */
export class SendQueue {
  /** Sources of tasks that wait outside. */
  readonly sources = new Set<TurnSource>();
  readonly #options: SendQueueOptions;
  /** Starts of the tasks that wait, by place. */
  readonly #waiting = new OrderedMap<() => void>();
  #arrivals = 0;
  /** Number of tasks that run. */
  inFlight = 0;
  /** The last start that counts, and the time at which it was due, from which the next start keeps its distance. */
  #last: { dueAt: number } | undefined;
  #timer: Timer | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** Number of tasks that wait, without stored messages. */
  get waitingUnkept(): number {
    return this.#waiting.size;
  }

  /** Number of tasks that wait, with stored messages. */
  get waiting(): number {
    return [...this.sources].reduce((all, { waiting }) => all + waiting, this.waitingUnkept);
  }

  /** Whether a new queue would be the same: no task runs, and the pace does not delay the next one. */
  get isRested(): boolean {
    return this.inFlight === 0 && this.#delayMs() === 0;
  }

  /** Number of tasks that could start now. */
  get free(): number {
    if (this.#next() || this.#delayMs() > 0) return 0;
    const { concurrency, perSecond } = this.#options.settings();
    const places = Math.max(0, concurrency - this.inFlight);
    return perSecond === undefined ? places : Math.min(1, places);
  }

  /** A place in the order of arrival, for a task that waits later or more than once. */
  arrive(): number {
    return this.#arrivals++;
  }

  /**
   * Runs `task` when its turn comes. The task gets a function to call if nothing is sent after all, so that the pace does not count it.
   *
   * @throws SmsError `SMS_BUSY` immediately if too many tasks wait; `SMS_CLOSED` if `signal` aborts before its turn
   */
  async run<T>(task: (giveBack: () => void) => Promise<T>, { signal, priority = 0, order }: TaskOptions): Promise<T> {
    if (signal.aborted) throw new SmsError('closed');
    if (this.free > 0) return this.#start(task);
    this.nudge();
    const busy = order === undefined && this.free === 0 ? this.busy() : undefined;
    if (busy) throw busy;
    return new Promise((resolve, reject) => {
      const place = placeOf(priority, order ?? this.arrive());
      const leave = onceAborted(signal, () => {
        this.#waiting.delete(place);
        if (!this.#next()) this.#timer?.cancel();
        reject(new SmsError('closed'));
      });
      const start = () => {
        leave();
        this.#waiting.delete(place);
        resolve(this.#start(task));
      };
      this.#waiting.set(place, start);
      this.#options.onChanged?.();
      this.nudge();
    });
  }

  /**
   * `SMS_BUSY` if one more task cannot wait.
   *
   * @param places number of waiting tasks that can start
   */
  busy(places = 0): SmsError | undefined {
    const { queueLimit } = this.#options.settings();
    return this.waiting - places >= queueLimit ? new SmsError('busy', { params: { limit: queueLimit } }) : undefined;
  }

  /** Starts the tasks that can start. Call it when the settings or a source have changed. */
  nudge(): void {
    this.#timer?.cancel();
    const { concurrency } = this.#options.settings();
    while (this.inFlight < concurrency) {
      const start = this.#next();
      if (!start) return;
      const delayMs = this.#delayMs();
      if (delayMs > 0) {
        this.#timer = this.#options.clock.after(delayMs, () => this.nudge());
        return;
      }
      start();
    }
  }

  /** The start of the first task. */
  #next(): (() => void) | undefined {
    let { first } = this.#waiting;
    let start = this.#waiting.get(first ?? '');
    for (const source of this.sources) {
      const place = source.first;
      if (place === undefined || (first !== undefined && first < place)) continue;
      first = place;
      start = () => void this.#start((giveBack) => source.take(place, giveBack));
    }
    return start;
  }

  /** Delay of the next task because of the pace, in ms. */
  #delayMs(): number {
    const dueAt = this.#nextDueAt();
    const delayMs = dueAt === undefined ? 0 : dueAt - this.#options.clock.elapsed();
    return delayMs < finestMs ? 0 : delayMs;
  }

  #nextDueAt(): number | undefined {
    const { perSecond } = this.#options.settings();
    return perSecond === undefined || !this.#last ? undefined : this.#last.dueAt + 1_000 / perSecond;
  }

  async #start<T>(task: (giveBack: () => void) => Promise<T>): Promise<T> {
    const before = this.#last;
    const dueAt = this.#nextDueAt();
    const now = this.#options.clock.elapsed();
    const start = { dueAt: dueAt !== undefined && now - dueAt <= latenessMs ? dueAt : now };
    this.#last = start;
    let isGivenBack = false;
    const giveBack = () => {
      isGivenBack = true;
      // Only the last start can be taken back.
      if (this.#last !== start) return;
      this.#last = before;
      this.nudge();
    };
    this.inFlight++;
    this.#options.onChanged?.();
    try {
      // An error that a task throws synchronously is handled later, because 10,000 in a row would nest.
      return await (async () => task(giveBack))();
    } finally {
      // Yields to the event loop, because many tasks that cannot leave may wait.
      if (isGivenBack) await nextTurn(this.#options.clock);
      this.inFlight--;
      this.#options.onChanged?.();
      this.nudge();
    }
  }
}

/**
 * Counts work under way, and reports when none is left. It is not a set of promises, because a large set keeps former members, and all that
 * they refer to, alive until the next full garbage collection.
 */
export class UnderWay {
  size = 0;
  readonly #onChanged: () => void;
  readonly #waiting: (() => void)[] = [];

  /** @param onChanged called when work has begun or ended */
  constructor(onChanged: () => void = () => {}) {
    this.#onChanged = onChanged;
  }

  /** Does work, and counts it until it has ended. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.size++;
    this.#onChanged();
    try {
      return await work();
    } finally {
      this.size--;
      this.#onChanged();
      if (this.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  /** Resolves when no work is under way. */
  idle(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
