import { SmsError } from '../errors';
import type { Dispatcher } from './dispatcher';
import { createExpired, type Expiry } from './expiry';
import type { Ledger } from './ledger';
import type { Followers } from './once';
import type { Deliveries } from './redelivery';
import type { SenderRegistrations } from './sender-registrations';
import type { Settlement } from './settlement';
import { formatOutcome, isKept, type StoredOutcome, stillUnknown, type Text } from './text';

/** What kept texts with a key in common need. */
export interface DuplicatesOptions {
  ledger: Ledger;
  expiry: Expiry;
  followers: Followers;
  dispatcher: Dispatcher;
  settlement: Settlement;
  deliveries: Deliveries;
  registrations: SenderRegistrations;
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
  #isClosed = false;

  constructor(options: DuplicatesOptions) {
    this.#options = options;
  }

  /** Texts that wait for the outcome of another. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Whether a text waits here. */
  has(id: string): boolean {
    return this.#waiting.has(id);
  }

  /** Sends a kept text, has it wait for the text that holds its key, or ends it as that one has ended. Never rejects. */
  async resume(text: Text): Promise<void> {
    // It was taken in as the account was closed.
    if (this.#isClosed) return;
    const { expiry, dispatcher, onFault } = this.#options;
    this.#forget(text.id);
    const duplicate: Duplicate = { stop: new AbortController(), isFollowing: false };
    this.#waiting.set(text.id, duplicate);
    expiry.watch(text);
    let leading: Text | undefined;
    try {
      leading = await this.#compare(text, duplicate);
    } catch (error) {
      this.#options.followers.ended(text.id);
      if (!duplicate.stop.signal.aborted) onFault(error);
    }
    if (this.#waiting.get(text.id) === duplicate) this.#forget(text.id);
    if (leading) dispatcher.admit(leading);
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

  /** The time of a text is over. */
  expire(id: string): void {
    const { ledger, expiry, dispatcher, settlement, registrations, onFault } = this.#options;
    const text = ledger.texts.get(id);
    const leader = ledger.texts.get(this.#waiting.get(id)?.leader ?? '');
    // Of one that is leaving, has just ended or is in another instance it will be known later whether anything was sent.
    const isAtRest = leader?.state === 'waiting' && isKept(leader) && !dispatcher.isTried(leader.id);
    if (!text || !isAtRest || !this.remove(id)) expiry.postpone(id);
    else if (!registrations.handlerOf(text.node)) void settlement.abandon(text);
    else if (!leader.mayHaveReached) void settlement.end(text, createExpired(text)).catch(onFault);
    else void this.end(text, formatOutcome(stillUnknown(leader, 'SMS_EXPIRED'))).catch(onFault);
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
    this.#options.expiry.forget(id);
  }

  /** Resolves when the text has its outcome; with the text where it is to be sent as any other. */
  async #compare(given: Text, duplicate: Duplicate): Promise<Text | undefined> {
    const { signal } = duplicate.stop;
    const { ledger, followers } = this.#options;
    for (let text = given; ; ) {
      const taken = await ledger.takeIn(text).catch(() => undefined);
      signal.throwIfAborted();
      if (taken) text = taken.text;
      const { verdict } = taken ?? {};
      if (verdict?.type === 'new') return text;
      if (verdict?.type === 'taken' || verdict?.type === 'ended') {
        const isTaken = verdict.type === 'taken';
        await this.end(text, isTaken ? formatOutcome(new SmsError('onceTaken', { field: 'once' })) : verdict.outcome);
        return undefined;
      }
      duplicate.leader = verdict?.id ?? duplicate.leader;
      duplicate.isFollowing = true;
      await followers.follow(text.id, verdict?.id, signal);
      duplicate.isFollowing = false;
    }
  }
}
