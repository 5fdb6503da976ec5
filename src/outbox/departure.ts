import { isSmsError } from '../errors';
import type { Client } from '../http/client';
import type { Delivery } from '../model';
import { createWithheldError, TooEarly } from './gate';
import type { Ledger } from './ledger';
import { isRemembered, isTracked, submittedOf, type Text } from './outgoing';
import { Reconciliations } from './reconciliation';

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
export class Departure {
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
  depart(text: Text, given: Try): Promise<Delivery> {
    const isFree = !this.#needsMark(text) && text.withheld === undefined;
    return isFree ? given.client.send(text.message, given) : this.#departMarked(text, given);
  }

  async #departMarked(text: Text, { client, signal, onMoved = () => {} }: Try): Promise<Delivery> {
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
    return isTracked(text) || isRemembered(text) || this.#ledger.isGated;
  }
}
