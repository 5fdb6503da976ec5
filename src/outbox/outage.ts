import type { Clock, Timer } from '../clock';
import { isSmsError, type SmsError } from '../errors';
import { backOffMs } from '../polling/back-off';
import type { Endured, Respite, Waiting, WaitingTexts } from './dispatch-order';
import type { StoredRespite } from './outgoing';
import type { Schedule } from './schedule';
import type { SendHandler } from './send-handler';

/** The service cannot be reached or used. */
export interface SendFailure {
  error: SmsError;
  /** ms */
  since: number;
  /** When the next text tries, in ms; absent: one is trying now. */
  nextTryAt?: number;
}

/** What an outage needs. */
export interface OutageOptions {
  clock: Clock;
  /** Nobody tries before it is over, but by hand. */
  respite: Respite;
  /** One text may try again. */
  onDue(): void;
}

/** An outage, from the first text that found the service out of reach until one gets through. */
export class Outage {
  /** Id of the text that tries. */
  probe: string | undefined;
  readonly #options: OutageOptions;
  readonly #begunAt: number;
  #error: SmsError;
  #failures = 0;
  /** By {@link Clock.elapsed}, as far as it is not the service's wish. */
  #dueAt = 0;
  #timer: Timer | undefined;

  constructor(options: OutageOptions, error: SmsError) {
    this.#options = options;
    this.#error = error;
    this.#begunAt = options.clock.elapsed();
  }

  get error(): SmsError {
    return this.#error;
  }

