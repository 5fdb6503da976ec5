import type { Clock } from '../clock';
import { countOptOuts, listOptOuts, type OptOutChange, type OptOutPage } from '../consent/opt-outs';
import { createWishOf, type Wish, type WishOf } from '../consent/words';
import { createOptOutStep } from '../inbox/correlator';
import type { Journal } from '../journal/journal';
import { createReading } from '../journal/step';
import type { QuestionPoll } from './question-poll';
import type { AccountSettings } from './settings';

/** What consent needs of its account. */
export interface ConsentHost {
  readonly clock: Clock;
  readonly replies: Pick<QuestionPoll, 'listen'>;
  /** Where the list is, if anybody has asked for it. */
  journal(): Journal | undefined;
}

/** Part of the list, and what to look for in it. */
export interface OptOutQuery {
  /** A part of the numbers, of digits; absent: all. */
  search?: string;
  /** What an earlier page gave as its `next`; absent: from the latest. */
  after?: string;
}

/** Changed in one step: of more, others wait too long for their turn. */
const mostInStep = 1_000;

/** Others, on a store that is shared, may have changed the list by then. */
const knownForMs = 30_000;

/** Who wants no more texts, and whom the account nodes may write to, for all who are on one login. */
export class Consent {
  readonly #host: ConsentHost;
  /** By what words people are understood: by those of all nodes; absent: none of them has `optOut`, which would hold for all. */
  wishOf: WishOf | undefined;
  /** Beginnings of the numbers that nodes may write to that send, by their ids. */
  readonly prefixes = new Map<string, ReadonlySet<string>>();
  /** How many are on the list, as was known when somebody last looked. */
  optedOut = 0;
  /** Nodes that send, by who has attached them. */
  readonly #senders = new Map<object, string>();
  /** When it was read, by {@link Clock.elapsed}. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(host: ConsentHost) {
    this.#host = host;
  }

  /** Other account nodes are deployed. */
  update(settings: readonly AccountSettings[]): void {
    // When all have gone, what polls in flight still bring is understood by the words of the last.
    const optOuts = settings.flatMap(({ optOut }) => optOut ?? []);
    if (settings.length > 0) this.wishOf = optOuts.length > 0 ? createWishOf(optOuts) : undefined;
    this.#listen();
  }

  /** A node begins to send. Returns how it ends that. */
  attach(node: string, prefixes: readonly string[] = []): () => void {
    const sender = {};
    this.#senders.set(sender, node);
    // What is kept of it leaves only while it is here.
    if (prefixes.length > 0) this.prefixes.set(node, new Set(prefixes));
    else this.prefixes.delete(node);
    this.#listen();
    return () => {
      this.#senders.delete(sender);
      this.#listen();
    };
  }

  /** Has the number of those on the list read where it may have changed. */
  async refresh(): Promise<void> {
    const journal = this.#host.journal();
    const isKnown = this.#host.clock.elapsed() - this.#readAt < knownForMs;
    if (isKnown || journal?.mode !== 'open') return;
    this.#readAt = this.#host.clock.elapsed();
    this.optedOut = await journal.run(createReading('refuse', countOptOuts)).catch(() => this.optedOut);
  }

  /** The list has changed. */
  changed(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  /** @throws SmsError `SMS_STORE` when the store cannot be used */
  list(journal: Journal, query: OptOutQuery = {}): Promise<OptOutPage> {
    return journal.run(createReading('refuse', (look) => listOptOuts(look, query)));
  }

  /**
   * Puts numbers on the list by hand, or takes them off it. Resolves with for how many that was a change.
   *
   * @throws SmsError `SMS_STORE` when the store cannot be used: some of them may be changed
   */
  async change(journal: Journal, msisdns: readonly string[], wish: Wish): Promise<number> {
    let changed = 0;
    for (let from = 0; from < msisdns.length; from += mostInStep) {
      const change: OptOutChange = {
        msisdns: msisdns.slice(from, from + mostInStep),
        wish,
        at: this.#host.clock.now(),
        via: 'person',
        createId: () => journal.nextId(),
      };
      changed += await journal.run(createOptOutStep(change, 'refuse'));
      this.changed();
    }
    return changed;
  }

  /** Who wants no more texts says so in a message. */
  #listen(): void {
    this.#host.replies.listen(this.wishOf ? new Set(this.#senders.values()) : new Set());
  }
}
