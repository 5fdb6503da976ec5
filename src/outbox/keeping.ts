import type { Clock } from '../clock';
import { asSmsError, isSmsError, type SmsError } from '../errors';
import type { QuietHours } from '../message/times';
import { backOffMs } from '../polling/back-off';
import type { Absences } from './absences';
import { Batched } from './batched';
import { UnderWay } from './counts';
import { DispatchOrder, type Respite, type Waiting, WaitingTexts } from './dispatch-order';
import { mayLeaveAt } from './due';
import { createExpired, Expiries } from './expiry';
import { isWithheldError, TooEarly } from './gate';
import type { Ledger } from './ledger';
import { OutageWatch, type SendFailure } from './outage';
import { isOutage, isUnknown, type Sent, type Text } from './outgoing';
import type { SendQueue, Turn } from './queue';
import { Schedule } from './schedule';
import type { SendHandler } from './send-handler';

/** What kept texts need. */
export interface KeepingOptions {
  clock: Clock;
  absences: Absences;
  queue: SendQueue;
  ledger: Ledger;
  respite: Respite;
  /** See {@link RuleSettings}. */
  quietHours(): readonly QuietHours[];
  handlerOf(node: string): SendHandler | undefined;
  /** Sends a text, marking in the ledger that it leaves. Rejects as `Client.send` does; `abort` ends one that has not left. */
  attempt(text: Text, handler: SendHandler, abort: AbortController): Promise<Sent>;
  /** It has an outcome, other than an unknown one. */
  onEnded(text: Text, outcome: Sent | SmsError): void;
  onUnknown(text: Text, error: SmsError): void;
  /** Its node has not been here for too long. */
  onAbandoned(text: Text): void;
  onState(node: string): void;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

/**
 * Texts that are kept until they are sent: each waits for its turn in the queue, or, while the service is out of reach,
 * for the outage to end, which one of them tries from time to time.
 */
export class KeptTexts {
  readonly #options: KeepingOptions;
  readonly #room = new WaitingTexts();
  readonly #outages: OutageWatch;
  readonly #expiries: Expiries;
  readonly #dispatchOrder: DispatchOrder;
  /** Those that may not leave yet. */
  readonly #schedule: Schedule;
  readonly #tries = new UnderWay();
  #isOpen = true;

