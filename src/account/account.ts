import { setMaxListeners } from 'node:events';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock, type Timer, wait } from '../clock';
import { SmsError } from '../errors';
import { type CallOptions, Client } from '../http/client';
import { createConnections, type ProxyOptions, type TlsOptions } from '../http/connections';
import { Journal } from '../journal';
import type { Authentication } from '../login';
import type { Delivery, OutboundMessage } from '../model';
import type { Taker } from '../receiving/distribution';
import type { InboxRecord } from '../receiving/entry';
import type { Kind } from '../receiving/identity';
import { type Arrival, Inbox } from '../receiving/inbox';
import { PollLoop, type PollOutcome, type PollState } from '../receiving/poll';
import { maxOutstanding, Receiver, type ReceiverOptions } from '../receiving/receiver';
import type { LimitSettings } from '../sending/limits';
import { SendQueue } from '../sending/queue';
import { type RetryPolicy, send } from '../sending/send';
import type { Store } from '../store/store';
import { keyOfLogin } from './login-key';

/** A login at a service, and how to use it. */
export interface AccountSettings {
  /** As {@link parseBaseUrl} returns it. */
  baseUrl: string;
  authentication: Authentication;
  method: 'GET' | 'POST';
  timeoutMs: number;
  tls?: TlsOptions;
  proxy?: ProxyOptions;
  /** Sends in flight at once. */
  concurrency: number;
  /** Sends that may wait. */
  queueLimit: number;
  /** Sends per second at most, evenly spaced; absent: no limit. */
  perSecond?: number | undefined;
  /** The account's own limits; absent: none. */
  limits?: LimitSettings;
  /** How long to wait after an empty poll (§8). */
  pauseMs: number;
  /** Polls in flight at once while messages keep coming. */
  drain: number;
  dedupe: boolean;
  dedupeMs: number;
  /** Names the kind of store and its place; another name means another store. */
  storeName: string;
  /** Makes the store. `key` tells logins apart and gives nothing away. */
  createStore(key: string): Store;
  /** Opens the connections that all members share, and that close with the last of them; {@link createConnections} when absent. */
  createConnections?(settings: ConnectionSettings): Dispatcher;
  /** Time and chance; the machine's own when absent. */
  clock?: Clock;
  /** Told of the character set of an answer that is not known here; the answer is read as it is. */
  onUnknownCharset?: (charset: string) => void;
}

/** What connections are opened by. */
export type ConnectionSettings = Parameters<typeof createConnections>[0];

/** Who wants an endpoint polled. */
export interface Watcher {
  /** The loop has changed its state; also called once when the watcher joins a loop that runs. */
  onState(state: PollState): void;
  /** The loop has begun to fail. Called once for each time. */
  onFailing(error: SmsError): void;
  /** The loop works again. Called once for the loop: only the watcher that has been there the longest is told. */
  onRecovered(): void;
  /** How often to poll; the shortest interval of all watchers holds. Only for the outbox. */
  intervalMs?: number;
}

/** What a node gets by polling: a {@link Watcher} whose records are acknowledged. */
export type Subscriber = Watcher & Omit<ReceiverOptions, 'channel' | 'onOutstanding'>;

/** A node's part in a loop. */
export interface Subscription {
  /** See {@link Receiver.acknowledge}. */
  acknowledge(ackId: string, failed: boolean): boolean;
  close(): void;
}

/** How long to wait, when the last member leaves, for an answer whose head is here already. */
const halfReceivedGraceMs = 2_500;

/** What is remembered in memory alone outlives the last member for so long: any redeploy is shorter. */
const forgetAfterMs = 60_000;

/** The accounts of a process, each found by its login. */
export interface Accounts {
  /** See {@link joinAccount}. */
  join(settings: AccountSettings): Membership;
}

/** Begins with no account. Two of them share nothing, as two processes do. */
export function createAccounts(): Accounts {
  const accounts = new Map<string, Account>();
  return {
    join(settings) {
      const key = keyOfLogin(settings);
      const account = accounts.get(key) ?? new Account(key, accounts);
      const membership = account.join(settings);
      accounts.set(key, account);
      return membership;
    },
  };
}

