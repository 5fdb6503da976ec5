import type { Clock } from '../clock';
import type { Remembered } from '../store/store';

/** The time in which nobody set the clock, in ms since 1970 as that said. */
interface Stretch {
  from: number;
  until: number;
  /** By how much the clock was ahead of the one that passes evenly. */
  leadMs: number;
}

/** Set by less, nothing gets much too old. */
const leastSetMs = 60_000;

/** A clock that runs for so long, and is not set, is taken for right. */
const trustedAfterMs = 3_600_000;

/** A clock that is set more often is past help. */
const mostStretches = 16;

/** One for each clock: what was remembered before an account was deployed anew was so in the same process. */
const known = new WeakMap<Clock, ClockSkew>();

/**
 * Knows how old something is that was remembered before the clock was set: what this process has remembered since is as old as the
 * time that has passed says. Of what lies ahead it is only known that it is older than the setting of the clock, or
 * than the process: it counts from there.
 */
export class ClockSkew {
  readonly #clock: Clock;
  /** Before the clock was set, the latest last. */
  readonly #former: Stretch[] = [];
  /** When the clock was set last, as far as was looked, or first looked at, in ms since 1970. */
  setAt: number;
  /** From here on lies what this process has remembered, also what was written again as it is read since the clock was set. */
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
   * As if the clock had always been what it is now.
   *
   * @param isShared others remember there as well, whose clocks may be ahead, and the store forgets by itself
   */
  read(remembered: Remembered, isShared = false): Remembered {
    const isAhead = remembered.at - this.look() > leastSetMs && !isShared;
    const at = isAhead ? this.setAt : this.timeOf(remembered.at);
    return at === remembered.at ? remembered : { ...remembered, at };
  }

  /** When something was, in ms since 1970, as if the clock had always been what it is now. What lies ahead stays so. */
  timeOf(at: number): number {
    this.look();
    let byMs = 0;
    for (const { from, until, leadMs } of this.#former) {
      // It may have been set by so little before, or since, that nobody noticed.
      if (at > from - leastSetMs && at < until + leastSetMs) byMs = Math.max(byMs, this.#leadMs - leadMs);
    }
    return at + byMs;
  }

  /**
   * As it is to be in the store from now on. What lies ahead stays so for a while: where the clock is behind, as that of a machine that
   * has just started may be, it is right.
   */
  correct(remembered: Remembered, isShared = false): Remembered {
    const read = this.read(remembered, isShared);
    return read.at > remembered.at || this.#clock.now() - this.setAt >= trustedAfterMs ? read : remembered;
  }

  /** As it is to be in the store from now on; `undefined`: its time is over. */
  renew(remembered: Remembered): Remembered | undefined {
    const { at, forMs } = this.read(remembered);
    return at + forMs < this.#clock.now() ? undefined : this.correct(remembered);
  }

  /** Notices whether the clock has been set, and returns what it says. What is noted before it is set once more has to be looked at before. */
  look(): number {
    const now = this.#clock.now();
    const leadMs = now - this.#clock.elapsed();
    if (Math.abs(leadMs - this.#leadMs) < leastSetMs) return now;
    const until = now - leadMs + this.#leadMs;
    this.#former.push({ from: this.#from, until, leadMs: this.#leadMs });
    if (this.#former.length > mostStretches) this.#former.shift();
    this.setAt = now;
    this.#from = leadMs > this.#leadMs ? this.#from + leadMs - this.#leadMs : now;
    this.#leadMs = leadMs;
    return now;
  }
}
