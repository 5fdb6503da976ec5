import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { SmsError } from '../../src';

/**
 * Maximum wait for the properties of inputs to be read, in ms. An input waits for earlier inputs, and a node that is
 * being stopped waits for all inputs. Node-RED waits at most 15 s for a stop, so more than 10 s remain for requests in
 * flight.
 */
const maxWaitMs = 4_000;

/**
 * Keeps inputs in order while their properties are read. A reading evaluates all properties of one input, which can
 * take long with a slow context store.
 */
export class Readings {
  readonly #stops = new Set<() => void>();
  #onRead = () => {};
  /** Settles when the latest reading and all earlier readings have ended. */
  #lastReading: Promise<void> | undefined;
  #isClosed = false;

  /**
   * Resolves with the result of `reading` after all earlier readings have ended. Waits at most 4 s for them. Rejects
   * with `SMS_CLOSED` if `reading` still runs 4 s after {@link close} was called.
   */
  run<T>(reading: Promise<T>): Promise<T> {
    const earlierReadings =
      this.#stops.size > 0 && Promise.race([this.#lastReading, sleep(maxWaitMs, undefined, { ref: false })]);
    const whenEnded = Promise.allSettled([reading, earlierReadings]).then(() => {});
    this.#lastReading = whenEnded;
    return new Promise((resolve, reject) => {
      const stop = () => reject(new SmsError('closed'));
      if (this.#isClosed) stop();
      this.#stops.add(stop);
      const result = whenEnded.then(() => reading);
      result.then(resolve, reject).finally(() => {
        this.#stops.delete(stop);
        if (this.#stops.size === 0) this.#onRead();
      });
    });
  }

  /** Waits up to 4 s until the properties of all inputs are read, including inputs that Node-RED is delivering now. */
  async close(): Promise<void> {
    await nextTurn();
    const whenRead = new Promise<void>((resolve) => {
      this.#onRead = resolve;
    });
    if (this.#stops.size > 0) await Promise.race([whenRead, sleep(maxWaitMs, undefined, { ref: false })]);
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
  }
}