const accountsOfProcess = createAccounts();

/**
 * Joins the account of a login: everybody who names the same base URL and login shares its connections, its queue, its
 * inbox and one poll loop per endpoint. The settings of the member who started a loop, or used the inbox first, hold for
 * it, and for connections and queue those of the one that joined first.
 *
 * @throws SmsError `SMS_CONFIG` for settings that cannot be used
 */
export function joinAccount(settings: AccountSettings): Membership {
  return accountsOfProcess.join(settings);
}

/** One's part in an account. */
export interface Membership {
  /** Names the login, for {@link inherit}: 32 hexadecimal digits that give nothing away. */
  readonly key: string;
  /**
   * Takes over what is undelivered of a login that this one replaces, and what polls in flight still bring it, unless
   * others are on that login. Resolves with whether nothing is left to take over.
   */
  inherit(formerKey: string): Promise<boolean>;
  /** Sends with the credentials of this member. See {@link send} in `send.ts`. */
  send(
    message: OutboundMessage,
    policy: RetryPolicy,
    signals: { signal: AbortSignal; giveUp: AbortSignal },
  ): Promise<Delivery>;
  /** Makes a call that is neither queued nor looped, with the credentials of this member. */
  readonly client: Client;
  /** What all members share. */
  readonly inbox: Inbox;
  /** Subscribes a node to incoming messages or status updates. */
  subscribe(kind: 'incoming' | 'status', subscriber: Subscriber): Subscription;
  /** Polls an endpoint for as long as somebody watches it. Returns how to stop watching. */
  watch(kind: Kind, watcher: Watcher): () => void;
  /**
   * Polls the outbox now (§4.3) for a node that asked, after any poll of it that runs. Besides that node, those that
   * watch it get what came.
   *
   * @returns how many records the node was given
   */
  pollOutboxFor(taker: Taker, context: unknown): Promise<number>;
  /** Ends it. Resolves when what has arrived is kept; a poll in flight goes on and is handed over to whoever joins. */
  leave(): Promise<void>;
}

interface Member {
  settings: AccountSettings;
  client: Client;
}

interface Loop {
  loop: PollLoop;
  /** In the order in which they came, each with the member it belongs to. */
  watchers: Map<Watcher, Member>;
  receivers: Set<Receiver>;
}

/** What all nodes on one login share. */
class Account {
  readonly #key: string;
  readonly #accounts: Map<string, Account>;
  readonly #members = new Set<Member>();
  readonly #loops = new Map<Kind, Loop>();
  #clock: Clock = systemClock;
  #connections: Dispatcher | undefined;
  #queue: SendQueue | undefined;
  #inbox: Inbox | undefined;
  #storeName = '';
  /** Whether a member has used the inbox since the first of them joined. */
  #isInboxChosen = false;
  /** What the last member to leave wanted; a poll still in flight is handed over by these. */
  #settings: AccountSettings | undefined;
  /** Polls that are not handed over yet; they outlive those who wanted them. */
  readonly #polls = new Set<Promise<unknown>>();
  /** Those of them whose answer has begun to arrive. */
  readonly #arriving = new Set<Promise<unknown>>();
  #outboxTurn: Promise<unknown> = Promise.resolve();
  /** See {@link #keepOpen}. */
  #works = 0;
  #forgetting: Timer | undefined;

  constructor(key: string, accounts: Map<string, Account>) {
    this.#key = key;
    this.#accounts = accounts;
  }

