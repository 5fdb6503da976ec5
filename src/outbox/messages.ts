import BTree from 'sorted-btree';
import { type PageQuery, pageOf } from '../page';
import type { End } from './expiry';
import { isKept, isTracked, type MessageItem, type MessageState } from './message-item';
import { firstValueOf, orderOf } from './order';

/**
 * The phases of an outgoing message in this process. Each phase lists the states that the message can have in the
 * store. `docs/architecture.md` shows the same table.
 */
export const phases = {
  /**
   * Waits until the store has accepted the message, or until the message with the same deduplication key has an
   * outcome.
   */
  accepting: [],
  /** Waits for its turn, for its node, or for the end of an outage. */
  queued: ['waiting'],
  /** Waits for its scheduled time, or for the end of quiet hours. */
  scheduled: ['waiting'],
  /** Waits for a while after an unknown outcome, before it is sent again. */
  paused: ['waiting'],
  /** A request is being made, but nothing has been sent yet. */
  connecting: ['waiting'],
  /** The state `leaving` is being written, or the message has been sent. */
  sending: ['leaving'],
  /** The account searches for evidence, because the outcome is unknown. */
  searching: ['leaving'],
  /** The store is writing the outcome, or the decision to send the message again. */
  settling: ['waiting', 'leaving', 'uncertain'],
  /** The outcome enters the flow, or waits for the node. */
  reporting: ['settled'],
  /** The unknown outcome has entered the flow. A user can send the message again, mark it as sent, or discard it. */
  undecided: ['uncertain'],
} as const satisfies Readonly<Record<string, readonly MessageState[]>>;

export type Phase = keyof typeof phases;

/** Number of messages in each phase. */
export type PhaseCounts = Record<Phase, number>;

const noMessages = Object.fromEntries(Object.keys(phases).map((phase) => [phase, 0])) as PhaseCounts;

/** An outgoing message, with everything that this process knows about it. */
export interface OutgoingMessage {
  readonly id: string;
  /** The message as the store has it or, if it is not stored, as the store would have it. */
  item: MessageItem;
  phase: Phase;
  /** Whether the message is stored until it is sent. */
  isKept: boolean;
  /** The counts and lists that include the message. Only {@link Messages} changes this. */
  listing: Listing;
  /** Whether a function is processing the message. If so, the outbox neither resumes nor forgets it. */
  isOwned: boolean;
  /** Place of the message in the queue. See `placeOf`. */
  place?: string | undefined;
  /** The key under which the message waits for its turn. Absent if it does not wait. */
  turn?: string | undefined;
  /** Time at which a scheduled message can be sent, in ms since 1970. */
  dueAt?: number | undefined;
  /** Time by {@link Clock.elapsed} until which a paused message waits, in ms. */
  pausedUntil?: number | undefined;
  /** Times until which the message waits. */
  end?: End;
  /** Aborts a request that was not sent yet. */
  abort?: AbortController | undefined;
}

const waitingPhases: readonly Phase[] = ['queued', 'scheduled', 'paused', 'connecting'];

/** The lists that users see: `kept` for stored messages that wait, `uncertain` for messages with an unknown outcome. */
export type MessageEntryState = 'kept' | 'uncertain';

/**
 * The list on which a user sees a message, and a time in ms since 1970: when the message arrived or its outcome became
 * unknown.
 */
export interface MessageEntryPlace {
  state: MessageEntryState;
  at: number;
}

/** The counts and lists that include a message. */
interface Listing {
  /**
   * The phase under which the message is counted. Absent if the message is not counted, because it is neither stored
   * until it is sent, nor in a search for evidence.
   */
  counted?: Phase | undefined;
  /** The list on which users see the message. */
  entry?: MessageEntryPlace | undefined;
  /** If the message is counted as scheduled, time at which it can be sent, in ms since 1970. */
  scheduledAt?: number | undefined;
}

/** Counts of a node, and its scheduled messages by due time and id. */
interface MessagesOfNode {
  counts: PhaseCounts;
  scheduled: BTree<string, OutgoingMessage>;
}

