import type { Clock } from '../clock';
import type { Acceptance } from '../inbox/inbox';
import type { Kind } from '../model';
import { SendCounts } from '../outbox/counts';
import { Respite } from '../outbox/dispatch-order';
import type { Counts, ReceiveCounts } from './state';

/**
 * Counts what an account does, and knows until when the service wants to be left alone, and who knows that the store fails. It
 * outlives the account, which goes with the last of its members.
 */
export class Tally {
  readonly sends = new SendCounts();
  readonly respite: Respite;
  readonly #clock: Clock;
  readonly #receives: ReceiveCounts = { received: 0, statuses: 0, duplicates: 0, redelivered: 0, setAside: 0 };
  /** What had been counted when this day began. */
  #before: Counts | undefined;
  #told = { storeName: '', nodes: new Set<string>() };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.respite = new Respite(clock);
    this.#awaitMidnight();
  }

  get counts(): Counts {
    const { add: _, ...sends } = this.sends;
    return { ...sends, ...this.#receives };
  }

  /** What was counted since the last midnight of the machine's time zone, or since the start. */
  get countsToday(): Counts {
    const { counts } = this;
    if (!this.#before) return counts;
    for (const [name, before] of Object.entries(this.#before)) counts[name as keyof Counts] -= before;
    return counts;
  }

  /** Nodes that know that a store fails; none of another than the last that was asked for. */
  toldOfStore(storeName: string): Set<string> {
    if (this.#told.storeName !== storeName) this.#told = { storeName, nodes: new Set() };
    return this.#told.nodes;
  }

  /** Records have come and are kept. */
  accepted(kind: Kind, acceptances: readonly Acceptance[]): void {
    const fresh = acceptances.filter(({ outcome }) => outcome === 'new').length;
    this.#receives.duplicates += acceptances.length - fresh;
    if (kind === 'incoming') this.#receives.received += fresh;
    if (kind === 'status') this.#receives.statuses += fresh;
  }

  redelivered(): void {
    this.#receives.redelivered++;
  }

  setAside(): void {
    this.#receives.setAside++;
  }

  #awaitMidnight(): void {
    const now = this.#clock.now();
    const begin = () => {
      this.#before = this.counts;
      this.#awaitMidnight();
    };
    // A day may have 23 or 25 hours.
    this.#clock.after(new Date(now).setHours(24, 0, 0, 0) - now, begin, true);
  }
}
