import type { Timer } from '../clock';
import { SmsError } from '../errors';
import { backOffMs } from '../polling/poll-loop';
import { createExpired, type End, endOf } from './expiry';
import type { Following } from './ledger';
import { Outage, type SendFailure } from './outage';
import { DueTimes, OrderedMap, placeOf, type TurnSource, UnderWay } from './queue';
import { isWithheldError, mayLeaveAt } from './rules';
import type { SendHandlerState } from './sender-registrations';
import type { Settlement, SettlementOptions } from './settlement';
import { formatOutcome, isKept, isOutage, isUnknown, type Outcome, type Text } from './text';

/** What a dispatcher needs. */
export interface DispatcherOptions extends SettlementOptions {
  settlement: Settlement;
}

/** A kept text that waits, or is being tried. */
interface Waiting {
  readonly id: string;
  readonly node: string;
  /** By {@link Clock.elapsed}. */
  readonly cameAt: number;
  /** See {@link placeOf}. */
  readonly place: string;
  end: End;
  /** Ends a try that has not left. */
  abort?: AbortController | undefined;
  /** It waits for the text that has its key. */
  following?: Following & { readonly stop: AbortController };
  /** It is left alone for a while, after an outcome that was unknown. */
  pause?: Timer | undefined;
}

/** Kept texts of one node. */
interface NodeTexts {
  size: number;
  tried: number;
  /** By their places: those that wait for nothing but the service and their turn. */
  readonly ready: OrderedMap<Waiting>;
  /** Those that may not leave yet. */
  readonly scheduled: DueTimes;
}

/** Whether a text that cannot end yet can do so by now is asked again after so long. */
const postponedMs = 1_000;

/** Comes before every place: somebody has sent it. */
const hastened = '!';

/**
 * Says when kept texts leave: each waits for its time, for the end of an outage, which one of them tries from time to time, and for its
 * turn in the queue; or for the outcome of another that has its key. It is given up when it has waited for too long.
 */
export class Dispatcher implements TurnSource {
  /** Texts that are being written down: those that wait for their time then, and the others. */
  readonly arriving = { scheduled: 0, others: 0 };
  readonly #options: DispatcherOptions;
  readonly #byId = new Map<string, Waiting>();
  readonly #byPlace = new Map<string, Waiting>();
  readonly #nodes = new Map<string, NodeTexts>();
  readonly #tries = new UnderWay();
  /** When the time of each is over. */
  readonly #ends: DueTimes;
  readonly #outage: Outage;
  /** Until then nobody leaves, lest those that come first take the places of others that are to leave before them. */
  #gathering: Timer | undefined;

