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
 * Position of the delivered entries in their group. A group consists of all entries that arrived together. Present if a
 * node receives the group over several turns of the event loop.
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

/** Delivery of one entry (a received record) to a node. */
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
  /**
   * If true, the node receives two kinds of records: those that it requested, and those that no other node receives.
   */
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

/** Functions that {@link Subscribers} calls to report an event, or to ask about the account. */
export interface SubscribersEvents {
  /**
   * Called before nodes receive entries for the first time. Stores this attempt, so that after a crash, the entries are
   * redelivered with the mark `redelivered`. The nodes receive the entries when the promise settles.
   */
  onFirstAttempts(pendings: readonly Pending[]): Promise<void>;
  /** Called when an entry is finished: at least one node has acknowledged it, and no node still has to receive it. */
  onAcknowledged(pending: Pending): void;
  /**
   * Called when no node can receive an entry although its channel has nodes. Either no node wants the entry, or a user
   * has redelivered the entry to a node that was then removed.
   */
  onUnwanted(pending: Pending): void;
  /** Returns whether the account polls a kind, even if no node receives it. */
  isPolled(kind: Kind): boolean;
  /** Called when a channel has no node for an entry, and no suitable node is being redeployed. */
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
   * Value of `#generation` when this node was removed. If `#generation` has increased since, the deployment has ended
   * without this node, and it will not return.
   */
  generation: number;
}

/** Entries that one node receives in one turn of the event loop. */
interface Batch {
  subscriber: InboxSubscriber;
  firstEntry: Pending;
  deliveries: EntryDelivery[];
  /** The group in which the entries arrived. `undefined` if a node has received them before. */
  together: EntryGroup | undefined;
}

/**
 * Distributes entries to the nodes of each channel. Nodes receive new entries immediately, in the order of arrival. A
 * node that is added, or returns after a redeploy, receives waiting entries that no other node is handling.
 */
export class Subscribers {
  readonly #entries: Entries;
  readonly #events: SubscribersEvents;
  readonly #clock: Clock;
  /** Deployed nodes on each channel, by id. */
  readonly attachedNodes = byChannel<InboxSubscriber>();
  readonly #detachedNodes = byChannel<DetachedNode>();
  /** Increases when a node is added, and when the wait for the end of a deployment times out. */
  #generation = 0;
  /** Runs while more nodes might be added: after a start, and after a node was removed. */
  #deploymentTimer: Timer | undefined;
  /** Entries that wait to be distributed, in order. */
  #queue: Pending[] = [];
  /** Whether to distribute all entries again, for example because a node was added or a deployment has ended. */
  #isForAll = false;
  #nextTurn: Timer | undefined;
  /** True while the first attempts of entries are being stored. No entry is distributed during this time. */
  #isCounting = false;
  #onDistributed: (() => void)[] = [];

  constructor(entries: Entries, events: SubscribersEvents, clock: Clock) {
    this.#entries = entries;
    this.#events = events;
    this.#clock = clock;
  }

  /**
   * Adds a node. All nodes of a flow are added in the same turn of the event loop. They receive waiting entries in the
   * next turn.
   */
  attach(channel: Channel, subscriber: InboxSubscriber): void {
    this.attachedNodes[channel].set(subscriber.id, subscriber);
    this.#generation++;
    this.distributeAll();
  }

  /** Removes a node. If the node returns after a redeploy, it receives the entries that it missed. */
  detach(channel: Channel, subscriber: InboxSubscriber): void {
    if (!this.isAttached(channel, subscriber)) return;
    this.attachedNodes[channel].delete(subscriber.id);
    this.#detachedNodes[channel].set(subscriber.id, { subscriber, generation: this.#generation });
    this.#awaitDeployment();
  }

  /**
   * Delivers the entries of an earlier process, after the store was opened. If no node can receive an entry, it waits
   * until the end of the deployment, because its node might still be added.
   */
  onStoreOpened(): void {
    this.#awaitDeployment();
    this.distributeAll();
  }

  /**
   * Returns whether this node object is on a channel. After a redeploy, the node has the same id, but is another
   * object.
   */
  isAttached(channel: Channel, subscriber: InboxSubscriber): boolean {
    return this.attachedNodes[channel].get(subscriber.id) === subscriber;
  }

  /** Returns whether a channel has any node. With a record, returns whether any node wants it. */
  hasAny(channel: Channel, record?: InboxRecord): boolean {
    return [...this.attachedNodes[channel].values()].some((subscriber) => wants(subscriber, record));
  }