  join(settings: AccountSettings): Membership {
    this.#forgetting?.cancel();
    if (this.#members.size === 0) {
      this.#connections = (settings.createConnections ?? createConnections)(settings);
      this.#clock = settings.clock ?? systemClock;
      this.#settings = settings;
      this.#queue ??= new SendQueue({ clock: this.#clock, settings: () => this.#settings ?? settings });
      this.#queue.nudge();
      this.#isInboxChosen = false;
    }
    const queue = this.#queue;
    const connections = this.#connections;
    if (!queue || !connections) throw new Error('not connected');
    const member: Member = { settings, client: new Client({ ...settings, connections, clock: this.#clock }) };
    this.#members.add(member);
    let left: Promise<void> | undefined;
    const inboxOf = () => this.#inboxOf(member);
    return {
      key: this.#key,
      inherit: (formerKey) => this.#inherit(member, formerKey),
      client: member.client,
      get inbox() {
        return inboxOf();
      },
      subscribe: (kind, subscriber) => this.#subscribe(member, kind, subscriber),
      watch: (kind, watcher) => this.#watch(member, kind, watcher),
      pollOutboxFor: (taker, context) => this.#pollOutboxFor(member, taker, context),
      send: (message, policy, signals) =>
        queue.run(() => send(member.client, message, policy, { ...signals, clock: this.#clock }), {
          signal: signals.signal,
        }),
      leave: () => {
        left ??= this.#leave(member);
        return left;
      },
    };
  }

  #subscribe(member: Member, kind: 'incoming' | 'status', subscriber: Subscriber): Subscription {
    const receiver = new Receiver(
      this.#inboxOf(member),
      {
        ...subscriber,
        channel: kind,
        wants: (record) => subscriber.wants(record),
        send: (delivery) => subscriber.send(delivery),
        onUndelivered: (record, attempts) => subscriber.onUndelivered(record, attempts),
        onOutstanding: () => this.#holdOrResume(kind),
      },
      this.#clock,
    );
    receiver.attach();
    this.#loop(kind).receivers.add(receiver);
    const unwatch = this.#watch(member, kind, subscriber);
    return {
      acknowledge: (ackId, failed) => receiver.acknowledge(ackId, failed),
      close: () => {
        receiver.detach();
        this.#loop(kind).receivers.delete(receiver);
        unwatch();
        this.#holdOrResume(kind);
      },
    };
  }

  #watch(member: Member, kind: Kind, watcher: Watcher): () => void {
    const { loop, watchers } = this.#loop(kind);
    this.#inboxOf(member);
    const isFirst = watchers.size === 0;
    watchers.set(watcher, member);
    this.#holdOrResume(kind);
    if (isFirst) {
      loop.start();
    } else {
      watcher.onState(loop.state);
      if (loop.state.name === 'failing') watcher.onFailing(loop.state.error);
      if (watcher.intervalMs !== undefined) loop.nudge();
    }
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0) loop.stop();
    };
  }

