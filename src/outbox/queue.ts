import { type Clock, nextTurn, onceAborted, type Timer } from '../clock';
import { SmsError } from '../errors';

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
  /** Other tasks run or wait. */
  onChanged?(): void;
}

/** When a task's turn comes. */
export interface TaskOptions {
  /** Ends its waiting; a task that runs is not stopped. */
  signal: AbortSignal;
  /** The highest goes first, equals in the order in which they came. 0 when absent. */
  priority?: number;
  /** When it came, by {@link SendQueue.arrive}: it has been taken already, and is not refused. Absent: it comes now. */
  order?: number;
}

/** What has tasks of its own that wait for their turn, in whatever number. */
export interface TurnSource {
  /** They count for the limit. */
  readonly waiting: number;
  /** The place of the first of them that may begin now, if any may. See {@link placeOf}. */
  readonly first: string | undefined;
  /** Begins the one at that place. Never rejects. See {@link SendQueue.run}. */
  take(first: string, giveBack: () => void): Promise<void>;
}

/** Timers come late by about so much. A start that is no later counts as punctual, lest the pace fall behind each time. */
const latenessMs = 2;

/** Finer than any clock: less than this is no delay. */
const finestMs = 0.001;

const highestPriority = 10;

/** Orders tasks by priority and arrival: the least is the first. */
export function placeOf(priority: number, order: number): string {
  return formatOrder(highestPriority - priority) + formatOrder(order);
}

/** Runs so many tasks at once, at a pace; more wait by priority and arrival, up to a limit. */
export class SendQueue {
  /** Tasks that wait elsewhere. */
  readonly sources = new Set<TurnSource>();
  readonly #options: SendQueueOptions;
  /** How to start those that wait, by their places. */
  readonly #waiting = new OrderedMap<() => void>();
  #arrivals = 0;
  /** Tasks that run. */
  inFlight = 0;
  /** The last start that counts, and when it was due, which is what the next one keeps its distance from. */
  #last: { dueAt: number } | undefined;
  #timer: Timer | undefined;

  constructor(options: SendQueueOptions) {
    this.#options = options;
  }

  /** Tasks that wait, but for those of kept texts. */
  get waitingUnkept(): number {
    return this.#waiting.size;
  }

  /** Tasks that wait, and kept texts wherever they wait. */
  get waiting(): number {
    return [...this.sources].reduce((all, { waiting }) => all + waiting, this.waitingUnkept);
  }

  /** Whether the next task need not wait on account of those before it, so that a new queue would be the same. */
  get isRested(): boolean {
    return this.inFlight === 0 && this.#delayMs() === 0;
  }

