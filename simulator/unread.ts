/** A request that waits for a record. Its client can disconnect. */
export interface Poller {
  /** Whether the client has disconnected. */
  isGone(): boolean;
  /** Calls back once when the client disconnects. Returns a function that cancels the callback. */
  onGone(callback: () => void): () => void;
}

/** Options of an {@link UnreadQueue}. */
export interface UnreadOptions<T> {
  /** Maximum wait of a poller, in ms of real time. */
  waitMs: number;
  /** Called for each record that a poll returns. */
  onRead: (record: T) => void;
}

/**
 * The unread records (§3), oldest first.
 * - A record stays until a poll returns it.
 * - Each record goes to one poller. Pollers wait in the order in which they arrived.
 * - A disconnected poller gets no record, because the record would be marked as read without being received.
 */
export class UnreadQueue<T extends { read: boolean }> {
  readonly #unread: T[] = [];
  readonly #waitingPolls = new Set<(records: T[]) => void>();
  readonly #options: UnreadOptions<T>;

  constructor(options: UnreadOptions<T>) {
    this.#options = options;
  }

  add(record: T): void {
    const [firstPoll] = this.#waitingPolls;
    if (firstPoll === undefined) this.#unread.push(record);
    else firstPoll(this.#markRead([record]));
  }

  /**
   * Returns up to `limit` unread records and marks them as read. Returns none if the wait ends or the poller
   * disconnects.
   */
  async take(limit: number, poller: Poller): Promise<T[]> {
    if (poller.isGone()) return [];
    const unreadRecords = this.#unread.splice(0, limit);
    if (unreadRecords.length > 0) return this.#markRead(unreadRecords);
    return new Promise((resolve) => {
      const endPoll = (records: T[]): void => {
        this.#waitingPolls.delete(endPoll);
        clearTimeout(timer);
        forget();
        resolve(records);
      };
      const timer = setTimeout(() => endPoll([]), this.#options.waitMs);
      const forget = poller.onGone(() => endPoll([]));
      this.#waitingPolls.add(endPoll);
    });
  }

  /** Ends all waits immediately. */
  release(): void {
    for (const endPoll of this.#waitingPolls) endPoll([]);
  }

  /** Drops unread records. Waiting requests continue to wait. */
  clear(): void {
    this.#unread.length = 0;
  }

  #markRead(records: T[]): T[] {
    for (const record of records) {
      record.read = true;
      this.#options.onRead(record);
    }
    return records;
  }
}
