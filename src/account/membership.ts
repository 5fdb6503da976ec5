import type { Clock } from '../clock';
import { changeOptOuts, listOptOuts, type OptOutPage, type OptOutQuery } from '../consent/opt-outs';
import type { ConsentChange } from '../consent/words';
import { type OutboxSubscriptionOptions, OutboxSubscription as PolledOutbox } from '../delivery/outbox-subscription';
import { PollSubscription, type PollSubscriptionOptions } from '../delivery/poll-subscription';
import { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Channel } from '../inbox/entries';
import type { Inbox, InboxState } from '../inbox/inbox';
import { createReading } from '../journal/step';
import type { Kind, RecordsOfKind } from '../model';
import { nothingSent } from '../outbox/admin';
import type { SendQueue } from '../outbox/queue';
import type { SendHandler, SendingNode } from '../outbox/sender-registrations';
import type { EntryQuery, Page } from '../page';
import type { Endpoints, Watcher } from '../polling/endpoint';
import { removeFormatting } from '../wire/fields';
import type { AccountData } from './account-data';
import { listUnhandled, listWaiting, type WaitingEntry, type WaitingListName } from './entry-lists';
import type { FormerPlace } from './import';
import type { AccountSettings, Member } from './settings';
import type { AccountState, Counts, Decided, Decision, EntryAction, EntryList, EntryState, Stats } from './stats';

/** Options of a node that receives polled records and acknowledges them. */
export type Subscriber<K extends Kind = Kind> = Watcher & Omit<PollSubscriptionOptions<K>, 'path'>;

/** Options of a node that receives callbacks. */
export type CallbackSubscriber = Omit<PollSubscriptionOptions<'incoming' | 'status'>, 'wants' | 'path'> & {
  /** Path of the callback node. Absent: the node has no path, and receives only records that were stored earlier. */
  path: string | undefined;
};

/**
 * Options of a node that reads the outbox. Without an interval, the node gets only the records of polls that it
 * requests.
 */
export type OutboxSubscriber = Watcher & Omit<OutboxSubscriptionOptions, 'onDemand'>;

/** Subscribers by channel. */
export interface Subscribers {
  incoming: Subscriber<'incoming'>;
  status: Subscriber<'status'>;
  outbox: OutboxSubscriber;
  callback: CallbackSubscriber;
}

/** Subscription of a node that receives polled records. */
export interface Subscription {
  /**
   * Acknowledges a record that came back from the flow.
   *
   * @param hasFailed whether the flow could not handle the record
   * @returns whether the id belongs to a record that this node delivered and that awaits acknowledgement
   */
  acknowledge(ackId: string, hasFailed: boolean): boolean;
  close(): void;
}

/** Subscription of a node that reads the outbox. */
export interface OutboxSubscription {
  /**
   * Polls the outbox (§4.3) when the current poll has ended. This node gets the records, and so do all nodes that poll
   * the outbox at an interval.
   *
   * @param context a value that this node receives with the records
   * @returns the number of records that this node got
   */
  poll(context: unknown): Promise<number>;
  close(): void;
}

/** Subscription of a node that receives callbacks. */
export interface CallbackSubscription extends Subscription {
  /**
   * Stores the records of a callback (§6). Resolves when they are stored, or if they were stored before. The account
   * then owns the records, and the service does not need to call again.
   *
   * @throws SmsError `SMS_STORE` if they cannot be stored, `SMS_CLOSED` if the subscription is closed
   */
  accept(callback: RecordsOfKind<'incoming' | 'status'>): Promise<void>;
}

/** Subscriptions by channel. */
export interface Subscriptions {
  incoming: Subscription;
  status: Subscription;
  outbox: OutboxSubscription;
  callback: CallbackSubscription;
}

