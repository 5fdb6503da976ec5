import type { Clock, Timer } from '../clock';
import { formatOrder, OrderedMap } from './ordered-map';

/** Maximum timer delay. Frequent checks are needed because timers do not notice clock changes or machine sleep. */
const maxDelayMs = 60_000;

/** Maximum number of due ids that are handled in one turn of the event loop. */
const maxPerTurn = 250;

/** Due times in ms by id, with one timer for the earliest. */
export class DueTimes {
  readonly #times = new Map<string, number>();
  readonly #clock: Clock;
  readonly #time: 'now' | 'elapsed';
  readonly #onDue: (id: string) => void;
  /** Ids, sorted by due time and then by id. */
  readonly #keys = new OrderedMap<string>();
  #timer: Timer | undefined;

  /**
   * @param time the kind of clock time in which due times are given
   * @param onDue called with each id that is due, after the id was removed
   */
  constructor(clock: Clock, time: 'now' | 'elapsed', onDue: (id: string) => void) {
    this.#clock = clock;
    this.#time = time;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#times.size;
  }

  get(id: string): number | undefined {
    return this.#times.get(id);
  }

  /** The earliest due time. */
  get first(): number | undefined {
    return this.get(this.#first);
  }

  /** Sets the due time of an id. Ids with the same due time become due in id order. An infinite time is never due. */
  set(id: string, at: number): void {
    if (this.get(id) === at) return;
    this.delete(id);
    if (at === Number.POSITIVE_INFINITY) return;
    this.#keys.set(formatOrder(at) + id, id);
    this.#times.set(id, at);
    if (this.#first === id) this.#wait();
  }

  delete(id: string): void {
    this.#remove(id);
    // If ids remain, the timer runs and finds the next due time.
    if (this.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#keys.clear();
    this.#times.clear();
  }

  get #first(): string {
    return this.#keys.firstValue ?? '';
  }

  #remove(id: string): void {
    const at = this.get(id);
    if (at === undefined) return;
    this.#keys.delete(formatOrder(at) + id);
    this.#times.delete(id);
  }

  #wait(): void {
    this.#timer?.cancel();
    const { first } = this;
    if (first === undefined) return;
    const delayMs = Math.max(0, Math.min(maxDelayMs, first - this.#clock[this.#time]()));
    this.#timer = this.#clock.after(delayMs, () => this.#checkDue(), true);
  }

  #checkDue(): void {
    for (let count = 0; count < maxPerTurn; count++) {
      const id = this.#first;
      if (!(Number(this.get(id)) <= this.#clock[this.#time]())) {
        this.#wait();
        return;
      }
      this.#remove(id);
      this.#onDue(id);
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.nextTurn(() => this.#checkDue());
  }
}
