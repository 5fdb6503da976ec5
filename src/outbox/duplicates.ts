import type { Clock } from '../clock';
import { SmsError } from '../errors';
import type { QuietHours } from '../message/times';
import type { Absences } from './absences';
import type { Deliveries } from './delivery';
import { createExpired, Expiries } from './expiry';
import type { Followers } from './followers';
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
    const { ledger, kept, deliveries, onEnded, onAbandoned, onFault } = this.#options;
    const text = ledger.texts.get(id);
    const { leader: leaderId = '' } = this.#waiting.get(id) ?? {};
    const leader = ledger.texts.get(leaderId);
    // Of one that is leaving, has just ended or is in another instance it will be known later whether anything was sent.
    const isAtRest = leader?.state === 'waiting' && isKept(leader) && !kept.isTried(leader.id);
    if (!text || !isAtRest || !this.remove(id)) this.#expiries.postpone(id);
    else if (!deliveries.outlet(text.node)) onAbandoned(text);
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
