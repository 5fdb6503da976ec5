import { type Clock, maxDeploymentMs, type Timer } from '../clock';
import {
  type Address,
  type Channel,
  type Entries,
  type Entry,
  type EntryGroup,
  nameSubscribers,
  type Pending,
} from '../inbox/entries';
import { type InboxRecord, type Kind, kinds, type Records } from '../model';

/**
 * Position of the delivered entries in their group, which is all entries that arrived together. Used if a node receives
 * the group over several turns of the event loop.
 */
export interface BatchSlice {
  /** Id of the group. No other group has this id. */
  group: string;
  /** Number of entries of the group that the node received before. */
  index: number;
  /** Number of entries in the group. */
  count: number;
  isLast: boolean;
}

/** Delivery of an entry, which contains a received record, to a node. */
export interface EntryDelivery<K extends Kind = Kind> {
  entry: Entry<K>;
  /** The number of this attempt. The node calls {@link Inbox.countAttempt} when it sends the entry. */
  attempt: number;
}

/** A node that receives entries from an inbox. */
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
   * {@link Inbox.acknowledge} or {@link Inbox.makeUnhandled}.
   *
   * @param context see {@link Destination}
   * @param slice absent if these are all entries that arrived together
   */
  receive(deliveries: readonly EntryDelivery<K>[], context?: unknown, slice?: BatchSlice): void;
}

/** The nodes that should receive records. Without any property: all nodes of the channel. */
export interface Destination {
  /** The node that the service called back. Only this node receives the records. */
  address?: Address;
  /** Id of the node that requested the records. The node receives `context` back. */
  asker?: string;
  context?: unknown;
}

/** Events that {@link Subscribers} reports, and questions that it asks. */
export interface SubscribersEvents {
  /**
   * Called before nodes receive entries whose first attempt is not stored. Resolves when the attempts are stored.
   * Without this, an entry that a node received just before a crash would be delivered again without the mark
   * `redelivered`.
   */
  onFirstAttempts(pendings: readonly Pending[]): Promise<void>;
  /** Called when an entry is finished: at least one node has acknowledged it, and no node still has to receive it. */
  onAcknowledged(pending: Pending): void;
  /**
   * Called when a channel has nodes, but no node can receive an entry: no node wants it, or the only node that had to
   * receive it again was removed.
   */
  onUnwanted(pending: Pending): void;
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
interface DetachedNode {
  subscriber: InboxSubscriber;
  /**
   * Number of nodes that had been added when this node was removed. If a node is added afterwards, this node will not
   * return.
   */
  attachCount: number;
}

/** Entries that one node receives in one turn of the event loop. */
interface Batch {
  subscriber: InboxSubscriber;
  firstEntry: Pending;
  deliveries: EntryDelivery[];
  /** The group in which the entries arrived, if no node has received them before. */
  together: EntryGroup | undefined;
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
  readonly attachedNodes = byChannel<InboxSubscriber>();
  readonly #detachedNodes = byChannel<DetachedNode>();
  /** Number of nodes that were added, plus the number of deployments that have ended. */
  #attachCount = 0;
  /** Runs while more nodes might be added: after a start, and after a node was removed. */
  #deploymentTimer: Timer | undefined;
  /** Entries to distribute. */
  #queue: Pending[] = [];
  /**
   * Whether all entries must be distributed to nodes again, because nodes were added or have been absent for too long.
   */
  #isForAll = false;
  #nextTurn: Timer | undefined;
  /** Whether attempt numbers are being stored, which happens before the first delivery of entries. */
  #isCounting = false;
  #onDistributed: (() => void)[] = [];

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
    this.attachedNodes[channel].set(subscriber.id, subscriber);
    this.#attachCount++;
    this.distributeAll();
  }

  /** Removes a node. If the node returns after a redeploy, it receives the entries that it missed. */
  detach(channel: Channel, subscriber: InboxSubscriber): void {
    if (!this.isAttached(channel, subscriber)) return;
    this.attachedNodes[channel].delete(subscriber.id);
    this.#detachedNodes[channel].set(subscriber.id, { subscriber, attachCount: this.#attachCount });
    this.#awaitDeployment();
  }

  /**
   * Called after the store was opened with entries of an earlier process. Delivers them. Entries without a node wait
   * until the end of the deployment, because their node might still be added.
   */
  onStoreOpened(): void {
    this.#awaitDeployment();
    this.distributeAll();
  }

  /** Returns whether this node object is on a channel. A redeployed node with the same id is another object. */
  isAttached(channel: Channel, subscriber: InboxSubscriber): boolean {
    return this.attachedNodes[channel].get(subscriber.id) === subscriber;
  }

  /** Returns whether a channel has any node. With a record, returns whether any node wants it. */
  hasAny(channel: Channel, record?: InboxRecord): boolean {
    return [...this.attachedNodes[channel].values()].some((subscriber) => wants(subscriber, record));
  }

