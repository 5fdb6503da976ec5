import { type Clock, onceAborted, wait } from '../clock';
import { SmsError } from '../errors';
import type { QuietHours } from '../message/times';
import type { Absences } from './absences';
import type { Deliveries } from './delivery';
import { createExpired, Expiries } from './expiry';
import type { KeptTexts } from './keeping';
import type { Ledger } from './ledger';
import { formatOutcome, isKept, type StoredOutcome, stillUnknown, type Text } from './outgoing';

/** What kept texts with a key in common need. */
export interface DuplicatesOptions {
  clock: Clock;
  absences: Absences;
  ledger: Ledger;
  /** See {@link RuleSettings}. */
  quietHours(): readonly QuietHours[];
  followers: Followers;
  kept: KeptTexts;
  deliveries: Deliveries;
  isHere(node: string): boolean;
  /** It has an outcome that is not the one of another. */
  onEnded(text: Text, outcome: SmsError): void;
  /** Its node has not been here for too long. */
  onAbandoned(text: Text): void;
  /** Something that nobody waits for has failed. */
  onFault(error: unknown): void;
}

interface Duplicate {
  /** Ends its waiting. */
  readonly stop: AbortController;
  /** Id of the text that holds its key, as far as is known. */
  leader?: string | undefined;
  /** Not while it is found out, or written, what becomes of it. */
  isFollowing: boolean;
}

/**
 * Kept texts whose key another has that is under way: each waits for the outcome of that one, across redeploys and restarts as
 * any kept text does, and then has the same, or is sent. Each has its own time, as any kept text has.
 */
export class Duplicates {
  readonly #options: DuplicatesOptions;
  /** By id. */
  readonly #waiting = new Map<string, Duplicate>();
  readonly #expiries: Expiries;
  #isClosed = false;

  constructor(options: DuplicatesOptions) {
    this.#options = options;
    this.#expiries = new Expiries(options, (id) => this.#expire(id));
  }

