import { type Clock, waitRunning } from '../clock';
import type { WishOf } from '../consent/words';
import { SmsError } from '../errors';
import { readConsent } from '../inbox/correlator';
import { Inbox, type InboxOptions, type ReceiveCounts } from '../inbox/inbox';
import { Journal, type JournalOptions } from '../journal/journal';
import { Copies, type Move, moveAll } from '../journal/move';
import type { OutboxOptions } from '../outbox/ledger';
import { Outbox } from '../outbox/outbox';
import type { Polls } from '../polling/endpoint';
import type { AccountSettings, Member, StoreChoice } from './settings';

/** What the keeping of an account stands on: all that its journal, its inbox and its outbox do. */
export interface AccountDataOptions
  extends Required<Pick<JournalOptions, 'store' | 'onStore' | 'onSteps' | 'onDamaged'>>,
    Pick<InboxOptions, 'dedupe' | 'onDeadLettersFull' | 'isPolled' | 'onUntaken'>,
    Omit<OutboxOptions, 'journal' | 'wanted'> {
  receives: ReceiveCounts;
  /** Says who opts out, as long as somebody is listened to. */
  wishOf: WishOf;
  /** The list of those who opted out has changed. */
  onOptOut(): void;
}

/** What an account keeps in one store: what comes in and what goes out, which know nothing of each other, in one journal. */
export class AccountData {
  readonly journal: Journal;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  #replacedBy: AccountData | undefined;
  #givenTo: AccountData | undefined;

