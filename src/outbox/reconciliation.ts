import { type Clock, onceAborted, wait } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Feed, FeedEntry, OutboundMessage, RecordOfKind } from '../model';
import { isHandset } from '../questions/sent-index';
import { normaliseRecipient } from '../wire/fields';
import { UnderWay } from './counts';
import { concernedBy, type Evidence, type Sent, type Text } from './text';

/** A record that passes the account, whichever way it came. */
export type PassingRecord = RecordOfKind;

/** A text whose outcome may turn out to be unknown. */
export interface UnknownText {
  message: OutboundMessage & { messageId: string };
  /** Reads the feed (§4.5), which marks nothing as read. */
  readFeed(): Promise<Feed>;
}

/** What a search came to. */
export interface Finding {
  sent?: Sent;
  /** Where it was looked, when nothing was found. */
  looked: Evidence[];
}

const feedReadsAfterMs = [2_000, 10_000];
const feedIntervalMs = 30_000;
/** Texts that are looked for at the same time share a reading that is no older. */
const sharedFeedMs = 1_000;
const wordCharacter = /[\p{L}\p{N}_-]/u;

/**
 * Collects evidence that the service has taken a text whose outcome is unknown: from the records that pass the account,
 * from the moment the text leaves, and from the feed while somebody looks. Finding nothing says nothing.
 */
export class EvidenceCollector {
  readonly #clock: Clock;
  /** Which kinds of records pass the account now, beside the feed. */
  readonly #sources: () => readonly Evidence[];
  readonly #open = new Map<string, Set<Reconciliation>>();
  readonly #searches = new UnderWay();
  #reading: { at: number; feed: Promise<Feed> } | undefined;

  constructor(clock: Clock, sources: () => readonly Evidence[]) {
    this.#clock = clock;
    this.#sources = sources;
  }

  /** For how many texts evidence is being looked for. */
  get searches(): number {
    return this.#searches.size;
  }

  /** Begins to collect for a text that leaves. */
  watch(text: UnknownText): Reconciliation {
    const { messageId } = text.message;
    const opened = new Reconciliation(text, {
      clock: this.#clock,
      sources: this.#sources,
      searches: this.#searches,
      readFeed: () => this.#readFeed(text),
      onClose: () => {
        const open = this.#open.get(messageId);
        open?.delete(opened);
        if (open?.size === 0) this.#open.delete(messageId);
        // A feed is large, and private.
        if (this.#open.size === 0) this.#reading = undefined;
      },
    });
    this.#open.set(messageId, (this.#open.get(messageId) ?? new Set()).add(opened));
    return opened;
  }

  /** A record has come. */
  observe(passing: PassingRecord): void {
    const { record } = passing;
    const id = passing.kind === 'outbox' ? record.messageId : passing.record.inReplyToId;
    if (typeof id !== 'string') return;
    for (const opened of this.#open.get(id.trim()) ?? []) opened.observe(passing);
  }

  #readFeed(text: UnknownText): Promise<Feed> {
    const at = this.#clock.elapsed();
    if (!this.#reading || at - this.#reading.at > sharedFeedMs) {
      this.#reading = { at, feed: text.readFeed() };
    }
    return this.#reading.feed;
  }
}

interface Search {
  readonly opened: Reconciliation;
  /** What there is to tell when nothing is found, once the search has been interrupted. */
  error?: SmsError;
}

/** The evidence of texts that are under way, from the moment that each leaves. */
export class Reconciliations {
  readonly #evidence: EvidenceCollector;
  readonly #clientFor: (node: string) => Client | undefined;
  readonly #searches = new Map<string, Search>();

  /** @param clientFor who can ask the service for a node now: a redeploy ends whoever could before */
  constructor(evidence: EvidenceCollector, clientFor: (node: string) => Client | undefined) {
    this.#evidence = evidence;
    this.#clientFor = clientFor;
  }

  /** Says whether a text is one for which evidence can be looked for. */
  static isFor({ message, options }: Text): boolean {
    return options.resolveMs > 0 && message.messageId !== undefined;
  }

  /** Begins to collect, unless it has begun already; `undefined` for a text that nothing is looked for, or where nobody is who can. */
  open(text: Text, client = this.#clientFor(text.node)): Reconciliation | undefined {
    const search = this.#searches.get(text.id) ?? (client && this.#begin(text, client));
    if (!search) return undefined;
    this.#searches.set(text.id, search);
    search.opened.goesTo(concernedBy(text));
    return search.opened;
  }

  /** Somebody else is to go on. */
  interrupt(id: string, error: SmsError): void {
    const search = this.#searches.get(id);
    if (search) search.error = error;
  }

  /** See {@link interrupt}. */
  errorOf(id: string): SmsError | undefined {
    return this.#searches.get(id)?.error;
  }

  /** Whether the service can be asked now about a text, or nothing is to be looked for. */
  canLook(text: Text): boolean {
    return this.#clientFor(text.node) !== undefined || !Reconciliations.isFor(text);
  }

