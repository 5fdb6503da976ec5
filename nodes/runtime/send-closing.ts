import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node } from 'node-red';
import { SmsError } from '../../src';

/**
 * How long a stop waits for what is being read. What has left is followed for 10 s after that, and Node-RED waits for 15 s in all.
 */
const patienceMs = 4_000;

/** What a node reads for its messages, a context store that is slow perhaps: a message is in its hands from when that begins. */
export class Readings {
  readonly #endings = new Set<() => void>();
  #onRead = () => {};
  #isClosed = false;

  /** Waits for a reading. Rejects with `SMS_CLOSED` when the node is stopped and it does not end in time. */
  run<T>(reading: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = () => reject(new SmsError('closed'));
      const end = () => {
        this.#endings.delete(stop);
        // Whoever waits for the reading goes on before whoever waits for all of them.
        if (this.#endings.size === 0) this.#onRead();
      };
      if (!this.#isClosed) this.#endings.add(stop);
      reading.then(resolve, reject).finally(end);
      if (this.#isClosed) stop();
    });
  }

  /** The node is stopped. Resolves when everything is read, also of what Node-RED has on its way to the node, or the time is up. */
  async close(): Promise<void> {
    await nextTurn();
    this.#isClosed = this.#endings.size === 0;
    if (this.#isClosed) return;
    await new Promise<void>((resolve) => {
      const close = () => {
        this.#isClosed = true;
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        for (const stop of this.#endings) stop();
        close();
      }, patienceMs);
      this.#onRead = close;
    });
  }
}

/** What fails while a node is being stopped: its Catch node may have been stopped before, and then nobody would hear of it. */
export class LateErrors {
  readonly #node: Node;
  /** How often each has come; `undefined`: the node runs. */
  #counts: Map<string, number> | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  /** The node is being stopped: from now on errors are counted. */
  begin(): void {
    this.#counts = new Map();
  }

  count({ message }: Error): void {
    this.#counts?.set(message, (this.#counts.get(message) ?? 0) + 1);
  }

  /** Writes what has come into the log. */
  tell(): void {
    for (const [text, count] of this.#counts ?? []) this.#node.warn(`${count} × ${text}`);
    this.#counts?.clear();
  }
}