/** The membership of one account node in the account of its login. */
export interface Membership {
  /** Key of the login: 32 hexadecimal digits, from which the login cannot be derived. */
  readonly key: string;
  /**
   * Imports the data of earlier logins and stores of this node, in this order, before the account uses its store. Until
   * then, the account treats the store as failing.
   *
   * @param whenStarted resolves when all nodes of the deployment have started. Before that, it is not known whether
   * other nodes use the former stores
   */
  importFrom(formerPlaces: readonly FormerPlace[], whenStarted?: Promise<void>): void;
  /** Abandons the waiting import. The data stays in the former store. Returns whether an import was waiting. */
  forgetFormer(): Promise<boolean>;
  /**
   * Present if another member has opened the connections, with different settings: the id of that member, and the names
   * of this member's settings that do not apply.
   */
  readonly connection: { id: string; settings: ('proxy' | 'tls')[] } | undefined;
  /** Attaches a sending node with the credentials of this member. Its messages from before a redeploy continue. */
  attachSender(handler: Omit<SendHandler, 'client'>): SendingNode;
  /** Client for direct calls with the credentials of this member. */
  readonly client: Client;
  /**
   * Runs a request that reads from the service, when its turn comes. All nodes of the account share `concurrency` and
   * `queueLimit`.
   *
   * @throws SmsError `SMS_BUSY` if too many such requests wait; `SMS_CLOSED` if `signal` aborts before this request
   * starts
   */
  read<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Subscribes a node to a channel. An endpoint is polled while a node is subscribed to it. */
  subscribe<C extends Channel>(channel: C, subscriber: Subscribers[C]): Subscriptions[C];
  /** Returns the state of the account. */
  state(): AccountState;
  /** The counts of {@link state} since midnight or, if the process started later, since its start. */
  countsToday(): Counts;
  /**
   * Whether {@link entries} lists everything in the store. `false` only for a moment, while the store is being opened.
   */
  knowsEntries(): boolean;
  /**
   * Lists entries of a state, the oldest first. Entries contain the bodies of messages, which only some users may see.
   */
  entries(state: EntryState, query: EntryQuery): EntryList;
  /**
   * Lists received records that wait for a flow, or open reply requests. Both lists contain the bodies of messages,
   * which only some users may see.
   *
   * @throws SmsError `SMS_STORE` for reply requests, if the store fails, because only the store has the bodies of their
   * messages
   */
  waiting(list: WaitingListName, query: EntryQuery): Promise<Page<WaitingEntry>>;
  /**
   * Performs an action on an entry.
   *
   * @throws SmsError `SMS_STORE` if the store is needed and fails
   */
  act(id: string, action: EntryAction): Promise<Decision>;
  /**
   * Performs an action on all entries of a state. Returns `unfit` if the action does not fit the state.
   *
   * @throws SmsError `SMS_STORE` if the store is needed and fails; some of the actions might already have been
   * performed
   */
  actOnAll(state: EntryState, action: EntryAction): Promise<Decided | 'unfit'>;
  /** Updates the number of opted-out numbers in {@link state}. */
  refresh(): Promise<void>;
  /**
   * Lists opted-out numbers, the latest opt-out first. `query.search` can contain formatting characters of phone
   * numbers, such as spaces, which are ignored.
   *
   * @throws SmsError `SMS_STORE` if the store fails
   */
  optOuts(query?: OptOutQuery): Promise<OptOutPage>;
  /**
   * Adds numbers to the list of opted-out numbers, or removes them. Resolves with the number of changes.
   *
   * @throws SmsError `SMS_STORE` if the store cannot be used
   */
  changeOptOuts(msisdns: readonly string[], change: ConsentChange): Promise<number>;
  /**
   * Ends the membership. Resolves when all received records are stored. Waits in this order:
   *
   * 1. For answers of the service, at most until 7 s after the flow was stopped.
   * 2. For the running calls of the store and, during an import, of the former store.
   *
   * A poll in flight continues, and the next member gets its answer.
   *
   * @param returning for a redeploy: resolves when the redeploy is over. Until then, the limits of this member still
   * apply, because a member with the same id might join
   * @param stoppedAt time at which the flow was stopped, by {@link Clock.elapsed}; absent: now
   */
  leave(returning?: Promise<void>, stoppedAt?: number): Promise<void>;
}

