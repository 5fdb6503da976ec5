import { isDeepStrictEqual } from 'node:util';
import { type Clock, maxDeploymentMs, type Timer, wait } from '../clock';
import { countOptOuts } from '../consent/opt-outs';
import { createConsentReader, type ReadConsentChange } from '../consent/words';
import { SmsError } from '../errors';
import { Client } from '../http/client';
import { type Connections, createConnections } from '../http/connections';
import { findProxy } from '../http/proxy';
import type { Inbox } from '../inbox/inbox';
import { createReading } from '../journal/step';
import { QuietHours } from '../message/times';
import type { Kind } from '../model';
import { SendQueue } from '../outbox/queue';
import type { RuleSettings } from '../outbox/rules';
import { closeGraceMs, type SendHandler, type SendingNode } from '../outbox/sender-registrations';
import { Endpoint, type EndpointHost, type Endpoints, Polls } from '../polling/endpoint';
import type { AwaitedKind } from '../replies/follow-ups';
import { AccountData } from './account-data';
import { type FormerPlace, importStore } from './import';
import { JoinedMembership, type MembershipHost } from './membership';
import { ReplyPoll } from './reply-poll';
import type { AccountSettings, Member } from './settings';
import type { Stats } from './stats';

/** Dependencies of an account. */
export interface AccountOptions {
  /** Identifies the login. */
  key: string;
  clock: Clock;
  /** Counters of the account. */
  stats: Stats;
  /** Returns the account of another login, if this process has one. */
  find(key: string): Account | undefined;
  /** Called when the account can be dropped without loss. */
  onIdle(): void;
}

/** Maximum time that the account waits for a partly received answer after the last member has left, in ms. */
const halfReceivedGraceMs = 2_500;

/** Default time after a send for which replies and statuses are matched to the message, in ms. */
const sentMs = 168 * 3_600_000;

/**
 * Time in ms after which the number of opted-out numbers, once read, is out of date, because other instances can change
 * it.
 */
const optedOutKnownMs = 30_000;

/** Time in ms for which an account without members stays in memory. It is longer than any redeploy takes. */
const forgetAfterMs = 60_000;

