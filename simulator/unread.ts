/** A request that waits for a record. Its client can disconnect. */
export interface Poller {
  /** Whether the client has disconnected. */
  isGone(): boolean;
  /** Calls back once when the client disconnects. Returns a function that cancels the callback. */
  onGone(callback: () => void): () => void;
}

/** How a queue of unread records works. */
export interface UnreadOptions<T> {
  /** How long a poller waits, in ms of real time. */
  waitMs: number;
  /** Called for each record that a poll returns. */
  onRead: (record: T) => void;
}

/**
 * The unread records (§3), in order: no poll has returned them yet. Pollers wait in the order in which they arrived, and
 * each record goes to one of them. A disconnected poller gets no record, so no record is marked as read because of it.
 * Adding or returning a record takes constant time. Records stay until they are read.
 */
export class UnreadQueue<T extends { read: boolean }> {
  #unread: T[] = [];
  #head = 0;
  readonly #waiting = new Set<(records: T[]) => void>();
  readonly #options: UnreadOptions<T>;

  constructor(options: UnreadOptions<T>) {
    this.#options = options;
  }

  add(record: T): void {
    const [first] = this.#waiting;
    if (first === undefined) this.#unread.push(record);
    else first(this.#mark([record]));
  }

  /**
   * Returns up to `limit` unread records and marks them as read. Returns none if the wait ends or the poller
   * disconnects.
   */
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
      const timer = setTimeout(() => settle([]), this.#options.waitMs);
      const forget = poller.onGone(() => settle([]));
      this.#waiting.add(settle);
    });
  }

  /** Ends all waits immediately. */
  release(): void {
    for (const settle of this.#waiting) settle([]);
  }

  /** Drops unread records. Waiting requests continue to wait. */
  clear(): void {
    this.#unread = [];
    this.#head = 0;
  }

  #shift(limit: number): T[] {
    const taken = this.#unread.slice(this.#head, this.#head + limit);
    this.#head += taken.length;
    if (this.#head > 1000 && this.#head * 2 > this.#unread.length) {
      this.#unread = this.#unread.slice(this.#head);
      this.#head = 0;
    }
    return this.#mark(taken);
  }

  #mark(records: T[]): T[] {
    for (const record of records) {
      record.read = true;
      this.#options.onRead(record);
    }
    return records;
  }
}