/** The part of an account that a membership uses. */
export interface MembershipHost {
  /** Identifies the login. */
  readonly key: string;
  readonly endpoints: Endpoints;
  readonly stats: Stats;
  readonly reads: SendQueue;
  readonly clock: Clock;
  /** See {@link AccountState.consent}. */
  readonly optedOut: number;
  readonly data: AccountData | undefined;
  dataOf(member: Member): AccountData;
  /** See {@link Membership.connection}. */
  connectionOf(member: Member): Membership['connection'];
  /** See {@link Membership.attachSender}. */
  attachSender(member: Member, handler: Omit<SendHandler, 'client'>): SendingNode;
  /** See {@link Membership.refresh}. */
  refresh(): Promise<void>;
  /** Called after the list of opted-out numbers has changed. */
  onOptOut(): void;
  /** See {@link Membership.importFrom}. */
  importFrom(member: Member, formerPlaces: readonly FormerPlace[], whenStarted: Promise<void>): void;
  /** See {@link Membership.leave}. */
  leave(member: Member, returning: Promise<void> | undefined, stoppedAt: number): Promise<void>;
}

const actions: Readonly<Record<EntryState, readonly EntryAction[]>> = {
  kept: ['send', 'discard'],
  uncertain: ['send', 'markSent', 'discard'],
  unhandled: ['deliver', 'discard'],
};

/** Maximum number of actions in one commit. A larger commit would block the process for too long. */
const maxActionsPerCommit = 200;

const nothingReceived: InboxState = { undelivered: 0, unhandled: 0 };

