import { type Clock, maxDeploymentMs, type Timer } from '../clock';
import {
  type Address,
  type Channel,
  type Entries,
  type Entry,
  nameSubscribers,
  type Pending,
  type Together,
} from '../inbox/entries';
import { type InboxRecord, type Kind, kinds, type Records } from '../model';

/**
 * Position of the delivered entries in their group: the entries that arrived together. Used if a node receives the
 * group over several turns of the event loop.
 */
export interface BatchSlice {
  /** Id of the group: the same for all entries that arrived together, and different from every other group. */
  group: string;
  /** Number of entries of the group that the node received before. */
  index: number;
  /** Number of entries in the group. */
  count: number;
  isLast: boolean;
}

/** An entry that a node receives. */
export interface Given<K extends Kind = Kind> {
  entry: Entry<K>;
  /** The number of this attempt. The node calls {@link Inbox.countAttempt} when it sends the entry. */
  attempt: number;
}

/** A node, as the inbox sees it. */
export interface InboxSubscriber<K extends Kind = Kind> {
  /** The node's id. After a redeploy, a node with the same id receives the remaining entries of its predecessor. */
  readonly id: string;
  /** On channel `callback`: the path of the node. */
  readonly path?: string | undefined;
  /** If true, the node receives only records that it requested, and records that no other node receives. */
  readonly onDemand?: boolean;
  /** Returns whether the node wants a record of its channel. Absent: the node wants all records. */
  wants?(record: Records[K]): boolean;
  /**
   * Receives entries that arrived together, or some of them, in order. The node answers each entry with
   * {@link Inbox.done} or {@link Inbox.giveUp}.
   *
   * @param context see {@link Destination}
   * @param slice absent if these are all entries that arrived together
   */
  take(deliveries: readonly Given<K>[], context?: unknown, slice?: BatchSlice): void;
}

/** The nodes that should receive records. If empty, every node of the channel. */
export interface Destination {
  /** The node that the service called back. Only this node receives the records. */
  address?: Address;
  /** Id of the node that requested the records. The node receives `context` back. */
  asker?: string;
  context?: unknown;
}

/** Events that the subscribers report, and questions that they ask. */
export interface SubscribersEvents {
  /**
   * Called before nodes receive entries whose first attempt is not stored. Resolves when the attempts are stored.
   * Otherwise, an entry that a node received just before a crash would be redelivered without being marked as
   * redelivered.
   */
  onFirstAttempts(pendings: readonly Pending[]): Promise<void>;
  /** Called when an entry is finished: at least one node has acknowledged it, and no node still has to receive it. */
  onTaken(pending: Pending): void;
  /**
   * Called when a channel has nodes, but no node can receive an entry: no node wants it, or the only node that had to
   * receive it again was removed.
   */
  onPassedOver(pending: Pending): void;
  /** Returns whether the account polls a kind, even if no node receives it. */
  isPolled(kind: Kind): boolean;
  /** Called when no node receives an entry, and no suitable node is being redeployed. */
  onUnreceived(pending: Pending): void;
  /** Called when a node throws while it receives entries. */
  onFault(error: unknown): void;
}

/** Maximum number of entries that nodes receive in one turn of the event loop. */
const sliceSize = 250;

/** A removed node, which might return after a redeploy. */
interface Away {
  subscriber: InboxSubscriber;
  /** Value of the counter of added nodes when this node was removed. */
  attachCount: number;
}

/** Entries for one node in one turn of the event loop. */
interface Batch {
  subscriber: InboxSubscriber;
  first: Pending;
  deliveries: Given[];
  /** Set for entries that have just arrived. */
  together: Together | undefined;
}

/**
 * The nodes of each channel. They receive new entries immediately, in the order of arrival. When a node is added, or
 * returns after a redeploy, it receives entries that no node is handling.
 */
