import type { Timer } from '../clock';
import { SmsError } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { createExpired, type End, endOf } from './expiry';
import type { SendFailure } from './outage';
import { DueTimes, OrderedMap, placeOf, type TurnSource, UnderWay } from './queue';
import { isWithheldError, mayLeaveAt } from './rules';
import type { SendHandlerState } from './sender-registrations';
import type { Settlement, SettlementOptions } from './settlement';
import { isOutage, isUnknown, type Outcome, type Text } from './text';
import { stale } from './transitions';

/** What a dispatcher needs. */
export interface DispatcherOptions extends SettlementOptions {
  settlement: Settlement;
}

/** A kept text that waits, or is being tried. */
interface Waiting {
  readonly id: string;
  readonly node: string;
  /** See {@link placeOf}. */
  readonly place: string;
  end: End;
  /** Ends a try that has not left. */
  abort?: AbortController | undefined;
}

/** Kept texts of one node. */
interface NodeTexts {
  size: number;
  tried: number;
  /** By their places: those that may not leave yet. */
  readonly scheduled: DueTimes;
}

/** Whether a text that cannot end yet can do so by now is asked again after so long. */
const postponedMs = 1_000;

/** Comes before every place: somebody has sent it. */
const hastened = '!';

/**
 * Says when kept texts leave: each waits for its time, for its node, for the end of an outage, which one of them tries from time to time, and
 * for its turn in the queue. It is given up when it has waited for too long.
 */
