import { type Clock, longestDeploymentMs, type Timer } from '../clock';
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

/** The place of entries among those that came together, if a node gets these in several turns of the event loop. */
export interface BatchSlice {
  /** The same for all entries that came together, and for no others. */
  group: string;
  /** Number of entries before the slice. */
  index: number;
  /** Number of all entries. */
  count: number;
  isLast: boolean;
}

/** An entry that a node gets. */
export interface Given<K extends Kind = Kind> {
  entry: Entry<K>;
  /** The number of this attempt. The node calls {@link Inbox.countAttempt} when it sends the entry. */
  attempt: number;
}

/** A node as the inbox sees it. */
export interface InboxSubscriber<K extends Kind = Kind> {
  /** The node's id. A node that comes back under it after a redeploy gets the entries of its predecessor. */
  readonly id: string;
  /** On channel `callback`: the path of the node. */
  readonly path?: string | undefined;
  /** Gets only the records that it asked for, and those that no other node gets. */
  readonly onDemand?: boolean;
  /** Whether it takes a record of its channel. Absent: all of them. */
  wants?(record: Records[K]): boolean;
  /**
   * Gets entries that came together, or a slice of them, in order. It answers each with {@link Inbox.done} or
   * {@link Inbox.giveUp}.
   *
   * @param context see {@link Destination}
   * @param slice absent if these are all
   */
  take(given: readonly Given<K>[], context?: unknown, slice?: BatchSlice): void;
}

/** The nodes that records are for. If blank: every node of their channel. */
export interface Destination {
  /** The node that was called back, which alone gets the records. */
  address?: Address;
  /** The node on demand that asked for the records, and its context, which it gets back. */
  asker?: string;
  context?: unknown;
}

/** Events of the subscribers. */
export interface SubscribersEvents {
  /** Every node that is still part of the flows has taken an entry. */
  onTaken(pending: Pending): void;
  /** No node here wants an entry, or the only node that was to get it again is gone. */
  onPassedOver(pending: Pending): void;
  /** Whether a kind is polled, even if no node receives it. */
  isPolled(kind: Kind): boolean;
  /** No node receives an entry, and none that could is being redeployed. */
  onUntaken(pending: Pending): void;
  /** A node threw when it got entries. */
  onFault(error: unknown): void;
}

/** Maximum number of entries given in one turn of the event loop. */
const sliceSize = 250;

/** A node that was taken away, and might come back after a redeploy. */
interface Away {
  subscriber: InboxSubscriber;
  /** Number of nodes that had come by then. */
  comings: number;
}

/** Entries for one node in a turn. */
interface Batch {
  subscriber: InboxSubscriber;
  first: Pending;
  given: Given[];
  /** Set for entries that have just come. */
  together: Together | undefined;
}

/**
 * The nodes of each channel. They get new entries immediately, in the order in which these came. When nodes come, or
 * come back after a redeploy, they get the entries that no node has in hand.
 */
export class Subscribers {
  readonly #entries: Entries;
  readonly #events: SubscribersEvents;
  readonly #clock: Clock;
  /** Nodes on each channel, by id. */
  readonly here = byChannel<InboxSubscriber>();
  readonly #away = byChannel<Away>();
  /** Number of times that a node has come. */
  #comings = 0;
  /** Runs while nodes might still come: after a start, and after a node was taken away. */
  #deployment: Timer | undefined;
  /** Entries to be shared out. */
  #queue: Pending[] = [];
  /** All entries are to be shared out: nodes have come, or were away for too long. */
  #isForAll = false;
  #turn: Timer | undefined;
  #onGiven: (() => void)[] = [];

  constructor(entries: Entries, events: SubscribersEvents, clock: Clock) {
    this.#entries = entries;
    this.#events = events;
    this.#clock = clock;
  }

  /** Adds a node. All nodes of a flow come in one turn of the event loop, and get waiting entries in the next. */
  attach(channel: Channel, subscriber: InboxSubscriber): void {
    this.here[channel].set(subscriber.id, subscriber);
    this.#comings++;
    this.giveAll();
  }

