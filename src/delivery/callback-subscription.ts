import { wait } from '../clock';
import type { Inbox } from '../inbox/inbox';
import type { RecordsOfKind } from '../model';
import { PollSubscription, type PollSubscriptionOptions } from './poll-subscription';

/** How a node is given what it is called with. See {@link PollSubscriptionOptions}. */
export interface CallbackSubscriptionOptions
  extends Pick<PollSubscriptionOptions, 'id' | 'acknowledge' | 'ackTimeoutMs' | 'send'> {
  /** The path that the node answers; without one it can only take what others at its path have left. */
  path: string | undefined;
}

/** What one callback brought (§6). */
export type Callback = RecordsOfKind<'incoming' | 'status'>;

/**
 * The share of a node that is called back: what came is the service's to bring again until the flow has taken it.
 */
export class CallbackSubscription {
  readonly #inbox: Inbox;
  readonly #options: CallbackSubscriptionOptions;
  readonly #expected: (() => Promise<void> | undefined) | undefined;
  readonly #subscription: PollSubscription;
  /** Each gives up a callback under way. */
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;

  /** @param expected resolves when what comes can be told what it answers */
  constructor(inbox: Inbox, options: CallbackSubscriptionOptions, expected?: () => Promise<void> | undefined) {
    this.#inbox = inbox;
    this.#options = options;
    this.#expected = expected;
    const own = { wants: () => true, maxAttempts: Number.POSITIVE_INFINITY, onUndelivered: () => {} };
    this.#subscription = new PollSubscription(inbox, 'callback', { ...options, ...own });
  }

  /**
   * Keeps what came. Resolves with whether all of it has got into the flow, now or earlier, and the flow has taken it; with `false`
   * when that takes longer than it may, when too many are out, and when it is closed meanwhile.
   *
   * @throws SmsError `SMS_STORE` when it cannot be kept
   */
  async accept(callback: Callback): Promise<boolean> {
    await this.#expected?.();
    if (this.#isClosed || this.#subscription.isFull) return false;
    const { id, path = '' } = this.#options;
    const address = { node: id, path };
    const acceptances = await this.#inbox.accept({ ...callback, via: 'callback', address });
    const ended = acceptances.map(({ entry, heldElsewhere }) => (entry ? this.#inbox.ended(entry) : !heldElsewhere));
    const patience = new AbortController();
    this.#underWay.add(patience);
    if (this.#isClosed) patience.abort();
    const over = wait(this.#inbox.journal.clock, this.#options.ackTimeoutMs, patience.signal).catch(() => {});
    const all = await Promise.race([Promise.all(ended), over]);
    this.#underWay.delete(patience);
    patience.abort();
    return all?.every((delivered) => delivered) ?? false;
  }

  /** See {@link PollSubscription.acknowledge}. */
  acknowledge(ackId: string, failed: boolean): boolean {
    return this.#subscription.acknowledge(ackId, failed);
  }

  /** Ends it: the service is to bring again what the flow has not taken. */
  close(): void {
    this.#isClosed = true;
    this.#subscription.detach();
    for (const patience of this.#underWay) patience.abort();
  }
}
