import type { Clock } from '../clock';
import type { Inbox } from '../receiving/inbox';
import type { Member } from './member';
import type { Polls } from './polls';
import type { AccountSettings } from './settings';

/** What a succession needs of its account. */
export interface SuccessionHost {
  readonly clock: Clock;
  readonly polls: Polls;
  readonly members: ReadonlySet<Member>;
  createInbox(settings: AccountSettings): Inbox;
  /** Keeps the account as it is, with its store open, while something is done to it that is no member's. */
  keepOpen<T>(work: () => Promise<T>): Promise<T>;
}

/** Knows which inbox is an account's, and what becomes of the ones before. */
export class Succession {
  readonly #host: SuccessionHost;
  #inbox: Inbox | undefined;
  #storeName = '';
  /** Whether a member has used the inbox since the first of them joined. */
  #isChosen = false;

  constructor(host: SuccessionHost) {
    this.#host = host;
  }

  /** The inbox, if somebody has asked for it. */
  get inbox(): Inbox | undefined {
    return this.#inbox;
  }

  /** Others are here now: the first of them who asks says where the inbox is kept. */
  begin(): void {
    this.#isChosen = false;
  }

  /** The inbox. Of those who are here, the first member that asks for it says where it is kept. */
  inboxOf(member: Member): Inbox {
    if (this.#inbox && (this.#isChosen || !this.#host.members.has(member))) return this.#inbox;
    this.#isChosen = true;
    const { settings } = member;
    if (this.#inbox && this.#storeName === settings.storeName) return this.#inbox;
    const earlier = this.#inbox;
    const inbox = this.#create(settings);
    if (earlier) void this.#host.keepOpen(() => earlier.handOver(inbox)).then(() => earlier.close());
    return inbox;
  }

  /** Takes over from the account of a login that a member's replaces. See {@link Membership.inherit}. */
  takeOver(former: Succession, member: Member): Promise<boolean> {
    return former.#host.keepOpen(() => this.#takeOver(former, member));
  }

  async #takeOver(former: Succession, member: Member): Promise<boolean> {
    const { members, polls } = former.#host;
    for (let hasWaited = false; ; hasWaited = true) {
      // Whoever is on it gets what it holds.
      if (members.size > 0) return true;
      if (!this.#host.members.has(member)) return false;
      const from = former.#inbox ?? former.#create(member.settings);
      const to = this.inboxOf(member);
      const hadPolls = polls.size > 0;
      const ended = polls.ended();
      await this.#host.keepOpen(() => from.handOver(to, { isLast: true }));
      // What is in a store that cannot be used is safe there, and may be asked for again.
      if (from.failure || to.failure) return false;
      if (!hadPolls && hasWaited) return true;
      await ended;
      if (!hasWaited && from.takeOverMs > 0) await this.#idle(from.takeOverMs);
    }
  }

  #create(settings: AccountSettings): Inbox {
    this.#storeName = settings.storeName;
    this.#inbox = this.#host.createInbox(settings);
    return this.#inbox;
  }

  /** Waits, but keeps no process alive that has nothing else to do. */
  #idle(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#host.clock.after(delayMs, resolve, true));
  }
}
