import { SmsError } from '../errors';

interface Waiting {
  start(): void;
  abandon(): void;
}

/** Runs so many tasks at once; more wait in order, up to a limit. */
export class SendQueue {
  readonly #concurrency: number;
  readonly #limit: number;
  readonly #waiting = new Set<Waiting>();
  #running = 0;

  /** @param limit tasks that may wait */
  constructor(concurrency: number, limit: number) {
    this.#concurrency = concurrency;
    this.#limit = limit;
  }

  /**
   * Runs `task` when its turn comes.
   *
   * @throws SmsError `SMS_BUSY` at once when too many wait already; `SMS_CLOSED` when `signal` aborts before its turn
   */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw new SmsError('closed');
    if (this.#running < this.#concurrency) this.#running++;
    else await this.#wait(signal);
    try {
      return await task();
    } finally {
      // The place is handed on without being given free in between, so that none can overtake.
      const [next] = this.#waiting;
      if (next) next.start();
      else this.#running--;
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#limit) {
      return Promise.reject(new SmsError('busy', { params: { limit: this.#limit } }));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start: () => {
          leave();
          resolve();
        },
        abandon: () => {
          leave();
          reject(new SmsError('closed'));
        },
      };
      const leave = () => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', waiting.abandon);
      };
      this.#waiting.add(waiting);
      signal.addEventListener('abort', waiting.abandon, { once: true });
    });
  }
}
