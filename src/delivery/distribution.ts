import type { Clock, Timer } from '../clock';
import type { Entry } from '../inbox/entry';
import type { Undelivered, UndeliveredEntries } from '../inbox/undelivered';
import type { Unread } from '../inbox/unread';
import { Attendance, type Destination } from './attendance';
import { type Gift, Gifts } from './gifts';
import type { Taker } from './taker';

/** What a distribution tells. */
export interface DistributionEvents {
  /** An entry is given to somebody, for whom it is this attempt. */
  onAttempt(entry: Entry, attempt: number): void;
  /** All who are still part of the flows have taken an entry. */
  onTaken(undelivered: Undelivered): void;
  /** Somebody here takes the polled copy of a called-back entry that nobody is to get any more. */
  onStranded(undelivered: Undelivered): void;
  /** Resolves when what was handed out until now is written down; must not reject. */
  written(): Promise<void>;
  /** A node threw as it was given what it had not asked for. */
  onFault(error: unknown): void;
  /** Some have been handed out, or could have been. */
  onHandedOut(): void;
}

/** Entries handed out in one turn of the event loop. */
const sliceSize = 250;

/** One going through of all that is undelivered, a slice at a turn. */
interface Round {
  list: Undelivered[];
  next: number;
  /** Nodes had come since the last: whoever is neither here nor away for a redeploy is not part of the flows any more. */
  isRollCall: boolean;
}

/**
 * Gives nodes the undelivered entries: what has just come at once, and what nobody has in hand when nodes come, or come
 * back after a redeploy.
 */
export class Distribution {
  /** Who is here to be given something. */
  readonly attendance: Attendance;
  readonly #undelivered: UndeliveredEntries;
  readonly #events: DistributionEvents;
  readonly #clock: Clock;
  readonly #gifts: Gifts;
  #handingOut: Timer | undefined;
  #round: Round | undefined;
  #isRoundWanted = false;
  #isWriting = false;

  constructor(undelivered: UndeliveredEntries, unread: Unread, events: DistributionEvents, clock: Clock) {
    this.#gifts = new Gifts(undelivered, unread);
    this.attendance = new Attendance(clock, () => this.handOutSoon());
    this.#undelivered = undelivered;
    this.#events = events;
    this.#clock = clock;
  }

  /**
   * Gives what has just been saved to those it was saved for; who was redeployed meanwhile gets it when back. While older
   * entries are being handed out, or are not read yet, it waits behind them. More than a slice is handed out as those are.
   *
   * @throws what the first node threw, when all have been given it and it did not have to wait
   */
  giveNew(fresh: readonly Undelivered[], audience: readonly Taker[], destination: Destination = {}): void {
    const [first] = fresh;
    if (!first) return;
    const { channel } = first.entry;
    const gift = { fresh, audience, destination };
    const isBehind = this.#round !== undefined || this.#gifts.areBefore(channel);
    const isMuch = fresh.length > sliceSize;
    if (isBehind || isMuch) this.#gifts.add(channel, gift, sliceSize);
    else this.#giveNew(gift);
    if (isMuch && !isBehind) this.#goOnNextTurn();
  }

  /** See {@link Gifts.slicesGiven}. */
  get slicesGiven(): Promise<void> | undefined {
    return this.#gifts.slicesGiven;
  }

  /** Nodes of a flow attach in one turn of the event loop, so when it ends all are here. */
  handOutSoon(): void {
    this.#isRoundWanted = true;
    this.#goOnNextTurn();
  }

  /** Whatever comes from now on waits behind what is undelivered. */
  handOutFirst(): void {
    this.#round ??= this.#beginRound();
    this.handOutSoon();
  }

  /** Hands out what has been read from the store, after what is being handed out. */
  handOutRead(read: readonly Undelivered[]): void {
    this.#round ??= createRound();
    this.#round.list = [...this.#round.list.slice(this.#round.next), ...read];
    this.#round.next = 0;
    this.#goOnNextTurn();
  }