  /** Like {@link hasAny}, but also returns true if a node that might want the record is being redeployed. */
  expects(channel: Channel, record?: InboxRecord): boolean {
    const detachedNodes = [...this.#detachedNodes[channel].values()];
    return this.hasAny(channel, record) || detachedNodes.some(({ subscriber }) => !subscriber.onDemand);
  }

  /**
   * The names that stand for the nodes of this process (see `Item.subscribers`): the kinds that a node receives or the
   * account polls, and the ids and paths of callback nodes. The process can claim items with these names.
   */
  get wantedNames(): string[] {
    const polledKinds = kinds.filter((kind) => this.hasAny(kind) || this.#events.isPolled(kind));
    const calledNodes = [...this.attachedNodes.callback.values()];
    return [...polledKinds, ...calledNodes.flatMap(({ id, path }) => nameSubscribers({ node: id, path }))];
  }

  /** Returns the nodes for which new records are meant. */
  audience({ kind, address, asker }: Destination & { kind: Kind }): InboxSubscriber[] {
    const attachedNodes = [...this.attachedNodes[address ? 'callback' : kind].values()];
    if (address) return attachedNodes.filter(({ id }) => id === address.node);
    return attachedNodes.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /**
   * Returns the node that receives the callbacks of an address: the node with the id in the address. If this node does
   * not exist, returns the first node with the path in the address.
   */
  calledAt(channel: Channel, { node, path }: Address): InboxSubscriber | undefined {
    const attachedNodes = this.attachedNodes[channel];
    return attachedNodes.get(node) ?? [...attachedNodes.values()].find((subscriber) => subscriber.path === path);
  }

  /**
   * Distributes entries that were just saved, after all older entries. If there are too many for one turn of the event
   * loop, the rest follow in the next turns.
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

  /** Resolves when all waiting entries are distributed. `undefined` if no entry waits. */
  get whenDistributed(): Promise<void> | undefined {
    if (this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#onDistributed.push(resolve));
  }

  /**
   * Stops waiting for the end of the deployment. Entries without a node then wait until a node is added or {@link
   * onStoreOpened} is called.
   */
  stopWaiting(): void {
    this.#deploymentTimer?.cancel();
    this.#deploymentTimer = undefined;
  }

  #awaitDeployment(): void {
    this.stopWaiting();
    const onOver = () => {
      this.#deploymentTimer = undefined;
      this.#generation++;
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

  /**
   * Returns whether the first attempt of an entry must be stored: no attempt is stored yet, and a node could receive
   * the entry now.
   */
  #isUncounted(pending: Pending): boolean {
    const { id, attempts, isHeldBack, channel, address, record } = pending.entry;
    if (attempts > 0 || isHeldBack || this.#entries.get(id) !== pending) return false;
    return address ? this.calledAt(channel, address) !== undefined : this.hasAny(channel, record);
  }

  /**
   * Queues all entries. Forgets each removed node if another node was added after its removal: the deployment has then
   * ended without the removed node.
   */
  #queueAll(): void {
    this.#isForAll = false;
    for (const detachedNodes of Object.values(this.#detachedNodes)) {
      for (const [id, { generation }] of detachedNodes) if (generation < this.#generation) detachedNodes.delete(id);
    }
    const isDeployed = Object.values(this.#detachedNodes).every(({ size }) => size === 0) && this.#generation > 0;
    if (isDeployed) this.stopWaiting();
    this.#queue = [...this.#entries.values()];
  }

  /**
   * Chooses the nodes that receive an entry now, and counts the attempt for all of them. The caller delivers the entry
   * afterwards, so that the first node cannot acknowledge the entry before all nodes are noted.
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

  /** Returns whether an entry becomes unhandled: no node can receive it, and no such node is expected to be added. */
  #isUnreceived({ channel, kind, address }: Entry): boolean {
    const isExpected =
      address && channel === 'callback' ? this.#detachedNodes.callback.has(address.node) : this.expects(channel);
    return !isExpected && (!this.#deploymentTimer || (channel !== 'callback' && this.#events.isPolled(kind)));
  }

  /**
   * Returns the nodes that receive an entry now:
   *
   * - First choice: the nodes that have returned after a redeploy and have not acknowledged the entry.
   * - Without such nodes: all nodes for which the entry is meant, unless a node is handling or has acknowledged it.
   */
  #recipients(pending: Pending): InboxSubscriber[] {
    const { entry, pendingFor, acknowledgements, together } = pending;
    const [attachedNodes, detachedNodes] = [this.attachedNodes[entry.channel], this.#detachedNodes[entry.channel]];
    const returnedNodes: InboxSubscriber[] = [];
    let isBeingHandled = false;
    for (const [id, recipient] of [...pendingFor]) {
      const subscriber = attachedNodes.get(id);
      // A missing node is gone if it is not being redeployed. Exception: the missing node might return if the channel
      // has no node, for example because all flows are stopped, and another node has acknowledged the entry.
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
    // Some nodes only receive what they request. After a restart, they cannot request this entry again, because the
    // service has already advanced the last poll date. The first node that wants the entry then receives it.
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

/**
 * Adds a batch to the list. If the last batch of the same node belongs to the same group, extends that batch instead.
 */
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
