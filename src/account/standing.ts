import type { Clock } from '../clock';
import type { Kind } from '../model';
import type { PollState } from '../polling/poll-loop';
import type { PollSummary } from './state';

/** Knows since when a poll loop has been where it is, and what it has been answered. */
export class Standing {
  readonly #clock: Clock;
  #since = 0;
  #name: PollState['name'] | undefined;
  #lastAnswerAt: number | undefined;
  #answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How often the service has answered. */
  get answers(): number {
    return this.#answers;
  }

  /** The loop begins anew. */
  begin(): void {
    this.#since = this.#clock.now();
    this.#name = undefined;
  }

  /** The loop has come to a state. */
  enter({ name }: PollState): void {
    if (name !== this.#name) this.#since = this.#clock.now();
    this.#name = name;
  }

  /** The service has answered. */
  answered(): void {
    this.#lastAnswerAt = this.#clock.now();
    this.#answers++;
  }

  /** @param state where the loop is */
  summarize(kind: Kind, state: PollState): PollSummary {
    const lastAnswerAt = this.#lastAnswerAt;
    return {
      kind,
      state: state.name,
      since: this.#since,
      ...(lastAnswerAt === undefined ? undefined : { lastAnswerAt }),
      ...(state.name === 'failing' ? { error: state.error } : undefined),
    };
  }
}