export class Subscribers {
  readonly #entries: Entries;
  readonly #events: SubscribersEvents;
  readonly #clock: Clock;
  /** Deployed nodes on each channel, by id. */
  readonly here = byChannel<InboxSubscriber>();
  readonly #away = byChannel<Away>();
  /** Counter of added nodes. */
  #attachCount = 0;
  /** Runs while more nodes might be added: after a start, and after a node was removed. */
  #deployment: Timer | undefined;
  /** Entries to distribute. */
  #queue: Pending[] = [];
  /** Whether all entries must be distributed, because nodes were added or have been absent for too long. */
  #isForAll = false;
  #turn: Timer | undefined;
  /** Whether first attempts are being stored. */
  #isCounting = false;
  #onGiven: (() => void)[] = [];

  constructor(entries: Entries, events: SubscribersEvents, clock: Clock) {
    this.#entries = entries;
    this.#events = events;
    this.#clock = clock;
  }

  /**
   * Adds a node. All nodes of a flow are added in one turn of the event loop, and receive waiting entries in the next
   * turn.
   */
  attach(channel: Channel, subscriber: InboxSubscriber): void {
    this.here[channel].set(subscriber.id, subscriber);
    this.#attachCount++;
    this.giveAll();
  }

  /** Removes a node. If the node returns after a redeploy, it receives the entries that it missed. */
  detach(channel: Channel, subscriber: InboxSubscriber): void {
    if (!this.isHere(channel, subscriber)) return;
    this.here[channel].delete(subscriber.id);
    this.#away[channel].set(subscriber.id, { subscriber, attachCount: this.#attachCount });
    this.#awaitDeployment();
  }

  /**
   * Called after the store was opened with entries of an earlier process. Delivers them, and waits until the end of the
   * deployment for nodes that are still to be added.
   */
  found(): void {
    this.#awaitDeployment();
    this.giveAll();
  }

  /** Returns whether exactly this node is on a channel. A redeployed node with the same id does not count. */
  isHere(channel: Channel, subscriber: InboxSubscriber): boolean {
    return this.here[channel].get(subscriber.id) === subscriber;
  }

  /** Returns whether a channel has any node. With a record, returns whether any node wants it. */
  hasAny(channel: Channel, record?: InboxRecord): boolean {
    return [...this.here[channel].values()].some((one) => wants(one, record));
  }

