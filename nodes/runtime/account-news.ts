import type { NodeAPI } from 'node-red';
import { type Clock, systemClock } from '../../src';
import { changedTopic } from './account-report';

/** What comes at the same time is told at once. */
const gatherMs = 100;
const pauseMs = 1_000;

/**
 * Tells the editors that something has changed in an account, once a second at most. Not what: everybody who may see
 * badges is told, and who may know more asks for it.
 */
export class AccountNews {
  readonly #RED: Pick<NodeAPI, 'comms'>;
  readonly #clock: Clock;
  #isDue = false;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(RED: Pick<NodeAPI, 'comms'>, clock = systemClock) {
    this.#RED = RED;
    this.#clock = clock;
  }

  /** To be called whenever anything may have changed: it costs nothing while word of it is due. */
  readonly changed = (): void => {
    if (this.#isDue) return;
    this.#isDue = true;
    const delayMs = Math.max(gatherMs, this.#lastAt + pauseMs - this.#clock.elapsed());
    this.#clock.after(delayMs, () => this.#tell(), true);
  };

  #tell(): void {
    this.#isDue = false;
    this.#lastAt = this.#clock.elapsed();
    this.#RED.comms.publish(changedTopic, {}, false);
  }
}
