import type { Kind } from '../model';
import type { Acceptance } from '../receiving/inbox';
import { SendCounts } from '../sending/send-counts';
import type { Counts, ReceiveCounts } from './state';

/** Counts what an account does. It outlives the account, which goes with the last of its members. */
export class Tally {
  readonly sends = new SendCounts();
  readonly #receives: ReceiveCounts = { received: 0, statuses: 0, duplicates: 0, redelivered: 0, setAside: 0 };

  get counts(): Counts {
    const { add: _, ...sends } = this.sends;
    return { ...sends, ...this.#receives };
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
}
