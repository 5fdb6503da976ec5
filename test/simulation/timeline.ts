import type { Clock, Timer } from '../../src/clock';
import type { Random } from './random';

/** The owner of events, such as a process. After the owner has died, none of its events happens. */
export interface Owner {
  readonly name: string;
  isAlive: boolean;
}

type EventKind = 'timer' | 'turn' | 'outside';

interface Event extends Timer {
  atMs: number;
  kind: EventKind;
  owner: Owner | undefined;
  run: () => void;
  isCancelled: boolean;
}

/** Maximum number of clock reads during one event, so that an endless loop fails. */
const maxReads = 100_000;

/**
 * Virtual time, which passes only if nothing is left to do now. The seed chooses the order of events at the same
 * moment, but timers keep their order, and so do callbacks of the next turn.
 */
export class Timeline {
  readonly #later: Event[] = [];
  readonly #due: Record<EventKind, Event[]> = { timer: [], turn: [], outside: [] };
  #nowMs = 0;
  /** Number of events that have happened. */
  count = 0;
  /** Number of clock reads since the last event. */
  #reads = 0;

  constructor(private readonly random: Random) {}

  /** Time since the start of the run, in ms. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Schedules an event from outside a process, such as the network, a disk or a user. */
  outside(delayMs: number, run: () => void, owner?: Owner): Timer {
    return this.#add('outside', delayMs, run, owner);
  }

  /**
   * Creates the clock of a process. Faults can set this clock.
   * @param turnsMs possible durations of a turn of the event loop of the process
   */
  createClock(
    owner: Owner,
    startsAtMs: number,
    random: Random,
    turnsMs: readonly number[],
  ): Clock & { set(byMs: number): void; timers(): number } {
    let offsetMs = startsAtMs;
    let lastTurnMs = 0;
    const timers = new Set<Event>();
    return {
      now: () => Math.floor(this.#nowMs + offsetMs),
      elapsed: () => {
        if (++this.#reads > maxReads) throw new Error('reads the clock in an endless loop');
        return this.#nowMs;
      },
      after: (delayMs, callback, isIdle = false) => {
        const event = this.#add(
          'timer',
          Math.max(1, delayMs),
          () => {
            timers.delete(event);
            callback();
          },
          owner,
        );
        // Does not count an idle timer, because it does not keep a process alive.
        if (!isIdle) timers.add(event);
        return {
          cancel: () => {
            timers.delete(event);
            event.cancel();
          },
        };
      },
      nextTurn: (callback) => {
        // Turns happen in the order in which they were scheduled.
        lastTurnMs = Math.max(lastTurnMs, this.#nowMs + (turnsMs.length > 1 ? random.pick(turnsMs) : 0));
        return this.#add('turn', lastTurnMs - this.#nowMs, callback, owner);
      },
      random: () => random.next(),
      set: (byMs) => {
        offsetMs += byMs;
      },
      timers: () => timers.size,
    };
  }

  /** Advances time without any event. Then all events that have become due happen in random order. */
  stall(durationMs: number): void {
    this.#nowMs += durationMs;
  }

  /** Runs the next event if it is due by `untilMs`. Returns whether there was one. */
  step(untilMs: number): boolean {
    for (;;) {
      this.#collect();
      const { timer, turn, outside } = this.#due;
      const choices = (timer.length > 0 ? 1 : 0) + (turn.length > 0 ? 1 : 0) + outside.length;
      if (choices === 0) {
        const next = this.#later[0];
        if (!next || next.atMs > untilMs) {
          this.#nowMs = Math.max(this.#nowMs, untilMs);
          return false;
        }
        this.#nowMs = Math.max(this.#nowMs, next.atMs);
        continue;
      }
      const event = this.#choose(choices === 1 ? 0 : this.random.below(choices));
      if (!event || event.isCancelled || event.owner?.isAlive === false) continue;
      event.isCancelled = true;
      this.count++;
      this.#reads = 0;
      event.run();
      return true;
    }
  }

  #choose(choice: number): Event | undefined {
    const { timer, turn, outside } = this.#due;
    let index = choice;
    if (timer.length > 0 && index-- === 0) return timer.shift();
    if (turn.length > 0 && index-- === 0) return turn.shift();
    return outside.splice(index, 1)[0];
  }

  #add(kind: EventKind, delayMs: number, run: () => void, owner: Owner | undefined): Event {
    const event: Event = {
      atMs: this.#nowMs + delayMs,
      kind,
      owner,
      run,
      isCancelled: false,
      cancel: () => {
        event.isCancelled = true;
      },
    };
    if (kind === 'turn' && delayMs === 0) this.#due.turn.push(event);
    else this.#insert(event);
    return event;
  }

  #collect(): void {
    const index = this.#later.findIndex(({ atMs }) => atMs > this.#nowMs);
    for (const event of this.#later.splice(0, index < 0 ? Number.POSITIVE_INFINITY : index)) {
      if (!event.isCancelled) this.#due[event.kind].push(event);
    }
  }

  /** Inserts an event into the later events, which are sorted by time. Events of the same time keep their order. */
  #insert(event: Event): void {
    let [low, high] = [0, this.#later.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#later[middle] as Event).atMs <= event.atMs) low = middle + 1;
      else high = middle;
    }
    this.#later.splice(low, 0, event);
  }
}
