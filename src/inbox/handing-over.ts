import type { SmsError } from '../errors';
import type { PollOutcome } from '../polling/rhythm';

/** Polls whose answers are held, so that the next may be asked for, and not handed over yet. */
export class HandingOver {
  readonly #polls: Promise<unknown>[] = [];
  /** What one of them brought, if not something new, until it has been heeded or something newer is known. */
  late: PollOutcome | SmsError | undefined;

  get size(): number {
    return this.#polls.length;
  }

  add(polling: Promise<PollOutcome | SmsError>): void {
    this.#polls.push(polling);
    void polling.then((outcome) => {
      this.#polls.splice(this.#polls.indexOf(polling), 1);
      this.late = outcome === 'new' ? undefined : outcome;
    });
  }

  /** Resolves when one of them is handed over. */
  async next(): Promise<void> {
    await Promise.race(this.#polls);
  }
}
