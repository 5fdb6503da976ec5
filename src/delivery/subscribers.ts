import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { type Channel, type Entries, type Entry, nameSubscribers, type Pending, type Together } from '../inbox/entries';
import { type InboxRecord, type Kind, kinds, type Records } from '../model';

/** Where entries stand in what came together, when that is given in several turns of the event loop. */
export interface BatchSlice {
  /** The same for all that came together, and for nothing else. */
  group: string;
  /** How many come before them. */
  index: number;
  /** Of the whole. */
  count: number;
  isLast: boolean;
}

/** What a node is given. */
export interface Given<K extends Kind = Kind> {
  entry: Entry<K>;
  /** Which attempt it is for the node, which says by {@link Inbox.countAttempt} when it sends it. */
  attempt: number;
}

/** One node, as the inbox sees it, and what it takes. */
export interface InboxSubscriber<K extends Kind = Kind> {
  /** The node's id: a node that comes back under it after a redeploy gets what was for it. */
  readonly id: string;
  /** On channel `callback`: the path it answers. */
  readonly path?: string | undefined;
  /** Gets only what it asked for itself, and what is left that nobody else takes. */
  readonly onDemand?: boolean;
  /** Whether it takes a record of its channel; absent: all of them. */
  wants?(record: Records[K]): boolean;
  /**
   * Gets entries that came together, or a slice of them, in order. Each has to be answered by {@link Inbox.done}, or, where the service
   * shall bring it again, by {@link Inbox.release}.
   *
   * @param context what {@link Arrival.context} said
   * @param slice absent when these are all
   */
  take(given: readonly Given<K>[], context?: unknown, slice?: BatchSlice): void;
}

/** Whom records are for: everybody on their channel, unless it says more. */
export interface Destination {
  /** Via callback: who was called. Only that node gets them. */
  address?: { node: string; path: string };
  /** A node on demand that asked for them, and what it wants to be told with them. */
  asker?: string;
  context?: unknown;
}

/** What the subscribers tell. */
export interface SubscribersEvents {
  /** All who are still part of the flows have taken an entry. */
  onTaken(pending: Pending): void;
  /** None of those who are here wants it, or the only node that was to get it once more is gone. */
  onPassedOver(pending: Pending): void;
  /** Somebody here takes the polled copy of a called-back entry that nobody is to get any more. */
  onStranded(pending: Pending): void;
  /** Whether a kind is polled, for whomever. */
  isPolled(kind: Kind): boolean;
  /** Nobody takes what is polled, neither here nor being redeployed. */
  onUntaken(pending: Pending): void;
  /** A node threw as it was given something. */
  onFault(error: unknown): void;
}

/** Entries given in one turn of the event loop. */
const sliceSize = 250;

/** A node that was taken away, and may come back after a redeploy. */
interface Away {
  subscriber: InboxSubscriber;
  /** How many nodes had come by then. */
  comings: number;
}

/** What one node gets in a turn. */
interface Batch {
  subscriber: InboxSubscriber;
  first: Pending;
  given: Given[];
  /** Of what has just come. */
  together: Together | undefined;
}

/**
 * The nodes of each channel, who get the undelivered entries: what has just come at once, in the order in which it came, and what
 * nobody has in hand when nodes come, or come back after a redeploy.
 */
export class Subscribers {
  readonly #entries: Entries;
  readonly #events: SubscribersEvents;
  readonly #clock: Clock;
  /** Nodes on each channel, by id. */
  readonly here = byChannel<InboxSubscriber>();
  readonly #away = byChannel<Away>();
  /** How often a node has come. */
  #comings = 0;
  #absence: Timer | undefined;
  /** To be looked at. */
  #queue: Pending[] = [];
  /** Nodes have come, or were away for too long: all entries are to be looked at. */
  #isForAll = false;
  #turn: Timer | undefined;
  #onGiven: (() => void)[] = [];

  constructor(entries: Entries, events: SubscribersEvents, clock: Clock) {
    this.#entries = entries;
    this.#events = events;
    this.#clock = clock;
  }