  /** Like {@link hasAny}, but also true if a node that is being redeployed might want the record. */
  expects(channel: Channel, record?: InboxRecord): boolean {
    const detachedNodes = [...this.#detachedNodes[channel].values()];
    return this.hasAny(channel, record) || detachedNodes.some(({ subscriber }) => !subscriber.onDemand);
  }

  /**
   * The names (see `Item.subscribers`) whose items this process can claim: kinds that a node receives or that the
   * account polls, and the callback nodes.
   */
  get wantedNames(): string[] {
    const polledKinds = kinds.filter((kind) => this.hasAny(kind) || this.#events.isPolled(kind));
    const calledNodes = [...this.attachedNodes.callback.values()];
    return [...polledKinds, ...calledNodes.flatMap(({ id, path }) => nameSubscribers({ node: id, path }))];
  }

  /** Returns the nodes that should receive new records. */
  audience({ kind, address, asker }: Destination & { kind: Kind }): InboxSubscriber[] {
    const attachedNodes = [...this.attachedNodes[address ? 'callback' : kind].values()];
    if (address) return attachedNodes.filter(({ id }) => id === address.node);
    return attachedNodes.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /**
   * Returns the node that receives the callbacks of an address: the called node, or else the first node with the same
   * path.
   */
  calledAt(channel: Channel, { node, path }: Address): InboxSubscriber | undefined {
    const attachedNodes = this.attachedNodes[channel];
    return attachedNodes.get(node) ?? [...attachedNodes.values()].find((subscriber) => subscriber.path === path);
  }

  /**
   * Distributes entries that were just saved. They wait behind older entries. Entries that do not fit into one turn of
   * the event loop wait for the next.
   */
  distribute(newEntries: readonly Pending[]): void {
    const isBehind = this.#queue.length > 0 || (this.#isForAll && this.#entries.size > newEntries.length);
    for (const pending of newEntries) this.#queue.push(pending);
    if (isBehind || newEntries.length > sliceSize) this.#distributeNextTurn();
    else this.#distributeSlice();
  }

  /** Distributes all entries in the next turns of the event loop, before any later entries. */
  distributeAll(): void {
    this.#isForAll = true;
    this.#distributeNextTurn();
  }

  /** Resolves when no entry waits to be distributed. `undefined` if none waits now. */
  get whenDistributed(): Promise<void> | undefined {
    if (this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#onDistributed.push(resolve));
  }

  /**
   * Stops waiting for the end of the deployment. Entries then wait until a node is added or {@link onStoreOpened} is
   * called.
   */
  stopWaiting(): void {
    this.#deploymentTimer?.cancel();
    this.#deploymentTimer = undefined;
  }

  #awaitDeployment(): void {
    this.stopWaiting();
    const onOver = () => {
      this.#deploymentTimer = undefined;
      this.#attachCount++;
      this.distributeAll();
    };
    this.#deploymentTimer = this.#clock.after(maxDeploymentMs, onOver, true);
  }

  #distributeNextTurn(): void {
    this.#nextTurn ??= this.#clock.nextTurn(() => {
      this.#nextTurn = undefined;
      if (this.#isForAll) this.#queueAll();
      this.#distributeSlice();
    });
  }

  /** Distributes as many entries as fit into one turn of the event loop. */
  #distributeSlice(): void {
    if (this.#isCounting) return;
    const uncountedEntries = this.#queue.slice(0, sliceSize).filter((pending) => this.#isUncounted(pending));
    if (uncountedEntries.length > 0) {
      this.#isCounting = true;
      const end = () => {
        this.#isCounting = false;
        this.#distributeNextTurn();
      };
      this.#events.onFirstAttempts(uncountedEntries).then(end, end);
      return;
    }
    const batches: Batch[] = [];
    for (const pending of this.#queue.splice(0, sliceSize)) {
      const { id, isHeldBack } = pending.entry;
      if (isHeldBack || this.#entries.get(id) !== pending) continue;
      for (const batch of this.#share(pending)) addTo(batches, batch);
    }
    for (const batch of batches) this.#deliver(batch);
    if (this.#queue.length > 0 || this.#isForAll) this.#distributeNextTurn();
    else for (const resolve of this.#onDistributed.splice(0)) resolve();
  }

  /** Returns whether an entry has no stored attempt yet and a node could receive it now. */
  #isUncounted(pending: Pending): boolean {
    const { id, attempts, isHeldBack, channel, address, record } = pending.entry;
    if (attempts > 0 || isHeldBack || this.#entries.get(id) !== pending) return false;
    return address ? this.calledAt(channel, address) !== undefined : this.hasAny(channel, record);
  }

  /**
   * Queues all entries. Forgets removed nodes that have not returned although another node was added after their
   * removal: the deployment has ended without them.
   */
  #queueAll(): void {
    this.#isForAll = false;
    for (const detachedNodes of Object.values(this.#detachedNodes)) {
      for (const [id, { attachCount }] of detachedNodes) if (attachCount < this.#attachCount) detachedNodes.delete(id);
    }
    const isDeployed = Object.values(this.#detachedNodes).every(({ size }) => size === 0) && this.#attachCount > 0;
    if (isDeployed) this.stopWaiting();
    this.#queue = [...this.#entries.values()];
  }

  /**
   * Chooses the nodes that receive an entry now, and counts the attempt for all of them. Does not deliver the entry
   * yet, because the first node might acknowledge it before the other nodes are noted.
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
      return { subscriber, firstEntry: pending, deliveries: [{ entry, attempt }], together };
    });
    if (pendingFor.size > 0) return batches;
    // No node still has to receive the entry: each node has acknowledged it, was removed from the flows, or does not
    // want it.
    if (acknowledgements > 0) this.#events.onAcknowledged(pending);
    else if (this.#isUnreceived(entry)) this.#events.onUnreceived(pending);
    else if (entry.channel !== 'callback' && this.hasAny(entry.channel)) this.#events.onUnwanted(pending);
    return batches;
  }

  /**
   * Returns whether no node can receive an entry, and no such node is expected to be added. The entry is then
   * unhandled.
   */
  #isUnreceived({ channel, kind, address }: Entry): boolean {
    const isExpected =
      address && channel === 'callback' ? this.#detachedNodes.callback.has(address.node) : this.expects(channel);
    return !isExpected && (!this.#deploymentTimer || (channel !== 'callback' && this.#events.isPolled(kind)));
  }

  /**
   * Returns the nodes that receive an entry now: redeployed nodes that have not acknowledged it or, if no node has
   * acknowledged or is handling it, all nodes that it is meant for.
   */
  #recipients(pending: Pending): InboxSubscriber[] {
    const { entry, pendingFor, acknowledgements, together } = pending;
    const [attachedNodes, detachedNodes] = [this.attachedNodes[entry.channel], this.#detachedNodes[entry.channel]];
    const returnedNodes: InboxSubscriber[] = [];
    let isBeingHandled = false;
    for (const [id, recipient] of [...pendingFor]) {
      const subscriber = attachedNodes.get(id);
      // Keeps a missing node if all flows are stopped and another node has acknowledged the entry, because the missing
      // node might return.
      const isGone = !subscriber && !detachedNodes.has(id) && (attachedNodes.size > 0 || acknowledgements === 0);
      if (isGone) pendingFor.delete(id);
      else if (subscriber && subscriber === recipient) isBeingHandled = true;
      else if (subscriber && (entry.address || wants(subscriber, entry.record))) returnedNodes.push(subscriber);
      else if (subscriber) pendingFor.delete(id);
    }
    if (returnedNodes.length > 0 || isBeingHandled || acknowledgements > 0) return returnedNodes;
    if (entry.address) {
      const calledNode = this.calledAt(entry.channel, entry.address);
      return calledNode ? [calledNode] : [];
    }
    const wantingNodes = [...attachedNodes.values()].filter((subscriber) => wants(subscriber, entry.record));
    const receivingNodes = wantingNodes.filter(({ id, onDemand }) => !onDemand || id === together?.asker);
    for (const [id, { subscriber }] of detachedNodes) {
      if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);
    }
    // If nodes receive only what they request, and none has requested the entry, the first node that wants it receives
    // it. After a restart, no node can request the entry again, because the service has already advanced the last poll
    // date.
    return receivingNodes.length === 0 && pendingFor.size === 0 ? wantingNodes.slice(0, 1) : receivingNodes;
  }

  #deliver({ subscriber, firstEntry, deliveries, together }: Batch): void {
    if (!this.isAttached(firstEntry.entry.channel, subscriber)) return;
    const context = subscriber.id === together?.asker ? together.context : undefined;
    try {
      subscriber.receive(deliveries, context, sliceOf(firstEntry, deliveries.length, together));
    } catch (error) {
      this.#events.onFault(error);
    }
  }
}

function byChannel<Value>(): Readonly<Record<Channel, Map<string, Value>>> {
  return { incoming: new Map(), status: new Map(), outbox: new Map(), callback: new Map() };
}

function wants(subscriber: InboxSubscriber, record: InboxRecord | undefined): boolean {
  return !record || (subscriber.wants?.(record) ?? true);
}

/** Adds a batch, or joins it with the last batch of the node if all their entries arrived together. */
function addTo(batches: Batch[], batch: Batch): void {
  const lastBatch = batches.filter(({ subscriber }) => subscriber === batch.subscriber).at(-1);
  if (lastBatch && lastBatch.together === batch.together) lastBatch.deliveries.push(...batch.deliveries);
  else batches.push(batch);
}

/** Returns the position of entries in their group, or `undefined` if they are the whole group. */
function sliceOf({ index }: Pending, length: number, together: EntryGroup | undefined): BatchSlice | undefined {
  if (!together || together.count === length) return undefined;
  const { group, count } = together;
  return { group, index, count, isLast: index + length >= count };
}
