import { type Clock, systemClock } from '../clock';
import { type Channel, type Entry, newsOf } from '../inbox/entry';
import type { Inbox } from '../inbox/inbox';
import type { Kind, RecordOfKind, Records } from '../model';
import { AckTracker, type Ending, idOf } from './ack-tracker';
import type { InboxSubscriber } from './subscribers';

/** One delivery of a record into the flow. */
export type FlowDelivery<K extends Kind = Kind> = RecordOfKind<K> & {
  /** It may have been sent into the flow before. */
  redelivered: boolean;
  /** What the flow has to bring back; absent when it need not. */
  ackId?: string;
};

/** How a node is given records of these kinds. */
export interface PollSubscriptionOptions<K extends Kind = Kind> {
  /** The node's id. */
  id: string;
  channel: Channel;
  /** On channel `callback`: the path that the node answers. */
  path?: string;
  /** Whether the node is interested in a record; what it does not want counts as delivered. */
  wants(record: Records[K]): boolean;
  /** `auto`: sending is delivering. `flow`: the flow says when. */
  acknowledge: 'auto' | 'flow';
  /** How long the flow may take. */
  ackTimeoutMs: number;
  /** What becomes of what the flow could not handle: it is sent again, or the service is to bring it again. */
  onFailure?: 'again' | 'release';
  /** Deliveries of one record before it is given up. */
  maxAttempts: number;
  /** Sends into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  send(delivery: FlowDelivery<K>): Promise<boolean>;
  /** A record was given up. */
  onUndelivered(news: RecordOfKind<K>, attempts: number): void;
  /** The number of records that the flow has not acknowledged has changed. */
  onOutstanding(): void;
}

/** At most so many records are out unacknowledged, unless the service brings them. */
export const maxOutstanding = 100;
/** Likewise of those that it brings. The service is told to bring further ones later. */
export const maxCalledBack = 1_000;

/**
 * One node's share of the inbox: sends each record into its flow, and, when the flow acknowledges, minds it until it has
 * or the attempts are used up. Keeps the order of first deliveries.
 */
export class PollSubscription implements InboxSubscriber {
  readonly id: string;
  readonly path?: string;
  readonly #inbox: Inbox;
  readonly #options: PollSubscriptionOptions;
  readonly #out: AckTracker;
  readonly #mostOut: number;
  /** Taken, but not sent yet because too many are out: by id, with which attempt each will be. */
  readonly #waiting = new Map<string, { entry: Entry; attempt: number }>();
  #isSending = false;

  constructor(inbox: Inbox, options: PollSubscriptionOptions, clock: Clock = systemClock) {
    const { id, path, ackTimeoutMs, maxAttempts, onFailure = 'again' } = options;
    this.id = id;
    if (path !== undefined) this.path = path;
    this.#inbox = inbox;
    this.#options = options;
    this.#mostOut = onFailure === 'again' ? maxOutstanding : maxCalledBack;
    this.#out = new AckTracker({
      clock,
      ackTimeoutMs,
      onFailure,
      maxAttempts,
      send: (entry, attempt, ackId) => options.send({ ...deliveryOf(entry, attempt), ackId }),
      onAttempt: (entry, attempt) => inbox.countAttempt(entry, attempt),
      onEnd: (entry, ending) => this.#onEnd(entry, ending),
    });
  }

  /** A record may wait for long behind others, and is not attempted until it is sent. */
  get countsAttempts(): boolean {
    return this.#options.acknowledge === 'flow';
  }

  /** Records that the flow has and has not acknowledged. */
  get outstanding(): number {
    return this.#out.size;
  }

  /** Further records that can be sent before one is acknowledged. */
  get room(): number {
    return Math.max(0, this.#mostOut - this.outstanding);
  }

  /** Whether no further record can be sent before one is acknowledged. */
  get isFull(): boolean {
    return this.room === 0;
  }

  /** Begins to receive. */
  attach(): void {
    this.#inbox.attach(this.#options.channel, this);
  }

  /** Ends it: what is out unacknowledged stays in the inbox. */
  detach(): void {
    this.#inbox.detach(this.#options.channel, this);
    this.#out.clear();
    this.#waiting.clear();
  }

  take(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (!this.#options.wants(entry.record)) this.#inbox.done(entry, this);
      else if (this.#options.acknowledge === 'auto') this.#sendOnce(entry);
      else this.#waiting.set(entry.id, { entry, attempt: this.#inbox.attemptOf(entry, this) });
    }
    this.#sendWaiting();
  }

  /**
   * The flow brought a message back.
   *
   * @param failed the flow could not handle it
   * @returns whether the id belongs to a record that is out here
   */
  acknowledge(ackId: string, failed: boolean): boolean {
    const isOut = this.#out.acknowledge(ackId, failed);
    // The service brings it again, or has already.
    if (!isOut && !failed && this.#options.onFailure === 'release') this.#inbox.doneLate(idOf(ackId));
    return isOut;
  }

  #sendOnce(entry: Entry): void {
    void this.#options.send(deliveryOf(entry, this.#inbox.attemptOf(entry, this))).then((sent) => {
      if (sent) this.#inbox.done(entry, this);
    });
  }

  #sendWaiting(): void {
    // Giving one up asks for the next: in a loop, since there may be thousands.
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (const { entry, attempt } of this.#waiting.values()) {
        if (this.isFull) break;
        this.#waiting.delete(entry.id);
        this.#out.add(entry, attempt);
        this.#options.onOutstanding();
      }
    } finally {
      this.#isSending = false;
    }
  }

  #onEnd(entry: Entry, ending: Ending): void {
    if (ending === 'done') this.#inbox.done(entry, this);
    else if (ending === 'released') void this.#inbox.release(entry);
    else this.#giveUp(entry);
    this.#options.onOutstanding();
    this.#sendWaiting();
  }

  #giveUp(entry: Entry): void {
    this.#inbox.giveUp(entry, this);
    this.#options.onUndelivered(newsOf(entry), this.#options.maxAttempts);
  }
}

function deliveryOf<K extends Kind>(entry: Entry<K>, attempt: number): FlowDelivery<K> {
  const { kind, record } = entry;
  return { kind, record, redelivered: attempt > 1 || entry.unsure === true };
}
