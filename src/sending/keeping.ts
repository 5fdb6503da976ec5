import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError } from '../errors';
import { Expiries } from './expiry';
import type { Ledger } from './ledger';
import { Outage } from './outage';
import { isOutage, isUnknown, type Sent, type Text } from './outgoing';
import type { Outlet } from './outlet';
import type { SendQueue, Turn } from './queue';

/** What kept texts need. */
export interface KeepingOptions {
  clock: Clock;
  queue: SendQueue;
  ledger: Ledger;
  outlet(node: string): Outlet | undefined;
  /** Sends a text, marking in the ledger that it leaves. Rejects as `Client.send` does; `signal` ends one that has not left. */
  attempt(text: Text, outlet: Outlet, signal: AbortSignal): Promise<Sent>;
  /** It has an outcome, other than an unknown one. */
  onEnded(text: Text, outcome: Sent | SmsError): void;
  onUnknown(text: Text, error: SmsError): void;
  /** Its node has not been here for too long. */
  onAbandoned(text: Text): void;
  onState(node: string): void;
  /** A node has thrown. */
  onFault(error: unknown): void;
}

const firstRepeatDelayMs = 1_000;
const longestRepeatDelayMs = 60_000;

/** A kept text that waits, or is being tried. */
interface Waiting {
  readonly id: string;
  readonly node: string;
  readonly priority: number;
  /** Ends a try that has not left. */
  abort?: AbortController;
  /** It is in the queue, or has its turn. */
  isQueued: boolean;
  /** It is left alone for a while, after an outcome that was unknown. */
  pause?: Timer | undefined;
}

/**
 * Texts that are kept until they are sent: each waits for its turn in the queue, or, while the service is out of reach,
 * for the outage to end, which one of them tries from time to time.
 */
export class KeptTexts {
  readonly #options: KeepingOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #byNode = new Map<string, Set<Waiting>>();
  readonly #expiries: Expiries;
  readonly #tries = new Set<Promise<boolean>>();
  /** How many texts of each node are being tried. */
  readonly #tried = new Map<string, number>();
  #outage: Outage | undefined;
  #isOpen = true;

  constructor(options: KeepingOptions) {
    this.#options = options;
    this.#expiries = new Expiries(options.clock, (id) => this.#expire(id));
  }

  /** Texts that wait or are being tried. */
  get size(): number {
    return this.#waiting.size;
  }

  /** When the oldest of them came, in ms. */
  get oldestAt(): number | undefined {
    const [oldest] = this.#waiting.keys();
    return oldest === undefined ? undefined : this.#options.ledger.text(oldest)?.arrivedAt;
  }

