import BTree from 'sorted-btree';
import { type Clock, nextTurn, onceAborted, type Timer } from '../clock';
import { SmsError } from '../errors';
import { formatOrder } from './order';

/** Limits of a queue. */
export interface QueueSettings {
  /** Maximum number of tasks at the same time. */
  concurrency: number;
  /** Maximum number of tasks that wait. */
  queueLimit: number;
  /** Maximum number of tasks that start per second, evenly spaced. Absent: no limit. */
  perSecond?: number | undefined;
}

/** Settings and callbacks for a queue. */
export interface SendQueueOptions {
  clock: Clock;
  /** Called at each use, because the settings can change. After a change, call {@link SendQueue.nudge}. */
  settings(): QueueSettings;
  /**
   * Reasons of the errors: `busy` if too many tasks wait, `closed` if the signal ends a wait. Default: the reasons for
   * messages.
   */
  reasons?: { busy: 'busy' | 'busyReads'; closed: 'closed' | 'closedRead' };
  /** Called when the number of running or waiting tasks changes. */
  onChanged?(): void;
}

/** The place of a task among the waiting tasks, and the signal that ends its wait. */
export interface TaskOptions {
  /** Ends the wait for a turn. Does not stop a running task. */
  signal: AbortSignal;
  /** Tasks with a higher priority go first. Equal priorities go in the order of arrival. Default: 0. */
  priority?: number;
  /**
   * Number in the order of arrival, from {@link SendQueue.arrive}. A task that has such a number is never refused.
   * Absent: the task arrives now.
   */
  order?: number;
}

/** A source of tasks that wait outside the queue, for example the stored messages of a dispatcher. */
export interface TurnSource {
  /** Number of waiting tasks of the source to which the queue limit applies. */
  readonly waiting: number;
  /** Sort key of the source's first task that can start now, see {@link placeOf}. `undefined`: no task can start. */
  readonly first: string | undefined;
  /** Starts the task at a place. Never rejects. See {@link SendQueue.run} for `refund`. */
  take(first: string, refund: () => void): Promise<void>;
}

/**
 * Usual lateness of timers, in ms. A start that is not later than this counts as punctual, because the queue would
 * otherwise become slower than its pace.
 */
const latenessMs = 2;

/** Minimum delay, in ms. Shorter delays count as 0, because no clock is that precise. */
const minDelayMs = 0.001;

const maxPriority = 10;

/** Returns the place of a task by priority and arrival. The task with the smallest place starts first. */
export function placeOf(priority: number, order: number): string {
  return formatOrder(maxPriority - priority) + formatOrder(order);
}

/**
 * Runs a limited number of tasks at the same time, at a limited pace (`perSecond`). Other tasks wait in the order of
 * priority and arrival, up to a limit.
 */
