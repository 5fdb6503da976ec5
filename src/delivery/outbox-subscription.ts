import type { Entry } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { OutboxRecord } from '../model';
import type { BatchSlice, EntryDelivery, InboxSubscriber } from './subscribers';

/** Outgoing messages that enter the flow together. */
export interface OutboxBatch {
  records: readonly OutboxRecord[];
  /**
   * Value that the node passed when it requested the messages. `undefined`: the node did not request these messages.
   */
  context: unknown;
  /** Position of these messages among all messages that arrived together. Absent: these are all of them. */
  slice?: BatchSlice | undefined;
}

/** How an {@link OutboxSubscription} delivers. */
export interface OutboxSubscriptionOptions {
  /** The node's id. */
  id: string;
  /**
   * If true, the node receives two kinds of messages: those that it requested, and those that no other node receives.
   */
  onDemand: boolean;
  /** If true, all messages that arrived together enter the flow together. */
  isList?: boolean;
  /** Sends messages into the flow. Resolves with `false` if the flow stopped first. */
  send(batch: OutboxBatch): Promise<boolean>;
}

/**
 * Delivers outgoing messages from the inbox to one node. A message counts as delivered when it has been sent into the
 * flow.
 */
export class OutboxSubscription implements InboxSubscriber<'outbox'> {
  readonly id: string;
  readonly onDemand: boolean;
  readonly #inbox: Inbox;
  readonly #options: OutboxSubscriptionOptions;
  /** Messages of a list that is not complete yet. */
  #incompleteList: Entry<'outbox'>[] = [];

  constructor(inbox: Inbox, options: OutboxSubscriptionOptions) {
    this.id = options.id;
    this.onDemand = options.onDemand;
    this.#inbox = inbox;
    this.#options = options;
    inbox.attach('outbox', this);
  }

  receive(deliveries: readonly EntryDelivery<'outbox'>[], context?: unknown, slice?: BatchSlice): void {
    const entries = deliveries.map(({ entry }) => entry);
    if (!slice || !this.#options.isList) {
      this.#send(entries, context, slice);
      return;
    }
    this.#incompleteList.push(...entries);
    if (slice.isLast) this.#send(this.#incompleteList.splice(0), context);
  }

  /** Ends the subscription. Messages that were not sent stay in the inbox. */
  detach(): void {
    this.#inbox.detach('outbox', this);
  }

  #send(entries: readonly Entry<'outbox'>[], context: unknown, slice?: BatchSlice): void {
    const records = entries.map(({ record }) => record);
    void this.#options.send({ records, context, slice }).then((isSent) => {
      if (isSent) for (const entry of entries) this.#inbox.acknowledge(entry, this);
    });
  }
}