export class Dispatcher implements TurnSource {
  /** Texts that are being written down: those that wait for their time then, and the others. */
  readonly arriving = { scheduled: 0, others: 0 };
  readonly #options: DispatcherOptions;
  readonly #byId = new Map<string, Waiting>();
  readonly #byPlace = new Map<string, Waiting>();
  readonly #nodes = new Map<string, NodeTexts>();
  /** By their places: those that wait for nothing but the service and their turn. */
  readonly #ready = new OrderedMap<Waiting>();
  /** By their places: those that are left alone for a while, after an outcome that was unknown. */
  readonly #paused: DueTimes;
  readonly #tries = new UnderWay();
  /** When the time of each is over. */
  readonly #ends: DueTimes;
  /** Until then nobody leaves, lest those that come first take the places of others that are to leave before them. */
  #gathering: Timer | undefined;
  readonly #onDue = (place: string) => {
    const waiting = this.#byPlace.get(place);
    if (waiting) this.#queueUp(waiting);
  };

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#ends = new DueTimes(options.clock, 'elapsed', (id) => {
      const waiting = this.#byId.get(id);
      if (waiting && !this.#endIfOver(waiting)) this.#awaitEnd(waiting);
    });
    this.#paused = new DueTimes(options.clock, 'elapsed', this.#onDue);
    this.open();
  }

  /** Texts that wait to be tried, for which it is time, and those that will when they are written down. */
  get waiting(): number {
    return [...this.#nodes.values()].reduce(
      (all, { size, tried, scheduled }) => all + size - tried - scheduled.size,
      this.arriving.others,
    );
  }

  /** Texts that may not leave yet. */
  get scheduled(): number {
    return [...this.#nodes.values()].reduce((all, { scheduled }) => all + scheduled.size, 0);
  }

  /** When a text may leave, in ms since 1970, if that is not yet. */
  dueAt(id: string): number | undefined {
    const { node = '', place = '' } = this.#byId.get(id) ?? {};
    return this.#nodes.get(node)?.scheduled.get(place);
  }

  /** Why those that wait do not leave, while there is an outage. */
  get failing(): SendFailure | undefined {
    return this.#byId.size > 0 ? this.#options.outage.state : undefined;
  }

  /** What goes on at a node, but for the texts that its registration counts. */
  stateOf(node: string): SendHandlerState {
    const { ledger, outage, settlement } = this.#options;
    const { size = 0, tried = 0, scheduled } = this.#nodes.get(node) ?? {};
    const nextAt = scheduled?.first;
    const { error } = outage;
    return {
      sending: tried + settlement.searching.of(node),
      // One that nobody wants any more is tried to its end.
      waiting: Math.max(0, size - tried),
      ...(nextAt === undefined ? undefined : { nextAt }),
      awaitingReply: ledger.followUps.open.replyRequest.of(node),
      ...(error && size > (scheduled?.size ?? 0) && { outage: error }),
    };
  }

  /**
   * Has a text of the ledger wait here, unless this is closed: then whoever opens it finds the text in the ledger.
   *
   * @param repeats how often its outcome has been unknown: after that it waits for a while before it is sent again
   * @param before see {@link hastened}
   */
  admit(text: Text, repeats = 0, before = ''): void {
    const { clock, ledger, outage, queue, rules } = this.#options;
    if (ledger.isClosed) return;
    const { id, node, options } = text;
    const former = this.#byId.get(id);
    if (former) this.#forget(former);
    const place = former?.place ?? placeOf(options.priority, queue.arrive());
    const waiting: Waiting = { id, node, place, end: endOf(text, clock, rules) };
    this.#byId.set(id, waiting);
    this.#byPlace.set(place, waiting);
    this.#textsOf(node).size++;
    this.#awaitEnd(waiting);
    if (text.retryAfter) outage.recall(text.retryAfter);
    if (this.#defer(waiting, text)) return;
    if (repeats > 0) this.#paused.set(place, clock.elapsed() + backOffMs(repeats, clock.random()));
    this.#queueUp(waiting, before);
  }

  /** Many may come in this turn of the event loop: nobody leaves before the next, and then those first that are to leave first. */
  gather(): void {
    const { clock, queue, registrations } = this.#options;
    this.#gathering ??= clock.nextTurn(() => {
      this.#gathering = undefined;
      queue.nudge();
      this.#tellOutage();
      for (const [node, { size, tried }] of this.#nodes) if (size > tried) registrations.tellState(node);
    });
  }

  /** Texts may leave earlier or later than they might before, and be given up so. */
  quietHoursChanged(): void {
    const { clock, ledger, rules } = this.#options;
    for (const waiting of this.#byId.values()) {
      const text = ledger.texts.get(waiting.id);
      if (!text) continue;
      waiting.end = endOf(text, clock, rules);
      this.#awaitEnd(waiting);
      if (this.dueAt(waiting.id) === undefined || this.#defer(waiting, text)) continue;
      this.#textsOf(waiting.node).scheduled.delete(waiting.place);
      this.#queueUp(waiting);
    }
  }

  /** Whether a text is being tried, as it may be still when this has been opened again. */
  isTried(id: string): boolean {
    return this.#byId.get(id)?.abort !== undefined;
  }

  /** A node has come or gone: its texts may leave, or wait. */
  nodeChanged(node: string): void {
    for (const waiting of this.#byId.values()) {
      if (waiting.node !== node) continue;
      this.#awaitEnd(waiting);
      this.#queueUp(waiting);
    }
  }

  /**
   * Tries a text now, whatever it waits for; when there is no place, or the pace is not due, as the next one. Says whether it can:
   * not what is being tried, or waits for another text, nor what is not here since it has left and its outcome is not known yet.
   */
  sendNow(id: string): boolean {
    const { abort } = this.#byId.get(id) ?? {};
    const text = this.#options.ledger.texts.get(id);
    if (!this.#byId.has(id) || abort || !text) return false;
    this.admit(text, 0, hastened);
    return true;
  }

  /** A message has ended by another step. Nothing of it is sent any longer. */
  release(id: string): void {
    const waiting = this.#byId.get(id);
    if (!waiting) return;
    this.#forget(waiting);
    waiting.abort?.abort();
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    const { isClosed, texts } = this.#options.ledger;
    const waiting = this.#byId.get(id);
    if (texts.has(id) && !texts.isWaiting(id)) return false;
    // Nothing is tried then.
    if (!waiting) return isClosed && texts.has(id);
    this.#forget(waiting);
    waiting.abort?.abort();
    return true;
  }

  /** Makes no further try. Resolves when what is being tried has ended, or is followed no longer; what waits is in the ledger. */
  async close(graceMs: number): Promise<void> {
    const { clock, ledger, outage, queue } = this.#options;
    queue.sources.delete(this);
    this.#gathering?.cancel();
    this.#gathering = undefined;
    outage.close();
    for (const { scheduled } of this.#nodes.values()) scheduled.clear();
    for (const times of [this.#paused, this.#ends]) times.clear();
    const followed = clock.after(graceMs, () => {
      for (const { abort } of this.#byId.values()) abort?.abort();
    });
    await this.#tries.idle();
    followed.cancel();
    if (!ledger.isClosed) return;
    this.#byId.clear();
    this.#byPlace.clear();
    this.#nodes.clear();
    this.#ready.clear();
  }

  /** Goes on after {@link close}. */
  open(): void {
    const { outage, queue } = this.#options;
    queue.sources.add(this);
    outage.open(() => queue.nudge());
  }

  /** See {@link TurnSource}. During an outage it is the text that tries, when that is due. */
  get first(): string | undefined {
    const { outage } = this.#options;
    if (this.#gathering || outage.probe !== undefined) return undefined;
    if (this.#ready.size === 0) {
      // The next text finds out for itself.
      if (outage.error && outage.delayMs === 0) outage.end();
      return undefined;
    }
    const { first } = this.#ready;
    return !outage.error || first?.startsWith(hastened) || outage.delayMs === 0 ? first : undefined;
  }

  /** See {@link TurnSource}. */
  async take(first: string, giveBack: () => void): Promise<void> {
    const waiting = this.#ready.get(first);
    if (!waiting || waiting.abort) return;
    const { outage, registrations, onFault } = this.#options;
    const { id, node } = waiting;
    this.#unready(waiting);
    if (outage.error) outage.probe = id;
    const isTried = await this.#tries.run(() => this.#takeTurn(waiting)).catch(onFault);
    if (!isTried) giveBack();
    if (outage.probe === id) outage.probe = undefined;
    if (this.#byId.get(id) === waiting) this.#queueUp(waiting);
    registrations.tellState(node);
  }

  /** Resolves with whether the service was asked. */
  async #takeTurn(waiting: Waiting): Promise<boolean> {
    const { ledger, outage, queue, registrations, settlement, onFault } = this.#options;
    const { id, node } = waiting;
    this.#endIfOver(waiting);
    const text = ledger.texts.get(id);
    // Another process has taken it over.
    if (!text) this.#forget(waiting);
    const handler = registrations.handlerOf(node);
    if (!text || !handler || this.#byId.get(id) !== waiting || this.#defer(waiting, text)) return false;
    const abort = new AbortController();
    const texts = this.#textsOf(node);
    waiting.abort = abort;
    texts.tried++;
    registrations.tellState(node);
    try {
      const attempt = await settlement.attempt(text, handler.client, abort.signal);
      if (attempt === stale) {
        if (this.#byId.get(id) === waiting && ledger.texts.get(id)?.state !== 'waiting') this.#forget(waiting);
        return false;
      }
      const { text: tried, outcome } = attempt;
      const error = outcome instanceof SmsError ? outcome : undefined;
      // A rule of one's own keeps it back, or the store does: the service was not asked.
      const isKeptBack = error !== undefined && (error.code === 'SMS_STORE' || isWithheldError(error));
      // Quiet hours have begun meanwhile.
      if (error?.code === 'SMS_QUIET') this.#defer(waiting, text);
      else if (error && (error.code === 'SMS_CLOSED' || isOutage(error))) await this.#goOnWaiting(waiting, error);
      else {
        if (!isKeptBack && outage.answered(id)) queue.nudge();
        const current = ledger.texts.get(id);
        // Ended by somebody else meanwhile, or left for the next process when the account was closed.
        if (current && this.#byId.get(id) === waiting) {
          this.#forget(waiting);
          void this.#end(current, { withheld: tried.withheld }, outcome).catch(onFault);
        }
      }
      return !isKeptBack;
    } finally {
      waiting.abort = undefined;
      texts.tried--;
    }
  }

  async #goOnWaiting(waiting: Waiting, error: SmsError): Promise<void> {
    const { ledger, outage } = this.#options;
    const text = ledger.texts.get(waiting.id);
    if (!text || this.#byId.get(waiting.id) !== waiting) return;
    if (isOutage(error)) outage.failed(text, error);
    if (text.state === 'leaving') await ledger.putBack(text, { retryAfter: outage.stored });
    // Its time may have ended while it could not be stopped.
    if (!ledger.isClosed) this.#endIfOver(waiting);
  }

  async #end(text: Text, change: Partial<Text>, outcome: Outcome): Promise<void> {
    const { settlement } = this.#options;
    if (outcome instanceof Error && isUnknown(outcome)) this.sendAgain(await settlement.reconcile(text, outcome));
    else await settlement.end(text, { by: 'settle', outcome, change });
  }

  /** Has a text wait that is to be sent again after an unknown outcome. */
  sendAgain(text: Text | undefined): void {
    if (text) this.admit(text, text.repeats);
  }

  #awaitEnd({ id, node, end }: Waiting): void {
    const { clock, absences, ledger } = this.#options;
    if (!ledger.isClosed) this.#ends.set(id, clock.elapsed() + absences.leftMs(node, end));
  }

  /** Gives a text up whose time is over. Says whether it is. */
  #endIfOver({ id, node, end }: Waiting): boolean {
    const { clock, absences, ledger, registrations, settlement, onFault } = this.#options;
    if (absences.leftMs(node, end) > 0) return false;
    const text = ledger.texts.get(id);
    if (!text) return true;
    if (!this.remove(id)) {
      // What is being written can be stopped in a moment; what is leaving cannot any more.
      if (text.state === 'waiting') this.#ends.set(id, clock.elapsed() + postponedMs);
      return true;
    }
    if (!registrations.handlerOf(node)) void settlement.abandon(text);
    else void settlement.end(text, { by: 'expire', outcome: createExpired(text) }).catch(onFault);
    registrations.tellState(node);
    return true;
  }

  /** Has a text wait for its time, if that is yet to come. */
  #defer(waiting: Waiting, text: Text): boolean {
    const { clock, rules, registrations } = this.#options;
    const { node, place } = waiting;
    const now = clock.now();
    const dueAt = mayLeaveAt(text, now, rules.quietHours);
    if (dueAt <= now) return false;
    this.#unready(waiting);
    this.#textsOf(node).scheduled.set(place, dueAt);
    registrations.tellState(node);
    return true;
  }

  /** Puts a text among those that may leave, if it may. */
  #queueUp(waiting: Waiting, before = ''): void {
    const { ledger, registrations } = this.#options;
    const { node, place, abort } = waiting;
    const isEarly = this.#textsOf(node).scheduled.has(place) || this.#paused.has(place);
    const isFree = !ledger.isClosed && !abort && !isEarly;
    if (isFree && registrations.handlerOf(node)) this.#ready.set(before + place, waiting);
    else this.#unready(waiting);
    this.gather();
  }

  #unready({ place }: Waiting): void {
    for (const before of ['', hastened]) this.#ready.delete(before + place);
  }

  #forget(waiting: Waiting): void {
    const { id, node, place } = waiting;
    if (this.#byId.get(id) !== waiting) return;
    this.#byId.delete(id);
    this.#byPlace.delete(place);
    const texts = this.#textsOf(node);
    texts.size--;
    this.#unready(waiting);
    for (const times of [texts.scheduled, this.#paused]) times.delete(place);
    this.#ends.delete(id);
  }

  #textsOf(node: string): NodeTexts {
    const existing = this.#nodes.get(node);
    if (existing) return existing;
    const texts: NodeTexts = { size: 0, tried: 0, scheduled: new DueTimes(this.#options.clock, 'now', this.#onDue) };
    this.#nodes.set(node, texts);
    return texts;
  }

  /** Tells the nodes whose texts wait for its end, unless they know. That the store fails is told apart from this, whether anything waits or not. */
  #tellOutage(): void {
    const { outage, registrations } = this.#options;
    const { error, told } = outage;
    if (!error || error.code === 'SMS_STORE') return;
    for (const [node, { size, tried, scheduled }] of this.#nodes) {
      const handler = registrations.handlerOf(node);
      const waiting = size - scheduled.size;
      if (handler && waiting > tried && told.tell(node)) handler.onOutage(createOutage(error, waiting));
    }
  }
}

/** The error of an outage is not an outcome, and says so. */
function createOutage(error: SmsError, waiting: number): SmsError {
  const { message } = new SmsError('storedWaiting', { params: { waiting } });
  return error.with({ waiting }, `${error.message} ${message}`);
}
