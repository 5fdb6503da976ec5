import type { Clock, Timer } from '../clock';
import { formatOrder, OrderedKeys } from './ordered-keys';

/** The clock may be set, and a machine be asleep, which no timer hears of: it is looked at so often. */
const longestDelayMs = 60_000;

/** What may come due by the ten thousand in one moment is dealt with a few hundred in each turn of the event loop. */
const mostInTurn = 250;

interface Due {
  readonly id: string;
  readonly at: number;
  readonly key: string;
}

/** What is due some time, with one timer on the first of it. */
export class DueTimes {
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #onDue: (id: string) => void;
  readonly #keys = new OrderedKeys();
  readonly #byKey = new Map<string, Due>();
  readonly #byId = new Map<string, Due>();
  #arrivals = 0;
  #timer: Timer | undefined;

  /**
   * @param now the time by which it goes, one of the clock's, in ms
   * @param onDue something is due, and is not here any more
   */
  constructor(clock: Clock, now: () => number, onDue: (id: string) => void) {
    this.#clock = clock;
    this.#now = now;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** When the first is due. */
  get first(): number | undefined {
    return this.#byKey.get(this.#keys.first ?? '')?.at;
  }

  /** When something is due. */
  get(id: string): number | undefined {
    return this.#byId.get(id)?.at;
  }

  /** @param rank orders those that are due in one moment; equals in the order in which they came */
  set(id: string, at: number, rank = ''): void {
    if (this.get(id) === at) return;
    this.#remove(id);
    const key = `${formatOrder(at)}${rank}${formatOrder(this.#arrivals++)}`;
    const due: Due = { id, at, key };
    this.#keys.add(key);
    this.#byKey.set(key, due);
    this.#byId.set(id, due);
    if (this.#keys.first === key) this.#wait();
  }

  delete(id: string): void {
    this.#remove(id);
    // Where others are left, the timer finds at worst that none of them is due yet.
    if (this.size === 0) this.#timer?.cancel();
  }

  clear(): void {
    this.#timer?.cancel();
    this.#keys.clear();
    this.#byKey.clear();
    this.#byId.clear();
  }

  #remove(id: string): void {
    const { key } = this.#byId.get(id) ?? {};
    if (key === undefined) return;
    this.#keys.delete(key);
    this.#byKey.delete(key);
    this.#byId.delete(id);
  }

  #wait(): void {
    this.#timer?.cancel();
    const { first } = this;
    if (first === undefined) return;
    const delayMs = Math.max(0, Math.min(longestDelayMs, first - this.#now()));
    this.#timer = this.#clock.after(delayMs, () => this.#look(), true);
  }

  #look(): void {
    for (let count = 0; count < mostInTurn; count++) {
      const first = this.#byKey.get(this.#keys.first ?? '');
      if (!first || first.at > this.#now()) {
        this.#wait();
        return;
      }
      this.#remove(first.id);
      this.#onDue(first.id);
    }
    this.#timer?.cancel();
    this.#timer = this.#clock.nextTurn(() => this.#look());
  }
}