export class SendQueue {
  /** Sources of tasks that wait outside the queue. */
  readonly sources = new Set<TurnSource>();
  readonly #options: SendQueueOptions;
  /** Functions that start the waiting tasks, by place. */
  readonly #waiting = new BTree<string, () => void>();
  #arrivals = 0;
  /** Number of tasks that run. */
  inFlight = 0;
  /**
   * The last start that counts for the pace, with the time at which it was due. The next start is due one interval (1 s
   * divided by `perSecond`) after that time.
   */
  #last: { dueAt: number } | undefined;
  #timer: Timer | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  get #reasons(): NonNullable<SendQueueOptions['reasons']> {
    return this.#options.reasons ?? { busy: 'busy', closed: 'closed' };
  }

  /** Number of waiting tasks, excluding stored messages. */
  get waitingUnkept(): number {
    return this.#waiting.size;
  }

  /** Number of waiting tasks, including stored messages. */
  get waiting(): number {
    return [...this.sources].reduce((all, { waiting }) => all + waiting, this.waitingUnkept);
  }

  /** Whether a new queue would behave the same: no task runs, and the pace does not delay the next task. */
  get isRested(): boolean {
    return this.inFlight === 0 && this.#delayMs() === 0;
  }

  /** Number of further tasks that could start now. */
  get free(): number {
    if (this.#next() || this.#delayMs() > 0) return 0;
    const { concurrency, perSecond } = this.#options.settings();
    const places = Math.max(0, concurrency - this.inFlight);
    return perSecond === undefined ? places : Math.min(1, places);
  }

  /**
   * Returns the next number in the order of arrival. A task that joins the queue later, or more than once, passes this
   * number so that it keeps its place.
   */
  arrive(): number {
    return this.#arrivals++;
  }

  /**
   * Runs `task` when its turn comes. If the task sends nothing, it must call `refund`, so that its start does not count
   * for the pace.
   *
   * @throws SmsError `SMS_BUSY` immediately if too many tasks wait; `SMS_CLOSED` if `signal` aborts before the turn
   */
  async run<T>(task: (refund: () => void) => Promise<T>, { signal, priority = 0, order }: TaskOptions): Promise<T> {
    const { closed } = this.#reasons;
    if (signal.aborted) throw new SmsError(closed);
    if (this.free > 0) return this.#start(task);
    this.nudge();
    const busy = order === undefined && this.free === 0 ? this.busy() : undefined;
    if (busy) throw busy;
    return new Promise((resolve, reject) => {
      const place = placeOf(priority, order ?? this.arrive());
      const stopListening = onceAborted(signal, () => {
        this.#waiting.delete(place);
        if (!this.#next()) this.#timer?.cancel();
        reject(new SmsError(closed));
      });
      const start = () => {
        stopListening();
        this.#waiting.delete(place);
        resolve(this.#start(task));
      };
      this.#waiting.set(place, start);
      this.#options.onChanged?.();
      this.nudge();
    });
  }

  /**
   * Returns `SMS_BUSY` if no further task can wait.
   *
   * @param places number of waiting tasks that can start now, and therefore do not count for the limit
   */
  busy(places = 0): SmsError | undefined {
    const { queueLimit: limit } = this.#options.settings();
    return this.waiting - places >= limit ? new SmsError(this.#reasons.busy, { params: { limit } }) : undefined;
  }

  /** Starts all tasks that can start. Call this function after a change of the settings or of a source. */
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

  /** Returns a function that starts the first task. */
  #next(): (() => void) | undefined {
    let first = this.#waiting.minKey();
    let start = this.#waiting.get(first ?? '');
    for (const source of this.sources) {
      const place = source.first;
      if (place === undefined || (first !== undefined && first < place)) continue;
      first = place;
      start = () => void this.#start((refund) => source.take(place, refund));
    }
    return start;
  }

  /** Returns how long the pace delays the next task, in ms. */
  #delayMs(): number {
    const dueAt = this.#nextDueAt();
    const delayMs = dueAt === undefined ? 0 : dueAt - this.#options.clock.elapsed();
    return delayMs < minDelayMs ? 0 : delayMs;
  }

  #nextDueAt(): number | undefined {
    const { perSecond } = this.#options.settings();
    return perSecond === undefined || !this.#last ? undefined : this.#last.dueAt + 1_000 / perSecond;
  }

  async #start<T>(task: (refund: () => void) => Promise<T>): Promise<T> {
    const before = this.#last;
    const dueAt = this.#nextDueAt();
    const now = this.#options.clock.elapsed();
    const start = { dueAt: dueAt !== undefined && now - dueAt <= latenessMs ? dueAt : now };
    this.#last = start;
    let isGivenBack = false;
    const refund = () => {
      isGivenBack = true;
      // Only the last start can be undone, because the due times of later starts depend on the earlier starts.
      if (this.#last !== start) return;
      this.#last = before;
      this.nudge();
    };
    this.inFlight++;
    this.#options.onChanged?.();
    try {
      // Handles synchronous errors asynchronously, because 10,000 of them in a row would nest too deeply.
      return await (async () => task(refund))();
    } finally {
      // If many waiting tasks send nothing, the event loop must be able to run other work between them.
      if (isGivenBack) await nextTurn(this.#options.clock);
      this.inFlight--;
      this.#options.onChanged?.();
      this.nudge();
    }
  }
}

/**
 * Counts running work, and reports when no work is running. Does not use a set of promises: a large set keeps removed
 * promises, and everything they refer to, in memory until the next full garbage collection.
 */
export class UnderWay {
  size = 0;
  readonly #onChanged: () => void;
  readonly #waiting: (() => void)[] = [];

  /** @param onChanged called when work begins or ends */
  constructor(onChanged: () => void = () => {}) {
    this.#onChanged = onChanged;
  }

  /** Runs work, and counts it until it ends. */
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

  /** Resolves when no work is running. */
  idle(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}
