import type { Timer } from '../clock';
import type { Channel } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind, RecordOfKind, Records } from '../model';
import type { Given, InboxSubscriber } from './subscribers';

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
  /** Called when the flow did not acknowledge a record in any of its attempts. */
  onUndelivered(event: RecordOfKind<K>, attempts: number): void;
}

/** A record that the flow has not acknowledged. */
interface Out extends Given {
  /** Whether the record is in the flow. Otherwise, the record waits for its next delivery. */
  isInFlow: boolean;
  /** Ends the time in the flow, or the wait for the next delivery. */
  timer: Timer | undefined;
}

const firstRetryDelayMs = 250;

/** Maximum number of unacknowledged records. */
export const maxOutstanding = 100;

/**
 * Delivers records from the inbox to one node, and sends each record into the flow. If the flow must acknowledge,
 * redelivers a record until the flow acknowledges it or no attempts are left. Keeps the order of first deliveries.
 */
export class PollSubscription implements InboxSubscriber {
  readonly id: string;
  readonly path: string | undefined;
  readonly #inbox: Inbox;
  readonly #channel: Channel;
  readonly #options: PollSubscriptionOptions;
  readonly #onRoom: () => void;
  readonly #out = new Map<string, Out>();
  /** Records that wait until fewer records are unacknowledged, by id. */
  readonly #waiting = new Map<string, Given>();
  #isSending = false;
  #wasFull = false;

  /** @param onRoom called when {@link isFull} changes */
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
  get outstanding(): number {
    return this.#out.size;
  }

  /** Number of further records that can be sent before the flow must acknowledge one. */
  get room(): number {
    return Math.max(0, maxOutstanding - this.outstanding);
  }

  get isFull(): boolean {
    return this.room === 0;
  }

  /** Ends the subscription. Unacknowledged records stay in the inbox. */
  detach(): void {
    this.#inbox.detach(this.#channel, this);
    for (const { timer } of this.#out.values()) timer?.cancel();
    this.#out.clear();
    this.#waiting.clear();
  }

  take(deliveries: readonly Given[]): void {
    for (const one of deliveries) {
      const { entry } = one;
      if (this.#options.acknowledge === 'flow') this.#waiting.set(entry.id, one);
      else {
        void this.#deliver(one).then((sent) => {
          if (sent) this.#inbox.done(entry, this);
        });
      }
    }
    this.#sendWaiting();
  }

  /**
   * Handles a record that the flow returned.
   *
   * @param failed whether the flow could not handle the record; ignored if the id belongs to an earlier delivery
   * @returns whether the id belongs to an unacknowledged record of this node
   */
  acknowledge(ackId: string, failed: boolean): boolean {
    const [id = '', attempt] = ackId.split('.');
    const out = this.#out.get(id);
    if (!out) return false;
    if (!failed) this.#end(out, () => this.#inbox.done(out.entry, this));
    else if (out.isInFlow && Number(attempt) === out.attempt) this.#fail(out);
    return true;
  }

  #deliver({ entry, attempt }: Given, ackId?: string): Promise<boolean> {
    const { kind, record, unsure = false } = entry;
    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);
    const redelivered = attempt > 1 || unsure;
    if (redelivered) this.#inbox.counts.redelivered++;
    const delivery = { kind, record, redelivered, ...(ackId !== undefined && { ackId }) };
    return this.#options.send(delivery as FlowDelivery);
  }

  #sendWaiting(): void {
    // Uses a loop instead of recursion, because giving up a record requests the next one, and there might be thousands.
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (const { entry, attempt } of this.#waiting.values()) {
        if (this.isFull) break;
        this.#waiting.delete(entry.id);
        const out: Out = { entry, attempt, isInFlow: false, timer: undefined };
        this.#out.set(entry.id, out);
        this.#send(out);
      }
    } finally {
      this.#isSending = false;
    }
    if (this.isFull === this.#wasFull) return;
    this.#wasFull = this.isFull;
    this.#onRoom();
  }

  #send(out: Out): void {
    const { entry, attempt } = out;
    if (attempt > this.#options.maxAttempts) {
      this.#giveUp(out);
      return;
    }
    out.isInFlow = true;
    void this.#deliver(out, `${entry.id}.${attempt}`).then((isThere) => {
      if (!isThere || !out.isInFlow || this.#out.get(entry.id) !== out || out.attempt !== attempt) return;
      // The time to acknowledge starts when the record has entered the flow.
      out.timer = this.#inbox.journal.clock.after(this.#options.ackTimeoutMs, () => this.#sendAgain(out));
    });
  }

  #fail(out: Out): void {
    out.timer?.cancel();
    out.isInFlow = false;
    if (out.attempt >= this.#options.maxAttempts) this.#giveUp(out);
    else {
      // Gives the flow time to recover, and doubles that time with each attempt.
      const delayMs = Math.min(this.#options.ackTimeoutMs, firstRetryDelayMs * 2 ** (out.attempt - 1));
      out.timer = this.#inbox.journal.clock.after(delayMs, () => this.#sendAgain(out));
    }
  }

  #sendAgain(out: Out): void {
    out.attempt++;
    this.#send(out);
  }

  #giveUp(out: Out): void {
    const { kind, record } = out.entry;
    this.#end(out, () => {
      this.#inbox.giveUp(out.entry, this);
      this.#options.onUndelivered({ kind, record } as RecordOfKind, this.#options.maxAttempts);
    });
  }

  /** Ends the deliveries of a record. */
  #end(out: Out, then: () => void): void {
    out.timer?.cancel();
    this.#out.delete(out.entry.id);
    then();
    this.#sendWaiting();
  }
}
