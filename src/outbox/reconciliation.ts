import { wait } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Feed, RecordOfKind } from '../model';
import { isHandset } from '../replies/sent-index';
import { normaliseRecipient } from '../wire/fields';
import { type EvidenceRecord, evidenceOf, messageIdOf } from './evidence';
import {
  concernedBy,
  createResolved,
  type Evidence,
  isReconciled,
  type MessageItem,
  type Outcome,
} from './message-item';
import type { OutboxOptions } from './options';
import { UnderWay } from './queue';
import type { SenderRegistrations } from './sender-registrations';

const feedReadsAfterMs = [2_000, 10_000];
const feedIntervalMs = 30_000;
/** Maximum age of a feed that several searches share, in ms. */
const sharedFeedMs = 1_000;
const wordCharacter = /[\p{L}\p{N}_-]/u;
/**
 * Minimum length of a messageId that is looked up in the feed. A shorter id can also occur in entries of other
 * messages.
 */
const minSearchLength = 8;

interface ReconciliationsOptions extends Pick<OutboxOptions, 'clock' | 'account'> {
  /** Provides a client for the search, because a redeploy closes the client that sent the message. */
  registrations: SenderRegistrations;
}

/**
 * Collects evidence that the service has accepted messages with an unknown outcome. Evidence comes from records that
 * the account receives after the message was sent, and from the feed during a search. Missing evidence proves nothing.
 */
export class Reconciliations {
  readonly #opened = new Map<string, Reconciliation>();
  readonly #options: ReconciliationsOptions;
  /** Searches that are running. */
  readonly searches = new UnderWay();
  #reading: { at: number; feed: Promise<Feed> } | undefined;

  constructor(options: ReconciliationsOptions) {
    this.#options = options;
  }

  get(id: string): Reconciliation | undefined {
    return this.#opened.get(id);
  }

