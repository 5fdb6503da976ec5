import type { Clock, Timer } from '../clock';

/** The clock may be set, and a machine be asleep, which no timer hears of: it is looked at so often. */
const longestDelayMs = 60_000;

/** What may come due by the ten thousand in one moment is dealt with a few hundred in each turn of the event loop. */
const mostInTurn = 250;

/** What is due some time, with one timer on the first of it. */
export class DueTimes {
  readonly #clock: Clock;
  readonly #time: 'now' | 'elapsed';
  readonly #onDue: (id: string) => void;
  /** Ids, by their times and themselves. */
  readonly #keys = new OrderedMap<string>();
  readonly #times = new Map<string, number>();
  #timer: Timer | undefined;

  /**
   * @param time by which of the clock's it goes
   * @param onDue something is due, and is not here any more
   */
  constructor(clock: Clock, time: 'now' | 'elapsed', onDue: (id: string) => void) {
    this.#clock = clock;
    this.#time = time;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#times.size;
  }

  /** When the first is due. */
  get first(): number | undefined {
    return this.get(this.#first);
  }

  /** When something is due. */
  get(id: string): number | undefined {
    return this.#times.get(id);
  }

  /** Those that are due in one moment come in the order of their ids. What is endless never is. */
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
    // Where others are left, the timer finds at worst that none of them is due yet.
    if (this.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#keys.clear();
    this.#times.clear();
  }

  get #first(): string {
    return this.#keys.get(this.#keys.first ?? '') ?? '';
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