  /** Removes a node. If it returns after a redeploy, it gets the entries that it missed. */
  detach(channel: Channel, subscriber: InboxSubscriber): void {
    if (!this.isHere(channel, subscriber)) return;
    this.here[channel].delete(subscriber.id);
    this.#away[channel].set(subscriber.id, { subscriber, comings: this.#comings });
    this.#awaitDeployment();
  }

  /** Entries were found in the store: their nodes might come. */
  found(): void {
    this.#awaitDeployment();
    this.giveAll();
  }

  /** Whether this very node, and not a redeployed one with its id, is on a channel. */
  isHere(channel: Channel, subscriber: InboxSubscriber): boolean {
    return this.here[channel].get(subscriber.id) === subscriber;
  }

  /** Whether a channel has a node, or a node that wants a record. */
  hasAny(channel: Channel, record?: InboxRecord): boolean {
    return [...this.here[channel].values()].some((one) => wants(one, record));
  }

  /** Like {@link hasAny}, or a node is being redeployed, and might want the record then. */
  expects(channel: Channel, record?: InboxRecord): boolean {
    const away = [...this.#away[channel].values()];
    return this.hasAny(channel, record) || away.some(({ subscriber }) => !subscriber.onDemand);
  }

  /** Names of the deliverable kinds and callback nodes, as in `Item.subscribers`. */
  get wanted(): string[] {
    const polled = kinds.filter((kind) => this.hasAny(kind) || this.#events.isPolled(kind));
    const called = [...this.here.callback.values()];
    return [...polled, ...called.flatMap(({ id, path }) => nameSubscribers({ node: id, path }))];
  }

  /** The nodes that new records are for. */
  audience({ kind, address, asker }: Destination & { kind: Kind }): InboxSubscriber[] {
    const here = [...this.here[address ? 'callback' : kind].values()];
    if (address) return here.filter(({ id }) => id === address.node);
    return here.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /** The node that gets the callbacks of an address: the called node, or else the first with its path. */
  calledAt(channel: Channel, { node, path }: Address): InboxSubscriber | undefined {
    const here = this.here[channel];
    return here.get(node) ?? [...here.values()].find((one) => one.path === path);
  }

  /**
   * Gives entries that were just saved. They wait behind older entries, and those that do not fit into one turn wait for
   * the next.
   */
  give(fresh: readonly Pending[]): void {
    const isBehind = this.#queue.length > 0 || (this.#isForAll && this.#entries.size > fresh.length);
    for (const pending of fresh) this.#queue.push(pending);
    if (isBehind || fresh.length > sliceSize) this.#giveNextTurn();
    else this.#giveSlice();
  }

  /** Shares out all entries in the next turns, before any that come from now on. */
  giveAll(): void {
    this.#isForAll = true;
    this.#giveNextTurn();
  }

  /** Resolves when nothing waits to be shared out. Absent if nothing does. */
  get given(): Promise<void> | undefined {
    if (this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#onGiven.push(resolve));
  }

  #awaitDeployment(): void {
    this.#deployment?.cancel();
    const onOver = () => {
      this.#deployment = undefined;
      this.#comings++;
      this.giveAll();
    };
    this.#deployment = this.#clock.after(longestDeploymentMs, onOver, true);
  }

  #giveNextTurn(): void {
    this.#turn ??= this.#clock.nextTurn(() => {
      this.#turn = undefined;
      if (this.#isForAll) this.#queueAll();
      this.#giveSlice();
    });
  }

  /** Shares out as many entries as fit into one turn. */
  #giveSlice(): void {
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

  /** A node that was removed after the last node came is being redeployed. An earlier one is no longer part of the flows. */
  #queueAll(): void {
    this.#isForAll = false;
    for (const away of Object.values(this.#away)) {
      for (const [id, { comings }] of away) if (comings < this.#comings) away.delete(id);
    }
    const isDeployed = Object.values(this.#away).every(({ size }) => size === 0) && this.#comings > 0;
    if (isDeployed) {
      this.#deployment?.cancel();
      this.#deployment = undefined;
    }
    this.#queue = [...this.#entries.values()];
  }

  /** Says which nodes get an entry now, and which attempt that is, before any of them gets it: the first might take it immediately. */
  #share(pending: Pending): Batch[] {
    const { entry, pendingFor } = pending;
    const subscribers = this.#recipients(pending);
    const { isNew, firstAttempt, taken } = pending;
    pending.isNew = false;
    if (isNew && subscribers.length === 0) entry.attempts = firstAttempt - 1;
    const together = isNew ? pending.together : undefined;
    const batches = subscribers.map((subscriber) => {
      const { id } = subscriber;
      const wasAway = pendingFor.has(id) && pendingFor.get(id) === undefined;
      const attempt = isNew || wasAway ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;
      pendingFor.set(id, subscriber);
      return { subscriber, first: pending, given: [{ entry, attempt }], together };
    });
    if (pendingFor.size > 0) return batches;
    // Every other node that was to get it is no longer part of the flows, or does not want it.
    if (taken > 0) this.#events.onTaken(pending);
    else if (this.#isUnreceived(entry)) this.#events.onUntaken(pending);
    else if (entry.channel !== 'callback' && this.hasAny(entry.channel)) this.#events.onPassedOver(pending);
    return batches;
  }

  /** Whether no node receives an entry, and none can come: then it is unhandled. */
  #isUnreceived({ channel, kind, address }: Entry): boolean {
    const isExpected =
      address && channel === 'callback' ? this.#away.callback.has(address.node) : this.expects(channel);
    return !isExpected && (!this.#deployment || (channel !== 'callback' && this.#events.isPolled(kind)));
  }

  /** The nodes that get an entry now: those that were to get it and came back, or else all that it is for. */
  #recipients(pending: Pending): InboxSubscriber[] {
    const { entry, pendingFor, taken, together } = pending;
    const [here, away] = [this.here[entry.channel], this.#away[entry.channel]];
    const returned: InboxSubscriber[] = [];
    let isInHand = false;
    for (const [id, holder] of [...pendingFor]) {
      const subscriber = here.get(id);
      // If the flows are stopped, the nodes that still wait for their share might come back.
      const isGone = !subscriber && !away.has(id) && (here.size > 0 || taken === 0);
      if (isGone) pendingFor.delete(id);
      else if (subscriber && subscriber === holder) isInHand = true;
      else if (subscriber && (entry.address || wants(subscriber, entry.record))) returned.push(subscriber);
      else if (subscriber) pendingFor.delete(id);
    }
    if (returned.length > 0 || isInHand || taken > 0) return returned;
    if (entry.address) {
      const called = this.calledAt(entry.channel, entry.address);
      return called ? [called] : [];
    }
    const wanting = [...here.values()].filter((one) => wants(one, entry.record));
    const asking = wanting.filter(({ id, onDemand }) => !onDemand || id === together?.asker);
    for (const [id, { subscriber }] of away) {
      if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);
    }
    // A node does not ask again after a restart: the service has advanced its last poll date.
    return asking.length === 0 && pendingFor.size === 0 ? wanting.slice(0, 1) : asking;
  }

  #handOn({ subscriber, first, given, together }: Batch): void {
    if (!this.isHere(first.entry.channel, subscriber)) return;
    const context = subscriber.id === together?.asker ? together.context : undefined;
    try {
      subscriber.take(given, context, sliceOf(first, given.length, together));
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

/** Entries that came together are given together, and no others with them. */
function addTo(batches: Batch[], batch: Batch): void {
  const open = batches.filter(({ subscriber }) => subscriber === batch.subscriber).at(-1);
  if (open && open.together === batch.together) open.given.push(...batch.given);
  else batches.push(batch);
}

/** Absent if these are all entries that came together. */
function sliceOf({ index }: Pending, length: number, together: Together | undefined): BatchSlice | undefined {
  if (!together || together.count === length) return undefined;
  const { group, count } = together;
  return { group, index, count, isLast: index + length >= count };
}