  /** Texts that wait for the outcome of another. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Sends a kept text, has it wait for the text that holds its key, or ends it as that one has ended. Never rejects. */
  async resume(text: Text): Promise<void> {
    // It was taken in as the account was closed.
    if (this.#isClosed) return;
    this.#forget(text.id);
    const duplicate: Duplicate = { stop: new AbortController(), isFollowing: false };
    this.#waiting.set(text.id, duplicate);
    this.#expiries.watch(text);
    try {
      await this.#compare(text, duplicate);
    } catch (error) {
      this.#options.followers.ended(text.id);
      if (!duplicate.stop.signal.aborted) this.#options.onFault(error);
    } finally {
      if (this.#waiting.get(text.id) === duplicate) this.#forget(text.id);
    }
  }

  /** A node has come or gone: its texts may wait for so long from now on. */
  nodeChanged(node: string): void {
    this.#expiries.nodeChanged(node);
  }

  /** It has the outcome of another text. */
  async end(text: Text, outcome: StoredOutcome): Promise<void> {
    const { ledger, deliveries, followers } = this.#options;
    followers.ended(text.id);
    await deliveries.deliver(await ledger.echo(text, outcome), false);
  }

  /** Nobody wants a text any more. Says whether it could be stopped. */
  remove(id: string): boolean {
    if (!this.#waiting.get(id)?.isFollowing) return false;
    this.#forget(id);
    return true;
  }

  /** Texts may wait again. */
  open(): void {
    this.#isClosed = false;
  }

  /** Nothing waits any longer, nor begins to; the store has it. */
  close(): void {
    this.#isClosed = true;
    for (const id of [...this.#waiting.keys()]) this.#forget(id);
  }

  #forget(id: string): void {
    this.#waiting.get(id)?.stop.abort();
    this.#waiting.delete(id);
    this.#expiries.forget(id);
  }

  #expire(id: string): void {
    const { ledger, kept, isHere, onEnded, onAbandoned, onFault } = this.#options;
    const text = ledger.texts.get(id);
    const { leader: leaderId = '' } = this.#waiting.get(id) ?? {};
    const leader = ledger.texts.get(leaderId);
    // Of one that is leaving, has just ended or is in another instance it will be known later whether anything was sent.
    const isAtRest = leader?.state === 'waiting' && isKept(leader) && !kept.isTried(leader.id);
    if (!text || !isAtRest || !this.remove(id)) this.#expiries.postpone(id);
    else if (!isHere(text.node)) onAbandoned(text);
    else if (!leader.mayHaveReached) onEnded(text, createExpired(text));
    else void this.end(text, formatOutcome(stillUnknown(leader, 'SMS_EXPIRED'))).catch(onFault);
  }

  /** Resolves when the text has its outcome, or is sent as any other. */
  async #compare(given: Text, duplicate: Duplicate): Promise<void> {
    const { signal } = duplicate.stop;
    const { ledger, followers, kept } = this.#options;
    for (let text = given; ; ) {
      const taken = await ledger.takeIn(text).catch(() => undefined);
      signal.throwIfAborted();
      if (taken) text = taken.text;
      const { verdict } = taken ?? {};
      if (verdict?.type === 'new') return kept.admit(text);
      if (verdict?.type === 'ended') return this.end(text, verdict.outcome);
      if (verdict?.type === 'taken') {
        return this.end(text, formatOutcome(new SmsError('onceTaken', { field: 'once' })));
      }
      duplicate.leader = verdict?.id ?? duplicate.leader;
      duplicate.isFollowing = true;
      await followers.follow(text.id, verdict?.id, signal);
      duplicate.isFollowing = false;
    }
  }
}

/** How soon it is asked again what became of a text that is not in hand here. */
const otherInstanceMs = 1_000;

/** One that waits. */
interface Follower {
  /** Of its own text. */
  id: string;
  onEnded(): void;
}

/** Those who wait for the outcome of a text, because theirs has the same key. */
export class Followers {
  readonly #clock: Clock;
  readonly #isUnderWay: (id: string) => boolean;
  /** In the order in which they came, by the text that they wait for. */
  readonly #waiting = new Map<string, Set<Follower>>();

  /** @param isUnderWay whether a text is in hand here, so that its end is told */
  constructor(clock: Clock, isUnderWay: (id: string) => boolean) {
    this.#clock = clock;
    this.#isUnderWay = isUnderWay;
  }

  /**
   * Resolves when it is worth asking the store what became of a text: when it has ended here; after a second when it has just ended
   * or another instance has it in hand, which the store alone knows, and when not even its id is known, since the store fails. Whoever
   * then neither follows again nor is sent has to tell that by {@link ended}: others may have been left to wait for it.
   *
   * @param own id of the text that waits
   * @throws the reason of `signal` when it aborts before
   */
  follow(own: string, id: string | undefined, signal: AbortSignal): Promise<void> {
    this.ended(own);
    return id !== undefined && this.#isUnderWay(id)
      ? this.#ended(own, id, signal)
      : wait(this.#clock, otherInstanceMs, signal);
  }

  #ended(own: string, id: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const others = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, others);
      const leave = onceAborted(signal, () => {
        others.delete(follower);
        reject(signal.reason);
      });
      const follower: Follower = {
        id: own,
        onEnded: () => {
          leave();
          resolve();
        },
      };
      others.add(follower);
    });
  }

  /** A text has ended, or waits for another itself. */
  ended(id: string): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    for (const { onEnded } of waiting) onEnded();
  }

  /** A text has ended, and its key is free: the first of those who wait may have it, and the others wait for that one. */
  endedUnsent(id: string): void {
    const waiting = this.#waiting.get(id);
    const [first] = waiting ?? [];
    this.#waiting.delete(id);
    if (!waiting || !first) return;
    waiting.delete(first);
    if (waiting.size > 0) this.#waiting.set(first.id, waiting);
    first.onEnded();
  }
}
