import type { Entry } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { OutboxRecord } from '../model';
import type { BatchSlice, Given, InboxSubscriber } from './subscribers';

/** Outgoing messages that enter the flow together. */
export interface OutboxBatch {
  records: readonly OutboxRecord[];
  /** The context that the node gave when it asked for them. `undefined`: it did not ask. */
  context: unknown;
  /** Their place among the messages that came together. Absent: these are all. */
  slice?: BatchSlice | undefined;
}

/** How an {@link OutboxSubscription} delivers. */
export interface OutboxSubscriptionOptions {
  /** The node's id. */
  id: string;
  /** Gets only the messages that it asked for, and those that no other node gets. */
  onDemand: boolean;
  /** All messages that came together enter the flow together. */
  isList?: boolean;
  /** Sends into the flow. Resolves with `false` if the flow was stopped before. */
  send(batch: OutboxBatch): Promise<boolean>;
}

/** A node's share of the outgoing messages in the inbox. A message that was sent into the flow is delivered. */
export class OutboxSubscription implements InboxSubscriber<'outbox'> {
  readonly id: string;
  readonly onDemand: boolean;
  readonly #inbox: Inbox;
  readonly #options: OutboxSubscriptionOptions;
  /** Entries of a list that is not complete. */
  #gathered: Entry<'outbox'>[] = [];

  constructor(inbox: Inbox, options: OutboxSubscriptionOptions) {
    this.id = options.id;
    this.onDemand = options.onDemand;
    this.#inbox = inbox;
    this.#options = options;
    inbox.attach('outbox', this);
  }

  take(given: readonly Given<'outbox'>[], context?: unknown, slice?: BatchSlice): void {
    const entries = given.map(({ entry }) => entry);
    if (!slice || !this.#options.isList) {
      this.#send(entries, context, slice);
      return;
    }
    this.#gathered.push(...entries);
    if (slice.isLast) this.#send(this.#gathered.splice(0), context);
  }

  /** Ends the subscription. Messages that were not sent stay in the inbox. */
  detach(): void {
    this.#inbox.detach('outbox', this);
  }

  #send(entries: readonly Entry<'outbox'>[], context: unknown, slice?: BatchSlice): void {
    const records = entries.map(({ record }) => record);
    void this.#options.send({ records, context, slice }).then((sent) => {
      if (sent) for (const entry of entries) this.#inbox.done(entry, this);
    });
  }
}
