import type { Clock } from '../clock';
import type { Remembered } from '../store/store';

/** A time in which the clock was not set, in ms since 1970 as the clock said. */
interface Stretch {
  from: number;
  until: number;
  /** How far the clock was ahead of the elapsed time. */
  leadMs: number;
}

/** Smaller changes of the clock are ignored: they barely affect ages. */
const minSetMs = 60_000;

/** A clock that was not set for this time counts as right. */
const trustedAfterMs = 3_600_000;

/** Number of changes of the clock that are remembered. */
const maxStretches = 16;

/** One for each clock, because a process keeps its knowledge across deployments of an account. */
const known = new WeakMap<Clock, ClockSkew>();

/**
 * Corrects the ages of values that were remembered before the clock was set. Values of this process have the age that the
 * elapsed time says. A value from the future is older than the change of the clock, or than the process: its age counts
 * from there.
 */
export class ClockSkew {
  readonly #clock: Clock;
  /** Earlier stretches, the latest last. */
  readonly #former: Stretch[] = [];
  /** When the last change of the clock was noticed, or else when this object was created, in ms since 1970. */
  setAt: number;
  /** The begin of the present stretch: this process has remembered, or corrected, every later value. */
  #from: number;
  #leadMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.setAt = clock.now();
    this.#from = this.setAt;
    this.#leadMs = this.setAt - clock.elapsed();
  }

  static of(clock: Clock): ClockSkew {
    const times = known.get(clock) ?? new ClockSkew(clock);
    known.set(clock, times);
    return times;
  }

  /**
   * Corrects a value as if the clock had always been as it is now.
   *
   * @param isShared other processes remember in the store too, whose clocks can be ahead
   */
  read(remembered: Remembered, isShared = false): Remembered {
    const isAhead = remembered.at - this.look() > minSetMs && !isShared;
    const at = isAhead ? this.setAt : this.timeOf(remembered.at);
    return at === remembered.at ? remembered : { ...remembered, at };
  }

  /** Corrects a time in ms since 1970, as if the clock had always been as it is now. A time in the future stays. */
  timeOf(at: number): number {
    this.look();
    let byMs = 0;
    for (const { from, until, leadMs } of this.#former) {
      // Smaller changes of the clock were ignored.
      if (at > from - minSetMs && at < until + minSetMs) byMs = Math.max(byMs, this.#leadMs - leadMs);
    }
    return at + byMs;
  }

  /**
   * Corrects a value for the store. A value from the future stays for an hour, because the clock of a machine that has just
   * started can be behind.
   */
  correct(remembered: Remembered, isShared = false): Remembered {
    const read = this.read(remembered, isShared);
    return read.at > remembered.at || this.#clock.now() - this.setAt >= trustedAfterMs ? read : remembered;
  }

  /** Corrects a value for the store. `undefined`: its time is over. */
  renew(remembered: Remembered): Remembered | undefined {
    const { at, forMs } = this.read(remembered);
    return at + forMs < this.#clock.now() ? undefined : this.correct(remembered);
  }

  /** Records a change of the clock, if there was one, and returns the current time. To be called before anything is remembered by the clock. */
  look(): number {
    const now = this.#clock.now();
    const leadMs = now - this.#clock.elapsed();
    if (Math.abs(leadMs - this.#leadMs) < minSetMs) return now;
    const until = now - leadMs + this.#leadMs;
    this.#former.push({ from: this.#from, until, leadMs: this.#leadMs });
    if (this.#former.length > maxStretches) this.#former.shift();
    this.setAt = now;
    this.#from = leadMs > this.#leadMs ? this.#from + leadMs - this.#leadMs : now;
    this.#leadMs = leadMs;
    return now;
  }
}