  /** How many tasks could begin now. */
  get free(): number {
    if (this.#next() || this.#delayMs() > 0) return 0;
    const { concurrency, perSecond } = this.#options.settings();
    const places = Math.max(0, concurrency - this.inFlight);
    return perSecond === undefined ? places : Math.min(1, places);
  }

  /** A place in the order of arrival, for what may come to wait later, or more than once. */
  arrive(): number {
    return this.#arrivals++;
  }

  /**
   * Runs `task` when its turn comes. It gets what to call when nothing is sent after all: the pace need not count it.
   *
   * @throws SmsError `SMS_BUSY` at once when too many wait already; `SMS_CLOSED` when `signal` aborts before its turn
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
   * `SMS_BUSY` when one more may not wait, as a text that is about to be kept may have to.
   *
   * @param places for so many of those that wait there is a place
   */
  busy(places = 0): SmsError | undefined {
    const { queueLimit } = this.#options.settings();
    return this.waiting - places >= queueLimit ? new SmsError('busy', { params: { limit: queueLimit } }) : undefined;
  }

  /** Starts what may start. To be called when the settings have changed, or a source has others. */
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

  /** How to start whoever is the first. */
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

  async #start<T>(task: (giveBack: () => void) => Promise<T>): Promise<T> {
    const before = this.#last;
    const dueAt = this.#nextDueAt();
    const now = this.#options.clock.elapsed();
    const start = { dueAt: dueAt !== undefined && now - dueAt <= latenessMs ? dueAt : now };
    this.#last = start;
    let isGivenBack = false;
    const giveBack = () => {
      isGivenBack = true;
      // Only the last can be taken back.
      if (this.#last !== start) return;
      this.#last = before;
      this.nudge();
    };
    this.inFlight++;
    this.#options.onChanged?.();
    try {
      // What it throws at once is dealt with later, like any other error: ten thousand in a row would nest.
      return await (async () => task(giveBack))();
    } finally {
      // When many wait that may not leave, others have their turn of the event loop all the same.
      if (isGivenBack) await nextTurn(this.#options.clock);
      this.inFlight--;
      this.#options.onChanged?.();
      this.nudge();
    }
  }
}

/**
 * Counts what is under way, and tells when nothing is any more. It knows nothing of it: the tables that a set outgrows keep former
 * members alive until the next full garbage collection, and with the promise of a text all that it closes over.
 */
export class UnderWay {
  size = 0;
  readonly #onChanged: () => void;
  readonly #waiting: (() => void)[] = [];

  /** @param onChanged something has begun or ended */
  constructor(onChanged: () => void = () => {}) {
    this.#onChanged = onChanged;
  }

  /** Does something, which counts until it has ended. */
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

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** The clock may be set, and a machine be asleep, which no timer hears of: it is looked at so often. */
const longestDelayMs = 60_000;

/** What may come due by the ten thousand in one moment is dealt with a few hundred in each turn of the event loop. */
const mostInTurn = 250;

/** When what is due some time is, in ms by its id, with one timer on the first of it. */
export class DueTimes extends Map<string, number> {
  readonly #clock: Clock;
  readonly #time: 'now' | 'elapsed';
  readonly #onDue: (id: string) => void;
  /** Ids, by their times and themselves. */
  readonly #keys = new OrderedMap<string>();
  #timer: Timer | undefined;

  /**
   * @param time by which of the clock's it goes
   * @param onDue something is due, and is not here any more
   */
  constructor(clock: Clock, time: 'now' | 'elapsed', onDue: (id: string) => void) {
    super();
    this.#clock = clock;
    this.#time = time;
    this.#onDue = onDue;
  }

  /** When the first is due. */
  get first(): number | undefined {
    return this.get(this.#first);
  }

  /** Those that are due in one moment come in the order of their ids. What is endless never is. */
  override set(id: string, at: number): this {
    if (this.get(id) === at) return this;
    this.delete(id);
    if (at === Number.POSITIVE_INFINITY) return this;
    this.#keys.set(formatOrder(at) + id, id);
    super.set(id, at);
    if (this.#first === id) this.#wait();
    return this;
  }

  override delete(id: string): boolean {
    const isGone = this.#remove(id);
    // Where others are left, the timer finds at worst that none of them is due yet.
    if (this.size === 0) this.#timer?.cancel();
    return isGone;
  }

  override clear(): void {
    this.#timer?.cancel();
    this.#keys.clear();
    super.clear();
  }

  get #first(): string {
    return this.#keys.get(this.#keys.first ?? '') ?? '';
  }

  #remove(id: string): boolean {
    const at = this.get(id);
    if (at !== undefined) this.#keys.delete(formatOrder(at) + id);
    return super.delete(id);
  }

  #wait(): void {
    this.#timer?.cancel();
    const { first } = this;
    if (first === undefined) return;
    const delayMs = Math.max(0, Math.min(longestDelayMs, first - this.#clock[this.#time]()));
    this.#timer = this.#clock.after(delayMs, () => this.#look(), true);
  }

  #look(): void {
    for (let count = 0; count < mostInTurn; count++) {
      const id = this.#first;
      if (!(Number(this.get(id)) <= this.#clock[this.#time]())) {
        this.#wait();
        return;
      }
      this.#remove(id);
      this.#onDue(id);
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.nextTurn(() => this.#look());
  }
}

/** It is not cleaned up for fewer. */
const fewestGone = 100;

/** Values under keys, of which the least is the first. However many there are, finding it looks at a few of them. */
export class OrderedMap<Value> extends Map<string, Value> {
  /** Its keys, and some that have gone: none is less than that at half its place. */
  #heap: string[] = [];

  get first(): string | undefined {
    while (this.#heap.length > 0 && !this.has(this.#at(0))) {
      const last = this.#heap.pop() ?? '';
      if (this.#heap.length > 0) this.#sink(last, 0);
    }
    return this.#heap[0];
  }

  override set(key: string, value: Value): this {
    if (!this.has(key)) {
      if (this.#heap.length > 2 * this.size + fewestGone) this.#clean();
      let place = this.#heap.length;
      for (let parent = (place - 1) >> 1; place > 0 && key < this.#at(parent); parent = (place - 1) >> 1) {
        this.#heap[place] = this.#at(parent);
        place = parent;
      }
      this.#heap[place] = key;
    }
    return super.set(key, value);
  }

  #at(place: number): string {
    return this.#heap[place] as string;
  }

  #clean(): void {
    this.#heap = [...this.keys()];
    for (let place = (this.#heap.length >> 1) - 1; place >= 0; place--) this.#sink(this.#at(place), place);
  }

  /** Puts a key at a place, or below it. */
  #sink(key: string, at: number): void {
    let place = at;
    for (;;) {
      let child = 2 * place + 1;
      if (this.#at(child + 1) < this.#at(child)) child++;
      if (!(this.#at(child) < key)) break;
      this.#heap[place] = this.#at(child);
      place = child;
    }
    this.#heap[place] = key;
  }
}

/** A part of a key that orders numbers of 0 or more, but for their fractions. */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(9, '0');
}