  constructor(options: DispatcherOptions) {
    const { clock, queue, retryAfter } = options;
    this.#options = options;
    this.#ends = new DueTimes(clock, 'elapsed', (id) => {
      const waiting = this.#byId.get(id);
      if (waiting && !this.#endIfOver(waiting)) this.#awaitEnd(waiting);
    });
    this.#outage = new Outage(clock, retryAfter, () => queue.nudge());
    this.open();
  }

  /** Texts that wait to be tried, for which it is time, and those that will have to when they are written down, as far as is known. */
  get waiting(): number {
    return [...this.#nodes.values()].reduce(
      (all, { size, tried, scheduled }) => all + size - tried - scheduled.size,
      Math.max(0, this.arriving.others - this.places),
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
    return this.#byId.size > 0 ? this.#outage.state : undefined;
  }

  /** How many that come now could leave now. */
  get places(): number {
    return this.#outage.error || this.#gathering ? 0 : this.#options.queue.free;
  }

  /** What goes on at a node, but for the texts that its registration counts. */
  stateOf(node: string): SendHandlerState {
    const { ledger, settlement } = this.#options;
    const { size = 0, tried = 0, scheduled } = this.#nodes.get(node) ?? {};
    const nextAt = scheduled?.size ? scheduled.first : undefined;
    const outage = size > (scheduled?.size ?? 0) ? this.#outage.error : undefined;
    return {
      sending: tried + (settlement.searching.get(node) ?? 0),
      // One that nobody wants any more is tried to its end.
      waiting: Math.max(0, size - tried),
      ...(nextAt === undefined ? undefined : { nextAt }),
      asking: ledger.questions.open.question.get(node) ?? 0,
      ...(outage && { outage }),
    };
  }

  /**
   * Has a text of the ledger wait here, unless this is closed: then whoever opens it finds the text in the ledger.
   *
   * @param repeats how often its outcome has been unknown: after that it waits for a while before it is sent again
   */
  admit(text: Text, repeats = 0): void {
    const { clock, ledger, queue, retryAfter, rules } = this.#options;
    if (ledger.isClosed) return;
    const { id, node, options } = text;
    const former = this.#byId.get(id);
    if (former) this.#forget(former);
    const place = placeOf(options.priority, queue.arrive());
    const waiting: Waiting = { id, node, cameAt: clock.elapsed(), place, end: endOf(text, clock, rules) };
    this.#byId.set(id, waiting);
    this.#byPlace.set(place, waiting);
    this.#textsOf(node).size++;
    this.#awaitEnd(waiting);
    if (text.follows) {
      void this.#follow(waiting, text);
      return;
    }
    if (text.retryAfter) {
      retryAfter.recall(text.retryAfter);
      this.#outage.goOn();
    }
    if (this.#defer(waiting, text)) return;
    if (repeats === 0) this.#queueUp(waiting);
    else {
      waiting.pause = clock.after(backOffMs(repeats, clock.random()), () => {
        waiting.pause = undefined;
        this.#queueUp(waiting);
      });
    }
  }

  /** Many may come in this turn of the event loop: nobody leaves before the next, and then those first that are to leave first. */
  gather(): void {
    const { clock, queue } = this.#options;
    this.#gathering ??= clock.nextTurn(() => {
      this.#gathering = undefined;
      for (const [node, { ready }] of this.#nodes) if (ready.size > 0) this.#tellOutage(node);
      queue.nudge();
    });
  }

  /** Texts may leave earlier or later than they might before, and be given up so. */
  quietHoursChanged(): void {
    for (const waiting of this.#byId.values()) {
      const text = this.#options.ledger.texts.get(waiting.id);
      if (!text) continue;
      this.#timeChanged(waiting, text);
      if (this.dueAt(waiting.id) !== undefined && !this.#defer(waiting, text)) this.#queueUp(waiting);
    }
  }

  /** Whether a text is being tried, as it may be still when this has been opened again. */
  isTried(id: string): boolean {
    return this.#byId.get(id)?.abort !== undefined;
  }

  /** A node has come or gone: its texts may leave, or wait. */
  nodeChanged(node: string): void {
    for (const waiting of this.#byId.values()) if (waiting.node === node) this.#awaitEnd(waiting);
    if (this.#options.registrations.handlerOf(node) && this.#nodes.has(node)) this.gather();
  }

  /**
   * Tries a text now, whatever it waits for; when there is no place, or the pace is not due, as the next one. Says whether it can:
   * not what is being tried, or waits for another text, nor what is not here since it has left and its outcome is not known yet.
   */
  sendNow(id: string): boolean {
    const waiting = this.#byId.get(id);
    const text = this.#options.ledger.texts.get(id);
    if (!waiting || waiting.abort || waiting.following || !text) return false;
    waiting.pause?.cancel();
    waiting.pause = undefined;
    this.#unready(waiting);
    this.#textsOf(waiting.node).scheduled.delete(waiting.place);
    this.#timeChanged(waiting, text);
    this.#queueUp(waiting, hastened);
    return true;
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    const { isClosed, texts } = this.#options.ledger;
    const waiting = this.#byId.get(id);
    if (texts.has(id) && !texts.isWaiting(id)) return false;
    // Nothing is tried then.
    if (!waiting) return isClosed && texts.has(id);
    if (waiting.following && !waiting.following.isAtRest) return false;
    this.#forget(waiting);
    waiting.abort?.abort();
    return true;
  }

  /** Makes no further try. Resolves when what is being tried has ended, or is followed no longer; what waits is in the ledger. */
  async close(graceMs: number): Promise<void> {
    const { clock, ledger, queue } = this.#options;
    queue.sources.delete(this);
    this.#gathering?.cancel();
    this.#gathering = undefined;
    this.#outage.close();
    for (const { scheduled } of this.#nodes.values()) scheduled.clear();
    for (const { pause, following } of this.#byId.values()) {
      pause?.cancel();
      following?.stop.abort();
    }
    this.#ends.clear();
    const followed = clock.after(graceMs, () => {
      for (const { abort } of this.#byId.values()) abort?.abort();
    });
    await this.#tries.idle();
    followed.cancel();
    if (!ledger.isClosed) return;
    this.#byId.clear();
    this.#byPlace.clear();
    this.#nodes.clear();
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#options.queue.sources.add(this);
    this.#outage.open();
  }

  /** See {@link TurnSource}. During an outage it is the text that tries, when that is due. */
  get first(): string | undefined {
    if (this.#gathering || this.#outage.probe !== undefined) return undefined;
    const { registrations } = this.#options;
    const here = [...this.#nodes].filter(([node, { ready }]) => ready.size > 0 && registrations.handlerOf(node));
    const [first] = here.map(([, { ready }]) => ready.first ?? '').sort();
    if (!this.#outage.error || first?.startsWith(hastened)) return first;
    if (this.#outage.delayMs > 0) return undefined;
    // The next text finds out for itself.
    if (first === undefined) this.#outage.end();
    return first;
  }

  /** See {@link TurnSource}. */
  async take(first: string, giveBack: () => void): Promise<void> {
    const waiting = this.#byPlace.get(first.replace(hastened, ''));
    if (!waiting) return;
    const { id, node } = waiting;
    this.#unready(waiting);
    if (this.#outage.error) this.#outage.probe = id;
    const isTried = await this.#tries.run(() => this.#takeTurn(waiting)).catch(this.#options.onFault);
    if (!isTried) giveBack();
    if (this.#outage.probe === id) this.#outage.probe = undefined;
    if (this.#byId.get(id) === waiting) this.#queueUp(waiting);
    this.#options.registrations.tellState(node);
  }

  /** Resolves with whether the service was asked. */
  async #takeTurn(waiting: Waiting): Promise<boolean> {
    const { ledger, queue, registrations, settlement, onFault } = this.#options;
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
      const { text: tried, outcome } = await settlement.attempt(text, handler.client, abort.signal);
      const error = outcome instanceof SmsError ? outcome : undefined;
      // A rule of one's own keeps it back, or the store does: the service was not asked.
      const isKeptBack = error !== undefined && (error.code === 'SMS_STORE' || isWithheldError(error));
      // Quiet hours have begun meanwhile.
      if (error?.code === 'SMS_QUIET') this.#defer(waiting, text);
      else if (error && (error.code === 'SMS_CLOSED' || isOutage(error))) await this.#goOnWaiting(waiting, error);
      else {
        if (!isKeptBack && this.#outage.answered(id)) queue.nudge();
        const current = ledger.texts.get(id);
        // Ended by somebody else meanwhile, or left for the next process when the account was closed.
        if (current && this.#byId.get(id) === waiting) {
          this.#forget(waiting);
          void this.#end({ ...current, withheld: tried.withheld }, outcome).catch(onFault);
        }
      }
      return !isKeptBack;
    } finally {
      waiting.abort = undefined;
      texts.tried--;
    }
  }

  async #goOnWaiting(waiting: Waiting, error: SmsError): Promise<void> {
    const { ledger, retryAfter } = this.#options;
    const text = ledger.texts.get(waiting.id);
    if (this.#byId.get(waiting.id) !== waiting) return;
    if (isOutage(error)) retryAfter.heed(error);
    if (text?.state === 'leaving') await ledger.putBack({ ...text, retryAfter: retryAfter.stored });
    if (!isOutage(error) || ledger.isClosed) return;
    this.#outage.failed(waiting.id, error, waiting.cameAt);
    this.#tellOutage(waiting.node);
    // Texts that are behind it find nothing out by themselves.
    for (const [node, { ready }] of this.#nodes) if (ready.size > 0) this.#tellOutage(node);
    // Its time may have ended while it could not be stopped.
    this.#endIfOver(waiting);
  }

  async #end(text: Text, outcome: Outcome): Promise<void> {
    const { settlement } = this.#options;
    if (outcome instanceof Error && isUnknown(outcome)) this.sendAgain(await settlement.reconcile(text, outcome));
    else await settlement.end(text, outcome);
  }

  /** Has a text wait that is to be sent again after an unknown outcome. */
  sendAgain(text: Text | undefined): void {
    if (text) this.admit(text, text.repeats);
  }

  /** Has a text wait for the one that has its key: then it has the same outcome, or is sent. Never rejects. */
  async #follow(waiting: Waiting, text: Text): Promise<void> {
    const { ledger, registrations, settlement, onFault } = this.#options;
    const stop = new AbortController();
    waiting.following = { stop, isAtRest: true };
    try {
      const { text: taken, verdict } = await ledger.follow(text, waiting.following);
      stop.signal.throwIfAborted();
      if (verdict.type === 'new') this.admit(taken);
      else {
        const isEnded = verdict.type === 'ended';
        const error = new SmsError('onceTaken', { field: 'once' });
        await settlement.echo(taken, isEnded ? verdict.outcome : formatOutcome(error));
      }
    } catch (error) {
      if (!stop.signal.aborted) onFault(error);
    }
    this.#forget(waiting);
    registrations.tellState(text.node);
  }

  #timeChanged(waiting: Waiting, text: Text): void {
    const { clock, rules } = this.#options;
    waiting.end = endOf(text, clock, rules);
    this.#awaitEnd(waiting);
  }

  #awaitEnd({ id, node, end }: Waiting): void {
    const { clock, absences, ledger } = this.#options;
    if (!ledger.isClosed) this.#ends.set(id, clock.elapsed() + absences.leftMs(node, end));
  }

  /** Gives a text up whose time is over. Says whether it is. */
  #endIfOver({ id, node, end, following }: Waiting): boolean {
    const { clock, absences, ledger, registrations, settlement, onFault } = this.#options;
    if (absences.leftMs(node, end) > 0) return false;
    const text = ledger.texts.get(id);
    if (!text) return true;
    const leader = following && ledger.texts.get(ledger.lineOf(text)?.leader ?? '');
    // Where the other is leaving, has just ended or is in another instance, it will be known later whether anything was sent.
    const isKnown = !following || (leader?.state === 'waiting' && isKept(leader) && !this.isTried(leader.id));
    if (!isKnown || !this.remove(id)) {
      // What is being written can be stopped in a moment; what is leaving cannot any more.
      if (text.state === 'waiting') this.#ends.set(id, clock.elapsed() + postponedMs);
      return true;
    }
    if (!registrations.handlerOf(node)) void settlement.abandon(text);
    else if (!leader?.earlier) void this.#end(text, createExpired(text)).catch(onFault);
    else void settlement.echo(text, leader.earlier.outcome).catch(onFault);
    registrations.tellState(node);
    return true;
  }

  /** Has a text wait for its time, if that is yet to come. */
  #defer(waiting: Waiting, text: Text): boolean {
    const { clock, rules, registrations } = this.#options;
    const { node, place } = waiting;
    const { scheduled } = this.#textsOf(node);
    const now = clock.now();
    const dueAt = mayLeaveAt(text, now, rules.quietHours);
    const wasDeferred = scheduled.has(place);
    if (dueAt > now) {
      this.#unready(waiting);
      scheduled.set(place, dueAt);
    } else if (wasDeferred) scheduled.delete(place);
    if (dueAt > now || wasDeferred) registrations.tellState(node);
    return dueAt > now;
  }

  /** Puts a text among those that may leave. */
  #queueUp(waiting: Waiting, before = ''): void {
    const { ledger, queue, registrations } = this.#options;
    const { node, place, pause } = waiting;
    const { ready, scheduled } = this.#textsOf(node);
    if (ledger.isClosed || pause || scheduled.has(place)) return;
    ready.set(before + place, waiting);
    queue.nudge();
    // It may have had its turn at once.
    if (!ready.has(before + place)) return;
    this.#tellOutage(node);
    registrations.tellState(node);
  }

  #unready({ node, place }: Waiting): void {
    const { ready } = this.#textsOf(node);
    for (const before of ['', hastened]) ready.delete(before + place);
  }

  #forget(waiting: Waiting): void {
    const { id, node, place, pause, following } = waiting;
    pause?.cancel();
    following?.stop.abort();
    if (this.#byId.get(id) !== waiting) return;
    this.#byId.delete(id);
    this.#byPlace.delete(place);
    const texts = this.#textsOf(node);
    texts.size--;
    this.#unready(waiting);
    texts.scheduled.delete(place);
    this.#ends.delete(id);
  }

  #textsOf(node: string): NodeTexts {
    const existing = this.#nodes.get(node);
    if (existing) return existing;
    const { clock } = this.#options;
    const onDue = (place: string) => {
      const waiting = this.#byPlace.get(place);
      if (!waiting) return;
      this.gather();
      this.#queueUp(waiting);
    };
    const texts: NodeTexts = {
      size: 0,
      tried: 0,
      ready: new OrderedMap(),
      scheduled: new DueTimes(clock, 'now', onDue),
    };
    this.#nodes.set(node, texts);
    return texts;
  }

  /** Tells a node, unless it knows. That the store fails is told apart from this, whether anything waits or not. */
  #tellOutage(node: string): void {
    const { registrations, retryAfter } = this.#options;
    const { error } = this.#outage;
    const handler = registrations.handlerOf(node);
    if (!error || error.code === 'SMS_STORE' || !handler || !retryAfter.told.tell(node)) return;
    const { size, scheduled } = this.#textsOf(node);
    handler.onOutage(error.with({ waiting: size - scheduled.size }));
  }
}
