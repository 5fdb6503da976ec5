import type { Clock, Timer } from '../clock';
import type { Waiting, WaitingRoom } from './waiting-room';

/** What a muster needs. */
export interface MusterOptions {
  clock: Clock;
  room: WaitingRoom;
  /** Called for each that waits, those first that are to leave first. */
  queueUp(waiting: Waiting): void;
}

/**
 * Has kept texts that may leave together queue up in the order of priority and arrival: one by one, whoever comes first would
 * take a place that is free.
 */
export class Muster {
  readonly #options: MusterOptions;
  #timer: Timer | undefined;

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

  /** Holds one at once. */
  hold(): void {
    this.cancel();
    // The room has them in the order of their arrival.
    for (const waiting of this.#options.room.values().sort((a, b) => b.priority - a.priority)) {
      this.#options.queueUp(waiting);
    }
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
