import { type Clock, wait } from '../clock';
import type { MessageItem } from '../outbox/message-item';
import { normaliseRecipient } from '../wire/fields';
import { type RecordKeys, referenceOf } from './sent-index';

/** Maximum time for which a reply waits for the outcome of a message, in ms. */
const maxOutcomeWaitMs = 60_000;

/**
 * Sent messages that have reply requests and no known outcome yet. A reply waits for the outcome, because the reply is
 * an answer only if the service accepted the message.
 */
export class MessagesInTransit {
  readonly #clock: Clock;
  readonly #messages = new Map<
    string,
    { recipients: readonly string[]; reference: string | undefined; outcome: Promise<void>; end: AbortController }
  >();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a message that is being sent. */
  add({ id, message, options }: MessageItem): void {
    if (options.waitMs === undefined || this.#messages.has(id)) return;
    const end = new AbortController();
    const outcome = wait(this.#clock, maxOutcomeWaitMs, end.signal).then(
      () => this.delete(id),
      () => {},
    );
    const { messageId, to: recipients } = message;
    const reference = messageId === undefined ? undefined : referenceOf(messageId, { id });
    this.#messages.set(id, { recipients, reference, outcome, end });
  }

  /** Removes a message after its outcome was written. */
  delete(id: string): void {
    this.#messages.get(id)?.end.abort();
    this.#messages.delete(id);
  }

  clear(): void {
    for (const id of [...this.#messages.keys()]) this.delete(id);
  }

  /**
   * Waits for the outcomes of all messages that a reply can answer, at most until 60 s after the messages were sent.
   * Returns `undefined` if all outcomes are known.
   */
  outcomesFor({ reference }: RecordKeys, handset: unknown): Promise<void> | undefined {
    const msisdn = normaliseRecipient(handset);
    const messages = [...this.#messages.values()].filter((message) =>
      reference === undefined ? message.recipients.includes(msisdn) : message.reference === reference,
    );
    if (messages.length === 0) return undefined;
    return Promise.all(messages.map(({ outcome }) => outcome)).then(() => {});
  }
}
