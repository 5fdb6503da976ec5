import { wait } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Feed, RecordOfKind } from '../model';
import { isHandset } from '../replies/sent-index';
import { normaliseRecipient } from '../wire/fields';
import type { OutboxOptions } from './ledger';
import { UnderWay } from './queue';
import type { SenderRegistrations } from './sender-registrations';
import { concernedBy, createResolved, type Evidence, isReconciled, type Sent, type Text } from './text';

/** What a search came to. */
interface Finding {
  sent?: Sent;
  /** Where it was searched, when nothing was found. */
  searched: Evidence[];
}

const feedReadsAfterMs = [2_000, 10_000];
const feedIntervalMs = 30_000;
/** Texts that are looked for at the same time share a reading that is no older. */
const sharedFeedMs = 1_000;
const wordCharacter = /[\p{L}\p{N}_-]/u;
/** Minimum length of a messageId that counts as found in the feed. Shorter ones occur in entries of other messages. */
const minSearchLength = 8;

/** What evidence is collected with. */
interface ReconciliationsOptions extends OutboxOptions {
  /** A redeploy ends whoever could ask the service before. */
  registrations: SenderRegistrations;
}

/**
 * Collects evidence that the service has taken a text whose outcome is unknown: from the records that pass the account,
 * from the moment the text leaves, and from the feed while somebody looks. Finding nothing says nothing. Each is found by the id of its text.
 */
export class Reconciliations extends Map<string, Reconciliation> {
  readonly #options: ReconciliationsOptions;
  /** Of texts for which evidence is being looked for. */
  readonly searches = new UnderWay();
  #reading: { at: number; feed: Promise<Feed> } | undefined;

  constructor(options: ReconciliationsOptions) {
    super();
    this.#options = options;
  }

  /** Begins to collect, unless it has begun already; `undefined` for a text that nothing is looked for, or where nobody is who can. */
  open(text: Text, client = this.#options.registrations.clientFor(text.node)): Reconciliation | undefined {
    const opened = this.get(text.id) ?? (client && isReconciled(text) ? this.#create(text, client) : undefined);
    if (!opened) return undefined;
    this.set(text.id, opened);
    opened.to = concernedBy(text);
    return opened;
  }

  /** Ends the collection. */
  close(id: string): void {
    this.delete(id);
    // A feed is large, and private.
    if (this.size === 0) this.#reading = undefined;
  }

  /** A record has come. */
  observe(passing: RecordOfKind): void {
    const id = passing.kind === 'outbox' ? passing.record.messageId : passing.record.inReplyToId;
    if (typeof id !== 'string') return;
    for (const opened of this.values()) if (opened.messageId === id.trim()) opened.observe(passing);
  }

  #create({ message, node }: Text, client: Client): Reconciliation {
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
  /** Reads the feed (§4.5), which marks nothing as read. */
  readFeed(): Promise<Feed>;
}

/** What is known of one text. */
export class Reconciliation {
  readonly messageId: string;
  /** What there is to tell when nothing is found, once the search has been interrupted: somebody else is to go on. */
  interruptedWith: SmsError | undefined;
  readonly #options: ReconciliationOptions;
  readonly #accepted = new Set<string>();
  /** Those whom the text may have gone to: of its recipients some may be kept back when it leaves. */
  to: readonly string[] = [];
  #by: Evidence | undefined;
  /** Aborts when all of them have been spoken of. */
  readonly #complete = new AbortController();

  constructor(messageId: string, options: ReconciliationOptions) {
    this.messageId = messageId;
    this.#options = options;
  }

  observe(passing: RecordOfKind): void {
    const { to } = this;
    if (passing.kind === 'outbox') this.#found('outbox', to);
    else {
      const handset = normaliseRecipient(passing.record.from);
      // A number that was not submitted is that of a contact, or of a member of a group.
      const spokenOf = to.includes(handset) ? [handset] : to.filter((item) => !isHandset(item));
      if (spokenOf.length > 0) this.#found(passing.kind === 'status' ? 'status' : 'reply', spokenOf);
    }
  }

  /**
   * Looks for evidence for so long, or until all of the recipients have been spoken of.
   *
   * @throws the reason of `signal` when it aborts before
   */
  look(forMs: number, signal: AbortSignal): Promise<Finding> {
    const { clock, searches, sources } = this.#options;
    const complete = this.#complete.signal;
    return searches.run(async () => {
      signal.throwIfAborted();
      const over = new AbortController();
      const stop = AbortSignal.any([signal, complete, over.signal]);
      const reading = this.#readFeedUntil(clock.elapsed() + forMs, stop).catch(() => {});
      // A reading of the feed is not waited for then.
      await Promise.race([reading, new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))]);
      // What listens would be kept for as long as `signal` is.
      over.abort();
      if (!complete.aborted) signal.throwIfAborted();
      const accepted = this.to.filter((item) => this.#accepted.has(item));
      const sent = this.#by && createResolved(this.messageId, accepted, this.#by);
      return { ...(sent && { sent }), searched: ['feed', ...sources()] };
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
      // A reading that fails proves nothing, and the next may succeed.
      const { entries } = await this.#options.readFeed().catch(() => ({ entries: [] }));
      if (isSearchable && entries.some(({ id, link, fields }) => containsWord([id, link, fields], this.messageId)))
        this.#found('feed', this.to);
      if (next >= until) return;
    }
  }

  /** What speaks of all counts before what speaks of some. */
  #found(by: Evidence, recipients: readonly string[]): void {
    if (recipients === this.to) this.#by = by;
    this.#by ??= by;
    for (const item of recipients) this.#accepted.add(item);
    if (this.to.every((item) => this.#accepted.has(item))) this.#complete.abort();
  }
}

/** Says whether an id, a link or a field of the feed is a word, or has it as a whole one. */
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
