import type { Clock, Timer } from '../src/clock';

interface Due {
  at: number;
  callback: () => void;
}

/** Maximum number of reads without a pause, so that an endless loop fails. */
const maxReads = 1_000_000;

/** A clock whose time passes only when a test advances it. */
export class VirtualClock implements Clock {
  #elapsed = 0;
  /** Number of reads since the last pause. */
  protected reads = 0;
  #ahead: number;
  readonly #timers = new Set<Due>();

  constructor(startsAt = Date.UTC(2026, 0, 1)) {
    this.#ahead = startsAt;
  }

  now(): number {
    return Math.floor(this.#elapsed + this.#ahead);
  }

  elapsed(): number {
    // Throws, because an endless loop would otherwise hang the test without a message.
    if (++this.reads > maxReads) throw new Error('spins');
    return this.#elapsed;
  }

  after(delayMs: number, callback: () => void): Timer {
    const due = { at: this.#elapsed + delayMs, callback };
    this.#timers.add(due);
    return { cancel: () => this.#timers.delete(due) };
  }

  nextTurn(callback: () => void): Timer {
    return this.after(0, callback);
  }

  random(): number {
    return 0.5;
  }

  /** Number of running timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Sets the wall clock forward or back. */
  set(byMs: number): void {
    this.#ahead += byMs;
  }

  /** Lets time pass. Runs the due timers in order, and lets each one take effect before the next one runs. */
  async advance(byMs: number): Promise<void> {
    const until = this.#elapsed + byMs;
    await settle();
    for (let due = this.#next(until); due; due = this.#next(until)) {
      this.#timers.delete(due);
      this.reads = 0;
      this.#elapsed = Math.max(this.#elapsed, due.at);
      due.callback();
      await settle();
    }
    this.#elapsed = until;
  }

  /** Lets time pass without running timers, so that they run late. */
  stall(byMs: number): void {
    this.#elapsed += byMs;
  }

  #next(until: number): Due | undefined {
    let next: Due | undefined;
    for (const due of this.#timers) if (due.at <= until && (!next || due.at < next.at)) next = due;
    return next;
  }
}

/** A virtual clock whose `nextTurn` uses real turns of the event loop. */
export class TurningClock extends VirtualClock {
  /** Number of callbacks that ran in a separate turn of the event loop. */
  turns = 0;

  override nextTurn(callback: () => void): Timer {
    const immediate = setImmediate(() => {
      this.turns++;
      this.reads = 0;
      callback();
    });
    return { cancel: () => clearImmediate(immediate) };
  }
}

/** Waits for this number of turns of the event loop, in which everything happens that needs no timer. */
export async function settle(turns = 1): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
