import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { SmsError } from '../../src';

/**
 * How long a stop waits for inputs whose properties are being read, and an input for those before it. A message that
 * has left is followed for 10 s after that, and Node-RED waits for 15 s in all.
 */
const patienceMs = 4_000;

/** Reads the properties of inputs, which can take time with a slow context store, and keeps the order of the inputs. */
export class Readings {
  readonly #stops = new Set<() => void>();
  #onRead = () => {};
  /** Settles when the last reading and those before it have ended. */
  #last: Promise<void> | undefined;
  #isClosed = false;

  /**
   * Waits for a reading and for those before it, at most 4 s for a context store that does not answer. Rejects with
   * `SMS_CLOSED` if the node is stopped and the reading does not end in time.
   */
  run<T>(reading: Promise<T>): Promise<T> {
    const turn = this.#stops.size > 0 && Promise.race([this.#last, sleep(patienceMs, undefined, { ref: false })]);
    const ended = Promise.allSettled([reading, turn]).then(() => {});
    this.#last = ended;
    return new Promise((resolve, reject) => {
      const stop = () => reject(new SmsError('closed'));
      if (this.#isClosed) stop();
      this.#stops.add(stop);
      const read = ended.then(() => reading);
      read.then(resolve, reject).finally(() => {
        this.#stops.delete(stop);
        if (this.#stops.size === 0) this.#onRead();
      });
    });
  }

  /** Resolves when everything is read, also inputs that Node-RED has on their way to the node, or the time is up. */
  async close(): Promise<void> {
    await nextTurn();
    const read = new Promise<void>((resolve) => {
      this.#onRead = resolve;
    });
    if (this.#stops.size > 0) await Promise.race([read, sleep(patienceMs, undefined, { ref: false })]);
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
  }
}