/** A member of an account, with the parts that nodes cannot access. */
export class JoinedMembership implements Membership, Member {
  readonly settings: AccountSettings;
  readonly client: Client;
  readonly #host: MembershipHost;
  /** Subscribe function of each channel. The inbox gives each channel only records of its kind. */
  readonly #subscribe: { [C in Channel]: (subscriber: Subscribers[C]) => Subscriptions[C] } = {
    incoming: (subscriber) => this.#subscribeToPolled('incoming', subscriber),
    status: (subscriber) => this.#subscribeToPolled('status', subscriber),
    outbox: (subscriber) => this.#subscribeToOutbox(subscriber),
    callback: (subscriber) => this.#subscribeToCallbacks(subscriber),
  };
  #departure: Promise<void> | undefined;

  constructor(settings: AccountSettings, client: Client, host: MembershipHost) {
    this.settings = settings;
    this.client = client;
    this.#host = host;
  }

  get key(): string {
    return this.#host.key;
  }

  /** The inbox that all members share. */
  get inbox(): Inbox {
    return this.#host.dataOf(this).inbox;
  }

  get connection(): Membership['connection'] {
    return this.#host.connectionOf(this);
  }

  importFrom(formerPlaces: readonly FormerPlace[], whenStarted = Promise.resolve()): void {
    if (formerPlaces.length > 0) this.#host.importFrom(this, formerPlaces, whenStarted);
  }

  async forgetFormer(): Promise<boolean> {
    return (await this.#host.data?.imports.forget()) ?? false;
  }

  read<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#host.reads.run(read, { signal });
  }

  subscribe<C extends Channel>(channel: C, subscriber: Subscribers[C]): Subscriptions[C] {
    return this.#subscribe[channel](subscriber);
  }

  attachSender(handler: Omit<SendHandler, 'client'>): SendingNode {
    return this.#host.attachSender(this, handler);
  }

  state(): AccountState {
    const { data, endpoints, stats, optedOut } = this.#host;
    const { inbox, outbox, journal, imports } = data ?? {};
    const [kind = ''] = (data ?? this.settings).storeName.split(' ');
    const former = imports?.waitingImport;
    const error = journal?.failure ?? journal?.damage;
    return {
      polls: Object.values(endpoints).flatMap(({ summary }) => summary ?? []),
      inbox: inbox?.state ?? nothingReceived,
      sends: outbox?.admin.state ?? nothingSent,
      consent: { optedOut },
      store: { kind, ok: journal?.failure === undefined, ...(error && { error }), ...(former && { former }) },
      counts: stats.counts,
    };
  }

  countsToday(): Counts {
    return this.#host.stats.countsToday;
  }

  knowsEntries(): boolean {
    return this.inbox.journal.ensureRead();
  }

  entries(state: EntryState, query: EntryQuery): EntryList {
    const { data } = this.#host;
    if (!data) return { entries: [], total: 0 };
    if (state !== 'unhandled') return data.outbox.admin.entries(state, query);
    const { items, ...pageInfo } = listUnhandled(data, query);
    return { entries: items, ...pageInfo };
  }

  async waiting(list: WaitingListName, query: EntryQuery): Promise<Page<WaitingEntry>> {
    const { data } = this.#host;
    return data ? listWaiting(data, list, query) : { items: [], total: 0 };
  }

  async act(id: string, action: EntryAction): Promise<Decision> {
    const { data } = this.#host;
    if (!data) return 'gone';
    const { deadLetters } = data.inbox;
    const item = deadLetters.get(id);
    if (!item) return data.outbox.admin.act(id, action);
    if (action === 'send' || action === 'markSent') return 'unfit';
    if (action === 'deliver') return deadLetters.deliver(id) ? 'done' : 'unfit';
    deadLetters.discard([id]);
    this.settings.onDiscarded?.(item.node);
    return 'done';
  }

  async actOnAll(state: EntryState, action: EntryAction): Promise<Decided | 'unfit'> {
    if (!actions[state].includes(action)) return 'unfit';
    // Acts only on the entries that exist now. The user has not seen entries that arrive later.
    const { entries } = this.entries(state, { limit: Number.POSITIVE_INFINITY });
    const decisions: Decision[] = [];
    for (let start = 0; start < entries.length; start += maxActionsPerCommit) {
      const chunk = entries.slice(start, start + maxActionsPerCommit);
      decisions.push(...(await Promise.all(chunk.map(({ id }) => this.act(id, action)))));
    }
    const count = (decision: Decision) => decisions.filter((result) => result === decision).length;
    return { done: count('done'), left: count('unfit') };
  }

  refresh(): Promise<void> {
    return this.#host.refresh();
  }

  async optOuts(query: OptOutQuery = {}): Promise<OptOutPage> {
    const search = removeFormatting(query.search ?? '');
    return this.inbox.journal.run(createReading('refuse', (readKey) => listOptOuts(readKey, { ...query, search })));
  }

  async changeOptOuts(msisdns: readonly string[], change: ConsentChange): Promise<number> {
    const { journal } = this.inbox;
    const optOutChange = { msisdns, change, at: journal.clock.now(), via: 'person' } as const;
    return journal.run({
      whileFailing: 'refuse',
      decide: (readKey, changes) => {
        const changeCount = changeOptOuts(optOutChange, readKey, changes);
        return () => {
          this.#host.onOptOut();
          return changeCount;
        };
      },
    });
  }

  leave(returning?: Promise<void>, stoppedAt = this.#host.clock.elapsed()): Promise<void> {
    this.#departure ??= this.#host.leave(this, returning, stoppedAt);
    return this.#departure;
  }

  #subscribeToPolled(channel: 'incoming' | 'status', subscriber: Subscriber): Subscription {
    const endpoint = this.#host.endpoints[channel];
    const onRoom = () => endpoint.pauseOrResume();
    const receiver = new PollSubscription(this.inbox, channel, subscriber, onRoom);
    const stop = endpoint.watch(this, subscriber, receiver);
    return {
      acknowledge: (ackId, hasFailed) => receiver.acknowledge(ackId, hasFailed),
      close() {
        receiver.detach();
        stop();
      },
    };
  }

  #subscribeToCallbacks(subscriber: CallbackSubscriber): CallbackSubscription {
    const { inbox } = this;
    const receiver = new PollSubscription(inbox, 'callback', subscriber as PollSubscriptionOptions);
    const address = { node: subscriber.id, path: subscriber.path ?? '' };
    let isClosed = false;
    return {
      accept: async (callback) => {
        if (isClosed) throw new SmsError('closed');
        await inbox.accept({ ...callback, via: 'callback', address });
      },
      acknowledge: (ackId, hasFailed) => receiver.acknowledge(ackId, hasFailed),
      close() {
        isClosed = true;
        receiver.detach();
      },
    };
  }

  #subscribeToOutbox(subscriber: OutboxSubscriber): OutboxSubscription {
    const { outbox } = this.#host.endpoints;
    const onDemand = subscriber.intervalMs === undefined;
    const { id, isList = false } = subscriber;
    const send: typeof subscriber.send = (batch) => subscriber.send(batch);
    const receiver = new PolledOutbox(this.inbox, { id, onDemand, isList, send });
    const unwatch = onDemand ? () => {} : outbox.watch(this, subscriber);
    return {
      poll: (context) => outbox.pollFor(this, id, context),
      close() {
        receiver.detach();
        unwatch();
      },
    };
  }
}