  get state(): SendFailure {
    const { clock } = this.#options;
    const now = clock.now();
    const failure = { error: this.#error, since: now - (clock.elapsed() - this.#begunAt) };
    return this.probe === undefined ? { ...failure, nextTryAt: now + this.delayMs } : failure;
  }

  /** How long nobody is to try. */
  get delayMs(): number {
    const { clock, respite } = this.#options;
    return Math.max(0, this.#dueAt - clock.elapsed(), respite.remainingMs);
  }

  /** A try has failed: the next one comes after a growing delay, and not before the service wants it. */
  failed(error: SmsError): void {
    const { clock } = this.#options;
    this.#error = error;
    this.#failures++;
    this.#dueAt = clock.elapsed() + backOffMs(this.#failures, clock.random(), isSmsError(error, 'SMS_UNAUTHORIZED'));
    this.wait();
  }

  /** Says when one text may try. */
  wait(): void {
    const { clock, onDue } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.after(Math.ceil(this.delayMs), onDue, true);
  }

  /** Has a text try without waiting any longer. */
  tryNow(id: string): void {
    this.#dueAt = 0;
    this.probe = id;
  }

  end(): void {
    this.#timer?.cancel();
  }
}

/** What a watch over outages needs. */
export interface OutageWatchOptions {
  clock: Clock;
  room: WaitingTexts;
  /** Those of them that may not leave yet, whatever the service says. */
  schedule: Pick<Schedule, 'has' | 'countOf'>;
  /** What the service wants, whatever outage it is. */
  respite: Respite;
  handlerOf(node: string): SendHandler | undefined;
  /** A text is the one that tries now. */
  onProbe(waiting: Waiting): void;
  /** The service has answered: whoever waited for that may go on. */
  onEnd(): void;
}

/** Who has waited through an outage takes what it finds so soon after its end, or since nobody has watched it, for the same one. */
const relapseMs = 60_000;

/** Knows whether the service is out of reach; chooses then which text tries, and tells each node once. */
export class OutageWatch {
  readonly #options: OutageWatchOptions;
  #outage: Outage | undefined;

  constructor(options: OutageWatchOptions) {
    this.#options = options;
    this.open();
  }

  /** Why the service was out of reach the last time, if it is. */
  get error(): SmsError | undefined {
    return this.#outage?.error;
  }

  get failing(): SendFailure | undefined {
    return this.#outage?.state;
  }

  /** Whether a text may try now: any while there is no outage. */
  lets({ id }: Waiting): boolean {
    return !this.#outage || this.#outage.probe === id;
  }

  /** Has a text try at once, unless another is about to. */
  hasten({ id }: Waiting): void {
    if (this.#outage?.probe === undefined) this.#outage?.tryNow(id);
  }

  /** A text has found the service out of reach. */
  failed(waiting: Waiting, error: SmsError): void {
    const { room, schedule } = this.#options;
    const before = this.error;
    if (!this.#outage) this.#begin(waiting, error);
    else if (this.#outage.probe === waiting.id) this.#outage.failed(error);
    this.tell(waiting.node);
    // What the store has begun the service goes on with.
    if (before?.code === 'SMS_STORE') for (const { node, id } of room.values()) if (!schedule.has(id)) this.tell(node);
  }

  /** The turn of a text is over. If it was to try and has found out nothing, another tries. */
  turnOver({ id }: Waiting): void {
    if (this.#outage?.probe !== id) return;
    this.#outage.probe = undefined;
    // Unless it has failed, and another is to try later.
    this.#tryOne();
  }

  /**
   * The service has answered a text, which ends the outage. Not so one that left before it began, nor one that was sent by hand
   * before the service wanted it.
   */
  answered({ id }: Waiting): void {
    const { room, respite, handlerOf, onEnd } = this.#options;
    if (!this.#outage) respite.endured = undefined;
    if (this.#outage?.probe !== id || respite.remainingMs > 0) return;
    const endured = this.#endure();
    for (const waiting of room.values()) if (handlerOf(waiting.node)) waiting.endured = endured;
    this.#forget();
    onEnd();
  }

  /** Tells a node, unless it knows. That the store fails is told apart from this, whether anything waits or not. */
  tell(node: string): void {
    const { handlerOf, room, schedule, respite } = this.#options;
    const listener = handlerOf(node);
    if (!this.#outage || this.#outage.error.code === 'SMS_STORE' || !listener || respite.told.has(node)) return;
    respite.told.add(node);
    listener.onOutage(this.#outage.error.with({ waiting: room.countOf(node) - schedule.countOf(node) }));
  }

  /** The account is closed, and may be back in a moment, as in a redeploy: with other credentials, where these were refused. */
  close(): void {
    const { error } = this;
    if (error && !isSmsError(error, 'SMS_UNAUTHORIZED')) this.#options.respite.endured = this.#endure();
    this.#forget();
  }

  /** Goes on after {@link close} with what the service wanted by then. */
  open(): void {
    const { respite } = this.#options;
    const { error } = respite;
    // The credentials may be others now.
    if (isSmsError(error, 'SMS_UNAUTHORIZED')) respite.end();
    else if (error) {
      this.#outage = this.#create(error);
      this.#outage.wait();
    }
  }

  /** An earlier process knew what the service wants. */
  recall(stored: StoredRespite): void {
    this.#options.respite.recall(stored);
    if (!this.#outage) this.open();
  }

  #begin(waiting: Waiting, error: SmsError): void {
    const { clock, respite } = this.#options;
    const endured = waiting.endured ?? respite.endured;
    respite.endured = undefined;
    respite.told = endured && clock.elapsed() < endured.until ? endured.told : new Set();
    this.#outage = this.#create(error);
    this.#outage.failed(error);
  }

  #endure(): Endured {
    const { clock, respite } = this.#options;
    return { told: respite.told, until: clock.elapsed() + relapseMs };
  }

  /** The next text finds out for itself. */
  #forget(): void {
    this.#outage?.end();
    this.#outage = undefined;
  }

  #create(error: SmsError): Outage {
    const { clock, respite } = this.#options;
    return new Outage({ clock, respite, onDue: () => this.#tryOne() }, error);
  }

  /** The one that would leave first. */
  #tryOne(): void {
    const outage = this.#outage;
    if (!outage || outage.probe !== undefined) return;
    if (outage.delayMs > 0) {
      outage.wait();
      return;
    }
    let first: Waiting | undefined;
    const { room, schedule, handlerOf } = this.#options;
    for (const waiting of room.values()) {
      // What is being tried left before the outage began.
      if (waiting.pause || waiting.abort || schedule.has(waiting.id) || !handlerOf(waiting.node)) continue;
      if (!first || waiting.priority > first.priority) first = waiting;
    }
    if (!first) {
      this.#forget();
      return;
    }
    outage.probe = first.id;
    this.#options.onProbe(first);
  }
}
