import type { Clock, Timer } from '../clock';

const mostInTurn = 250;

/**
 * Does, in order, what may come by the ten thousand in one moment: a few hundred at once, and as many in each turn of the event loop that
 * follows. Whoever has something done looks whether it is still to be done by then.
 */
export class Batched {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];
  #doneInTurn = 0;
  #turn: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  run(work: () => void): void {
    this.#turn ??= this.#clock.nextTurn(() => this.#goOn());
    if (this.#waiting.length > 0 || this.#doneInTurn === mostInTurn) this.#waiting.push(work);
    else {
      this.#doneInTurn++;
      work();
    }
  }

  #goOn(): void {
    const due = this.#waiting.splice(0, mostInTurn);
    this.#doneInTurn = due.length;
    this.#turn = due.length > 0 ? this.#clock.nextTurn(() => this.#goOn()) : undefined;
    for (const work of due) work();
  }
}