/** The outgoing messages of this process. Only this class knows the phase of each message. */
export class Messages {
  /** Ids of messages that wait and have a `replace` key. */
  readonly replaceable = new Set<string>();
  readonly #messages = new Map<string, OutgoingMessage>();
  /** Number of messages in each phase. {@link Listing.counted} explains which messages are counted. */
  readonly counts: PhaseCounts = { ...noMessages };
  readonly #byNode = new Map<string, MessagesOfNode>();
  /** Messages that a user can decide about, by time and id. */
  readonly #listed: Readonly<Record<MessageEntryState, BTree<string, OutgoingMessage>>> = {
    kept: new BTree(),
    uncertain: new BTree(),
  };

  get size(): number {
    return this.#messages.size;
  }

  /** Returns the message as of the last commit. */
  get(id: string): MessageItem | undefined {
    return this.#messages.get(id)?.item;
  }

  has(id: string): boolean {
    return this.#messages.has(id);
  }

  find(id: string): OutgoingMessage | undefined {
    return this.#messages.get(id);
  }

  values(): IterableIterator<OutgoingMessage> {
    return this.#messages.values();
  }

  /** Returns the {@link counts} of one node. */
  countsOf(node: string): Readonly<PhaseCounts> {
    return this.#byNode.get(node)?.counts ?? noMessages;
  }

  /** Returns the time at which the first scheduled message of a node can be sent, in ms since 1970. */
  nextAt(node: string): number | undefined {
    const { scheduled } = this.#byNode.get(node) ?? {};
    return scheduled && firstValueOf(scheduled)?.listing.scheduledAt;
  }

  /** Adds a message that the caller will process. */
  begin(item: MessageItem, phase: Phase): OutgoingMessage {
    const message: OutgoingMessage = { id: item.id, item, phase, isKept: isKept(item), listing: {}, isOwned: true };
    this.#messages.set(item.id, message);
    this.#list(message);
    return message;
  }

  /**
   * Adds or updates a message. Keeps its phase if the new state allows it. Otherwise, the message moves to the first
   * phase of the new state.
   */
  put(item: MessageItem): OutgoingMessage {
    const existing = this.#messages.get(item.id);
    const phase = existing && fits(existing.phase, item) ? existing.phase : firstPhaseOf(item);
    const current = { item, phase, isKept: isKept(item) };
    const message: OutgoingMessage = Object.assign(existing ?? { id: item.id, listing: {}, isOwned: false }, current);
    this.#messages.set(item.id, message);
    this.#list(message);
    return message;
  }

  /** Moves a message to another phase. */
  move(message: OutgoingMessage, phase: Phase): void {
    message.phase = phase;
    if (this.#messages.get(message.id) === message) this.#list(message);
  }

  /**
   * Puts a message into a phase while `write` runs. Afterwards, the message returns to its earlier phase, if that phase
   * still fits the state of the message.
   */
  async during<T>(id: string, phase: Phase, write: () => Promise<T>): Promise<T> {
    const message = this.#messages.get(id);
    if (!message) return write();
    const { phase: earlierPhase, isOwned } = message;
    this.move(message, phase);
    message.isOwned = true;
    try {
      return await write();
    } finally {
      message.isOwned = isOwned;
      const { item } = message;
      if (message.phase === phase) this.move(message, fits(earlierPhase, item) ? earlierPhase : firstPhaseOf(item));
    }
  }

  delete(id: string): void {
    const message = this.#messages.get(id);
    if (!message) return;
    this.#messages.delete(id);
    this.#list(message, true);
  }

  /** Whether a message waits, and can therefore still be stopped. */
  isWaiting(id: string): boolean {
    const message = this.#messages.get(id);
    return message !== undefined && waitingPhases.includes(message.phase);
  }

  /** Whether a message has no outcome yet. */
  isUnderWay(id: string): boolean {
    const { state } = this.get(id) ?? {};
    return state === 'waiting' || state === 'leaving';
  }

  /** Whether a message has an outcome that has not entered the flow yet. */
  isOutcomeComing(id: string): boolean {
    const message = this.#messages.get(id);
    return (
      message !== undefined &&
      (message.phase === 'reporting' || (message.phase === 'settling' && !isTracked(message.item)))
    );
  }

  /** Returns the number of messages on a list that users see. */
  countEntries(state: MessageEntryState): number {
    return this.#listed[state].size;
  }

  /** Time at which the oldest stored message arrived, in ms since 1970. */
  get oldestKeptAt(): number | undefined {
    return firstValueOf(this.#listed.kept)?.item.arrivedAt;
  }

  /** Returns a page of such a list, oldest message first. See {@link pageOf}. */
  page(state: MessageEntryState, { matches, ...page }: PageQuery<MessageItem>) {
    const listed = this.#listed[state];
    const isListed = (order: string): boolean => {
      const message = listed.get(order);
      return message !== undefined && matches?.(message.item) === true;
    };
    const query = { ...page, matches: matches && isListed };
    const { items, ...rest } = pageOf(listed.keys(), (order) => order, query);
    return { page: items.flatMap((order) => listed.get(order) ?? []), ...rest };
  }

  /** Updates the counts and the lists after a message has changed, or is gone. */
  #list(message: OutgoingMessage, isGone = false): void {
    const { id, item, phase, listing: before } = message;
    const counted = !isGone && (message.isKept || phase === 'searching') ? phase : undefined;
    const entry = isGone ? undefined : placeOfEntry(message);
    const scheduledAt = counted === 'scheduled' ? message.dueAt : undefined;
    message.listing = { counted, entry, scheduledAt };
    if (counted !== before.counted) {
      if (counted) this.#count(item.node, counted, 1);
      if (before.counted) this.#count(item.node, before.counted, -1);
    }
    if (entry?.state !== before.entry?.state || entry?.at !== before.entry?.at) {
      if (before.entry) this.#listed[before.entry.state].delete(orderOf(before.entry.at, id));
      if (entry) this.#listed[entry.state].set(orderOf(entry.at, id), message);
    }
    if (scheduledAt !== before.scheduledAt) {
      const scheduled = this.#byNode.get(item.node)?.scheduled;
      if (before.scheduledAt !== undefined) scheduled?.delete(orderOf(before.scheduledAt, id));
      if (scheduledAt !== undefined) scheduled?.set(orderOf(scheduledAt, id), message);
    }
    // A duplicate that still waits for the first message is not stored, so it cannot be replaced.
    const isStored = phase !== 'accepting' && item.state === 'waiting';
    if (isStored && !isGone && item.options.replaceKey !== undefined) this.replaceable.add(id);
    else this.replaceable.delete(id);
  }

  #count(node: string, phase: Phase, difference: number): void {
    const ofNode = this.#byNode.get(node) ?? {
      counts: { ...noMessages },
      scheduled: new BTree<string, OutgoingMessage>(),
    };
    ofNode.counts[phase] += difference;
    this.counts[phase] += difference;
    if (Object.values(ofNode.counts).every((count) => count === 0)) this.#byNode.delete(node);
    else this.#byNode.set(node, ofNode);
  }
}

function fits(phase: Phase, { state }: MessageItem): boolean {
  const states: readonly MessageState[] = phases[phase];
  return states.includes(state);
}

/** Returns the first phase of a message that was found in the store, or that a step moved to another state. */
function firstPhaseOf({ state }: MessageItem): Phase {
  if (state === 'waiting') return 'queued';
  if (state === 'leaving') return 'sending';
  return state === 'settled' ? 'reporting' : 'undecided';
}

/** Returns the list on which users see a message, or `undefined` if they do not see it. */
function placeOfEntry({ item, phase, isKept }: OutgoingMessage): MessageEntryPlace | undefined {
  const { state, arrivedAt, settledAt } = item;
  if (phase === 'accepting' || phase === 'searching') return undefined;
  if (state === 'waiting' || state === 'leaving') return isKept ? { state: 'kept', at: arrivedAt } : undefined;
  return state === 'uncertain' ? { state, at: settledAt ?? arrivedAt } : undefined;
}
