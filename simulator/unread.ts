/** Whoever waits for a record: a request that may go away. */
export interface Poller {
  /** Whether the client has gone. */
  isGone(): boolean;
  /** Calls back once when the client goes; the result takes the callback back. */
  onGone(callback: () => void): () => void;
}

/**
 * Records with read marks (§3), handed out in order. Pollers wait in the order they came, and each record goes to one
 * of them. A poller that has gone gets nothing, and nothing is marked read for it. Constant time per record.
 */
export class UnreadQueue<T extends { read: boolean }> {
  /** Every record ever added, oldest first. */
  readonly records: T[] = [];
  #unread: T[] = [];
  #head = 0;
  readonly #waiting = new Set<(records: T[]) => void>();
  readonly #waitMs: number;

  /** @param waitMs how long a poller waits, real milliseconds */
  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  add(record: T): void {
    this.records.push(record);
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#unread.push(record);
    } else {
      record.read = true;
      first([record]);
    }
  }

  /** Up to `limit` unread records, marked read as they are handed out; none when the wait is over or the poller gone. */
  async take(limit: number, poller: Poller): Promise<T[]> {
    if (poller.isGone()) return [];
    const ready = this.#shift(limit);
    if (ready.length > 0) return ready;
    return new Promise((resolve) => {
      const settle = (records: T[]): void => {
        this.#waiting.delete(settle);
        clearTimeout(timer);
        forget();
        resolve(records);
      };
      const timer = setTimeout(() => settle([]), this.#waitMs);
      const forget = poller.onGone(() => settle([]));
      this.#waiting.add(settle);
    });
  }

  /** Ends every wait at once. */
  release(): void {
    for (const settle of this.#waiting) settle([]);
  }

  #shift(limit: number): T[] {
    const taken = this.#unread.slice(this.#head, this.#head + limit);
    for (const record of taken) record.read = true;
    this.#head += taken.length;
    if (this.#head > 1000 && this.#head * 2 > this.#unread.length) {
      this.#unread = this.#unread.slice(this.#head);
      this.#head = 0;
    }
    return taken;
  }
}