  close(id: string): void {
    this.#searches.get(id)?.opened.close();
    this.#searches.delete(id);
  }

  #begin(text: Text, client: Client): Search | undefined {
    const { message, node } = text;
    const { messageId } = message;
    if (!Reconciliations.isFor(text) || messageId === undefined) return undefined;
    const readFeed = () => (this.#clientFor(node) ?? client).readFeed({ type: 'out', size: 300 });
    return { opened: this.#evidence.watch({ message: { ...message, messageId }, readFeed }) };
  }
}

interface ReconciliationOptions {
  clock: Clock;
  sources(): readonly Evidence[];
  searches: UnderWay;
  readFeed(): Promise<Feed>;
  onClose(): void;
}

/** What is known of one text. */
export class Reconciliation {
  readonly #text: UnknownText;
  readonly #options: ReconciliationOptions;
  readonly #accepted = new Set<string>();
  #to: readonly string[];
  #by: Evidence | undefined;
  #isComplete = false;
  #onComplete = () => {};

  constructor(text: UnknownText, options: ReconciliationOptions) {
    this.#text = text;
    this.#to = text.message.to;
    this.#options = options;
  }

  /** Ends the collection. */
  close(): void {
    this.#options.onClose();
  }

  /** Of the recipients, some may be kept back when the text leaves. */
  goesTo(recipients: readonly string[]): void {
    this.#to = recipients;
  }

  observe(passing: PassingRecord): void {
    if (passing.kind === 'outbox') {
      this.#foundAll('outbox');
      return;
    }
    const to = this.#to;
    const handset = normaliseRecipient(passing.record.from);
    // A number that was not submitted is that of a contact, or of a member of a group.
    const spokenOf = to.includes(handset) ? [handset] : to.filter((item) => !isHandset(item));
    if (spokenOf.length === 0) return;
    for (const item of spokenOf) this.#accepted.add(item);
    this.#by ??= passing.kind === 'status' ? 'status' : 'reply';
    if (to.every((item) => this.#accepted.has(item))) this.#complete();
  }

  /**
   * Looks for evidence for so long, or until all of the recipients have been spoken of.
   *
   * @throws the reason of `signal` when it aborts before
   */
  look(forMs: number, signal: AbortSignal): Promise<Finding> {
    return this.#options.searches.run(() => this.#search(forMs, signal));
  }

  async #search(forMs: number, signal: AbortSignal): Promise<Finding> {
    const stop = new AbortController();
    const leave = onceAborted(signal, () => stop.abort(signal.reason));
    const until = this.#options.clock.elapsed() + forMs;
    const complete = new Promise<void>((resolve, reject) => {
      this.#onComplete = resolve;
      if (this.#isComplete) resolve();
      // A reading of the feed is not waited for then.
      onceAborted(stop.signal, () => reject(stop.signal.reason));
    });
    const reading = this.#readFeedUntil(until, stop.signal);
    if (signal.aborted) stop.abort(signal.reason);
    try {
      await Promise.race([complete, reading]);
      if (signal.aborted) throw signal.reason;
    } finally {
      leave();
      for (const ending of [complete, reading]) ending.catch(() => {});
      stop.abort();
    }
    return { ...(this.#by === undefined ? undefined : { sent: this.#found(this.#by) }), looked: this.#looked() };
  }

  async #readFeedUntil(until: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.elapsed();
    for (let time = 0; ; time++) {
      const due = startedAt + (feedReadsAfterMs[time] ?? 10_000 + feedIntervalMs * (time - 1));
      const next = Math.min(due, until);
      await wait(clock, Math.max(0, next - clock.elapsed()), signal);
      await this.#readFeedOnce();
      if (this.#isComplete || next >= until) return;
    }
  }

  async #readFeedOnce(): Promise<void> {
    try {
      const { entries } = await this.#options.readFeed();
      if (entries.some((entry) => speaksOf(entry, this.#text.message.messageId))) this.#foundAll('feed');
    } catch {
      // A reading that fails proves nothing, and the next may succeed.
    }
  }

  #foundAll(by: Evidence): void {
    this.#by = by;
    for (const item of this.#to) this.#accepted.add(item);
    this.#complete();
  }

  #complete(): void {
    this.#isComplete = true;
    this.#onComplete();
  }

  #found(resolvedBy: Evidence): Sent {
    const accepted = this.#to.filter((item) => this.#accepted.has(item));
    return {
      messageId: this.#text.message.messageId,
      recipients: accepted.map((msisdn) => ({ msisdn, isError: false })),
      accepted,
      failed: [],
      resolvedBy,
    };
  }

  #looked(): Evidence[] {
    return ['feed', ...this.#options.sources().filter((source) => source !== 'feed')];
  }
}

/** Says whether an entry of the feed has the messageId as its id, or as a whole word in its id, link or a field. */
function speaksOf({ id, link, fields }: FeedEntry, messageId: string): boolean {
  return [id, link, fields].some((value) => containsWord(value, messageId));
}

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