  #pollOutboxFor(member: Member, taker: Taker, context: unknown): Promise<number> {
    return this.#track(async (onAnswer) => {
      await this.#inboxOf(member).ready();
      const { client } = this.#present(member);
      const records = await client.pollOutbox({ onAnswer });
      const arrival: Arrival = { kind: 'outbox', via: 'poll', records, asker: taker.id, context };
      const acceptances = records.length > 0 ? await this.#inboxOf(member).accept(arrival) : [];
      return acceptances.filter(({ outcome }) => outcome === 'new').length;
    }, 'outbox');
  }

  /** The inbox. Of those who are here, the first member that asks for it says where it is kept. */
  #inboxOf(member: Member): Inbox {
    if (this.#inbox && (this.#isInboxChosen || !this.#members.has(member))) return this.#inbox;
    this.#isInboxChosen = true;
    const { settings } = member;
    if (this.#inbox && this.#storeName === settings.storeName) return this.#inbox;
    const earlier = this.#inbox;
    const inbox = this.#createInbox(settings);
    if (earlier) void this.#keepOpen(() => earlier.handOver(inbox)).then(() => earlier.close());
    return inbox;
  }

  #createInbox(settings: AccountSettings): Inbox {
    this.#storeName = settings.storeName;
    const onStore = () => {
      for (const kind of this.#loops.keys()) this.#holdOrResume(kind);
    };
    this.#inbox = new Inbox({
      journal: new Journal({ store: settings.createStore(this.#key), clock: this.#clock, onStore }),
      clock: this.#clock,
      // There is one memory of what was seen for all loops; that of the messages decides.
      dedupe: () => this.#loopSettings('incoming')?.dedupe ?? settings.dedupe,
      dedupeMs: () => this.#loopSettings('incoming')?.dedupeMs ?? settings.dedupeMs,
    });
    return this.#inbox;
  }

  async #inherit(member: Member, formerKey: string): Promise<boolean> {
    const former = this.#accounts.get(formerKey) ?? new Account(formerKey, this.#accounts);
    if (former === this) return true;
    this.#accounts.set(formerKey, former);
    return former.#keepOpen(() => this.#takeOverFrom(former, member));
  }

  async #takeOverFrom(former: Account, member: Member): Promise<boolean> {
    for (let hasWaited = false; ; hasWaited = true) {
      // Whoever is on it gets what it holds.
      if (former.#members.size > 0) return true;
      if (!this.#members.has(member)) return false;
      const from = former.#inbox ?? former.#createInbox(member.settings);
      const to = this.#inboxOf(member);
      const polls = [...former.#polls];
      await this.#keepOpen(() => from.handOver(to, { isLast: true }));
      // What is in a store that cannot be used is safe there, and may be asked for again.
      if (from.failure || to.failure) return false;
      if (polls.length === 0 && hasWaited) return true;
      await Promise.allSettled(polls);
      if (!hasWaited && from.takeOverMs > 0) await this.#idle(from.takeOverMs);
    }
  }

  /** Waits, but keeps no process alive that has nothing else to do. */
  #idle(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(delayMs, resolve, true));
  }

  /** Keeps the account as it is, with its store open, while something is done to it that is no member's. */
  async #keepOpen<T>(work: () => Promise<T>): Promise<T> {
    this.#forgetting?.cancel();
    this.#works++;
    try {
      return await work();
    } finally {
      this.#works--;
      if (!this.#isNeeded) void this.#closeWhenIdle();
    }
  }

  async #leave(member: Member): Promise<void> {
    this.#members.delete(member);
    if (this.#members.size > 0) {
      this.#settings = [...this.#members][0]?.settings;
      this.#queue?.nudge();
      return;
    }
    void this.#connections?.close().catch(() => {});
    if (this.#arriving.size > 0) {
      const grace = new AbortController();
      const timeout = wait(this.#clock, halfReceivedGraceMs, grace.signal).catch(() => {});
      await Promise.race([Promise.allSettled(this.#arriving), timeout]);
      grace.abort();
    }
    // A record sent in this turn of the event loop counts as delivered in the next.
    await wait(this.#clock, 0);
    await this.#inbox?.flush();
    const isIdle = this.#polls.size === 0;
    const closed = this.#closeWhenIdle();
    if (isIdle) await closed;
  }

  get #isNeeded(): boolean {
    return this.#members.size > 0 || this.#works > 0;
  }

  async #closeWhenIdle(): Promise<void> {
    await Promise.allSettled(this.#polls);
    if (this.#isNeeded) return;
    await this.#inbox?.close();
    if (this.#isNeeded) return;
    if (!this.#inbox || this.#inbox.isDisposable) this.#forget();
    else if (this.#inbox.isSettled) this.#forgetting = this.#clock.after(forgetAfterMs, () => this.#forget(), true);
  }

  #forget(): void {
    if (!this.#isNeeded && this.#inbox?.isSettled !== false && this.#accounts.get(this.#key) === this) {
      this.#accounts.delete(this.#key);
    }
  }

  /** A member, or another while it is here no more. */
  #present(member: Member | undefined): Member {
    const [first] = this.#members;
    const present = member && this.#members.has(member) ? member : first;
    if (!present) throw new SmsError('closed');
    return present;
  }

  /** The settings of the member who started a loop; while none runs, of the one that joined first. */
  #loopSettings(kind: Kind): AccountSettings | undefined {
    return this.#starterOf(kind)?.settings ?? this.#settings;
  }

  /** The member who started a loop, or whose node has watched it the longest since that one has gone. */
  #starterOf(kind: Kind): Member | undefined {
    const [member] = this.#loops.get(kind)?.watchers.values() ?? [];
    return member;
  }

  #loop(kind: Kind): Loop {
    const existing = this.#loops.get(kind);
    if (existing) return existing;
    const watchers = new Map<Watcher, Member>();
    const loop = new PollLoop(
      {
        poll: (onSent) => this.#poll(kind, onSent),
        pauseMs: () =>
          kind === 'outbox' ? shortestInterval(watchers.keys()) : (this.#loopSettings(kind)?.pauseMs ?? 0),
        drain: () => (kind === 'outbox' ? 1 : (this.#loopSettings(kind)?.drain ?? 1)),
      },
      (state, previous) => {
        for (const watcher of watchers.keys()) {
          watcher.onState(state);
          if (state.name === 'failing' && previous.name !== 'failing') watcher.onFailing(state.error);
        }
        const [first] = watchers.keys();
        if (previous.name === 'failing' && state.name !== 'failing') first?.onRecovered();
      },
      this.#clock,
    );
    const created = { loop, watchers, receivers: new Set<Receiver>() };
    this.#loops.set(kind, created);
    return created;
  }

  /** One poll, from the request until what it brought is kept. */
  #poll(kind: Kind, onSent: () => void): Promise<PollOutcome> {
    const starter = this.#present(this.#starterOf(kind));
    return this.#track(async (onAnswer) => {
      await this.#inboxOf(starter).ready();
      const records = await fetchRecords(this.#present(starter).client, kind, { onSent, onAnswer });
      if (records.length === 0) return 'empty';
      const acceptances = await this.#inboxOf(starter).accept({ kind, via: 'poll', records });
      // The outbox is polled at intervals, whatever it brings.
      if (kind === 'outbox') return 'empty';
      return acceptances.every(({ outcome }) => outcome === 'repeated') ? 'repeated' : 'new';
    }, kind);
  }

  /** Runs a poll so that the account outlives it. The outbox has one date cursor: its polls take turns. */
  #track<T>(poll: (onAnswer: () => void) => Promise<T>, kind: Kind): Promise<T> {
    let onAnswer = () => {};
    const start = () => poll(() => onAnswer());
    const polling = kind === 'outbox' ? this.#outboxTurn.then(start) : start();
    if (kind === 'outbox') this.#outboxTurn = polling.catch(() => {});
    const handedOver = () => {
      this.#polls.delete(polling);
      this.#arriving.delete(polling);
    };
    this.#polls.add(polling);
    polling.then(handedOver, handedOver);
    onAnswer = () => this.#arriving.add(polling);
    return polling;
  }

  /** Polls only while what comes can be kept and taken. */
  #holdOrResume(kind: Kind): void {
    const existing = this.#loops.get(kind);
    if (!existing) return;
    const { loop, receivers } = existing;
    const error = this.#inbox?.failure;
    const outstanding = Math.max(0, ...[...receivers].map((receiver) => receiver.outstanding));
    if (error) loop.hold({ name: 'failing', error });
    else if (outstanding >= maxOutstanding) loop.hold({ name: 'paused', unacknowledged: outstanding });
    else loop.resume();
  }
}

function fetchRecords(client: Client, kind: Kind, options: CallOptions): Promise<InboxRecord[]> {
  if (kind === 'incoming') return client.pollIncoming(options);
  if (kind === 'status') return client.pollStatuses(options);
  return client.pollOutbox(options);
}

function shortestInterval(watchers: Iterable<Watcher>): number {
  return Math.min(...[...watchers].map(({ intervalMs }) => intervalMs ?? Number.POSITIVE_INFINITY));
}

/** A signal that many may listen to at once. */
export function createStopSignal(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
