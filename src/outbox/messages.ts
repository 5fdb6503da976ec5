import type { Clock } from '../clock';
import { ClockSkew } from '../journal/clock-skew';
import { present } from '../wire/fields';
import { DueTimes } from './due-times';
import type { End } from './expiry';
import { formatOrder, OrderedMap } from './ordered-map';
import { isKept, isTracked, type Text, type TextState } from './text';

/**
 * The phases of an outgoing message in this process, each with the states in which the store can have the message. `docs/architecture.md` shows
 * the same table.
 */
export const phases = {
  /** The store is asked to take the message in, or the message waits for the one with its deduplication key. */
  takingIn: [],
  /** Waits for its turn, for its node, or for the end of an outage. */
  queued: ['waiting'],
  /** Waits for its time, or for the end of quiet hours. */
  scheduled: ['waiting'],
  /** Waits for a while after an unknown outcome, before it is sent again. */
  paused: ['waiting'],
  /** A request is made; nothing has left. */
  connecting: ['waiting'],
  /** The mark that it leaves is being written, or it has left. */
  sending: ['leaving'],
  /** The account searches for evidence, because the outcome is unknown. */
  searching: ['leaving'],
  /** Its outcome, or that it is sent again, is being written. */
  settling: ['waiting', 'leaving', 'uncertain'],
  /** The outcome enters the flow, or waits for the node. */
  reporting: ['settled'],
  /** The flow knows that the outcome is unknown, and a user can decide. */
  undecided: ['uncertain'],
} as const satisfies Readonly<Record<string, readonly TextState[]>>;

export type Phase = keyof typeof phases;

/** Numbers of messages by phase. */
export type PhaseCounts = Record<Phase, number>;

const noMessages = Object.fromEntries(Object.keys(phases).map((phase) => [phase, 0])) as PhaseCounts;

/** An outgoing message in this process, with all that is known of it here. */
export interface OutgoingMessage {
  readonly id: string;
  /** The message as it is in the store, or as it would be. */
  text: Text;
  phase: Phase;
  /** A caller brings the message on, even if the store is opened again in the meantime. */
  isOwned: boolean;
  /** Its place in the order of the queue. See `placeOf`. */
  place?: string | undefined;
  /** The key under which it waits for its turn, while it does. */
  turn?: string | undefined;
  /** When its time is over. */
  end?: End;
  /** Ends a request that has not left. */
  abort?: AbortController | undefined;
}

/** Time for which a user can decide about a message with an unknown outcome. */
const undecidedMs = 7 * 24 * 3_600_000;

const waitingPhases: readonly Phase[] = ['queued', 'scheduled', 'paused', 'connecting'];

/** A user can decide about stored messages that wait, and about messages with an unknown outcome. */
export type TextEntryState = 'kept' | 'uncertain';

/** How a message is listed, and since when: when it came, or when its outcome became unknown; in ms. */
export interface TextEntryPlace {
  state: TextEntryState;
  at: number;
}