  /** Nodes of a flow come in one turn of the event loop: when it ends all are here, and get what waits. */
  attach(channel: Channel, subscriber: InboxSubscriber): void {
    this.here[channel].set(subscriber.id, subscriber);
    this.#comings++;
    this.giveAll();
  }

  /** Takes a node away. It may be back after a redeploy, which must not make it miss what others get, or what is its own. */
  detach(channel: Channel, subscriber: InboxSubscriber): void {
    if (!this.isHere(channel, subscriber)) return;
    this.here[channel].delete(subscriber.id);
    this.#away[channel].set(subscriber.id, { subscriber, comings: this.#comings });
    this.#absence?.cancel();
    const onAbsent = () => {
      this.#comings++;
      this.giveAll();
    };
    this.#absence = this.#clock.after(longestDeploymentMs, onAbsent, true);
  }

  /** Whether this very node, and not a redeployed one in its place, is on a channel. */
  isHere(channel: Channel, subscriber: InboxSubscriber): boolean {
    return this.here[channel].get(subscriber.id) === subscriber;
  }

  /** Whether somebody takes what comes on a channel, or a record of it. */
  hasAny(channel: Channel, record?: InboxRecord): boolean {
    return [...this.here[channel].values()].some((one) => wants(one, record));
  }

  /** Whether somebody takes what comes on a channel, or a record of it, or is being redeployed, and may want something else by then. */
  expects(channel: Channel, record?: InboxRecord): boolean {
    const away = [...this.#away[channel].values()];
    return this.hasAny(channel, record) || away.some(({ subscriber }) => !subscriber.onDemand);
  }

  /** What can be given here, as in `Item.subscribers`: the kinds that are polled, for somebody who is here or for nobody, and who is called back. */
  get wanted(): string[] {
    const polled = kinds.filter((kind) => this.hasAny(kind) || this.#events.isPolled(kind));
    const called = [...this.here.callback.values()];
    return [...polled, ...called.flatMap(({ id, path }) => nameSubscribers({ node: id, path }))];
  }

  /** The nodes that what comes now is for. */
  audience({ kind, address, asker }: Destination & { kind: Kind }): InboxSubscriber[] {
    const here = [...this.here[address ? 'callback' : kind].values()];
    if (address) return here.filter(({ id }) => id === address.node);
    return here.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /** Whether nobody who is here, or may come back, is to get a called-back entry. */
  isStranded({ entry: { channel, address }, pendingFor }: Pending): boolean {
    if (!address || this.#calledAt(channel, address)) return false;
    const [here, away] = [this.here[channel], this.#away[channel]];
    return ![address.node, ...pendingFor.keys()].some((id) => here.has(id) || away.has(id));
  }

  /**
   * Gives what has just been saved, and is among the entries by now. While older entries wait to be looked at it waits behind them, and
   * of more than fits into one turn the rest does.
   */
  give(fresh: readonly Pending[]): void {
    const isBehind = this.#queue.length > 0 || (this.#isForAll && this.#entries.size > fresh.length);
    for (const pending of fresh) this.#queue.push(pending);
    if (isBehind || fresh.length > sliceSize) this.#giveNextTurn();
    else this.#giveSlice();
  }

  /** Looks at all entries in the turns that follow: those that wait come before any that come from now on. */
  giveAll(): void {
    this.#isForAll = true;
    this.#giveNextTurn();
  }

  /** Resolves when nothing waits to be looked at; absent when nothing does. */
  get given(): Promise<void> | undefined {
    if (this.#queue.length === 0) return undefined;
    return new Promise((resolve) => this.#onGiven.push(resolve));
  }

  #giveNextTurn(): void {
    this.#turn ??= this.#clock.nextTurn(() => {
      this.#turn = undefined;
      if (this.#isForAll) this.#lookAtAll();
      this.#giveSlice();
    });
  }

  /** Gives a turn's worth of what is to be looked at, and the rest in the turns that follow. */
  #giveSlice(): void {
    const batches: Batch[] = [];
    for (const pending of this.#queue.splice(0, sliceSize)) {
      if (pending.isManuallyResent || this.#entries.get(pending.entry.id) !== pending) continue;
      for (const batch of this.#share(pending)) addTo(batches, batch);
    }
    for (const batch of batches) this.#handOn(batch);
    if (this.#queue.length > 0 || this.#isForAll) this.#giveNextTurn();
    else for (const resolve of this.#onGiven.splice(0)) resolve();
  }

  /** Who was taken away since the last node came is being redeployed; who was before is not part of the flows any more. */
  #lookAtAll(): void {
    this.#isForAll = false;
    let isSomebodyAway = false;
    for (const away of Object.values(this.#away)) {
      for (const [id, { comings }] of away) if (comings < this.#comings) away.delete(id);
      isSomebodyAway ||= away.size > 0;
    }
    if (!isSomebodyAway) this.#absence?.cancel();
    this.#queue = [...this.#entries.values()];
  }

  /** Says who gets an entry now, and which attempt it is for each: before any of them is given it, since the first may be done with it at once. */
  #share(pending: Pending): Batch[] {
    const { entry, pendingFor } = pending;
    // The service may bring the called-back one again for its node, but not the polled copy.
    if (entry.polledCopy && this.hasAny(entry.kind) && this.isStranded(pending)) this.#events.onStranded(pending);
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
    const isUntaken = taken === 0 && !entry.address && !this.expects(entry.channel);
    if (isUntaken && this.#events.isPolled(entry.kind)) this.#events.onUntaken(pending);
    // Whoever else was owed it is not part of the flows any more, or does not want it.
    if (pendingFor.size === 0 && taken > 0) this.#events.onTaken(pending);
    else if (pendingFor.size === 0 && entry.channel !== 'callback' && this.hasAny(entry.channel))
      this.#events.onPassedOver(pending);
    return batches;
  }

  /** Who is to get an entry now: nodes that were owed it and came back, else everybody it is for. */
  #recipients(pending: Pending): InboxSubscriber[] {
    const { entry, pendingFor, taken, together } = pending;
    const [here, away] = [this.here[entry.channel], this.#away[entry.channel]];
    const returned: InboxSubscriber[] = [];
    let isInHand = false;
    for (const [id, holder] of [...pendingFor]) {
      const subscriber = here.get(id);
      if (!subscriber && here.size > 0 && !away.has(id)) pendingFor.delete(id);
      else if (subscriber && subscriber === holder) isInHand = true;
      else if (subscriber && (entry.address || wants(subscriber, entry.record))) returned.push(subscriber);
      else if (subscriber) pendingFor.delete(id);
    }
    if (returned.length > 0 || isInHand || taken > 0) return returned;
    if (entry.address) return this.#calledAt(entry.channel, entry.address) ?? [];
    const wanting = [...here.values()].filter((one) => wants(one, entry.record));
    const asking = wanting.filter(({ id, onDemand }) => !onDemand || id === together?.asker);
    for (const [id, { subscriber }] of away) {
      if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);
    }
    // What was asked for before a restart is not asked for again: the service has moved on.
    return asking.length === 0 && pendingFor.size === 0 ? wanting.slice(0, 1) : asking;
  }

  /** Who gets what a node was called with: itself, or the first that answers its path. */
  #calledAt(channel: Channel, { node, path }: NonNullable<Destination['address']>): [InboxSubscriber] | undefined {
    const here = this.here[channel];
    const subscriber = here.get(node) ?? [...here.values()].find((one) => one.path === path);
    return subscriber && [subscriber];
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

/** What came together is given together, and nothing else with it. */
function addTo(batches: Batch[], batch: Batch): void {
  const open = batches.filter(({ subscriber }) => subscriber === batch.subscriber).at(-1);
  if (open && open.together === batch.together) open.given.push(...batch.given);
  else batches.push(batch);
}

/** Absent when these are all that came together. */
function sliceOf({ index }: Pending, length: number, together: Together | undefined): BatchSlice | undefined {
  if (!together || together.count === length) return undefined;
  const { group, count } = together;
  return { group, index, count, isLast: index + length >= count };
}
