import type { Clock } from '../clock';
import type { Remembered } from '../store/store';

/**
 * A period between two clock changes. `from` and `until` are in ms since 1970, as the clock showed them in this period.
 */
interface Period {
  from: number;
  until: number;
  /** Difference between the wall clock and {@link Clock.elapsed} in this period, in ms. */
  leadMs: number;
}

/** Minimum clock change that is corrected, in ms. Smaller changes barely affect ages. */
const minSetMs = 60_000;

/** Time without a clock change after which the clock is trusted, in ms. */
const trustedAfterMs = 3_600_000;

/** Maximum number of remembered clock changes. */
const maxPeriods = 16;

/** One object per clock. It outlives an account, so that a redeploy does not lose the known clock changes. */
const skewByClock = new WeakMap<Clock, ClockSkew>();

/**
 * Corrects the ages of remembered values (values that the store keeps under a key) after the clock was set:
 *
 * - If this process has stored the value, its age is the time that has elapsed since then.
 * - If the value has a time in the future, its age counts from the last clock change. If the clock was never changed,
 *   its age counts from the start of this process.
 */
export class ClockSkew {
  readonly #clock: Clock;
  /** Earlier periods, latest last. */
  readonly #earlierPeriods: Period[] = [];
  /** Time of the last clock change, or else of the creation of this object, in ms since 1970. */
  setAt: number;
  /** Start of the current period. If a value has a later time, this process has stored or corrected the value. */
  #periodStart: number;
  #leadMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.setAt = clock.now();
    this.#periodStart = this.setAt;
    this.#leadMs = this.setAt - clock.elapsed();
  }

  static of(clock: Clock): ClockSkew {
    const times = skewByClock.get(clock) ?? new ClockSkew(clock);
    skewByClock.set(clock, times);
    return times;
  }

  /**
   * Returns a value whose time is corrected if the clock was set after that time. A time in the future becomes {@link
   * setAt}, unless the store is shared.
   *
   * @param isShared true if other processes, whose clocks can be ahead, also write to the store
   * @param now result of {@link noteChange}
   */
  read(remembered: Remembered, isShared = false, now = this.noteChange()): Remembered {
    const isAhead = remembered.at - now > minSetMs && !isShared;
    const at = isAhead ? this.setAt : this.#correctedTime(remembered.at);
    return at === remembered.at ? remembered : { ...remembered, at };
  }

  /** Corrects a time, in ms since 1970, if the clock was set after that time. Does not change a time in the future. */
  timeOf(at: number): number {
    this.noteChange();
    return this.#correctedTime(at);
  }

  #correctedTime(at: number): number {
    let byMs = 0;
    for (const { from, until, leadMs } of this.#earlierPeriods) {
      // Because smaller clock changes are not noted, a time up to {@link minSetMs} outside the period can still belong
      // to it, and is also corrected.
      if (at > from - minSetMs && at < until + minSetMs) byMs = Math.max(byMs, this.#leadMs - leadMs);
    }
    return at + byMs;
  }

  /**
   * Returns a value with its corrected time, to be stored. For an hour after the start of the process or a clock
   * change, a time in the future stays unchanged, because the clock of a machine that has just started might be behind,
   * and the time might be right.
   */
  correct(remembered: Remembered, isShared = false): Remembered {
    const now = this.noteChange();
    const read = this.read(remembered, isShared, now);
    return read.at > remembered.at || now - this.setAt >= trustedAfterMs ? read : remembered;
  }

  /** Returns the result of {@link correct}, or `undefined` if the value has expired. */
  renew(remembered: Remembered): Remembered | undefined {
    const { at, forMs } = this.read(remembered);
    return at + forMs < this.#clock.now() ? undefined : this.correct(remembered);
  }

  /**
   * Checks whether the clock was set, and notes the change. Returns the current time. Call it before a step stores a
   * time.
   */
  noteChange(): number {
    const now = this.#clock.now();
    const leadMs = now - this.#clock.elapsed();
    if (Math.abs(leadMs - this.#leadMs) < minSetMs) return now;
    const until = now - leadMs + this.#leadMs;
    this.#earlierPeriods.push({ from: this.#periodStart, until, leadMs: this.#leadMs });
    if (this.#earlierPeriods.length > maxPeriods) this.#earlierPeriods.shift();
    this.setAt = now;
    this.#periodStart = leadMs > this.#leadMs ? this.#periodStart + leadMs - this.#leadMs : now;
    this.#leadMs = leadMs;
    return now;
  }
}
