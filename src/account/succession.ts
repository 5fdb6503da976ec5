import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import type { HandOver } from '../outbox/sender';
import type { Polls } from '../polling/endpoint';
import type { Estate } from './estate';
import type { Member } from './member';
import type { AccountSettings, StoreChoice } from './settings';

/** What a succession needs of its account. */
export interface SuccessionHost {
  /** Names the login. */
  readonly key: string;
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
  /** Which of its stores. */
  store: StoreChoice;
  /** Who replaces that login, or that store. */
  member: Member;
  onFailure(failure: SmsError): void;
}

/** Knows where an account keeps what is its own, and what becomes of the places before. */
export class Succession {
  readonly #host: SuccessionHost;
  /** By the names of their stores: the one that is used, and those before it that are not empty yet. */
  readonly #estates = new Map<string, Estate>();
  /** How often it is being taken over from each of them now. */
  readonly #heirs = new Map<string, number>();
  #storeName: string | undefined;
  /** Whether a member has used it since the first of them joined. */
  #isChosen = false;
  /** Places from which it could not be taken over at the first try: texts do not wait for another one. */
  readonly #tried = new Map<string, true>();

  constructor(host: SuccessionHost) {
    this.#host = host;
  }

  /** What is kept, if somebody has asked for it. */
  get estate(): Estate | undefined {
    return this.#storeName === undefined ? undefined : this.#estates.get(this.#storeName);
  }

  /** The name of the store that it is kept in. */
  get storeName(): string | undefined {
    return this.#storeName;
  }

  /** Whether nothing would be lost by forgetting it, and whatever is left in the places before. */
  get isSettled(): boolean {
    return [...this.#estates.values()].every(({ isSettled }) => isSettled);
  }

  /** Others are here now: the first of them who asks says where it is kept. */
  begin(): void {
    this.#isChosen = false;
    // Should a login come back that another has replaced, it keeps for itself again. So no two keep for each other.
    if (this.estate) yieldTo(this.estate, undefined);
  }

  /** What is kept. Of those who are here, the first member that asks for it says where. */
  estateOf(member: Member): Estate {
    const earlier = this.estate;
    if (earlier && (this.#isChosen || !this.#host.members.has(member))) return earlier;
    this.#isChosen = true;
    const { settings } = member;
    const { storeName } = settings;
    if (earlier && this.#storeName === storeName) return earlier;
    const formerName = this.#storeName;
    this.#storeName = storeName;
    const estate = this.#estateIn(settings);
    // It may be one that was to be taken over from.
    yieldTo(estate, undefined);
    if (earlier && formerName !== undefined) {
      const store = { ...settings, storeName: formerName };
      // What the new place does not take stays in the old one, until somebody asks for it again.
      void this.takeOver({ former: this, store, member, onFailure: () => {} });
    }
    return estate;
  }

  /** See {@link Sender.expected}. */
  get expected(): Promise<void> | undefined {
    return this.estate?.sender.expected;
  }

  /** No node that has not come by now is to be waited for: what it has left is given up in its time, whoever else is here. */
  goOn(): void {
    const [first] = this.#host.members;
    const estate = this.estate ?? (first && this.estateOf(first));
    estate?.sender.open();
  }

  /** Takes over from a place that a member's replaces. See {@link Membership.inherit}. */
  async takeOver(takingOver: TakingOver): Promise<boolean> {
    const { former, store } = takingOver;
    const { storeName } = store;
    const place = `${former.#host.key} ${storeName}`;
    const isAwaited = !this.#tried.has(place);
    this.#tried.set(place, true);
    const isDone = await former.#host.keepOpen(async () => {
      former.#heirs.set(storeName, former.#heirsOf(storeName) + 1);
      try {
        return await this.#takeOver(takingOver, isAwaited);
      } finally {
        former.#heirs.set(storeName, former.#heirsOf(storeName) - 1);
        await former.#closeUnused(storeName);
      }
    });
    if (isDone) this.#tried.delete(place);
    return isDone;
  }

  async #takeOver({ former, store, member, onFailure }: TakingOver, isAwaited: boolean): Promise<boolean> {
    const { storeName } = store;
    const isWanted = () => !former.#isUsed(storeName);
    let hasIdled = false;
    for (let isFirst = true; ; isFirst = false) {
      // Whoever is on it gets what it holds; but those on this login may leave, and this member may want it elsewhere then.
      if (!isWanted()) return former !== this || storeName === member.settings.storeName;
      if (!this.#host.members.has(member)) return false;
      const to = this.estateOf(member);
      const from = former.#estateIn({ ...member.settings, ...store });
      yieldTo(from, to);
      const polls = former.#storeName === storeName ? former.#host.polls : undefined;
      const hadPolls = polls !== undefined && polls.size > 0;
      const ended = polls?.oneEnded();
      // Of one login others may go on with what is shared. If both are, two names may be those of one server.
      const keepsMemory = former === this && from.isShared;
      const isLast = !(keepsMemory && to.isShared);
      let isHanded = true;
      try {
        const handing = this.#host.keepOpen(() => handOverInTurn(from, to, { isLast, keepsMemory, isWanted }));
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
      const { takeOverMs, takeMore } = from.inbox.backlog;
      if (!isLast || (!takeMore && (hasIdled || takeOverMs === 0))) return true;
      takeMore?.();
      await Promise.race([this.#idle(takeOverMs), member.left]);
      hasIdled = true;
    }
  }

  /** Whether those who are here keep there, or may be about to. */
  #isUsed(storeName: string): boolean {
    const { members } = this.#host;
    if (members.size > 0 && this.#isChosen) return this.#storeName === storeName;
    return [...members].some(({ settings }) => settings.storeName === storeName);
  }

  #estateIn(settings: AccountSettings): Estate {
    const { storeName } = settings;
    const estate = this.#estates.get(storeName) ?? this.#host.createEstate(settings);
    this.#estates.set(storeName, estate);
    this.#storeName ??= storeName;
    return estate;
  }

  #heirsOf(storeName: string): number {
    return this.#heirs.get(storeName) ?? 0;
  }

  /** Closes what nobody keeps in and nobody takes from, and forgets it when it is empty. What is used is closed by its account. */
  async #closeUnused(storeName: string): Promise<void> {
    const isUnused = () => storeName !== this.#storeName && this.#heirsOf(storeName) === 0;
    const estate = this.#estates.get(storeName);
    if (!estate || !isUnused()) return;
    await estate.inbox.close();
    if (estate.isSettled && isUnused()) this.#estates.delete(storeName);
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

/** The latest time that something was given to each, or taken from it. */
const handings = new WeakMap<Estate, Promise<void>>();

/**
 * Hands over after all that was to be given to either before, or taken from it: what is remembered must not be added up twice, and
 * what has not come yet would stay in a place that nobody keeps in any more.
 */
function handOverInTurn(from: Estate, to: Estate, how: HandOver): Promise<void> {
  const before = Promise.allSettled([handings.get(from), handings.get(to)]);
  const handing = before.then(() => handOver(from, to, how));
  handings.set(from, handing).set(to, handing);
  return handing;
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
