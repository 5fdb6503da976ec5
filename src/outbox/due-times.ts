import BTree from 'sorted-btree';
import type { Clock, Timer } from '../clock';
import { firstValueOf, orderOf } from './order';

/**
 * Maximum timer delay, in ms. Frequent checks are needed because timers do not notice clock changes or machine sleep.
 */
const maxDelayMs = 60_000;

/** Maximum number of due times that are handled in one turn of the event loop. */
const maxPerTurn = 250;

/** The methods of a {@link Clock} that return a time. */
const times = ['elapsed', 'now'] as const;
type Time = (typeof times)[number];

/** A due time (in ms, by the clock method `time`), and the function to call with the id at that time. */
interface Due {
  id: string;
  at: number;
  time: Time;
  onDue(id: string): void;
}

/** The time of the next action on each message, reply request and report. One timer runs, for the earliest time. */
export class DueTimes {
  readonly #clock: Clock;
  readonly #byId = new Map<string, Due>();
  /** The due times by {@link Clock.elapsed} and by {@link Clock.now}, each sorted by time and then by id. */
  readonly #inOrder: Readonly<Record<Time, BTree<string, Due>>> = { elapsed: new BTree(), now: new BTree() };
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sets or replaces the due time of an id. An infinite time only removes the earlier due time.
   *
   * @param onDue called with the id at that time. The due time is removed before the call
   * @param time the method of the clock to which `at` refers
   */
  set(id: string, at: number, onDue: Due['onDue'], time: Time = 'elapsed'): void {
    this.delete(id);
    if (at === Number.POSITIVE_INFINITY) return;
    const due = { id, at, time, onDue };
    this.#byId.set(id, due);
    this.#inOrder[time].set(orderOf(at, id), due);
    if (firstValueOf(this.#inOrder[time]) === due) this.#wait();
  }

  delete(id: string): void {
    this.#remove(id);
    // If other ids remain, the timer keeps running, and finds the next due time when it ends.
    if (this.#byId.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#byId.clear();
    for (const time of times) this.#inOrder[time].clear();
  }

  /** Returns the next due time, and how long it is until then, in ms. */
  #next(): { due: Due; inMs: number } | undefined {
    const [elapsed, now] = times.map((time) => {
      const due = firstValueOf(this.#inOrder[time]);
      return due && { due, inMs: due.at - this.#clock[time]() };
    });
    return elapsed && now ? (elapsed.inMs <= now.inMs ? elapsed : now) : (elapsed ?? now);
  }

  #remove(id: string): void {
    const due = this.#byId.get(id);
    if (!due) return;
    this.#inOrder[due.time].delete(orderOf(due.at, id));
    this.#byId.delete(id);
  }

  #wait(): void {
    this.#timer?.cancel();
    const next = this.#next();
    if (!next) return;
    const delayMs = Math.max(0, Math.min(maxDelayMs, next.inMs));
    this.#timer = this.#clock.after(delayMs, () => this.#checkDue(), true);
  }

  #checkDue(): void {
    for (let count = 0; count < maxPerTurn; count++) {
      const next = this.#next();
      if (!next || next.inMs > 0) {
        this.#wait();
        return;
      }
      const { id, onDue } = next.due;
      this.#remove(id);
      onDue(id);
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.nextTurn(() => this.#checkDue());
  }
}
