import { type Clock, systemClock, type Timer } from '../clock';
import type { Taker } from './distribution';
import type { Channel, Entry, InboxRecord } from './entry';
import type { Inbox } from './inbox';

/** One delivery of a record into the flow. */
export interface FlowDelivery {
  record: InboxRecord;
  /** It may have been sent into the flow before. */
  redelivered: boolean;
  /** What the flow has to bring back; absent when it need not. */
  ackId?: string;
}

/** How a {@link Receiver} hands over. */
export interface ReceiverOptions {
  /** The node's id. */
  id: string;
  channel: Channel;
  /** Whether the node is interested in a record; what it does not want counts as delivered. */
  wants(record: InboxRecord): boolean;
  /** `auto`: sending is delivering. `flow`: the flow says when. */
  acknowledge: 'auto' | 'flow';
  /** How long the flow may take. */
  ackTimeoutMs: number;
  /** Deliveries of one record before it is given up. */
  maxAttempts: number;
  /** Sends into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  send(delivery: FlowDelivery): Promise<boolean>;
  /** A record was given up. */
  onUndelivered(record: InboxRecord, attempts: number): void;
  /** The number of records that the flow has not acknowledged has changed. */
  onOutstanding(): void;
}

/** At most so many records are out unacknowledged. */
export const maxOutstanding = 100;

const firstRetryDelayMs = 250;

/** A record that the flow has to acknowledge. */
interface Outstanding {
  entry: Entry;
  attempt: number;
  timer: Timer | undefined;
}

/**
 * One polling node's share of the inbox: sends each record into its flow, and, when the flow acknowledges, again until
 * it has or the attempts are used up. Keeps the order of first deliveries.
 */
export class Receiver implements Taker {
  readonly id: string;
  readonly #inbox: Inbox;
  readonly #options: ReceiverOptions;
  readonly #clock: Clock;
  readonly #outstanding = new Map<string, Outstanding>();
  /** Taken, but not sent yet because too many are out. */
  readonly #waiting: { entry: Entry; isNew: boolean }[] = [];
  #isSending = false;
  #detached = false;

  constructor(inbox: Inbox, options: ReceiverOptions, clock: Clock = systemClock) {
    this.id = options.id;
    this.#inbox = inbox;
    this.#options = options;
    this.#clock = clock;
  }

  /** A record may wait for long behind others, and is not attempted until it is sent. */
  get countsAttempts(): boolean {
    return this.#options.acknowledge === 'flow';
  }

  /** Records that the flow has and has not acknowledged. */
  get outstanding(): number {
    return this.#outstanding.size;
  }

  /** Begins to receive. */
  attach(): void {
    this.#inbox.attach(this.#options.channel, this);
  }

  /** Ends it: what is out unacknowledged stays in the inbox. */
  detach(): void {
    this.#detached = true;
    this.#inbox.detach(this.#options.channel, this);
    for (const { timer } of this.#outstanding.values()) timer?.cancel();
    this.#outstanding.clear();
    this.#waiting.length = 0;
  }

  take(entries: readonly Entry[], _context?: unknown, isNew = false): void {
    for (const entry of entries) {
      if (!this.#options.wants(entry.record)) this.#inbox.done(entry, this);
      else if (this.#options.acknowledge === 'auto') this.#sendOnce(entry);
      else this.#waiting.push({ entry, isNew });
    }
    this.#sendWaiting();
  }

  /**
   * The flow brought a message back.
   *
   * @param failed the flow could not handle it: it is sent again, unless it has been already
   * @returns whether the id belongs to a record that is out here
   */
  acknowledge(ackId: string, failed: boolean): boolean {
    const [id = '', attempt] = ackId.split('.');
    const outstanding = this.#outstanding.get(id);
    if (!outstanding) return false;
    if (!failed) this.#finish(outstanding);
    else if (outstanding.timer && Number(attempt) === outstanding.attempt) this.#sendLater(outstanding);
    return true;
  }

  #sendOnce(entry: Entry): void {
    const { record, attempts } = entry;
    void this.#options.send({ record, redelivered: attempts > 1 || entry.unsure === true }).then((sent) => {
      if (sent) this.#inbox.done(entry, this);
    });
  }

  #sendWaiting(): void {
    // Giving one up asks for the next: in a loop, since there may be thousands.
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#outstanding.size < maxOutstanding) {
        const next = this.#waiting.shift();
        if (!next) break;
        const { entry, isNew } = next;
        if (!isNew) this.#inbox.countAttempt(entry);
        const outstanding: Outstanding = { entry, attempt: Math.max(1, entry.attempts), timer: undefined };
        this.#outstanding.set(entry.id, outstanding);
        this.#options.onOutstanding();
        this.#send(outstanding);
      }
    } finally {
      this.#isSending = false;
    }
  }

  #send(outstanding: Outstanding): void {
    const { entry, attempt } = outstanding;
    if (attempt > this.#options.maxAttempts) {
      this.#giveUp(outstanding);
      return;
    }
    outstanding.timer = this.#clock.after(this.#options.ackTimeoutMs, () => this.#sendAgain(outstanding));
    const redelivered = attempt > 1 || entry.unsure === true;
    void this.#options.send({ record: entry.record, redelivered, ackId: `${entry.id}.${attempt}` });
  }

  /** Leaves the flow a moment to recover, a longer one each time. */
  #sendLater(outstanding: Outstanding): void {
    outstanding.timer?.cancel();
    outstanding.timer = undefined;
    if (outstanding.attempt >= this.#options.maxAttempts) {
      this.#giveUp(outstanding);
      return;
    }
    const delayMs = Math.min(this.#options.ackTimeoutMs, firstRetryDelayMs * 2 ** (outstanding.attempt - 1));
    this.#clock.after(delayMs, () => {
      if (this.#outstanding.get(outstanding.entry.id) === outstanding) this.#sendAgain(outstanding);
    });
  }

  #sendAgain(outstanding: Outstanding): void {
    outstanding.attempt++;
    if (outstanding.attempt <= this.#options.maxAttempts) this.#inbox.countAttempt(outstanding.entry);
    this.#send(outstanding);
  }

  #giveUp(outstanding: Outstanding): void {
    const { record } = outstanding.entry;
    this.#options.onUndelivered(record, this.#options.maxAttempts);
    this.#finish(outstanding);
  }

  #finish(outstanding: Outstanding): void {
    outstanding.timer?.cancel();
    if (this.#detached) return;
    this.#outstanding.delete(outstanding.entry.id);
    this.#inbox.done(outstanding.entry, this);
    this.#options.onOutstanding();
    this.#sendWaiting();
  }
}
