import { type Clock, wait } from '../clock';
import { asSmsError, isSmsError, SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Delivery } from '../model';
import type { Ledger } from './ledger';
import type { SendQueue, Turn } from './queue';
import { type Reconciliation, Reconciliations } from './reconciliation';
import { createWithheldError, isWithheldError, TooEarly } from './rules';
import type { StopSignals } from './sender-registrations';
import {
  isFollowed,
  isTracked,
  isUnknown,
  isUnsent,
  type Outcome,
  type SendOptions,
  submittedOf,
  type Text,
} from './text';

/** One try. */
export interface Try {
  client: Client;
  /** Ends one that has not left. */
  signal: AbortSignal | undefined;
  /** Where the text stands has changed: it leaves, or does not after all. */
  onMoved?(text: Text): void;
}

/**
 * How texts leave: to those of their recipients that no rule withholds, who are counted, and written down where
 * the text is to outlive the process.
 */
export class SendAttempts {
  readonly #ledger: Ledger;
  readonly #reconciliations: Reconciliations;

  constructor(ledger: Ledger, reconciliations: Reconciliations) {
    this.#ledger = ledger;
    this.#reconciliations = reconciliations;
  }

  /**
   * Makes one try. The rules are asked before the request is made, where one is known to withhold somebody, and as it
   * leaves; whom one withholds by then it does not go to.
   *
   * @throws SmsError as `Client.send` does, or as the first rule says when nobody is left, or it may not leave yet
   */
  make(text: Text, given: Try): Promise<Delivery> {
    const isFree = !this.#needsMark(text) && text.withheld === undefined;
    return isFree ? given.client.send(text.message, given) : this.#makeMarked(text, given);
  }

  async #makeMarked(text: Text, { client, signal, onMoved = () => {} }: Try): Promise<Delivery> {
    for (;;) {
      const { text: judged, notBefore } = await this.#ledger.judge(text);
      const to = submittedOf(judged);
      const [first, ...others] = judged.withheld ?? [];
      if (first && to.length === 0) throw createWithheldError([first, ...others]);
      if (notBefore) throw new TooEarly(notBefore);
      let marking: Promise<Text | undefined> | undefined;
      let isOvertaken = false;
      const beforeLeaving = async () => {
        marking = this.#mark(judged, client);
        const marked = await marking;
        isOvertaken = marked === undefined;
        if (!marked) throw new Error('overtaken');
        onMoved(marked);
      };
      try {
        return await client.send(
          { ...judged.message, to },
          this.#needsMark(text) ? { signal, beforeLeaving } : { signal },
        );
      } catch (error) {
        // The request may have been given up while the mark was being written.
        const marked = await marking?.catch(() => undefined);
        if (marked && isSmsError(error, 'SMS_UNREACHABLE', 'SMS_CLOSED')) onMoved(await this.#ledger.putBack(marked));
        if (!isOvertaken) throw error;
      }
    }
  }

  #needsMark(text: Text): boolean {
    return this.#isWritten(text) || Reconciliations.isFor(text);
  }

  /** The text leaves when this has resolved. */
  async #mark(text: Text, client: Client): Promise<Text | undefined> {
    this.#reconciliations.open(text, client);
    return this.#isWritten(text) ? this.#ledger.leave(text) : text;
  }

  #isWritten(text: Text): boolean {
    return isTracked(text) || isFollowed(text) || this.#ledger.isGated;
  }
}

/** When a text is tried again, and before whom it leaves. */
export type PlainOptions = Pick<SendOptions, 'retries' | 'retryUncertain' | 'resolveMs' | 'priority'>;

/** What a text that is not kept is sent with. */
export interface PlainSurroundings {
  clock: Clock;
  queue: SendQueue;
  /** Makes one try; `signal` ends one that has left, too. */
  attempt(signal: AbortSignal): Promise<Delivery>;
  signals: StopSignals;
  /** Evidence of the text, when it is to be looked for. */
  evidence: Reconciliation | undefined;
}

const firstDelayMs = 200;
const longestDelayMs = 30_000;

/**
 * Sends a text that is not kept. It is tried again when it never reached the service, and, if its options say so, when the
 * outcome is unknown and no evidence was found: after 0.2 s, doubling to at most 30 s.
 *
 * A try after one that may have been sent takes a turn of its own, and no place in the queue while it waits; it is not refused
 * for want of room. Never rejects.
 *
 * @returns of the last try, or of an earlier one that may have been accepted when none after it arrived; `SMS_CLOSED` when the
 *   flow was stopped between tries. A request that has left is followed to its end unless `giveUp` aborts it
 */
export async function sendPlain(options: PlainOptions, surroundings: PlainSurroundings): Promise<Outcome> {
  const { retries, retryUncertain, resolveMs, priority } = options;
  const { clock, queue, signals, attempt, evidence } = surroundings;
  const { signal, giveUp } = signals;
  let further = 0;
  /** Rejects when the flow is stopped before. */
  const waitForNext = () => wait(clock, Math.min(longestDelayMs, firstDelayMs * 2 ** further++), signal);
  /** Tries until the service is reached: nothing was sent before, so that the pace need not count it. */
  const take = async ({ giveBack }: Turn): Promise<Delivery> => {
    for (;;) {
      try {
        return await attempt(giveUp);
      } catch (error) {
        if (isWithheldError(error) || error instanceof TooEarly) giveBack();
        if (!isSmsError(error, 'SMS_UNREACHABLE') || further >= retries) throw error;
        await waitForNext().catch(() => {
          throw new SmsError('closed', { cause: error });
        });
      }
    }
  };
  const order = queue.arrive();
  let uncertain: SmsError | undefined;
  for (;;) {
    let failure: SmsError;
    try {
      return await queue.run(take, uncertain ? { signal, priority, order } : { signal, priority });
    } catch (error) {
      failure = asSmsError(error);
    }
    // An unknown outcome stays unknown; only what never left may be called unsent.
    if (!isUnknown(failure)) return isUnsent(failure) ? (uncertain ?? failure) : failure;
    uncertain = failure;
    try {
      if (evidence) {
        const { sent, looked } = await evidence.look(resolveMs, signal);
        if (sent) return sent;
        uncertain = failure.with({ looked });
      }
      if (!retryUncertain || further >= retries) return uncertain;
      await waitForNext();
    } catch {
      // The flow is being stopped.
      return uncertain;
    }
  }
}