/** The outgoing messages of this process: the one place that says where a message is now. */
export class Messages {
  /** Ids of messages that wait and have a key of `replace`. */
  readonly replaceable = new Set<string>();
  readonly #messages = new Map<string, OutgoingMessage>();
  /** Numbers of stored messages, and of all messages that are searched for. They are kept as messages change. */
  readonly counts: PhaseCounts = { ...noMessages };
  /** The same by node. */
  readonly #countsOf = new Map<string, PhaseCounts>();
  /** Ids of messages that a user can decide about, in the order of {@link orderOf}. */
  readonly #listed: Readonly<Record<TextEntryState, OrderedMap<string>>> = {
    kept: new OrderedMap(),
    uncertain: new OrderedMap(),
  };
  readonly #clock: Clock;
  readonly #decisions: DueTimes;

  /** @param onUndecided is called when no user has decided about a message in time */
  constructor(clock: Clock, onUndecided: (text: Text) => void) {
    this.#clock = clock;
    this.#decisions = new DueTimes(clock, 'elapsed', (id) => {
      const text = this.get(id);
      if (text) onUndecided(text);
    });
  }

  get size(): number {
    return this.#messages.size;
  }

  /** The message as the last commit left it. */
  get(id: string): Text | undefined {
    return this.#messages.get(id)?.text;
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

  /** The {@link counts} of one node. */
  countsOf(node: string): Readonly<PhaseCounts> {
    return this.#countsOf.get(node) ?? noMessages;
  }

  /** Adds a message that a caller brings on. */
  begin(text: Text, phase: Phase): OutgoingMessage {
    const message = this.put(text);
    message.isOwned = true;
    this.move(message, phase);
    return message;
  }

  /** Adds a message, or replaces an earlier state of it. A phase that does not fit its state changes. */
  put(text: Text): OutgoingMessage {
    const former = this.#messages.get(text.id);
    if (former) this.#uncount(former);
    const phase = former && fits(former.phase, text) ? former.phase : firstPhaseOf(text);
    const message: OutgoingMessage = Object.assign(former ?? { id: text.id, isOwned: false }, { text, phase });
    this.#messages.set(text.id, message);
    this.#count(message);
    return message;
  }

  /** A message enters another phase. */
  move(message: OutgoingMessage, phase: Phase): void {
    if (message.phase === phase) return;
    const isHere = this.#messages.get(message.id) === message;
    if (isHere) this.#uncount(message);
    message.phase = phase;
    if (isHere) this.#count(message);
  }

  /** A message is in a phase until `write` has settled, and then in the former one, unless that does not fit its state any longer. */
  async during<T>(id: string, phase: Phase, write: () => Promise<T>): Promise<T> {
    const message = this.#messages.get(id);
    if (!message) return write();
    const { phase: former, isOwned } = message;
    this.move(message, phase);
    message.isOwned = true;
    try {
      return await write();
    } finally {
      message.isOwned = isOwned;
      const { text } = message;
      if (message.phase === phase) this.move(message, fits(former, text) ? former : firstPhaseOf(text));
    }
  }

  delete(id: string): void {
    const message = this.#messages.get(id);
    if (!message) return;
    this.#uncount(message);
    this.#messages.delete(id);
  }

  /** Whether a message waits, so that it can still be stopped. */
  isWaiting(id: string): boolean {
    const message = this.#messages.get(id);
    return message !== undefined && waitingPhases.includes(message.phase);
  }

  /** Whether a message has no outcome yet. */
  isUnderWay(id: string): boolean {
    const { state } = this.get(id) ?? {};
    return state === 'waiting' || state === 'leaving';
  }

  /** Whether the outcome of a message is known, and has not entered the flow yet. */
  isOutcomeComing(id: string): boolean {
    const message = this.#messages.get(id);
    return (
      message !== undefined &&
      (message.phase === 'reporting' || (message.phase === 'settling' && !isTracked(message.text)))
    );
  }

  /** How a message is listed for a user, if so. */
  entry(id: string): TextEntryPlace | undefined {
    const message = this.#messages.get(id);
    return message && placeOfEntry(message);
  }

  /** Number of messages that a user can decide about. */
  countEntries(state: TextEntryState): number {
    return this.#listed[state].size;
  }

  /** Time of the oldest stored message, in ms. */
  get oldestKeptAt(): number | undefined {
    const { first = '' } = this.#listed.kept;
    return this.get(this.#listed.kept.get(first) ?? '')?.arrivedAt;
  }

  /**
   * A page of the messages that a user can decide about, the oldest first. `next` is the value of `after` for the next page, if there is one.
   *
   * @param after `next` of the page before, whether that message is still here or not; absent: from the first
   */
  page(state: TextEntryState, limit: number, after = '') {
    const listed = [...this.#listed[state].keys()].filter((order) => order > after).sort();
    const orders = listed.slice(0, limit);
    const page = orders.flatMap((order) => {
      const message = this.#messages.get(this.#listed[state].get(order) ?? '');
      const place = message && placeOfEntry(message);
      return place ? [{ text: message.text, place }] : [];
    });
    const next = listed.length > limit ? orders.at(-1) : undefined;
    return { page, total: this.countEntries(state), ...present({ next }) };
  }

  #count(message: OutgoingMessage): void {
    const { id, text, phase } = message;
    if (isCounted(message)) this.#add(text.node, phase, 1);
    const place = placeOfEntry(message);
    if (place) this.#listed[place.state].set(orderOf(place, id), id);
    if (text.state === 'waiting' && text.options.replaceKey !== undefined) this.replaceable.add(id);
    if (place?.state !== 'uncertain') return;
    const since = ClockSkew.of(this.#clock).timeOf(place.at);
    const leftMs = Math.min(undecidedMs, Math.max(0, since + undecidedMs - this.#clock.now()));
    this.#decisions.set(id, this.#clock.elapsed() + leftMs);
  }

  #add(node: string, phase: Phase, difference: number): void {
    const counts = this.#countsOf.get(node) ?? { ...noMessages };
    counts[phase] += difference;
    this.counts[phase] += difference;
    if (Object.values(counts).every((count) => count === 0)) this.#countsOf.delete(node);
    else this.#countsOf.set(node, counts);
  }

  #uncount(message: OutgoingMessage): void {
    const { id, text, phase } = message;
    if (isCounted(message)) this.#add(text.node, phase, -1);
    const place = placeOfEntry(message);
    if (place) this.#listed[place.state].delete(orderOf(place, id));
    this.replaceable.delete(id);
    this.#decisions.delete(id);
  }
}

function isCounted({ text, phase }: OutgoingMessage): boolean {
  return isKept(text) || phase === 'searching';
}

function fits(phase: Phase, { state }: Text): boolean {
  const states: readonly TextState[] = phases[phase];
  return states.includes(state);
}

/** The phase of a message that is found, or that a step has moved to another state. */
function firstPhaseOf({ state }: Text): Phase {
  if (state === 'waiting') return 'queued';
  if (state === 'leaving') return 'sending';
  return state === 'settled' ? 'reporting' : 'undecided';
}

function placeOfEntry({ text, phase }: OutgoingMessage): TextEntryPlace | undefined {
  const { state, arrivedAt, settledAt } = text;
  if (phase === 'takingIn' || phase === 'searching') return undefined;
  if (state === 'waiting' || state === 'leaving') return isKept(text) ? { state: 'kept', at: arrivedAt } : undefined;
  return state === 'uncertain' ? { state, at: settledAt ?? arrivedAt } : undefined;
}

/** Sorts entries by their times, and those of one time by their ids. */
function orderOf({ at }: TextEntryPlace, id: string): string {
  return formatOrder(at) + id;
}
