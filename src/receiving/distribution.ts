import { type Channel, type Entry, nameTakers } from './entry';
import type { Undelivered, UndeliveredEntries } from './undelivered';

/** One node, as the inbox sees it. */
export interface Taker {
  /** The node's id: a node that comes back under it after a redeploy gets what it was owed. */
  readonly id: string;
  /** On channel `callback`: the path it answers. */
  readonly path?: string;
  /** Gets only what it asked for itself, and what is left that nobody else takes. */
  readonly onDemand?: boolean;
  /** Says by {@link Inbox.countAttempt} when it sends an entry that is not new; otherwise taking one counts. */
  readonly countsAttempts?: boolean;
  /**
   * Gets entries that came together, in order. Each has to be answered by {@link Inbox.done}, or, where the service
   * shall bring it again, by {@link Inbox.release}.
   *
   * @param context what {@link Arrival.context} said
   * @param isNew they have not been given to anybody before
   */
  take(entries: readonly Entry[], context?: unknown, isNew?: boolean): void;
}

/** Whom records are for: everybody on their channel, unless it says more. */
export interface Destination {
  /** Via callback: who was called. Only that node gets them. */
  address?: { node: string; path: string };
  /** A node on demand that asked for them, and what it wants to be told with them. */
  asker?: string;
  context?: unknown;
}

/** What a distribution tells. */
export interface DistributionEvents {
  /** An entry that is not new is given to somebody. */
  onAttempt(entry: Entry): void;
  /** All who are still part of the flows have taken an entry. */
  onTaken(undelivered: Undelivered): void;
}

/** Longer than Node-RED takes to redeploy: it waits for 15 s for nodes that close. */
const absenceMs = 20_000;

/**
 * Knows the nodes of each channel and gives them undelivered entries: what has just come at once, and what nobody has in
 * hand when nodes come, or come back after a redeploy.
 */
export class Distribution {
  readonly #undelivered: UndeliveredEntries;
  readonly #events: DistributionEvents;
  readonly #takers = new Map<Channel, Map<string, Taker>>();
  #handingOut: NodeJS.Immediate | undefined;
  /** Nodes that were taken away and may come back: a redeploy of one must not make it miss what the others get. */
  readonly #absent = new Map<Channel, Set<string>>();
  #absence: NodeJS.Timeout | undefined;
  /** Nodes have come since: whoever is not here now is not part of the flows any more. */
  #isRollCall = false;

  constructor(undelivered: UndeliveredEntries, events: DistributionEvents) {
    this.#undelivered = undelivered;
    this.#events = events;
  }

  attach(channel: Channel, taker: Taker): void {
    this.#takers.set(channel, this.#attached(channel).set(taker.id, taker));
    this.#isRollCall = true;
    this.handOutSoon();
  }

