import { type Clock, longestDeploymentMs, type Timer } from '../clock';
import { type Channel, nameTakers } from '../inbox/entry';
import type { Undelivered } from '../inbox/undelivered';
import type { Kind } from '../model';
import type { Taker } from './taker';

/** Whom records are for: everybody on their channel, unless it says more. */
export interface Destination {
  /** Via callback: who was called. Only that node gets them. */
  address?: { node: string; path: string };
  /** A node on demand that asked for them, and what it wants to be told with them. */
  asker?: string;
  context?: unknown;
}

/** Knows the nodes of each channel: who is here, and who was taken away and may come back. */
export class Attendance {
  readonly #clock: Clock;
  readonly #onRollCall: () => void;
  readonly #takers = new Map<Channel, Map<string, Taker>>();
  /**
   * Nodes that were taken away and may be back after a redeploy, which must not make them miss what others get, or what is theirs. Each
   * with how many nodes had come by then.
   */
  readonly #absent = new Map<Channel, Map<string, number>>();
  /** How often a node has come. */
  #comings = 0;
  #absence: Timer | undefined;
  #isRollCallDue = false;

  /** @param onRollCall nodes have come, or were away for too long: {@link callRoll} is to be called when all are here */
  constructor(clock: Clock, onRollCall: () => void) {
    this.#clock = clock;
    this.#onRollCall = onRollCall;
  }

  attach(channel: Channel, taker: Taker): void {
    this.#takers.set(channel, (this.#takers.get(channel) ?? new Map()).set(taker.id, taker));
    this.#comings++;
    this.#wantRollCall();
  }

  detach(channel: Channel, taker: Taker): void {
    if (!this.isHere(channel, taker)) return;
    this.#takers.get(channel)?.delete(taker.id);
    if (taker.onDemand) return;
    const absent = this.#absent.get(channel) ?? new Map<string, number>();
    this.#absent.set(channel, absent.set(taker.id, this.#comings));
    this.#absence?.cancel();
    this.#absence = this.#clock.after(
      longestDeploymentMs,
      () => {
        this.#comings++;
        this.#wantRollCall();
      },
      true,
    );
  }

  /** Nodes on a channel, by id. */
  here(channel: Channel): ReadonlyMap<string, Taker> {
    return this.#takers.get(channel) ?? new Map();
  }

  /** The nodes of a channel that may come back, by id. */
  away(channel: Channel): ReadonlyMap<string, unknown> {
    return this.#absent.get(channel) ?? new Map();
  }

  /** Whether this very node, and not a redeployed one in its place, is on a channel. */
  isHere(channel: Channel, taker: Taker): boolean {
    return this.here(channel).get(taker.id) === taker;
  }

  hasTakers(channel: Channel): boolean {
    return this.here(channel).size > 0;
  }

  /** Whether somebody takes what comes on a channel, or is being redeployed. */
  expects(channel: Channel): boolean {
    return this.hasTakers(channel) || this.away(channel).size > 0;
  }

  /** The kinds that somebody who is here polls for. */
  get takenKinds(): Kind[] {
    const kinds: Kind[] = [];
    for (const [channel, { size }] of this.#takers) if (channel !== 'callback' && size > 0) kinds.push(channel);
    return kinds;
  }

  /** Names of those that are called back, as in `Item.takers`. */
  get calledNames(): string[] {
    return [...this.here('callback').values()].flatMap(({ id, path }) => nameTakers({ node: id, path }));
  }

  /** The nodes that what comes now is for. */
  audience(channel: Channel, { address, asker }: Destination): Taker[] {
    const takers = [...this.here(channel).values()];
    if (address) return takers.filter(({ id }) => id === address.node);
    return takers.filter(({ id, onDemand }) => !onDemand || id === asker);
  }

  /** Who gets what a node has not taken: itself, or the first that answers its path. */
  heirOf(channel: Channel, { node, path }: NonNullable<Destination['address']>): Taker | undefined {
    const here = this.here(channel);
    return here.get(node) ?? [...here.values()].find((taker) => taker.path === path);
  }

  /** Whether nobody who is here, or may come back, is to get a called-back entry, and no other inbox has it in hand. */
  isStranded({ entry: { channel, address }, owed, isHandedOver }: Undelivered): boolean {
    if (!address || isHandedOver || this.heirOf(channel, address)) return false;
    const [here, away] = [this.here(channel), this.away(channel)];
    return ![address.node, ...owed.keys()].some((id) => here.has(id) || away.has(id));
  }

  /**
   * Says whether nodes have come since the last roll call, or were away for too long: then whoever is not here now is not
   * part of the flows any more.
   */
  callRoll(): boolean {
    const isDue = this.#isRollCallDue;
    if (isDue) {
      for (const absent of this.#absent.values()) {
        // Who was taken away since the last node came is being redeployed.
        for (const [id, comings] of absent) if (comings < this.#comings) absent.delete(id);
      }
      if (![...this.#absent.values()].some(({ size }) => size > 0)) this.#absence?.cancel();
    }
    this.#isRollCallDue = false;
    return isDue;
  }

  #wantRollCall(): void {
    this.#isRollCallDue = true;
    this.#onRollCall();
  }
}
