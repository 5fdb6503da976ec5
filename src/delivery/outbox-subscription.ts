import type { Entry } from '../inbox/entries';
import type { Inbox } from '../inbox/inbox';
import type { OutboxRecord } from '../model';
import type { BatchSlice, Given, InboxSubscriber } from './subscribers';

/** Outbound messages that are sent into the flow in one go. */
export interface OutboxBatch {
  records: readonly OutboxRecord[];
  /** What the node said when it asked for them; `undefined` when it did not. */
  context: unknown;
  /** Where they stand in what came together; absent when they are all. */
  slice?: BatchSlice | undefined;
}

/** How an {@link OutboxSubscription} hands over. */
export interface OutboxSubscriptionOptions {
  /** The node's id. */
  id: string;
  /** Gets only what it asked for itself, and what is left that nobody else takes. */
  onDemand: boolean;
  /** What came together is sent in one go, however much it is. */
  isList?: boolean;
  /** Sends into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  send(batch: OutboxBatch): Promise<boolean>;
}

/** One node's share of the outbound messages that the inbox keeps: sending is delivering. */
export class OutboxSubscription implements InboxSubscriber<'outbox'> {
  readonly id: string;
  readonly onDemand: boolean;
  readonly #inbox: Inbox;
  readonly #options: OutboxSubscriptionOptions;
  /** Slices of a list that is not complete. */
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

  /** Ends it: what was not sent stays in the inbox. */
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