  detach(channel: Channel, taker: Taker): void {
    const takers = this.#attached(channel);
    if (takers.get(taker.id) !== taker) return;
    takers.delete(taker.id);
    if (taker.onDemand || channel === 'callback') return;
    this.#absent.set(channel, (this.#absent.get(channel) ?? new Set()).add(taker.id));
    clearTimeout(this.#absence);
    this.#absence = setTimeout(() => {
      this.#isRollCall = true;
      this.handOutSoon();
    }, absenceMs);
    this.#absence.unref();
  }

  hasTakers(channel: Channel): boolean {
    return this.#attached(channel).size > 0;
  }

  /** Names of those that are here, as in `Item.takers`. */
  get wanted(): string[] {
    const callbacks = [...this.#attached('callback').values()];
    return [
      ...[...this.#takers]
        .filter(([channel, { size }]) => channel !== 'callback' && size > 0)
        .map(([channel]) => channel),
      ...callbacks.flatMap(({ id, path }) => nameTakers({ node: id, path })),
    ];
  }

  /** The nodes that what comes now is for. */
  audience(channel: Channel, { address, asker }: Destination): Taker[] {
    const takers = [...this.#attached(channel).values()];
    if (address) return takers.filter(({ id }) => id === address.node);
    return takers.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /** Gives what has just been saved to those it was saved for; who was redeployed meanwhile gets it when back. */
  giveNew(fresh: readonly Undelivered[], audience: readonly Taker[], destination: Destination = {}): void {
    const present = audience.filter((taker) => this.#isAttached(fresh, taker));
    if (present.length === 0 && audience.length > 0) for (const { entry } of fresh) entry.attempts--;
    if (present.length === 0 || present.length < audience.length) this.handOutSoon();
    this.#give(fresh, audience, destination, true);
    if (destination.address) return;
    for (const id of this.#absent.get(fresh[0]?.entry.channel ?? 'incoming') ?? []) {
      for (const { owed } of fresh) owed.set(id, undefined);
    }
  }

  /** Nodes of a flow attach in one turn of the event loop, so when it ends all are here. */
  handOutSoon(): void {
    this.#handingOut ??= setImmediate(() => {
      this.#handingOut = undefined;
      this.#handOut();
    });
  }

  #attached(channel: Channel): Map<string, Taker> {
    return this.#takers.get(channel) ?? new Map();
  }

  #isAttached([first]: readonly Undelivered[], taker: Taker): boolean {
    return first !== undefined && this.#attached(first.entry.channel).get(taker.id) === taker;
  }

  #give(
    list: readonly Undelivered[],
    takers: readonly Taker[],
    { asker, context }: Destination = {},
    isNew = false,
  ): void {
    if (list.length === 0) return;
    const entries = list.map(({ entry }) => entry);
    for (const taker of takers) for (const { owed } of list) owed.set(taker.id, taker);
    for (const taker of takers) {
      if (this.#isAttached(list, taker)) taker.take(entries, taker.id === asker ? context : undefined, isNew);
    }
  }

  /** Gives what nobody has in hand to the nodes that are here. */
  #handOut(): void {
    if (this.#isRollCall) {
      this.#absent.clear();
      clearTimeout(this.#absence);
    }
    const gifts = new Map<Taker, Undelivered[]>();
    for (const undelivered of this.#undelivered.values()) {
      if (undelivered.isReleased) continue;
      const heirs = this.#heirs(undelivered);
      if (heirs.some(({ countsAttempts }) => !countsAttempts)) this.#events.onAttempt(undelivered.entry);
      for (const taker of heirs) gifts.set(taker, [...(gifts.get(taker) ?? []), undelivered]);
    }
    this.#isRollCall = false;
    for (const [taker, list] of gifts) this.#give(list, [taker]);
  }

  /** Who is to get an entry now: nodes that were owed it and came back, else everybody it is for. */
  #heirs(undelivered: Undelivered): Taker[] {
    const { entry, owed, taken } = undelivered;
    const attached = this.#attached(entry.channel);
    const returned: Taker[] = [];
    let isInHand = false;
    const mayBeGone = this.#isRollCall && attached.size > 0;
    for (const [id, holder] of [...owed]) {
      const taker = attached.get(id);
      if (!taker && mayBeGone) owed.delete(id);
      else if (taker && taker === holder) isInHand = true;
      else if (taker) returned.push(taker);
    }
    if (returned.length > 0 || isInHand) return returned;
    if (taken > 0 && mayBeGone) {
      // Whoever else was owed it is not part of the flows any more.
      this.#events.onTaken(undelivered);
      return [];
    }
    const { address } = entry;
    const takers = [...attached.values()];
    if (address) return takers.filter(({ id, path }) => id === address.node || path === address.path);
    const watchers = takers.filter(({ onDemand }) => !onDemand);
    // What was asked for before a restart is not asked for again: the service has moved on.
    return watchers.length > 0 || owed.size > 0 ? watchers : takers.slice(0, 1);
  }
}
