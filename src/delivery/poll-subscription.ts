import type { Timer } from '../clock';
import type { Channel } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind, RecordOfKind, Records } from '../model';
import type { EntryDelivery, InboxSubscriber } from './subscribers';

/** A delivery of a record into the flow. */
export type FlowDelivery<K extends Kind = Kind> = RecordOfKind<K> & {
  /** Whether the record might have entered the flow before. */
  redelivered: boolean;
  /** Id that the flow returns to acknowledge the record. Absent if no acknowledgement is needed. */
  ackId?: string;
};

/** How a node receives the records of its channel. */
export interface PollSubscriptionOptions<K extends Kind = Kind> {
  /** The node's id. */
  id: string;
  /** On channel `callback`: the path of the node. */
  path?: string | undefined;
  /** Returns whether the node wants a record. Absent: the node wants all records. */
  wants?(record: Records[K]): boolean;
  /** `auto`: a record counts as delivered when it has been sent. `flow`: the flow must acknowledge it. */
  acknowledge: 'auto' | 'flow';
  /** Time within which the flow must acknowledge a record, in ms. */
  ackTimeoutMs: number;
  /** Maximum number of deliveries of one record. */
  maxAttempts: number;
  /** Sends a record into the flow. Resolves with `false` if the flow stopped first. */
  send(delivery: FlowDelivery<K>): Promise<boolean>;
  /** Called when all attempts for a record have ended without an acknowledgement. */
  onUndelivered(event: RecordOfKind<K>, attempts: number): void;
}

/** A record that the flow has not acknowledged. */
interface Unacknowledged extends EntryDelivery {
  /** Whether the record is in the flow. Otherwise, the record waits for its next delivery. */
  isInFlow: boolean;
  /**
   * While the record is in the flow: ends the time in which the flow must acknowledge it. Otherwise: starts its next
   * delivery.
   */
  timer: Timer | undefined;
}

const firstRetryDelayMs = 250;

/** Maximum number of unacknowledged records of a node. */
export const maxUnacknowledged = 100;

/**
 * Delivers records from the inbox to one node, and sends each record into the flow. If the flow must acknowledge
 * records, redelivers each record until the flow acknowledges it or no attempts are left. The first deliveries of
 * records keep the order of arrival.
 */
export class PollSubscription implements InboxSubscriber {
  readonly id: string;
  readonly path: string | undefined;
  readonly #inbox: Inbox;
  readonly #channel: Channel;
  readonly #options: PollSubscriptionOptions;
  readonly #onRoom: () => void;
  readonly #unacknowledged = new Map<string, Unacknowledged>();
  /** Records, by id, that wait to be sent because too many records are unacknowledged. */
  readonly #waitingDeliveries = new Map<string, EntryDelivery>();
  #isSending = false;
  #wasFull = false;

  /** @param onRoom called when the node becomes full (see {@link isFull}), and when it has room again */
  constructor(inbox: Inbox, channel: Channel, options: PollSubscriptionOptions, onRoom = () => {}) {
    this.id = options.id;
    this.path = options.path;
    this.#inbox = inbox;
    this.#channel = channel;
    this.#options = options;
    this.#onRoom = onRoom;
    inbox.attach(channel, this);
  }

  wants(record: InboxRecord): boolean {
    return this.#options.wants?.(record) ?? true;
  }

  /** Number of unacknowledged records. */
  get unacknowledgedCount(): number {
    return this.#unacknowledged.size;
  }

  /** Number of further records that can be sent before the flow must acknowledge one. */
  get room(): number {
    return Math.max(0, maxUnacknowledged - this.unacknowledgedCount);
  }

  get isFull(): boolean {
    return this.room === 0;
  }

  /** Ends the subscription. Unacknowledged records stay in the inbox. */
  detach(): void {
    this.#inbox.detach(this.#channel, this);
    for (const { timer } of this.#unacknowledged.values()) timer?.cancel();
    this.#unacknowledged.clear();
    this.#waitingDeliveries.clear();
  }

  receive(deliveries: readonly EntryDelivery[]): void {
    for (const delivery of deliveries) {
      const { entry } = delivery;
      if (this.#options.acknowledge === 'flow') this.#waitingDeliveries.set(entry.id, delivery);
      else {
        void this.#deliver(delivery).then((isSent) => {
          if (isSent) this.#inbox.acknowledge(entry, this);
        });
      }
    }
    this.#sendWaiting();
  }