  #giveNew(gift: Gift): void {
    const { fresh, audience, destination } = gift;
    const [first] = fresh;
    if (!first) return;
    // Nodes may have come, gone or been redeployed while it was being saved.
    const present = this.attendance.audience(first.entry.channel, destination);
    // Whoever was here as it was being saved was counted then.
    const counted = audience.length > 0 ? 1 : 0;
    if (present.length === 0 && this.attendance.hasTakers(first.entry.channel)) this.handOutSoon();
    for (const undelivered of fresh) {
      const { entry } = undelivered;
      undelivered.firstAttempt = entry.attempts - counted + 1;
      if (present.length > 0) this.#events.onAttempt(entry, undelivered.firstAttempt);
      else entry.attempts -= counted;
      if (!destination.address) this.#oweToAbsent(undelivered);
      for (const { id } of audience) undelivered.owed.set(id, undefined);
      for (const taker of present) owe(undelivered, taker, undelivered.firstAttempt);
    }
    this.#give(fresh, present, gift);
  }

  /** @throws what the first node threw, when all have been given it */
  #give(
    list: readonly Undelivered[],
    takers: readonly Taker[],
    { destination: { asker, context } = {}, slice }: Partial<Gift> = {},
  ): void {
    const entries = list.map(({ entry }) => entry);
    const [first] = entries;
    const faults: unknown[] = [];
    for (const taker of takers) {
      if (!first || !this.attendance.isHere(first.channel, taker)) continue;
      try {
        taker.take(entries, taker.id === asker ? context : undefined, slice);
      } catch (error) {
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }

  #oweToAbsent({ entry, owed }: Undelivered): void {
    for (const id of this.attendance.away(entry.channel).keys()) owed.set(id, undefined);
  }

  /** Gives a slice of what nobody has in hand to the nodes that are here, and the rest in the turns that follow. */
  #handOut(): void {
    // Whoever has come since gets all in order, too.
    if (this.#isRoundWanted) this.#round = this.#beginRound();
    this.#round ??= createRound();
    const round = this.#round;
    let hasGiven = false;
    if (round.next < round.list.length) {
      hasGiven = this.#handOutSlice(round);
    } else {
      const gift = this.#gifts.take();
      if (gift) this.#attempt(() => this.#giveNew(gift));
    }
    const isRest = round.next < round.list.length;
    this.#gifts.settle();
    if (!isRest && !this.#gifts.hasNext && !this.#isRoundWanted) this.#round = undefined;
    else if (isRest && hasGiven) this.#goOnWhenWritten();
    else this.#goOnNextTurn();
    this.#events.onHandedOut();
  }

  /** What is handed out faster than it can be written would all wait in memory. */
  #goOnWhenWritten(): void {
    this.#isWriting = true;
    void this.#events.written().then(() => {
      this.#isWriting = false;
      this.#goOnNextTurn();
    });
  }

  #goOnNextTurn(): void {
    if (this.#isWriting) return;
    this.#handingOut ??= this.#clock.nextTurn(() => {
      this.#handingOut = undefined;
      this.#handOut();
    });
  }

  #beginRound(): Round {
    const isRollCall = this.attendance.callRoll();
    this.#isRoundWanted = false;
    const promised = this.#gifts.fresh;
    const list = this.#undelivered.values().filter((undelivered) => !promised.has(undelivered));
    return { ...createRound(), list, isRollCall };
  }

  /** Returns whether anybody was given anything. */
  #handOutSlice(round: Round): boolean {
    const slice = round.list.slice(round.next, round.next + sliceSize);
    round.next += sliceSize;
    const gifts = new Map<Taker, Undelivered[]>();
    for (const undelivered of slice) {
      if (undelivered.isReleased || this.#undelivered.get(undelivered.entry.id) !== undelivered) continue;
      const heirs = this.#heirs(undelivered, round.isRollCall);
      const { entry, owed, firstAttempt } = undelivered;
      const nextAttempt = entry.attempts + 1;
      // The service may bring the called-back one again for its node, but not the polled copy.
      if (entry.twin && this.attendance.hasTakers(entry.kind) && this.attendance.isStranded(undelivered)) {
        this.#events.onStranded(undelivered);
      }
      for (const taker of heirs) {
        // Of what another inbox has in hand nobody here knows whom it has given it to.
        const wasAway = owed.has(taker.id) && owed.get(taker.id) === undefined && !undelivered.isHandedOver;
        const attempt = wasAway ? firstAttempt : nextAttempt;
        // Before any of them is given it: the first may be done with it at once.
        owe(undelivered, taker, attempt);
        if (!taker.countsAttempts) this.#events.onAttempt(entry, attempt);
        const gift = gifts.get(taker);
        if (gift) gift.push(undelivered);
        else gifts.set(taker, [undelivered]);
      }
    }
    for (const [taker, list] of gifts) this.#attempt(() => this.#give(list, [taker]));
    return gifts.size > 0;
  }

  #attempt(give: () => void): void {
    try {
      give();
    } catch (error) {
      this.#events.onFault(error);
    }
  }

  /** Who is to get an entry now: nodes that were owed it and came back, else everybody it is for. */
  #heirs(undelivered: Undelivered, isRollCall: boolean): Taker[] {
    const { entry, owed, taken } = undelivered;
    const attached = this.attendance.here(entry.channel);
    const absent = this.attendance.away(entry.channel);
    const returned: Taker[] = [];
    let isInHand = false;
    const mayBeGone = isRollCall && attached.size > 0;
    for (const [id, share] of [...owed]) {
      const taker = attached.get(id);
      if (!taker && mayBeGone && !absent.has(id)) owed.delete(id);
      else if (taker && taker === share?.taker) isInHand = true;
      else if (taker) returned.push(taker);
    }
    if (returned.length > 0 || isInHand) return returned;
    if (taken > 0) {
      // Whoever else was owed it is not part of the flows any more, or may come back.
      if (owed.size === 0) this.#events.onTaken(undelivered);
      return [];
    }
    const { address } = entry;
    if (address) {
      const heir = this.attendance.heirOf(entry.channel, address);
      return heir ? [heir] : [];
    }
    const takers = [...attached.values()];
    const watchers = takers.filter(({ onDemand }) => !onDemand);
    // What was asked for before a restart is not asked for again: the service has moved on.
    if (watchers.length === 0 && owed.size === 0) return takers.slice(0, 1);
    if (watchers.length > 0) this.#oweToAbsent(undelivered);
    return watchers;
  }
}

function createRound(): Round {
  return { list: [], next: 0, isRollCall: false };
}

function owe({ owed }: Undelivered, taker: Taker, attempt: number): void {
  owed.set(taker.id, { taker, attempt });
}
