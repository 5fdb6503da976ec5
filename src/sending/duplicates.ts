import { SmsError } from '../errors';
import type { Deliveries } from './delivery';
import type { Followers } from './followers';
import type { KeptTexts } from './keeping';
import type { Ledger } from './ledger';
import { formatOutcome, type StoredOutcome, type Text } from './outgoing';

/** What kept texts with a key in common need. */
export interface DuplicatesOptions {
  ledger: Ledger;
  followers: Followers;
  kept: KeptTexts;
  deliveries: Deliveries;
  /** Something that nobody waits for has failed. */
  onFault(error: unknown): void;
}

/**
 * Kept texts whose key another has that is under way: each waits for the outcome of that one, across redeploys and restarts as
 * any kept text does, and then has the same, or is sent.
 */
export class Duplicates {
  readonly #options: DuplicatesOptions;
  /** How to end the waiting of each, by id. */
  readonly #waiting = new Map<string, AbortController>();
  #isClosed = false;

  constructor(options: DuplicatesOptions) {
    this.#options = options;
  }

  /** Texts that wait for the outcome of another. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Sends a kept text, has it wait for the text that holds its key, or ends it as that one has ended. Never rejects. */
  async resume(text: Text): Promise<void> {
    // It was taken in as the account was closed.
    if (this.#isClosed) return;
    this.#waiting.get(text.id)?.abort();
    const stop = new AbortController();
    this.#waiting.set(text.id, stop);
    try {
      await this.#compare(text, stop.signal);
    } catch (error) {
      this.#options.followers.ended(text.id);
      if (!stop.signal.aborted) this.#options.onFault(error);
    } finally {
      if (this.#waiting.get(text.id) === stop) this.#waiting.delete(text.id);
    }
  }

  /** It has the outcome of another text. */
  async end(text: Text, outcome: StoredOutcome): Promise<void> {
    const { ledger, deliveries, followers } = this.#options;
    followers.ended(text.id);
    await deliveries.deliver(await ledger.echo(text, outcome), false);
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    this.#waiting.get(id)?.abort();
    return this.#waiting.delete(id);
  }

  /** Texts may wait again. */
  open(): void {
    this.#isClosed = false;
  }

  /** Nothing waits any longer, nor begins to; the store has it. */
  close(): void {
    this.#isClosed = true;
    for (const id of [...this.#waiting.keys()]) this.remove(id);
  }

  /** Resolves when the text has its outcome, or is sent as any other. */
  async #compare(given: Text, signal: AbortSignal): Promise<void> {
    const { ledger, followers, kept } = this.#options;
    for (let text = given; ; ) {
      const taken = await ledger.takeIn(text).catch(() => undefined);
      signal.throwIfAborted();
      if (taken) text = taken.text;
      const { verdict } = taken ?? {};
      if (verdict?.type === 'new') return kept.admit(text);
      if (verdict?.type === 'ended') return this.end(text, verdict.outcome);
      if (verdict?.type === 'taken') {
        return this.end(text, formatOutcome(new SmsError('onceTaken', { field: 'once' })));
      }
      await followers.follow(text.id, verdict?.id, signal);
    }
  }
}
