import type { Clock, Timer } from '../clock';
import type { Waiting, WaitingRoom } from './waiting-room';

/** What a muster needs. */
export interface MusterOptions {
  clock: Clock;
  room: WaitingRoom;
  /** Called for each that waits, those first that are to leave first. */
  queueUp(waiting: Waiting): void;
}

/** Texts that queue up in one turn of the event loop. */
const mostInTurn = 1_000;

/**
 * Has kept texts that may leave together queue up in the order of priority and arrival: one by one, whoever comes first would
 * take a place that is free.
 */
export class Muster {
  readonly #options: MusterOptions;
  #timer: Timer | undefined;
  /** When the others queue up of the last that was held. */
  #turn: Timer | undefined;

  constructor(options: MusterOptions) {
    this.#options = options;
  }

  /** Whether one is to be held: nobody queues up until then. */
  get isCalled(): boolean {
    return this.#timer !== undefined;
  }

  /** Calls one for the next turn of the event loop: by then all nodes of a deployment are here. */
  call(): void {
    this.#timer ??= this.#options.clock.nextTurn(() => this.hold());
  }

  /** Holds one: those that are to leave first queue up at once, many others in the turns that follow. */
  hold(): void {
    this.cancel();
    // The room has them in the order of their arrival.
    const waiting = this.#options.room.values().filter(({ isQueued }) => !isQueued);
    this.#goOn(waiting.sort((a, b) => b.priority - a.priority).values());
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#turn?.cancel();
    this.#turn = undefined;
  }

  #goOn(waiting: Iterator<Waiting>): void {
    this.#turn = undefined;
    for (let count = 0; count < mostInTurn; count++) {
      const next = waiting.next();
      if (next.done) return;
      this.#options.queueUp(next.value);
    }
    this.#turn = this.#options.clock.nextTurn(() => this.#goOn(waiting));
  }
}
