import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import type { HandOver } from '../sending/sender';
import type { Estate } from './estate';
import type { Member } from './member';
import type { Polls } from './polls';
import type { AccountSettings } from './settings';

/** What a succession needs of its account. */
export interface SuccessionHost {
  readonly clock: Clock;
  readonly polls: Polls;
  readonly members: ReadonlySet<Member>;
  createEstate(settings: AccountSettings): Estate;
  /** Keeps the account as it is, with its store open, while something is done to it that is no member's. */
  keepOpen<T>(work: () => Promise<T>): Promise<T>;
}

/** What takes over from what. */
export interface TakingOver {
  former: Succession;
  /** Names the login of the former one. */
  key: string;
  /** Who replaces that login. */
  member: Member;
  onFailure(failure: SmsError): void;
}

/** Knows where an account keeps what is its own, and what becomes of the places before. */
export class Succession {
  readonly #host: SuccessionHost;
  #estate: Estate | undefined;
  #storeName: string | undefined;
  /** Whether a member has used it since the first of them joined. */
  #isChosen = false;
  /** Keys of logins from which it could not be taken over at the first try: texts do not wait for another one. */
  readonly #tried = new Set<string>();

  constructor(host: SuccessionHost) {
    this.#host = host;
  }

  /** What is kept, if somebody has asked for it. */
  get estate(): Estate | undefined {
    return this.#estate;
  }

  /** The name of the store that it is kept in. */
  get storeName(): string | undefined {
    return this.#storeName;
  }

  /** Others are here now: the first of them who asks says where it is kept. */
  begin(): void {
    this.#isChosen = false;
    // Should a login come back that another has replaced, it keeps for itself again. So no two keep for each other.
    if (this.#estate) yieldTo(this.#estate, undefined);
  }

  /** What is kept. Of those who are here, the first member that asks for it says where. */
  estateOf(member: Member): Estate {
    if (this.#estate && (this.#isChosen || !this.#host.members.has(member))) return this.#estate;
    this.#isChosen = true;
    const { settings } = member;
    if (this.#estate && this.#storeName === settings.storeName) return this.#estate;
    const earlier = this.#estate;
    const estate = this.#create(settings);
    if (earlier) {
      const handed = this.#host.keepOpen(() => handOver(earlier, estate, { isLast: false }));
      // What the new place does not take stays in the old one.
      void handed.catch((error) => settings.onFault?.(error)).then(() => earlier.inbox.close());
    }
    return estate;
  }

  /** See {@link Sender.expected}. */
  get expected(): Promise<void> | undefined {
    return this.#estate?.sender.expected;
  }

  /** No node that has not come by now is to be waited for: what it has left is given up in its time, whoever else is here. */
  goOn(): void {
    const [first] = this.#host.members;
    const estate = this.#estate ?? (first && this.estateOf(first));
    estate?.sender.open();
  }

  /** Takes over from the account of a login that a member's replaces. See {@link Membership.inherit}. */
  async takeOver(takingOver: TakingOver): Promise<boolean> {
    const { former, key } = takingOver;
    const isAwaited = !this.#tried.has(key);
    this.#tried.add(key);
    const isDone = await former.#host.keepOpen(() => this.#takeOver(takingOver, isAwaited));
    if (isDone) this.#tried.delete(key);
    return isDone;
  }

  async #takeOver({ former, member, onFailure }: TakingOver, isAwaited: boolean): Promise<boolean> {
    const { members, polls } = former.#host;
    let hasIdled = false;
    for (let isFirst = true; ; isFirst = false) {
      // Whoever is on it gets what it holds.
      if (members.size > 0) return true;
      if (!this.#host.members.has(member)) return false;
      const from = former.#estate ?? former.#create(member.settings);
      const to = this.estateOf(member);
      yieldTo(from, to);
      const hadPolls = polls.size > 0;
      const ended = polls.oneEnded();
      let isHanded = true;
      try {
        const isWanted = () => members.size === 0;
        const handing = this.#host.keepOpen(() => handOver(from, to, { isLast: true, isWanted }));
        if (isFirst && isAwaited) to.sender.expect(handing);
        await handing;
      } catch {
        isHanded = false;
      }
      const { failure } = from.inbox;
      // Those who are here are told of their own by their nodes.
      if (failure && !to.inbox.failure) onFailure(failure);
      // What is in a store that cannot be used is safe there, and may be asked for again.
      if (!isHanded || failure || to.inbox.failure) return false;
      await ended;
      // What each has brought is handed over at once.
      if (hadPolls || isFirst) continue;
      const { takeOverMs, takeMore } = from.inbox.supply;
      if (!takeMore && (hasIdled || takeOverMs === 0)) return true;
      takeMore?.();
      await this.#idle(takeOverMs);
      hasIdled = true;
    }
  }

  #create(settings: AccountSettings): Estate {
    this.#storeName = settings.storeName;
    this.#estate = this.#host.createEstate(settings);
    return this.#estate;
  }

  /** Waits, but keeps no process alive that has nothing else to do. */
  #idle(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#host.clock.after(delayMs, resolve, true));
  }
}

/** Lets one go on to take over what other processes leave on a shared store, for the other or for itself. */
function yieldTo(from: Estate, heir: Estate | undefined): void {
  from.inbox.yieldTo(heir?.inbox);
  from.sender.yieldTo(heir?.sender);
}

/**
 * Gives everything to another store, as long as that `isWanted`. What a shared one has stays there, unless nobody else is to
 * take it any more.
 */
async function handOver(from: Estate, to: Estate, how: HandOver): Promise<void> {
  // Texts that are found until then are the other's, to be sent and to be given up.
  void from.sender.close();
  await from.inbox.handOver(to.inbox, how);
  await from.sender.handOver(to.sender, how);
}