  constructor({ store, onStore, onSteps, onDamaged, ...options }: AccountDataOptions) {
    const journal = new Journal({
      store,
      clock: options.clock,
      onStore: (error) => {
        onStore(error);
        void this.outbox.registrations.onStore();
      },
      onSteps,
      onDamaged,
    });
    this.outbox = new Outbox({ ...options, journal, wanted: () => this.#replacedBy?.outbox.wanted() });
    this.journal = journal;
    const { clock, wishOf, onOptOut: onChanged } = options;
    const consent = { journal, now: () => clock.now(), wishOf, onChanged };
    this.inbox = new Inbox({
      ...options,
      counts: options.receives,
      journal,
      correlator: (event) => this.outbox.replies.correlationOf(event),
      consentOf: (event) => readConsent(consent, event),
      replacedBy: () => this.#replacedBy?.inbox,
    });
  }

  /** Lets another take over from it, also what other processes leave on a shared store; `undefined`: it keeps for itself. */
  replaceBy(other: AccountData | undefined): void {
    if (other !== this.#replacedBy) this.#givenTo = undefined;
    this.#replacedBy = other;
  }

  /** Another knows all of it: what still comes goes there, while that is to take over from it. */
  givenTo(other: AccountData): void {
    if (this.#replacedBy === other) this.#givenTo = other;
  }

  /** Where what comes is kept: where it is known what came before. */
  get receiving(): Inbox {
    return this.#givenTo?.receiving ?? this.inbox;
  }

  /** Whether nothing would be lost by forgetting it: in memory alone is what is remembered, such as who opted out. */
  get isSettled(): boolean {
    return this.journal.isDurable && this.inbox.isSettled && this.outbox.isSettled;
  }
}

/** What they need of their account. */
export interface AccountStoresHost {
  /** Names the login. */
  readonly key: string;
  readonly clock: Clock;
  readonly polls: Polls;
  readonly members: ReadonlySet<Member>;
  createData(settings: AccountSettings): AccountData;
  /** Keeps the account as it is, with its store open, while something is done to it that is no member's. */
  keepOpen<T>(work: () => Promise<T>): Promise<T>;
}

/** What takes over from what. */
export interface TakeOver {
  former: AccountStores;
  /** Which of its stores. */
  store: StoreChoice;
  /** Who replaces that login, or that store. */
  member: Member;
  onFailure(failure: SmsError): void;
  /** Resolves when it is known who else is there. */
  started: Promise<void>;
}

/** Texts, and what comes, wait for what a former login knows, though not for ever: its store may fail. */
const longestExpectedSeconds = 10;

/** Knows where an account keeps what is its own, and what becomes of the places before. */
export class AccountStores {
  /** What is kept, if somebody has asked for it. */
  data: AccountData | undefined;
  /** What was kept before in another store. */
  former: AccountData | undefined;
  readonly #host: AccountStoresHost;
  /** By the names of their stores: the one that is used, and those before it that are not empty yet. */
  readonly #byStore = new Map<string, AccountData>();
  /** By which it is being taken over from them now. */
  readonly #takeOvers = new Set<TakeOver>();
  /** The name of the store that it is kept in. */
  storeName: string | undefined;
  /** Whether a member has used it since the first of them joined. */
  #isChosen = false;
  /** Resolves when it knows what is in the places before, or that takes too long; `undefined`: it does, or has been waited for. */
  expected: Promise<void> | undefined;
  /** Places that it has not taken over from, each with who is to do that. */
  readonly #unread = new Map<string, Member>();

  constructor(host: AccountStoresHost) {
    this.#host = host;
  }

  /** Whether nothing would be lost by forgetting it, and whatever is left in the places before. */
  get isSettled(): boolean {
    return [...this.#byStore.values()].every(({ isSettled }) => isSettled);
  }

  /** Others are here now: the first of them who asks says where it is kept. */
  begin(): void {
    this.#isChosen = false;
    // Should a login come back that another has replaced, it keeps for itself again. So no two keep for each other.
    this.data?.replaceBy(undefined);
  }

  /** What is kept. Of those who are here, the first member that asks for it says where. */
  dataOf(member: Member): AccountData {
    const earlier = this.data;
    if (earlier && (this.#isChosen || !this.#host.members.has(member))) return earlier;
    this.#isChosen = true;
    const { settings } = member;
    const formerName = this.storeName;
    this.storeName = settings.storeName;
    const data = this.#dataIn(settings);
    this.data = data;
    // It may be one that was to be taken over from, or was closed.
    data.replaceBy(undefined);
    data.journal.begin();
    if (earlier && earlier !== data && formerName !== undefined) {
      const store = { ...settings, storeName: formerName };
      // What the new place does not take stays in the old one, until somebody asks for it again.
      void this.takeOver({ former: this, store, member, onFailure: () => {}, started: Promise.resolve() });
      if (!earlier.journal.failure) this.former = this.expected && earlier;
    }
    return data;
  }

  /** See {@link LedgerOptions.unread}. */
  get unread(): SmsError | undefined {
    for (const [place, member] of this.#unread) if (!this.#host.members.has(member)) this.#unread.delete(place);
    return this.#unread.size > 0 ? new SmsError('formerUnread') : undefined;
  }

  /** No node that has not come by now is to be waited for: what it has left is given up in its time, whoever else is here. */
  goOn(): void {
    const [first] = this.#host.members;
    const data = this.data ?? (first && this.dataOf(first));
    data?.outbox.open();
  }

  /** Takes over from a place that a member's replaces. See {@link Membership.inherit}. */
  async takeOver(takeOver: TakeOver): Promise<boolean> {
    const { former, store, member } = takeOver;
    const { storeName } = store;
    const place = `${former.#host.key} ${storeName}`;
    let onRead = () => {};
    // Nobody waits for another try.
    if (this.#unread.get(place) !== member) this.#expect(new Promise((resolve) => (onRead = resolve)));
    this.#unread.set(place, member);
    const read = () => {
      this.#unread.delete(place);
      onRead();
    };
    const work = async () => {
      former.#takeOvers.add(takeOver);
      let isDone = false;
      try {
        isDone = await this.#takeOver(takeOver, read);
        if (isDone) read();
        return isDone;
      } finally {
        onRead();
        // What its last polls bring goes where all the rest went, though this member is being redeployed.
        if (!this.#host.members.has(member)) await former.#host.polls.ended();
        former.#takeOvers.delete(takeOver);
        await former.#closeUnused(storeName, isDone);
      }
    };
    return this.#host.keepOpen(() => former.#host.keepOpen(work));
  }

  /** Has everybody wait for a place to be read, though not for long. */
  #expect(reading: Promise<void>): void {
    const patience = new AbortController();
    const over = Promise.race([reading, waitRunning(this.#host.clock, longestExpectedSeconds, patience.signal)]).catch(
      () => {},
    );
    const expected = Promise.all([this.expected, over]).then(() => {
      patience.abort();
      if (this.expected === expected) this.expected = this.former = undefined;
    });
    this.expected = expected;
  }

  async #takeOver({ former, store, member, onFailure, started }: TakeOver, onRead: () => void): Promise<boolean> {
    const { storeName } = store;
    const isWanted = () => !former.#isUsed(storeName);
    await Promise.race([started, member.left]);
    // What dead processes have left is known so long after the store was opened.
    let idledSince: object | undefined;
    const copies = new Copies();
    for (let isFirst = true; ; isFirst = false) {
      if (!isWanted()) {
        onRead();
        // Whoever is on it gets what it holds; but those on this login may leave, and this member may want it elsewhere then.
        return former !== this || storeName === member.settings.storeName;
      }
      if (!this.#host.members.has(member)) return false;
      const to = this.dataOf(member);
      const from = former.#dataIn({ ...member.settings, ...store });
      from.replaceBy(to);
      const polls = former.storeName === storeName ? former.#host.polls : undefined;
      const hadPolls = polls !== undefined && polls.size > 0;
      const ended = polls?.oneEnded();
      // Of one login others may go on with what is shared. If both are, two names may be those of one server.
      const keepsMemory = former === this && from.journal.isShared;
      const isLast = !(keepsMemory && to.journal.isShared);
      let isHanded = true;
      try {
        const onMoved = () => from.givenTo(to);
        await handOver(from, to, { isLast, keepsMemory, isWanted, onMoved, copies });
      } catch {
        isHanded = false;
      }
      const { failure } = from.journal;
      // Those who are here are told of their own by their nodes.
      if (failure && !to.journal.failure) onFailure(failure);
      // What is in a store that cannot be used is safe there, and may be asked for again.
      if (!isHanded || failure || to.journal.failure) return false;
      onRead();
      await Promise.race([ended, member.left]);
      // What each has brought is handed over at once.
      if (hadPolls || isFirst) continue;
      const { takeOverMs, opening } = from.journal;
      if (!isLast || idledSince === opening || takeOverMs === 0) return true;
      idledSince = opening;
      await Promise.race([this.#idle(takeOverMs), member.left]);
    }
  }

  /** Whether those who are here keep there, or may be about to. */
  #isUsed(storeName: string): boolean {
    const { members } = this.#host;
    if (members.size > 0 && this.#isChosen) return this.storeName === storeName;
    return [...members].some(({ settings }) => settings.storeName === storeName);
  }

  #dataIn(settings: AccountSettings): AccountData {
    const { storeName } = settings;
    const data = this.#byStore.get(storeName) ?? this.#host.createData(settings);
    this.#byStore.set(storeName, data);
    this.storeName ??= storeName;
    this.data ??= data;
    return data;
  }

  /** Closes what nobody keeps in and nobody takes from, and forgets it when it is empty. What is used is closed by its account. */
  async #closeUnused(storeName: string, isDone: boolean): Promise<void> {
    const isTakenOver = () => [...this.#takeOvers].some(({ store }) => store.storeName === storeName);
    const isUnused = () => storeName !== this.storeName && !isTakenOver();
    const data = this.#byStore.get(storeName);
    // What its last polls bring between two tries is the other's.
    if (isDone && !isTakenOver()) data?.replaceBy(undefined);
    if (!data || !isUnused()) return;
    await data.journal.close();
    // What was in memory alone has been handed over.
    const isLeft = data.isSettled || (isDone && !data.journal.isDurable && !this.#isUsed(storeName));
    if (isLeft && isUnused()) this.#byStore.delete(storeName);
  }

  /** Waits, but keeps no process alive that has nothing else to do. */
  #idle(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.#host.clock.after(delayMs, resolve, true));
  }
}

/** What is handed over. */
type Handed = Pick<AccountData, 'journal' | 'outbox'>;

/** The latest time that something was given to each, or taken from it. */
const handOvers = new WeakMap<Handed, Promise<void>>();

/**
 * Gives everything to another store, as long as that `isWanted`: after all that was to be given to either before, or taken from it, since what is
 * remembered must not be added up twice, and what has not come yet would stay in a place that nobody keeps in any more. What a shared
 * store has stays there, unless nobody else is to take it any more.
 */
export function handOver(from: Handed, to: Handed, how: Move): Promise<void> {
  const { isWanted = () => true, onMoved = () => {} } = how;
  const before = Promise.allSettled([handOvers.get(from), handOvers.get(to)]);
  const handingOver = before.then(async () => {
    if (!isWanted()) return;
    // Texts that are found until then are the other's, to be sent and to be given up.
    void from.outbox.close();
    // What came waits for no text that has left, and has no other place while the store fails.
    await moveAll(from.journal, to.journal, { ...how, parts: ['inbox', 'deadLetter'], onMoved: () => {} });
    if (isWanted()) await from.outbox.close();
    if (!isWanted()) return;
    // It was tried a moment ago.
    if (from.journal.failure) throw from.journal.failure;
    const onOwn = () => {
      to.outbox.takeOver(from.outbox);
      onMoved();
    };
    await moveAll(from.journal, to.journal, { ...how, onMoved: onOwn });
  });
  handOvers.set(from, handingOver).set(to, handingOver);
  return handingOver;
}