  /** Like {@link hasAny}, but also true if a node that is being redeployed might want the record. */
  expects(channel: Channel, record?: InboxRecord): boolean {
    const away = [...this.#away[channel].values()];
    return this.hasAny(channel, record) || away.some(({ subscriber }) => !subscriber.onDemand);
  }

  /** Names of the kinds that can be delivered and of the callback nodes, as in `Item.subscribers`. */
  get wantedNames(): string[] {
    const polled = kinds.filter((kind) => this.hasAny(kind) || this.#events.isPolled(kind));
    const called = [...this.here.callback.values()];
    return [...polled, ...called.flatMap(({ id, path }) => nameSubscribers({ node: id, path }))];
  }

  /** Returns the nodes that should receive new records. */
  audience({ kind, address, asker }: Destination & { kind: Kind }): InboxSubscriber[] {
    const here = [...this.here[address ? 'callback' : kind].values()];
    if (address) return here.filter(({ id }) => id === address.node);
    return here.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /**
   * Returns the node that receives the callbacks of an address: the called node, or else the first node with the same
   * path.
   */
  calledAt(channel: Channel, { node, path }: Address): InboxSubscriber | undefined {
    const here = this.here[channel];
    return here.get(node) ?? [...here.values()].find((one) => one.path === path);
  }

  /**
   * Distributes entries that were just saved. They wait behind older entries. Entries that do not fit into one turn of
   * the event loop wait for the next.
   */
  give(fresh: readonly Pending[]): void {
    const isBehind = this.#queue.length > 0 || (this.#isForAll && this.#entries.size > fresh.length);
    for (const pending of fresh) this.#queue.push(pending);
    if (isBehind || fresh.length > sliceSize) this.#giveNextTurn();
    else this.#giveSlice();
  }

  /** Distributes all entries in the next turns of the event loop, before any later entries. */
  giveAll(): void {
    this.#isForAll = true;
    this.#giveNextTurn();
  }

  /** Resolves when no entry waits to be distributed. `undefined` if none waits now. */
  get whenGiven(): Promise<void> | undefined {
    if (this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#onGiven.push(resolve));
  }

  /** Ends the wait for more nodes. Entries then wait until a node is added or {@link found} is called. */
  stopWaiting(): void {
    this.#deployment?.cancel();
    this.#deployment = undefined;
  }

  #awaitDeployment(): void {
    this.stopWaiting();
    const onOver = () => {
      this.#deployment = undefined;
      this.#attachCount++;
      this.giveAll();
    };
    this.#deployment = this.#clock.after(maxDeploymentMs, onOver, true);
  }

  #giveNextTurn(): void {
    this.#turn ??= this.#clock.nextTurn(() => {
      this.#turn = undefined;
      if (this.#isForAll) this.#queueAll();
      this.#giveSlice();
    });
  }

  /** Distributes as many entries as fit into one turn of the event loop. */
  #giveSlice(): void {
    if (this.#isCounting) return;
    const uncounted = this.#queue.slice(0, sliceSize).filter((pending) => this.#isUncounted(pending));
    if (uncounted.length > 0) {
      this.#isCounting = true;
      const end = () => {
        this.#isCounting = false;
        this.#giveNextTurn();
      };
      this.#events.onFirstAttempts(uncounted).then(end, end);
      return;
    }
    const batches: Batch[] = [];
    for (const pending of this.#queue.splice(0, sliceSize)) {
      const { id, isHeldBack } = pending.entry;
      if (isHeldBack || this.#entries.get(id) !== pending) continue;
      for (const batch of this.#share(pending)) addTo(batches, batch);
    }
    for (const batch of batches) this.#handOn(batch);
    if (this.#queue.length > 0 || this.#isForAll) this.#giveNextTurn();
    else for (const resolve of this.#onGiven.splice(0)) resolve();
  }

  /** Returns whether an entry has no stored attempt yet and a node could receive it now. */
  #isUncounted(pending: Pending): boolean {
    const { id, attempts, isHeldBack, channel, address, record } = pending.entry;
    if (attempts > 0 || isHeldBack || this.#entries.get(id) !== pending) return false;
    return address ? this.calledAt(channel, address) !== undefined : this.hasAny(channel, record);
  }

  /**
   * Queues all entries. Forgets a removed node if another node was added after its removal, because the deployment has
   * then ended without the removed node.
   */
  #queueAll(): void {
    this.#isForAll = false;
    for (const away of Object.values(this.#away)) {
      for (const [id, { attachCount }] of away) if (attachCount < this.#attachCount) away.delete(id);
    }
    const isDeployed = Object.values(this.#away).every(({ size }) => size === 0) && this.#attachCount > 0;
    if (isDeployed) this.stopWaiting();
    this.#queue = [...this.#entries.values()];
  }

  /**
   * Chooses the nodes that receive an entry now, and counts the attempt. Does this for all nodes before any of them
   * receives the entry, because the first node might answer immediately.
   */
  #share(pending: Pending): Batch[] {
    const { entry, pendingFor } = pending;
    const subscribers = this.#recipients(pending);
    const { isNew, firstAttempt, acknowledgements } = pending;
    pending.isNew = false;
    if (isNew && subscribers.length === 0) entry.attempts = firstAttempt - 1;
    const together = isNew ? pending.together : undefined;
    const batches = subscribers.map((subscriber) => {
      const { id } = subscriber;
      const wasAway = pendingFor.has(id) && pendingFor.get(id) === undefined;
      const attempt = isNew || wasAway ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;
      pendingFor.set(id, subscriber);
      return { subscriber, first: pending, deliveries: [{ entry, attempt }], together };
    });
    if (pendingFor.size > 0) return batches;
    // No node still has to receive the entry: each node has acknowledged it, has left the flows, or does not want it.
    if (acknowledgements > 0) this.#events.onTaken(pending);
    else if (this.#isUnreceived(entry)) this.#events.onUnreceived(pending);
    else if (entry.channel !== 'callback' && this.hasAny(entry.channel)) this.#events.onPassedOver(pending);
    return batches;
  }

  /** Returns whether no node receives an entry and none is expected. If so, the entry is unhandled. */
  #isUnreceived({ channel, kind, address }: Entry): boolean {
    const isExpected =
      address && channel === 'callback' ? this.#away.callback.has(address.node) : this.expects(channel);
    return !isExpected && (!this.#deployment || (channel !== 'callback' && this.#events.isPolled(kind)));
  }

  /**
   * Returns the nodes that receive an entry now: nodes that had to receive it and have returned, or else all nodes that
   * it is meant for.
   */
  #recipients(pending: Pending): InboxSubscriber[] {
    const { entry, pendingFor, acknowledgements, together } = pending;
    const [here, away] = [this.here[entry.channel], this.#away[entry.channel]];
    const returned: InboxSubscriber[] = [];
    let isInHand = false;
    for (const [id, holder] of [...pendingFor]) {
      const subscriber = here.get(id);
      // If all flows are stopped and a node has acknowledged the entry, waits until its other nodes return.
      const isGone = !subscriber && !away.has(id) && (here.size > 0 || acknowledgements === 0);
      if (isGone) pendingFor.delete(id);
      else if (subscriber && subscriber === holder) isInHand = true;
      else if (subscriber && (entry.address || wants(subscriber, entry.record))) returned.push(subscriber);
      else if (subscriber) pendingFor.delete(id);
    }
    if (returned.length > 0 || isInHand || acknowledgements > 0) return returned;
    if (entry.address) {
      const called = this.calledAt(entry.channel, entry.address);
      return called ? [called] : [];
    }
    const wanting = [...here.values()].filter((one) => wants(one, entry.record));
    const asking = wanting.filter(({ id, onDemand }) => !onDemand || id === together?.asker);
    for (const [id, { subscriber }] of away) {
      if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);
    }
    // If no node requested the entry, one node that wants it receives it. After a restart, no node requests it again,
    // because the service has already moved the last poll date.
    return asking.length === 0 && pendingFor.size === 0 ? wanting.slice(0, 1) : asking;
  }

  #handOn({ subscriber, first, deliveries, together }: Batch): void {
    if (!this.isHere(first.entry.channel, subscriber)) return;
    const context = subscriber.id === together?.asker ? together.context : undefined;
    try {
      subscriber.take(deliveries, context, sliceOf(first, deliveries.length, together));
    } catch (error) {
      this.#events.onFault(error);
    }
  }
}

function byChannel<What>(): Readonly<Record<Channel, Map<string, What>>> {
  return { incoming: new Map(), status: new Map(), outbox: new Map(), callback: new Map() };
}

function wants(subscriber: InboxSubscriber, record: InboxRecord | undefined): boolean {
  return !record || (subscriber.wants?.(record) ?? true);
}

/** Adds a batch, or joins it with the last batch of the node if all their entries arrived together. */
function addTo(batches: Batch[], batch: Batch): void {
  const open = batches.filter(({ subscriber }) => subscriber === batch.subscriber).at(-1);
  if (open && open.together === batch.together) open.deliveries.push(...batch.deliveries);
  else batches.push(batch);
}

/** Returns the position of entries in their group, or `undefined` if they are the whole group. */
function sliceOf({ index }: Pending, length: number, together: Together | undefined): BatchSlice | undefined {
  if (!together || together.count === length) return undefined;
  const { group, count } = together;
  return { group, index, count, isLast: index + length >= count };
}
