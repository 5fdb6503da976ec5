import type { Timer } from '../clock';
import { type Channel, newsOf } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind, RecordOfKind, Records } from '../model';
import type { Given, InboxSubscriber } from './subscribers';

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
  /** On channel `callback`: the path that the node answers. */
  path?: string | undefined;
  /** Whether the node is interested in a record. */
  wants(record: Records[K]): boolean;
  /** `auto`: sending is delivering. `flow`: the flow says when. */
  acknowledge: 'auto' | 'flow';
  /** How long the flow may take. */
  ackTimeoutMs: number;
  /** Deliveries of one record before it is given up. */
  maxAttempts: number;
  /** Sends into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  send(delivery: FlowDelivery<K>): Promise<boolean>;
  /** A record was given up. */
  onUndelivered(news: RecordOfKind<K>, attempts: number): void;
}

/** A record that is out in the flow until that says what became of it, or its time is up. */
interface Out extends Given {
  /** Whether the flow has it; otherwise it waits to be sent again. */
  isInFlow: boolean;
  /** Ends either. */
  timer: Timer | undefined;
}

const firstRetryDelayMs = 250;

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
  readonly path: string | undefined;
  readonly #inbox: Inbox;
  readonly #channel: Channel;
  readonly #options: PollSubscriptionOptions;
  readonly #onRoom: () => void;
  readonly #out = new Map<string, Out>();
  /** On channel `callback`: what the flow could not handle, or has not answered in time, the service is to bring again. */
  readonly #releases: boolean;
  /** Taken, but not sent yet because too many are out: by id, with which attempt each will be. */
  readonly #waiting = new Map<string, Given>();
  #isSending = false;
  #isKnownFull = false;

  /** @param onRoom it {@link isFull}, or is not any more */
  constructor(inbox: Inbox, channel: Channel, options: PollSubscriptionOptions, onRoom = () => {}) {
    this.id = options.id;
    this.path = options.path;
    this.#inbox = inbox;
    this.#channel = channel;
    this.#options = options;
    this.#onRoom = onRoom;
    this.#releases = channel === 'callback';
    inbox.attach(channel, this);
  }

  wants(record: InboxRecord): boolean {
    return this.#options.wants(record);
  }

  /** Records that the flow has and has not acknowledged. */
  get outstanding(): number {
    return this.#out.size;
  }

  /** Further records that can be sent before one is acknowledged. */
  get room(): number {
    return Math.max(0, (this.#releases ? maxCalledBack : maxOutstanding) - this.outstanding);
  }

  /** Whether no further record can be sent before one is acknowledged. */
  get isFull(): boolean {
    return this.room === 0;
  }

  /** Ends it: what is out unacknowledged stays in the inbox. */
  detach(): void {
    this.#inbox.detach(this.#channel, this);
    for (const { timer } of this.#out.values()) timer?.cancel();
    this.#out.clear();
    this.#waiting.clear();
  }

  take(given: readonly Given[]): void {
    for (const one of given) {
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
   * The flow brought a message back.
   *
   * @param failed the flow could not handle it; of an earlier delivery than the last that says nothing
   * @returns whether the id belongs to a record that is out here
   */
  acknowledge(ackId: string, failed: boolean): boolean {
    const [id = '', attempt] = ackId.split('.');
    const out = this.#out.get(id);
    if (out) {
      if (!failed) this.#end(out, () => this.#inbox.done(out.entry, this));
      else if (out.isInFlow && Number(attempt) === out.attempt) this.#fail(out);
      // The service brings it again, or has already.
    } else if (!failed && this.#releases) this.#inbox.doneLate(id);
    return out !== undefined;
  }

  /** @param ackId what the flow has to bring back; absent when it need not */
  #deliver({ entry, attempt }: Given, ackId?: string): Promise<boolean> {
    const { kind, record, unsure = false } = entry;
    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);
    const redelivered = attempt > 1 || unsure;
    if (redelivered) this.#inbox.counts.redelivered++;
    const delivery = { kind, record, redelivered, ...(ackId !== undefined && { ackId }) };
    return this.#options.send(delivery as FlowDelivery);
  }

  #sendWaiting(): void {
    // Giving one up asks for the next: in a loop, since there may be thousands.
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
    if (this.isFull === this.#isKnownFull) return;
    this.#isKnownFull = this.isFull;
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
      // It has its time once it is there.
      const onTimeout = () => (this.#releases ? this.#release(out) : this.#sendAgain(out));
      out.timer = this.#inbox.journal.clock.after(this.#options.ackTimeoutMs, onTimeout);
    });
  }

  #fail(out: Out): void {
    out.timer?.cancel();
    out.isInFlow = false;
    if (this.#releases) this.#release(out);
    else if (out.attempt >= this.#options.maxAttempts) this.#giveUp(out);
    else {
      // Leaves the flow a moment to recover, a longer one each time.
      const delayMs = Math.min(this.#options.ackTimeoutMs, firstRetryDelayMs * 2 ** (out.attempt - 1));
      out.timer = this.#inbox.journal.clock.after(delayMs, () => this.#sendAgain(out));
    }
  }

  #sendAgain(out: Out): void {
    out.attempt++;
    this.#send(out);
  }

  #release(out: Out): void {
    this.#end(out, () => this.#inbox.release(out.entry));
  }

  #giveUp(out: Out): void {
    this.#end(out, () => {
      this.#inbox.giveUp(out.entry, this);
      this.#options.onUndelivered(newsOf(out.entry), this.#options.maxAttempts);
    });
  }

  /** A record is out no more. */
  #end(out: Out, tell: () => void): void {
    out.timer?.cancel();
    this.#out.delete(out.entry.id);
    tell();
    this.#sendWaiting();
  }
}