/** Connections, queue, store and polls of one login. The deployed account nodes of this login are its members. */
export class Account implements EndpointHost, MembershipHost {
  readonly key: string;
  readonly clock: Clock;
  readonly stats: Stats;
  readonly members = new Set<Member>();
  readonly polls = new Polls();
  readonly endpoints: Endpoints;
  optedOut = 0;
  /** Time at which the number of opted-out numbers was last read, by {@link Clock.elapsed}. */
  #optedOutReadAt = Number.NEGATIVE_INFINITY;
  /** Recognises opt-out and opt-in words of all nodes. Absent if no node has `optOut`. */
  #readConsentChange: ReadConsentChange | undefined;
  /** Allowed prefixes of numbers, by id of the sending node. */
  readonly #prefixes = new Map<string, ReadonlySet<string>>();
  readonly #options: AccountOptions;
  /** The data of each store that the account has used, by the name of the store. */
  readonly #byStore = new Map<string, AccountData>();
  /** The data in the store that the account uses now. */
  data: AccountData | undefined;
  /** Whether a present member has chosen the store, see {@link dataOf}. Reset if a member joins an empty account. */
  #isChosen = false;
  /** Promise of the latest {@link leave}. */
  #departure: Promise<void> | undefined;
  /** Polls for the replies and for the statuses that sending nodes wait for. */
  readonly #replyPolls: Readonly<Record<AwaitedKind, ReplyPoll>>;
  readonly #queue: SendQueue;
  /** Queue of the requests with which flows read from the service. */
  readonly reads: SendQueue;
  #currentConnections: Connections | undefined;
  /** Connections for all clients, opened by the first member. */
  readonly #connections: Pick<Connections, 'dispatch'> = {
    dispatch: (...exchange) => this.#currentConnections?.dispatch(...exchange) ?? false,
  };
  /** Settings of the first member. They stay after all members have left, because polls might still be in flight. */
  settings: AccountSettings | undefined;
  /** Settings whose limits apply, by id of the member. Includes members that are being redeployed. */
  readonly #limiting = new Map<string, AccountSettings>();
  readonly #rules: RuleSettings = { limits: [], quietHours: [], optOut: false, prefixes: this.#prefixes };
  #perSecond: number | undefined;
  /** Number of running tasks that need the account even if it has no members. */
  #runningTaskCount = 0;
  /** One promise for each imported former login, which resolves when the polls in flight of that login have ended. */
  readonly #arrivals = new Set<Promise<void>>();
  #forgetTimer: Timer | undefined;
  /** Timer that starts when the first member joins. By its end, all sending nodes of the deployment are attached. */
  #deploymentTimer: Timer | undefined;

  constructor(options: AccountOptions) {
    const { key, clock, stats } = options;
    this.key = key;
    this.clock = clock;
    this.stats = stats;
    this.#options = options;
    const limits = () => {
      const { concurrency, queueLimit } = this.settings ?? { concurrency: 1, queueLimit: 0 };
      return { concurrency, queueLimit };
    };
    this.#queue = new SendQueue({
      clock,
      settings: () => ({ ...limits(), perSecond: this.#perSecond }),
      onChanged: () => this.settings?.onChanged?.(),
    });
    this.reads = new SendQueue({ clock, settings: limits, reasons: { busy: 'busyReads', closed: 'closedRead' } });
    this.endpoints = {
      incoming: new Endpoint('incoming', this),
      status: new Endpoint('status', this),
      outbox: new Endpoint('outbox', this),
    };
    // If the polls for replies and for statuses fail for the same reason, a node that needs both gets only one error.
    const createPoll = (kind: AwaitedKind, other: AwaitedKind) =>
      new ReplyPoll({
        endpoint: this.endpoints[kind],
        member: () => [...this.members][0],
        onFailing: (node, error) => {
          if (this.#replyPolls[other].hasNotified(node, error)) return true;
          return this.data?.outbox.registrations.onPollFailing(node, error) ?? false;
        },
        onRecovered: (nodes) => {
          if (!this.#replyPolls[other].isFailing) this.data?.outbox.registrations.onPollRecovered(nodes);
        },
      });
    this.#replyPolls = { incoming: createPoll('incoming', 'status'), status: createPoll('status', 'incoming') };
  }

  failure(): SmsError | undefined {
    return this.data?.journal.failure;
  }

  inboxOf(member: Member): Inbox {
    return this.dataOf(member).receiver;
  }

  onChanged(): void {
    this.settings?.onChanged?.();
  }

  onDrained(kind: Kind): void {
    this.data?.outbox.replies.onDrained(kind);
  }

  /**
   * Adds a member.
   *
   * @throws SmsError `SMS_CONFIG` if the settings are invalid
   */
  join(settings: AccountSettings): JoinedMembership {
    // Throws now if the proxy is invalid, because this member might be the one that opens the connections later.
    findProxy(settings.baseUrl, settings.proxy, settings.proxyRules);
    this.#forgetTimer?.cancel();
    if (this.members.size === 0) {
      this.#open(settings);
      this.#isChosen = false;
      this.#deploymentTimer = this.clock.after(maxDeploymentMs, () => this.#endDeployment(), true);
    }
    const client = new Client({ ...settings, connections: this.#connections, clock: this.clock });
    const membership = new JoinedMembership(settings, client, this);
    this.members.add(membership);
    this.#limiting.set(settings.id, settings);
    this.#changeLimits();
    return membership;
  }

  #changeLimits(): void {
    const allSettings = [...this.#limiting.values()];
    this.#rules.limits = allSettings.flatMap(({ limits }) =>
      limits && (limits.perHandset ?? limits.perDay) !== undefined ? [limits] : [],
    );
    const quietHours = new Map(
      allSettings.flatMap(({ quietHours: hours }) => (hours ? [[JSON.stringify(hours), hours] as const] : [])),
    );
    const earlier = this.#rules.quietHours.map(({ settings }) => JSON.stringify(settings));
    // Updates quiet hours only if they changed, because checking 100,000 scheduled messages takes seconds.
    if ([...quietHours.keys()].join() !== earlier.join()) {
      this.#rules.quietHours = [...quietHours.values()].map((hours) => new QuietHours(hours));
      this.data?.outbox.quietHoursChanged();
    }
    const slowest = Math.min(...allSettings.map(({ perSecond = Number.POSITIVE_INFINITY }) => perSecond));
    this.#perSecond = Number.isFinite(slowest) ? slowest : undefined;
    // Keeps the opt-out words after the last member has left, because they still apply to polls in flight.
    const optOuts = allSettings.flatMap(({ optOut }) => optOut ?? []);
    if (allSettings.length > 0) this.#readConsentChange = optOuts.length > 0 ? createConsentReader(optOuts) : undefined;
    this.#rules.optOut = this.#readConsentChange !== undefined;
    this.#listen();
    this.#queue.nudge();
  }

  /** If any member has `optOut`, polls incoming messages while a sending node is attached. */
  #listen(): void {
    const nodes = this.#readConsentChange && this.data?.outbox.registrations.nodes;
    this.#replyPolls.incoming.listen(new Set(nodes));
  }

  attachSender(member: Member, handler: Omit<SendHandler, 'client'>): SendingNode {
    const sending = this.dataOf(member).outbox.attach({ ...handler, client: member.client });
    const { prefixes = [] } = member.settings;
    // When the node closes, its prefixes stay without effect, because its messages are sent only while it is deployed.
    if (prefixes.length > 0) this.#prefixes.set(handler.id, new Set(prefixes));
    else this.#prefixes.delete(handler.id);
    this.#listen();
    return {
      ...sending,
      close: () => {
        const whenClosed = sending.close();
        this.#listen();
        return whenClosed;
      },
    };
  }

  async refresh(): Promise<void> {
    const journal = this.data?.journal;
    const isKnown = this.clock.elapsed() - this.#optedOutReadAt < optedOutKnownMs;
    if (isKnown || !journal?.isOpen) return;
    this.#optedOutReadAt = this.clock.elapsed();
    this.optedOut = await journal.run(createReading('refuse', countOptOuts)).catch(() => this.optedOut);
  }

  onOptOut(): void {
    this.#optedOutReadAt = Number.NEGATIVE_INFINITY;
  }

  connectionOf({ settings }: Member): { id: string; settings: ('proxy' | 'tls')[] } | undefined {
    const currentSettings = this.settings;
    if (!currentSettings || currentSettings === settings) return undefined;
    const differing = (['proxy', 'tls'] as const).filter(
      (name) => !isDeepStrictEqual(settings[name], currentSettings[name]),
    );
    return differing.length > 0 ? { id: currentSettings.id, settings: differing } : undefined;
  }

  /** Opens the connections. The first member's settings apply to the connections and the queue. */
  #open(settings: AccountSettings): void {
    this.#currentConnections = (settings.createConnections ?? createConnections)(settings);
    this.settings = settings;
  }

  #createData(settings: AccountSettings, formerData: AccountData | undefined): AccountData {
    const { key, clock, stats, endpoints } = this;
    const onChanged = () => this.settings?.onChanged?.();
    const onStore = () => {
      for (const endpoint of Object.values(endpoints)) endpoint.pauseOrResume();
      onChanged();
    };
    const isCurrent = () => this.data === data;
    const onFault = (error: unknown) => this.settings?.onFault?.(error);
    // All poll loops share one list of identifiers of received records. The settings of the loop for incoming messages
    // apply to this list.
    const dedupeMs = () => endpoints.incoming.settings?.dedupeMs ?? settings.dedupeMs;
    const data = new AccountData({
      isUsed: () => isCurrent() && this.members.size > 0,
      storeName: settings.storeName,
      formerData,
      store: settings.createStore(key),
      clock,
      onStore,
      onSteps: onChanged,
      onDamaged: (error) => this.settings?.onDamaged?.(error),
      inbox: {
        counts: stats.receives,
        isPolled: (kind) => isCurrent() && endpoints[kind].isWatched,
        readConsentChange: (text) => this.#readConsentChange?.(text),
        dedupe: () => endpoints.incoming.settings?.dedupe ?? settings.dedupe,
        dedupeMs,
        onDeadLettersFull: () => this.settings?.onUnhandledFull?.(),
        onUnreceived: (kind) => this.settings?.onUnreceived?.(kind),
        onOptOut: () => this.onOptOut(),
        onFault,
      },
      outbox: {
        queue: this.#queue,
        counts: stats.sends,
        outage: stats.outage,
        storeNotices: stats.storeNotices.of(settings.storeName),
        settings: { rules: this.#rules, dedupeMs, sentMs: () => this.settings?.sentMs ?? sentMs },
        account: {
          sources: () => [
            ...(endpoints.status.isWatched ? (['status'] as const) : []),
            ...(endpoints.incoming.isWatched ? (['reply'] as const) : []),
            ...(endpoints.outbox.isWatched ? (['outbox'] as const) : []),
          ],
          client: () => [...this.members][0]?.client,
          onAbandoned: (node) => this.settings?.onAbandoned?.(node),
          onDiscarded: (node) => this.settings?.onDiscarded?.(node),
          onOpenRequests: (node, kind, areOpen) => isCurrent() && this.#replyPolls[kind].setWaiting(node, areOpen),
          onFault,
        },
      },
    });
    return data;
  }

  async ready(member: Member | undefined): Promise<Member> {
    const { journal } = this.dataOf(this.#present(member));
    await journal.ready();
    // Checks again, because the store might have failed in the turn of the event loop in which it became ready.
    if (journal.failure) throw journal.failure;
    return this.#present(member);
  }

  /** Returns the member or, if it is absent or has left, another member. Throws `SMS_CLOSED` if there is no member. */
  #present(member: Member | undefined): Member {
    const [firstMember] = this.members;
    const activeMember = member && this.members.has(member) ? member : firstMember;
    if (!activeMember) throw new SmsError('closed');
    return activeMember;
  }

  /** Returns the data of the account. The first member that calls this function chooses the store for all members. */
  dataOf(member: Member): AccountData {
    const earlier = this.data;
    if (earlier && (this.#isChosen || !this.members.has(member))) return earlier;
    this.#isChosen = true;
    const { settings } = member;
    const storeData = this.#byStore.get(settings.storeName);
    const data = storeData && !storeData.isImported ? storeData : this.#createData(settings, storeData);
    this.#byStore.set(settings.storeName, data);
    this.data = data;
    data.begin();
    if (earlier && earlier !== data) void earlier.close(() => this.data === earlier);
    return data;
  }

  importFrom(member: Member, formerPlaces: readonly FormerPlace[], whenStarted: Promise<void>): void {
    const data = this.dataOf(member);
    data.imports.add(
      formerPlaces.map(({ id, key = this.key, kind, store, onDone, onFailure }) => {
        const account = () => (key === this.key ? this : this.#options.find(key));
        return {
          id,
          kind,
          whenStarted,
          onDone,
          onFailure,
          isWanted: () => this.members.has(member),
          isUsed: () => store !== undefined && (account()?.isUsedIn(store.storeName) ?? false),
          importInto: async (options) => {
            if (!store) throw new SmsError('formerUrl');
            const formerAccount = account();
            const storeData = await formerAccount?.findData(store.storeName, formerAccount !== this);
            if (storeData) {
              await storeData.exportTo(data, { ...options, id });
              if (formerAccount && formerAccount !== this) this.#keepFor(formerAccount);
              return;
            }
            return importStore({ ...options, id, from: store.createStore(key), hasAllItems: false });
          },
        };
      }),
    );
  }

  /** Keeps this account open while polls of a former login are in flight, because this account stores their answers. */
  #keepFor(formerAccount: Account): void {
    const arrivals = formerAccount.lastArrivals();
    this.#arrivals.add(arrivals);
    this.#runningTaskCount++;
    void arrivals.then(() => {
      this.#arrivals.delete(arrivals);
      this.#runningTaskCount--;
      if (!this.#isNeeded) void this.#closeWhenIdle();
    });
  }

  /** Resolves when all polls in flight have ended, including the polls of former logins whose data was imported. */
  async lastArrivals(): Promise<void> {
    await Promise.all([this.polls.whenEnded(), ...this.#arrivals]);
  }

  /**
   * Returns the data in a store, unless another store has imported it. If `isToClose`, waits first until the latest
   * {@link leave} has ended.
   */
  async findData(storeName: string, isToClose: boolean): Promise<AccountData | undefined> {
    if (isToClose) await this.#departure;
    const data = this.#byStore.get(storeName);
    return data?.isImported ? undefined : data;
  }

  /** Whether deployed nodes keep, or will soon keep, their data in a store of this name. */
  isUsedIn(storeName: string): boolean {
    const { members, data } = this;
    if (members.size > 0 && this.#isChosen) return data?.storeName === storeName;
    return [...members].some(({ settings }) => settings.storeName === storeName);
  }

  /**
   * Called when the deployment has ended. Opens the outbox even without sending nodes, so that messages of removed
   * nodes expire.
   */
  #endDeployment(): void {
    const [firstMember] = this.members;
    const data = this.data ?? (firstMember && this.dataOf(firstMember));
    data?.outbox.open();
  }

  leave(member: Member, returning: Promise<void> | undefined, stoppedAt: number): Promise<void> {
    const departure = this.#leave(member, returning, stoppedAt);
    this.#departure = departure;
    return departure;
  }

  async #leave(member: Member, returning: Promise<void> | undefined, stoppedAt: number): Promise<void> {
    this.members.delete(member);
    const [firstMember] = this.members;
    if (
      !firstMember ||
      !isDeepStrictEqual(connectionSettingsOf(firstMember.settings), connectionSettingsOf(this.settings))
    ) {
      // Closes the old connections as soon as their running requests have ended.
      void this.#currentConnections?.close().catch(() => {});
      if (firstMember) this.#open(firstMember.settings);
    }
    if (firstMember) this.settings = firstMember.settings;
    const { settings } = member;
    const unlimit = () => {
      if (this.#limiting.get(settings.id) !== settings) return;
      this.#limiting.delete(settings.id);
      this.#changeLimits();
    };
    if (returning) void returning.then(unlimit);
    else if (firstMember) unlimit();
    if (firstMember) return;
    this.#deploymentTimer?.cancel();
    const { clock } = this;
    // Keeps the account open until this call ends. Otherwise, a later call could close the store before the outcomes of
    // sent messages are written.
    this.#runningTaskCount++;
    const restMs = () => Math.max(0, closeGraceMs - (clock.elapsed() - stoppedAt));
    await this.polls.whenArrived(clock, Math.min(halfReceivedGraceMs, restMs()));
    // Waits one turn of the event loop, so that a record that was just passed on reaches its flow.
    await wait(clock, 0);
    // Closes the outbox even if polls are still in flight, because Node-RED limits the time in which nodes can close.
    const closing = this.data?.outbox.close(restMs());
    // Stops polling for replies and statuses, because no node needs them until the next deployment.
    for (const poll of Object.values(this.#replyPolls)) poll.stop();
    await closing;
    await this.data?.journal.flush();
    // Removes the limits of the last member only now, because they also apply to messages in flight.
    if (!returning) unlimit();
    this.#runningTaskCount--;
    const isIdle = this.polls.size === 0;
    const whenClosed = this.#closeWhenIdle();
    if (isIdle) await whenClosed;
  }

  get #isNeeded(): boolean {
    return this.members.size > 0 || this.#runningTaskCount > 0;
  }

  async #closeWhenIdle(): Promise<void> {
    // Waits in a loop, because members might have joined and left again, and might have started further polls.
    while (this.polls.size > 0) await this.polls.whenEnded();
    if (this.#isNeeded) return;
    const { data } = this;
    await data?.close(() => this.#isNeeded);
    if (this.#isNeeded) return;
    // Keeps the account for a while if it has items in a shared store, because a new account of this login would not
    // find these items.
    const hasOwnItems = data?.journal.isShared && data.journal.mayHold && !data.isImported;
    const isDisposable = !data || (!hasOwnItems && !data.outbox.hasMessages);
    if (isDisposable && this.#isSettled && this.#queue.isRested) this.#forget();
    else if (this.#isSettled) {
      this.#forgetTimer = this.clock.after(forgetAfterMs, () => this.#forget(), true);
    }
  }

  /** Whether the account can be forgotten without loss. */
  get #isSettled(): boolean {
    return [...this.#byStore.values()].every(({ isSettled }) => isSettled);
  }

  #forget(): void {
    if (!this.#isNeeded && this.#isSettled) this.#options.onIdle();
  }
}

/** Returns the settings that decide how connections are opened. */
function connectionSettingsOf({ tls, proxy, createConnections }: Partial<AccountSettings> = {}) {
  return { tls, proxy, createConnections };
}