  /**
   * Returns the evidence of a message, and starts to collect it if necessary. Returns `undefined` if the message needs
   * no search, or if there is no client that can read the feed.
   */
  open(item: MessageItem, client = this.#options.registrations.clientFor(item.node)): Reconciliation | undefined {
    const opened = this.get(item.id) ?? (client && isReconciled(item) ? this.#create(item, client) : undefined);
    if (!opened) return undefined;
    this.#opened.set(item.id, opened);
    opened.to = concernedBy(item);
    return opened;
  }

  /** Stops collecting evidence for a message. */
  close(id: string): void {
    this.#opened.delete(id);
    // Forgets the feed, because it is large and private.
    if (this.#opened.size === 0) this.#reading = undefined;
  }

  /** Returns whether a record is evidence for a message whose evidence is being collected. */
  wants(passing: RecordOfKind): boolean {
    return this.#openFor(passing).length > 0;
  }

  /** Adds a received record to the evidence of the message to which the record refers. */
  observe(passing: RecordOfKind): void {
    for (const opened of this.#openFor(passing)) opened.observe(evidenceOf(passing));
  }

  #openFor(passing: RecordOfKind): Reconciliation[] {
    if (this.#opened.size === 0) return [];
    const id = messageIdOf(passing);
    return [...this.#opened.values()].filter(({ messageId }) => messageId === id);
  }

  #create({ message, node }: MessageItem, client: Client): Reconciliation {
    const { clock, registrations } = this.#options;
    const readFeed = () => {
      const at = clock.elapsed();
      if (!this.#reading || at - this.#reading.at > sharedFeedMs) {
        this.#reading = { at, feed: (registrations.clientFor(node) ?? client).readFeed({ type: 'out', size: 300 }) };
      }
      return this.#reading.feed;
    };
    return new Reconciliation(message.messageId ?? '', { ...this.#options, searches: this.searches, readFeed });
  }
}

interface ReconciliationOptions extends ReconciliationsOptions {
  searches: UnderWay;
  /** Reads the feed (§4.5). Unlike a poll, this marks nothing as read. */
  readFeed(): Promise<Feed>;
}

/** The evidence that the service accepted one message, and the search for this evidence. */
export class Reconciliation {
  readonly messageId: string;
  /** The unknown outcome of the message, if the search for evidence was interrupted and must be repeated. */
  interruptedWith: SmsError | undefined;
  readonly #options: ReconciliationOptions;
  readonly #accepted = new Set<string>();
  /** Recipients to which this try or an earlier try might have sent the message. */
  to: readonly string[] = [];
  #by: Evidence | undefined;
  /** Aborts when there is evidence for all recipients. */
  readonly #complete = new AbortController();

  constructor(messageId: string, options: ReconciliationOptions) {
    this.messageId = messageId;
    this.#options = options;
  }

  observe({ kind, from }: EvidenceRecord): void {
    const { to } = this;
    if (kind === 'outbox') this.#resolveBy('outbox', to);
    else {
      const handset = normaliseRecipient(from);
      // If the handset that the record comes from is not among the recipients, any address-book name among them can be
      // its name. The record is then evidence that the service accepted the message for each of these names.
      const spokenOf = to.includes(handset) ? [handset] : to.filter((item) => !isHandset(item));
      if (spokenOf.length > 0) this.#resolveBy(kind === 'status' ? 'status' : 'reply', spokenOf);
    }
  }

  /**
   * Searches for `forMs`, or until there is evidence for all recipients. Resolves with the outcome that the evidence
   * shows. Without evidence, resolves with `error` and the list of the searched sources.
   *
   * @throws the reason of `signal` if it aborts first
   */
  search(error: SmsError, forMs: number, signal: AbortSignal): Promise<Outcome> {
    const { clock, searches, account } = this.#options;
    const complete = this.#complete.signal;
    return searches.run(async () => {
      signal.throwIfAborted();
      const over = new AbortController();
      const stop = AbortSignal.any([signal, complete, over.signal]);
      const reading = this.#readFeedUntil(clock.elapsed() + forMs, stop).catch(() => {});
      // Does not wait for the feed after the search has stopped.
      await Promise.race([reading, new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))]);
      // Removes the listeners, which would otherwise live as long as `signal`.
      over.abort();
      if (!complete.aborted) signal.throwIfAborted();
      const accepted = this.to.filter((item) => this.#accepted.has(item));
      if (this.#by) return createResolved(this.messageId, accepted, this.#by);
      return error.with({ searched: ['feed', ...account.sources()] });
    });
  }

  async #readFeedUntil(until: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const isSearchable = [...this.messageId].length >= minSearchLength;
    const startedAt = clock.elapsed();
    for (let time = 0; ; time++) {
      const due = startedAt + (feedReadsAfterMs[time] ?? 10_000 + feedIntervalMs * (time - 1));
      const next = Math.min(due, until);
      await wait(clock, Math.max(0, next - clock.elapsed()), signal);
      // Ignores a failed read of the feed, because the next read might succeed.
      const { entries } = await this.#options.readFeed().catch(() => ({ entries: [] }));
      if (isSearchable && entries.some(({ id, link, fields }) => containsWord([id, link, fields], this.messageId)))
        this.#resolveBy('feed', this.to);
      if (next >= until) return;
    }
  }

  /**
   * Notes evidence that the service accepted recipients. The outcome names one source: the latest one that proved all
   * recipients at once. If there is none, it names the source of the first evidence.
   */
  #resolveBy(by: Evidence, recipients: readonly string[]): void {
    if (recipients === this.to) this.#by = by;
    this.#by ??= by;
    for (const item of recipients) this.#accepted.add(item);
    if (this.to.every((item) => this.#accepted.has(item))) this.#complete.abort();
  }
}

/** Whether a value of the feed contains a word, at any depth. */
function containsWord(value: unknown, word: string): boolean {
  if (typeof value === 'string') return hasWord(value, word);
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => containsWord(inner, word));
}

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const before = text[at - 1] ?? '';
    const after = text[at + word.length] ?? '';
    if (!wordCharacter.test(before) && !wordCharacter.test(after)) return true;
  }
  return false;
}