  constructor(options: KeepingOptions) {
    this.#options = options;
    this.#expiries = new Expiries(options, (id) => this.#expire(id));
    const batched = new Batched(options.clock);
    this.#schedule = new Schedule(options.clock, (waiting) => batched.run(() => this.#queueUp(waiting)));
    this.#dispatchOrder = new DispatchOrder({
      clock: options.clock,
      room: this.#room,
      queueUp: (waiting) => this.#queueUp(waiting),
    });
    this.#outages = new OutageWatch({
      clock: options.clock,
      room: this.#room,
      schedule: this.#schedule,
      respite: options.respite,
      handlerOf: options.handlerOf,
      onProbe: (waiting) => this.#queueUp(waiting),
      onEnd: () => this.#dispatchOrder.hold(),
    });
  }

  /** Texts that wait to be tried, for which it is time. */
  get waiting(): number {
    return this.#room.waiting - this.#schedule.size;
  }

  /** Texts that may not leave yet. */
  get scheduled(): number {
    return this.#schedule.size;
  }

  /** When a text may leave, in ms since 1970, if that is not yet. */
  dueAt(id: string): number | undefined {
    return this.#schedule.dueAt(id);
  }

  /** Why those that wait do not leave, while there is an outage. */
  get failing(): SendFailure | undefined {
    return this.#room.size > 0 ? this.#outages.failing : undefined;
  }

  /** Whether one that comes now has to wait, though there may be a place in the queue. */
  get isHeld(): boolean {
    return this.#outages.error !== undefined || this.#dispatchOrder.isCalled;
  }

  /** How many texts of a node are being tried, how many wait, and why if there is an outage. */
  stateOf(node: string): {
    sending: number;
    waiting: number;
    nextAt: number | undefined;
    outage: SmsError | undefined;
  } {
    const all = this.#room.countOf(node);
    const sending = this.#room.triedOf(node);
    // One that nobody wants any more is tried to its end.
    const waiting = Math.max(0, all - sending);
    const isHeldUp = all > this.#schedule.countOf(node);
    return {
      sending,
      waiting,
      nextAt: this.#schedule.nextOf(node),
      outage: isHeldUp ? this.#outages.error : undefined,
    };
  }

  /**
   * Has a text of the ledger wait here, unless this is closed: then whoever opens it finds the text in the ledger.
   *
   * @param repeats how often its outcome has been unknown: after that it waits for a while before it is sent again
   * @param hasCompany others come in the same turn of the event loop, and it leaves before or after them as its priority says
   */
  admit(text: Text, repeats = 0, hasCompany = false): void {
    if (!this.#isOpen) return;
    const { id, node } = text;
    const order = this.#options.queue.arrive();
    const waiting: Waiting = { id, node, priority: text.options.priority, order, abort: undefined, isQueued: false };
    this.#room.add(waiting);
    this.#expiries.watch(text);
    if (text.respite) this.#outages.recall(text.respite);
    if (this.#defer(waiting, text)) return;
    if (hasCompany) this.#dispatchOrder.call();
    if (repeats === 0) {
      this.#queueUp(waiting);
      return;
    }
    const { clock } = this.#options;
    waiting.pause = clock.after(backOffMs(repeats, clock.random()), () => {
      waiting.pause = undefined;
      this.#queueUp(waiting);
    });
  }

  /** Texts may leave earlier or later than they might before, and be given up so. */
  quietHoursChanged(): void {
    const { texts } = this.#options.ledger;
    for (const waiting of this.#room.values()) {
      const text = texts.get(waiting.id);
      if (!text) continue;
      this.#expiries.watch(text);
      if (this.#schedule.has(waiting.id) && !this.#defer(waiting, text)) this.#queueUp(waiting);
    }
  }

  /** Whether a text is being tried, as it may be still when this has been opened again. */
  isTried(id: string): boolean {
    return this.#room.get(id)?.abort !== undefined;
  }

  /** A node has come or gone: its texts may leave, or wait for so long from now on. */
  nodeChanged(node: string): void {
    this.#expiries.nodeChanged(node);
    if (this.#options.handlerOf(node) && this.#room.countOf(node) > 0) this.#dispatchOrder.call();
  }

  /**
   * Tries a text now, whatever it waits for; when there is no place, or the pace is not due, as the next one. Says whether it can:
   * not what is being tried, nor what is not here since it waits for another text, or has left and its outcome is not known yet.
   */
  sendNow(id: string): boolean {
    const waiting = this.#room.get(id);
    const text = this.#options.ledger.texts.get(id);
    if (!waiting || waiting.abort || !text) return false;
    waiting.pause?.cancel();
    waiting.pause = undefined;
    this.#schedule.remove(id);
    this.#expiries.watch(text);
    this.#outages.hasten(waiting);
    this.#queueUp(waiting);
    this.#options.queue.hasten(waiting.order);
    return true;
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    const waiting = this.#room.get(id);
    const { texts } = this.#options.ledger;
    if (texts.has(id) && !texts.isWaiting(id)) return false;
    // Nothing is tried then.
    if (!waiting) return !this.#isOpen && texts.has(id);
    this.#forget(waiting);
    waiting.abort?.abort();
    return true;
  }

  /** Makes no further try. Resolves when what is being tried has ended, or is followed no longer; what waits is in the ledger. */
  async close(graceMs: number): Promise<void> {
    this.#isOpen = false;
    this.#dispatchOrder.cancel();
    this.#outages.close();
    this.#expiries.clear();
    this.#schedule.clear();
    for (const { pause } of this.#room.values()) pause?.cancel();
    const followed = this.#options.clock.after(graceMs, () => {
      for (const { abort } of this.#room.values()) abort?.abort();
    });
    await this.#tries.idle();
    followed.cancel();
    if (this.#isOpen) return;
    this.#room.clear();
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#isOpen = true;
    this.#outages.open();
  }

  /** Has a text wait for its time, if that is yet to come. */
  #defer(waiting: Waiting, text: Text): boolean {
    const { clock, quietHours, onState } = this.#options;
    const now = clock.now();
    const dueAt = mayLeaveAt(text, now, quietHours());
    const former = this.#schedule.dueAt(waiting.id);
    if (dueAt <= now) this.#schedule.remove(waiting.id);
    else if (dueAt !== former) this.#schedule.add(waiting, dueAt);
    if (dueAt > now || former !== undefined) onState(waiting.node);
    return dueAt > now;
  }

  /** Puts a text into the queue, unless an outage has it wait, or others may have to leave before it. */
  #queueUp(waiting: Waiting): void {
    const { queue, handlerOf, onFault, onState } = this.#options;
    const { node, priority, order } = waiting;
    const isAwaited =
      this.#dispatchOrder.isCalled || waiting.pause || waiting.isQueued || this.#schedule.has(waiting.id);
    if (!this.#isOpen || isAwaited || !handlerOf(node)) return;
    if (this.#outages.lets(waiting)) {
      waiting.isQueued = true;
      queue.run((turn) => this.#takeTurn(waiting, turn), { priority, order, isKept: true }).catch(onFault);
    } else this.#outages.tell(node);
    onState(node);
  }

  async #takeTurn(waiting: Waiting, turn: Turn): Promise<void> {
    const { id, node } = waiting;
    const text = this.#options.ledger.texts.get(id);
    const handler = this.#options.handlerOf(node);
    if (this.#expiries.isOver(id)) this.#expire(id);
    // Another process has taken it over.
    if (!text) this.#forget(waiting);
    const isWanted = this.#isOpen && text && handler && this.#room.has(waiting);
    let isTried = false;
    try {
      if (isWanted && this.#outages.lets(waiting) && !this.#defer(waiting, text)) {
        isTried = await this.#tries.run(() => this.#try(waiting, text, handler));
      }
    } finally {
      if (!isTried) turn.giveBack();
      waiting.isQueued = false;
      this.#outages.turnOver(waiting);
    }
    if (this.#room.has(waiting)) this.#queueUp(waiting);
    this.#options.onState(node);
  }

  /** Resolves with whether the service was asked: not when a rule of one's own keeps the text back, or the store does. */
  async #try(waiting: Waiting, text: Text, handler: SendHandler): Promise<boolean> {
    const abort = new AbortController();
    waiting.abort = abort;
    this.#room.countTried(waiting.node, 1);
    this.#options.onState(waiting.node);
    try {
      const outcome = await this.#options.attempt(text, handler, abort);
      this.#outages.answered(waiting);
      this.#end(waiting, (current) => this.#options.onEnded(current, outcome));
    } catch (thrown) {
      const error = asSmsError(thrown);
      // Quiet hours have begun meanwhile.
      const isTooEarly = error instanceof TooEarly;
      const isKeptBack = isSmsError(thrown, 'SMS_STORE') || isWithheldError(thrown);
      if (isTooEarly) this.#defer(waiting, text);
      else if (isSmsError(error, 'SMS_CLOSED') || isOutage(error)) await this.#goOnWaiting(waiting, error);
      else {
        if (!isKeptBack) this.#outages.answered(waiting);
        const { onUnknown, onEnded } = this.#options;
        this.#end(waiting, (current) => (isUnknown(error) ? onUnknown(current, error) : onEnded(current, error)));
      }
      return !isKeptBack && !isTooEarly;
    } finally {
      waiting.abort = undefined;
      this.#room.countTried(waiting.node, -1);
      this.#options.onState(waiting.node);
    }
    return true;
  }

  async #goOnWaiting(waiting: Waiting, error: SmsError): Promise<void> {
    const { ledger, respite } = this.#options;
    const text = ledger.texts.get(waiting.id);
    if (!this.#room.has(waiting)) return;
    if (isOutage(error)) respite.heed(error);
    if (text?.state === 'leaving') await ledger.putBack({ ...text, respite: respite.stored });
    if (!isOutage(error) || !this.#isOpen) return;
    this.#outages.failed(waiting, error);
    // Its time may have ended while it could not be stopped.
    if (this.#expiries.isOver(waiting.id)) this.#expire(waiting.id);
  }

  #end(waiting: Waiting, tell: (text: Text) => void): void {
    const text = this.#options.ledger.texts.get(waiting.id);
    // Ended by somebody else meanwhile, or left for the next process when the account was closed.
    if (!text || !this.#room.has(waiting)) return;
    this.#forget(waiting);
    tell(text);
  }

  #expire(id: string): void {
    const { ledger, handlerOf, onEnded, onAbandoned } = this.#options;
    const text = ledger.texts.get(id);
    if (!text) return;
    if (!this.remove(id)) {
      // What is being written can be stopped in a moment; what is leaving cannot any more.
      if (text.state === 'waiting') this.#expiries.postpone(id);
      return;
    }
    if (handlerOf(text.node)) onEnded(text, createExpired(text));
    else onAbandoned(text);
    this.#options.onState(text.node);
  }

  #forget(waiting: Waiting): void {
    this.#expiries.forget(waiting.id);
    this.#schedule.remove(waiting.id);
    this.#room.remove(waiting);
  }
}