  /** How many texts of a node are being tried, how many wait, and why if there is an outage. */
  stateOf(node: string): { sending: number; waiting: number; outage?: SmsError } {
    const all = this.#byNode.get(node)?.size ?? 0;
    const sending = this.#tried.get(node) ?? 0;
    return {
      sending,
      waiting: all - sending,
      ...(this.#outage && all > 0 ? { outage: this.#outage.error } : undefined),
    };
  }

  /** @param repeats how often its outcome has been unknown: after that it waits for a while before it is sent again */
  admit(text: Text, repeats = 0): void {
    const { id, node } = text;
    const waiting: Waiting = { id, node, priority: text.options.priority, isQueued: false };
    this.#waiting.set(id, waiting);
    this.#byNode.set(node, (this.#byNode.get(node) ?? new Set()).add(waiting));
    this.#expiries.watch(text, this.#options.outlet(node) !== undefined);
    if (repeats === 0) {
      this.#queueUp(waiting);
      return;
    }
    const delayMs = Math.min(longestRepeatDelayMs, firstRepeatDelayMs * 2 ** Math.min(repeats - 1, 30));
    waiting.pause = this.#options.clock.after(delayMs, () => {
      waiting.pause = undefined;
      this.#queueUp(waiting);
    });
  }

  /** A node has come, and its texts may leave; or it has gone, and they wait for it. */
  nodeChanged(node: string): void {
    const isHere = this.#options.outlet(node) !== undefined;
    for (const waiting of [...(this.#byNode.get(node) ?? [])]) {
      const text = this.#options.ledger.text(waiting.id);
      if (text) this.#expiries.watch(text, isHere);
      if (isHere) this.#queueUp(waiting);
    }
  }

  /** Tries a text now, whatever it waits for. */
  sendNow(id: string): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    waiting.pause?.cancel();
    waiting.pause = undefined;
    if (this.#outage?.probe === undefined) this.#outage?.end();
    if (this.#outage) this.#outage.probe ??= id;
    this.#enqueue(waiting);
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    const waiting = this.#waiting.get(id);
    if (!waiting || this.#options.ledger.text(id)?.state !== 'waiting') return false;
    this.#forget(waiting);
    waiting.abort?.abort();
    return true;
  }

  /** Makes no further try. Resolves when what is being tried has ended; what waits is in the ledger. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#outage?.end();
    this.#outage = undefined;
    this.#expiries.clear();
    for (const { pause } of this.#waiting.values()) pause?.cancel();
    await Promise.allSettled(this.#tries);
    if (this.#isOpen) return;
    this.#waiting.clear();
    this.#byNode.clear();
  }

  /** Follows what has left no longer. */
  giveUp(): void {
    for (const { abort } of this.#waiting.values()) abort?.abort();
  }

  /** Goes on after {@link close}. */
  open(): void {
    this.#isOpen = true;
  }

  /** Puts a text into the queue, unless an outage has it wait. */
  #queueUp(waiting: Waiting): void {
    if (!this.#isOpen || waiting.pause || waiting.isQueued || !this.#options.outlet(waiting.node)) return;
    if (!this.#outage) this.#enqueue(waiting);
    else this.#tell(waiting.node);
    this.#options.onState(waiting.node);
  }

  #enqueue(waiting: Waiting): void {
    if (waiting.isQueued) return;
    waiting.isQueued = true;
    const turn = { signal: neverAborted, priority: waiting.priority, isKept: true };
    this.#options.queue.run((begun) => this.#takeTurn(waiting, begun), turn).catch(this.#options.onFault);
  }

  async #takeTurn(waiting: Waiting, turn: Turn): Promise<void> {
    const { id, node } = waiting;
    const text = this.#options.ledger.text(id);
    const outlet = this.#options.outlet(node);
    const isProbe = this.#outage?.probe === id;
    if (this.#expiries.isOver(id)) this.#expire(id);
    const isWanted = this.#isOpen && text && outlet && this.#waiting.get(id) === waiting;
    let isTried = false;
    try {
      if (isWanted && (isProbe || !this.#outage)) {
        const trying = this.#try(waiting, text, outlet);
        this.#tries.add(trying);
        isTried = await trying.finally(() => this.#tries.delete(trying));
      }
    } finally {
      if (!isTried) turn.giveBack();
      waiting.isQueued = false;
      if (isProbe && this.#outage?.probe === id) {
        this.#outage.probe = undefined;
        // Unless it has failed, and another is to try later.
        this.#tryOne();
      }
    }
    if (this.#waiting.get(id) === waiting) this.#queueUp(waiting);
    this.#options.onState(node);
  }

  /** Resolves with whether the service was asked: not when a limit of one's own keeps the text back. */
  async #try(waiting: Waiting, text: Text, outlet: Outlet): Promise<boolean> {
    const abort = new AbortController();
    waiting.abort = abort;
    this.#countTried(waiting.node, 1);
    try {
      const outcome = await this.#options.attempt(text, outlet, abort.signal);
      this.#outageEnds();
      this.#end(waiting, (current) => this.#options.onEnded(current, outcome));
    } catch (thrown) {
      const error: SmsError = isSmsError(thrown) ? thrown : new SmsError('unexpected', { cause: thrown });
      if (isSmsError(error, 'SMS_CLOSED') || isOutage(error)) await this.#goOnWaiting(waiting, error);
      else {
        const isKeptBack = isSmsError(thrown, 'SMS_LIMIT');
        if (!isKeptBack) this.#outageEnds();
        const { onUnknown, onEnded } = this.#options;
        this.#end(waiting, (current) => (isUnknown(error) ? onUnknown(current, error) : onEnded(current, error)));
        return !isKeptBack;
      }
    } finally {
      delete waiting.abort;
      this.#countTried(waiting.node, -1);
    }
    return true;
  }

  #countTried(node: string, more: 1 | -1): void {
    this.#tried.set(node, (this.#tried.get(node) ?? 0) + more);
    this.#options.onState(node);
  }

  async #goOnWaiting(waiting: Waiting, error: SmsError): Promise<void> {
    const text = this.#options.ledger.text(waiting.id);
    if (this.#waiting.get(waiting.id) !== waiting) return;
    if (text?.state === 'leaving') await this.#options.ledger.putBack(text);
    if (!isOutage(error) || !this.#isOpen) return;
    if (!this.#outage) this.#outage = new Outage(this.#options.clock, error, () => this.#tryOne());
    else if (this.#outage.probe === waiting.id) this.#outage.failed(error);
    this.#tell(waiting.node);
  }

  #end(waiting: Waiting, tell: (text: Text) => void): void {
    const text = this.#options.ledger.text(waiting.id);
    // Ended by somebody else meanwhile, or left for the next process when the account was closed.
    if (!text || this.#waiting.get(waiting.id) !== waiting) return;
    this.#forget(waiting);
    tell(text);
  }

  #outageEnds(): void {
    if (!this.#outage) return;
    this.#outage.end();
    this.#outage = undefined;
    for (const waiting of [...this.#waiting.values()]) this.#queueUp(waiting);
  }

  /** In an outage one text tries: the one that would leave first. */
  #tryOne(): void {
    if (!this.#outage?.isDue) return;
    let first: Waiting | undefined;
    for (const waiting of this.#waiting.values()) {
      if (waiting.pause || !this.#options.outlet(waiting.node)) continue;
      if (!first || waiting.priority > first.priority) first = waiting;
    }
    if (first) {
      this.#outage.probe = first.id;
      this.#enqueue(first);
    } else {
      // Nobody waits any more: the next one finds out for itself.
      this.#outage = undefined;
    }
  }

  #tell(node: string): void {
    const outlet = this.#options.outlet(node);
    if (!this.#outage || !outlet || this.#outage.told.has(node)) return;
    this.#outage.told.add(node);
    outlet.onOutage(this.#outage.error.with({ waiting: this.#byNode.get(node)?.size ?? 0 }));
  }

  #expire(id: string): void {
    const { ledger, outlet, onEnded, onAbandoned } = this.#options;
    const text = ledger.text(id);
    // What is leaving cannot be stopped any more.
    if (!text || !this.remove(id)) return;
    const minutes = Math.round((text.options.keep?.expireMs ?? 0) / 60_000);
    if (outlet(text.node)) onEnded(text, new SmsError('expired', { params: { minutes } }));
    else onAbandoned(text);
    this.#options.onState(text.node);
  }

  #forget(waiting: Waiting): void {
    this.#expiries.forget(waiting.id);
    waiting.pause?.cancel();
    this.#waiting.delete(waiting.id);
    const others = this.#byNode.get(waiting.node);
    others?.delete(waiting);
    if (others?.size === 0) this.#byNode.delete(waiting.node);
  }
}

const neverAborted = new AbortController().signal;
