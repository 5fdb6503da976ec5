import type { Clock } from '../clock';
import type { Inbox } from '../inbox/inbox';
import type { RecordsOfKind } from '../model';
import { Receiver, type ReceiverOptions } from './receiver';

/** How a {@link CallbackReceiver} hands over. See {@link ReceiverOptions}. */
export interface CallbackReceiverOptions extends Pick<ReceiverOptions, 'id' | 'acknowledge' | 'ackTimeoutMs' | 'send'> {
  /** The path that the node answers; without one it can only take what others at its path have left. */
  path: string | undefined;
}

/** What surrounds it. */
interface CallbackSurroundings {
  /** Resolves when what comes can be told what it answers. */
  expected?(): Promise<void> | undefined;
}

/** What one callback brought (§6). */
export type Callback = RecordsOfKind<'incoming' | 'status'>;

/**
 * The share of a node that is called back: what came is the service's to bring again until the flow has taken it.
 */
export class CallbackReceiver {
  readonly #inbox: Inbox;
  readonly #options: CallbackReceiverOptions & CallbackSurroundings;
  readonly #clock: Clock;
  readonly #receiver: Receiver;
  /** Gives up each callback under way. */
  readonly #underWay = new Map<object, () => void>();
  #isClosed = false;

  constructor(inbox: Inbox, options: CallbackReceiverOptions & CallbackSurroundings, clock: Clock) {
    const { path, ...receiverOptions } = options;
    this.#inbox = inbox;
    this.#options = options;
    this.#clock = clock;
    this.#receiver = new Receiver(
      inbox,
      {
        ...receiverOptions,
        ...(path === undefined ? undefined : { path }),
        channel: 'callback',
        wants: () => true,
        onFailure: 'release',
        maxAttempts: Number.POSITIVE_INFINITY,
        onUndelivered: () => {},
        onOutstanding: () => {},
      },
      clock,
    );
    this.#receiver.attach();
  }

  /**
   * Keeps what came. Resolves with whether all of it has got into the flow, now or earlier, and the flow has taken it; with `false`
   * when that takes longer than it may, when too many are out, and when it is closed meanwhile.
   *
   * @throws SmsError `SMS_STORE` when it cannot be kept
   */
  async accept(callback: Callback): Promise<boolean> {
    const expected = this.#options.expected?.();
    if (expected) await expected;
    if (this.#isClosed || this.#receiver.isFull) return false;
    const { id, path = '' } = this.#options;
    const address = { node: id, path };
    const acceptances = await this.#inbox.accept({ ...callback, via: 'callback', address });
    const ended = acceptances.map(({ entry, heldElsewhere }) => (entry ? this.#inbox.ended(entry) : !heldElsewhere));
    return this.#inTime(Promise.all(ended));
  }

  /** See {@link Receiver.acknowledge}. */
  acknowledge(ackId: string, failed: boolean): boolean {
    return this.#receiver.acknowledge(ackId, failed);
  }

  /** Ends it: the service is to bring again what the flow has not taken. */
  close(): void {
    this.#isClosed = true;
    this.#receiver.detach();
    for (const giveUp of this.#underWay.values()) giveUp();
  }

  /** Waits for the flow, no longer than it may take. */
  #inTime(ended: Promise<boolean[]>): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isDelivered: boolean) => {
        timer.cancel();
        this.#underWay.delete(key);
        resolve(isDelivered);
      };
      const giveUp = () => settle(false);
      const key = {};
      const timer = this.#clock.after(this.#options.ackTimeoutMs, giveUp);
      this.#underWay.set(key, giveUp);
      void ended.then((all) => settle(all.every((delivered) => delivered)));
      if (this.#isClosed) giveUp();
    });
  }
}
