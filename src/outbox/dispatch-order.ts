import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError } from '../errors';
import { parseRetryAfter } from '../wire/retry-after';
import { NodeCounts } from './counts';
import { formatOutcome, parseOutcome, type StoredRespite } from './outgoing';

/** A kept text that waits, or is being tried. */
export interface Waiting {
  readonly id: string;
  readonly node: string;
  readonly priority: number;
  /** Its place among equals. See `SendQueue.arrive`. */
  readonly order: number;
  /** Ends a try that has not left. */
  abort: AbortController | undefined;
  /** It is in the queue, or has its turn. */
  isQueued: boolean;
  /** It is left alone for a while, after an outcome that was unknown. */
  pause?: Timer | undefined;
  /** The outage whose end it has waited for. */
  endured?: Endured;
}

/** Kept texts that wait or are being tried, found by id and counted by node. */
export class WaitingTexts {
  readonly #byId = new Map<string, Waiting>();
  readonly #all = new NodeCounts();
  readonly #tried = new NodeCounts();

  get size(): number {
    return this.#byId.size;
  }

  /** How many wait, and are not being tried. */
  get waiting(): number {
    return this.#byId.size - this.#tried.total;
  }

  /** All as they are now, in the order in which they came. */
  values(): Waiting[] {
    return [...this.#byId.values()];
  }

  /** How many a node has. */
  countOf(node: string): number {
    return this.#all.of(node);
  }

  /** How many of a node are being tried. */
  triedOf(node: string): number {
    return this.#tried.of(node);
  }

  get(id: string): Waiting | undefined {
    return this.#byId.get(id);
  }

  /** Whether it is this very one that is here, which may have gone and come again under the same id. */
  has(waiting: Waiting): boolean {
    return this.#byId.get(waiting.id) === waiting;
  }

  /** Adds one, in the place of one of the same id that has come before. */
  add(waiting: Waiting): void {
    const former = this.#byId.get(waiting.id);
    if (former) this.remove(former);
    this.#byId.set(waiting.id, waiting);
    this.#all.add(waiting.node, 1);
  }

  remove(waiting: Waiting): void {
    waiting.pause?.cancel();
    if (!this.has(waiting)) return;
    this.#byId.delete(waiting.id);
    this.#all.add(waiting.node, -1);
  }

  /** One more, or one less, of a node is being tried. */
  countTried(node: string, more: 1 | -1): void {
    this.#tried.add(node, more);
  }

  clear(): void {
    this.#byId.clear();
    this.#all.clear();
  }
}

/** What a dispatch order needs. */
export interface DispatchOrderOptions {
  clock: Clock;
  room: WaitingTexts;
  /** Called for each that waits, those first that are to leave first. */
  queueUp(waiting: Waiting): void;
}

/** Texts that queue up in one turn of the event loop. */
const mostInTurn = 1_000;

/**
 * Has kept texts that may leave together queue up in the order of priority and arrival: one by one, whoever comes first would
 * take a place that is free.
 */
export class DispatchOrder {
  readonly #options: DispatchOrderOptions;
  #timer: Timer | undefined;
  /** When the others queue up of the last that was held. */
  #turn: Timer | undefined;

  constructor(options: DispatchOrderOptions) {
    this.#options = options;
  }

  /** Whether one is to be held: nobody queues up until then. */
  get isCalled(): boolean {
    return this.#timer !== undefined;
  }

  /** Calls one for the next turn of the event loop: by then all nodes of a deployment are here. */
  call(): void {
    this.#timer ??= this.#options.clock.nextTurn(() => this.hold());
  }

  /** Holds one: those that are to leave first queue up at once, many others in the turns that follow. */
  hold(): void {
    this.cancel();
    // The room has them in the order of their arrival.
    const waiting = this.#options.room.values().filter(({ isQueued }) => !isQueued);
    this.#goOn(waiting.sort((a, b) => b.priority - a.priority).values());
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#turn?.cancel();
    this.#turn = undefined;
  }

  #goOn(waiting: Iterator<Waiting>): void {
    this.#turn = undefined;
    for (let count = 0; count < mostInTurn; count++) {
      const next = waiting.next();
      if (next.done) return;
      this.#options.queueUp(next.value);
    }
    this.#turn = this.#options.clock.nextTurn(() => this.#goOn(waiting));
  }
}

/** An outage that is over, or that nobody watches any more. */
export interface Endured {
  /** Nodes that know of it. */
  readonly told: Set<string>;
  /** What is found before that may be the same one. By {@link Clock.elapsed}. */
  readonly until: number;
}

/**
 * Until when the service wants to be left alone with kept texts (`Retry-After`), and who knows why. It outlives the account,
 * since a redeploy changes nothing of it, and the process with the texts that wait for its end.
 */
export class Respite {
  /** Nodes that know of the outage. */
  told = new Set<string>();
  /** An outage that the account was closed in. */
  endured: Endured | undefined;
  readonly #clock: Clock;
  #error: SmsError | undefined;
  /** By {@link Clock.elapsed}. */
  #until = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 when it is over. */
  get remainingMs(): number {
    return Math.max(0, this.#until - this.#clock.elapsed());
  }

  /** Why, while it lasts. */
  get error(): SmsError | undefined {
    return this.remainingMs > 0 ? this.#error : undefined;
  }

  /** What a later process is to know, while it lasts; not of credentials that were refused, which may be others then. */
  get stored(): StoredRespite | undefined {
    const { error, remainingMs } = this;
    if (!error || isSmsError(error, 'SMS_UNAUTHORIZED')) return undefined;
    return { at: this.#clock.now(), forMs: remainingMs, error: formatOutcome(error) };
  }

  /** A kept text has failed so: of several times that the service has named the latest counts. */
  heed(error: SmsError): void {
    this.#extend(parseRetryAfter(error.retryAfter ?? '', this.#clock.now()), error);
  }

  /** An earlier process has left this. The clock may have been set since: it never lasts longer than the service wanted. */
  recall({ at, forMs, error }: StoredRespite): void {
    const outcome = parseOutcome(error);
    if (outcome instanceof SmsError) this.#extend(Math.min(forMs, at + forMs - this.#clock.now()), outcome);
  }

  end(): void {
    this.#until = 0;
  }

  #extend(forMs: number, error: SmsError): void {
    if (!(forMs > this.remainingMs)) return;
    this.#until = this.#clock.elapsed() + forMs;
    this.#error = error;
  }
}
