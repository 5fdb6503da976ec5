import type { OutboxRecord } from '../model';
import type { Entry } from './entry';
import type { Inbox } from './inbox';
import type { Taker } from './taker';

/** How an {@link OutboxReceiver} hands over. */
export interface OutboxReceiverOptions {
  /** The node's id. */
  id: string;
  /** Gets only what it asked for itself, and what is left that nobody else takes. */
  onDemand: boolean;
  /**
   * Sends what came together into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile.
   *
   * @param context what the node said when it asked for them; `undefined` when it did not
   */
  send(records: readonly OutboxRecord[], context: unknown): Promise<boolean>;
}

/** One node's share of the outbound messages that the inbox keeps: sending is delivering. */
export class OutboxReceiver implements Taker<'outbox'> {
  readonly id: string;
  readonly onDemand: boolean;
  readonly #inbox: Inbox;
  readonly #send: OutboxReceiverOptions['send'];

  constructor(inbox: Inbox, { id, onDemand, send }: OutboxReceiverOptions) {
    this.id = id;
    this.onDemand = onDemand;
    this.#inbox = inbox;
    this.#send = send;
    inbox.attach('outbox', this);
  }

  take(entries: readonly Entry<'outbox'>[], context?: unknown): void {
    const records = entries.map(({ record }) => record);
    void this.#send(records, context).then((sent) => {
      if (sent) for (const entry of entries) this.#inbox.done(entry, this);
    });
  }

  /** Ends it: what was not sent stays in the inbox. */
  detach(): void {
    this.#inbox.detach('outbox', this);
  }
}
