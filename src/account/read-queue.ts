import { onceAborted } from '../clock';
import { SmsError } from '../errors';

/** Limits of a {@link ReadQueue}. */
interface ReadLimits {
  /** Maximum number of reads at the same time. */
  concurrency: number;
  /** Maximum number of reads that wait. */
  queueLimit: number;
}

/** Runs reads on request in order, a limited number at the same time (contract §3). */
export class ReadQueue {
  readonly #limits: () => ReadLimits;
  #running = 0;
  readonly #waiting = new Set<() => void>();

  /** @param limits called for each read, because they can change */
  constructor(limits: () => ReadLimits) {
    this.#limits = limits;
  }

  /**
   * Runs a read when its turn comes.
   *
   * @param signal ends the wait; a running read continues
   * @throws SmsError `SMS_BUSY` if too many reads wait; `SMS_CLOSED` if `signal` aborts before the read starts
   */
  async run<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    if (signal.aborted) throw new SmsError('closedRead');
    const { concurrency, queueLimit } = this.#limits();
    if (this.#running < concurrency) this.#running++;
    else if (this.#waiting.size < queueLimit) await this.#wait(signal);
    else throw new SmsError('busyReads', { params: { limit: queueLimit } });
    try {
      return await read();
    } finally {
      this.#running--;
      this.#startNext();
    }
  }

  /** Resolves when the read counts as running. */
  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = () => {
        unsubscribe();
        this.#waiting.delete(start);
        this.#running++;
        resolve();
      };
      const unsubscribe = onceAborted(signal, () => {
        this.#waiting.delete(start);
        reject(new SmsError('closedRead'));
      });
      this.#waiting.add(start);
    });
  }

  #startNext(): void {
    for (const start of this.#waiting) {
      if (this.#running >= this.#limits().concurrency) return;
      start();
    }
  }
}