  /**
   * Handles a record that the flow returned.
   *
   * @param hasFailed true if the flow could not handle the record; a failure of an earlier delivery is ignored
   * @returns whether the id belongs to an unacknowledged record of this node
   */
  acknowledge(ackId: string, hasFailed: boolean): boolean {
    const [id = '', attempt] = ackId.split('.');
    const unacknowledged = this.#unacknowledged.get(id);
    if (!unacknowledged) return false;
    if (!hasFailed) this.#end(unacknowledged, () => this.#inbox.acknowledge(unacknowledged.entry, this));
    else if (unacknowledged.isInFlow && Number(attempt) === unacknowledged.attempt) this.#fail(unacknowledged);
    return true;
  }

  #deliver({ entry, attempt }: EntryDelivery, ackId?: string): Promise<boolean> {
    const { kind, record, unsure = false } = entry;
    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);
    const redelivered = attempt > 1 || unsure;
    if (redelivered) this.#inbox.counts.redelivered++;
    const delivery = { kind, record, redelivered, ...(ackId !== undefined && { ackId }) };
    return this.#options.send(delivery as FlowDelivery);
  }

  #sendWaiting(): void {
    // Does nothing if the loop below is already running. Each record that becomes unhandled in the loop calls this
    // method, so thousands of calls could otherwise be nested.
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (const { entry, attempt } of this.#waitingDeliveries.values()) {
        if (this.isFull) break;
        this.#waitingDeliveries.delete(entry.id);
        const unacknowledged: Unacknowledged = { entry, attempt, isInFlow: false, timer: undefined };
        this.#unacknowledged.set(entry.id, unacknowledged);
        this.#send(unacknowledged);
      }
    } finally {
      this.#isSending = false;
    }
    if (this.isFull === this.#wasFull) return;
    this.#wasFull = this.isFull;
    this.#onRoom();
  }

  #send(unacknowledged: Unacknowledged): void {
    const { entry, attempt } = unacknowledged;
    if (attempt > this.#options.maxAttempts) {
      this.#makeUnhandled(unacknowledged);
      return;
    }
    unacknowledged.isInFlow = true;
    void this.#deliver(unacknowledged, `${entry.id}.${attempt}`).then((isSent) => {
      if (
        !isSent ||
        !unacknowledged.isInFlow ||
        this.#unacknowledged.get(entry.id) !== unacknowledged ||
        unacknowledged.attempt !== attempt
      )
        return;
      // Starts the time limit for the acknowledgement only now, because the record has just entered the flow.
      unacknowledged.timer = this.#inbox.journal.clock.after(this.#options.ackTimeoutMs, () =>
        this.#sendAgain(unacknowledged),
      );
    });
  }

  #fail(unacknowledged: Unacknowledged): void {
    unacknowledged.timer?.cancel();
    unacknowledged.isInFlow = false;
    if (unacknowledged.attempt >= this.#options.maxAttempts) this.#makeUnhandled(unacknowledged);
    else {
      // Doubles the delay with each attempt, so that the flow has time to recover.
      const delayMs = Math.min(this.#options.ackTimeoutMs, firstRetryDelayMs * 2 ** (unacknowledged.attempt - 1));
      unacknowledged.timer = this.#inbox.journal.clock.after(delayMs, () => this.#sendAgain(unacknowledged));
    }
  }

  #sendAgain(unacknowledged: Unacknowledged): void {
    unacknowledged.attempt++;
    this.#send(unacknowledged);
  }

  #makeUnhandled(unacknowledged: Unacknowledged): void {
    const { kind, record } = unacknowledged.entry;
    this.#end(unacknowledged, () => {
      this.#inbox.makeUnhandled(unacknowledged.entry, this);
      this.#options.onUndelivered({ kind, record } as RecordOfKind, this.#options.maxAttempts);
    });
  }

  /** Ends the deliveries of a record. */
  #end(unacknowledged: Unacknowledged, onEnd: () => void): void {
    unacknowledged.timer?.cancel();
    this.#unacknowledged.delete(unacknowledged.entry.id);
    onEnd();
    this.#sendWaiting();
  }
}
