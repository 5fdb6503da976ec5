import type { Clock } from '../clock';
import type { ConsentWords } from '../consent/words';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import { ConsentCorrelator } from '../inbox/consent';
import { Inbox, type InboxOptions } from '../inbox/inbox';
import { Journal } from '../journal/journal';
import type { SendCounts } from '../outbox/counts';
import type { Respite } from '../outbox/dispatch-order';
import type { Evidence } from '../outbox/outgoing';
import type { SendQueue } from '../outbox/queue';
import type { RuleSettings } from '../outbox/rule';
import { Sender } from '../outbox/sender';
import type { Store } from '../store/store';

/** What the keeping of an account stands on. */
export interface EstateOptions extends Pick<InboxOptions, 'onAccepted' | 'onGivenUpFull'> {
  store: Store;
  clock: Clock;
  queue: SendQueue;
  /** Counts what becomes of texts. */
  counts: SendCounts;
  /** Until when the service wants to be left alone. */
  respite: Respite;
  /** Nodes that know that the store fails. */
  toldOfStore: Set<string>;
  dedupe(): boolean;
  dedupeMs(): number;
  sentMs(): number;
  /** See {@link Sender}. */
  rules(): RuleSettings;
  /** See {@link Sender}. */
  sources(): readonly Evidence[];
  /** See {@link Sender}. */
  client(): Client | undefined;
  onStore(error: SmsError | undefined): void;
  /** See {@link JournalOptions.onSteps}. */
  onSteps(): void;
  onUnreadable(place: string): void;
  onFault(error: unknown): void;
  onAbandoned(node: string): void;
  onDiscarded(node: string): void;
  onAsking(node: string, isAsking: boolean): void;
  onAskingRests(): void;
  /** By what words people opt out. */
  words(): ConsentWords;
  /** The list of those who opted out has changed. */
  onOptOut(): void;
}

/** What an account keeps in one store: what comes in and what goes out, which know nothing of each other, in one journal. */
export class Estate {
  readonly journal: Journal;
  readonly inbox: Inbox;
  readonly sender: Sender;
  /** Whether several processes use the store at once. */
  readonly isShared: boolean;

  constructor({ store, onStore, onSteps, onUnreadable, ...options }: EstateOptions) {
    const journal = new Journal({
      store,
      clock: options.clock,
      onStore: (error) => {
        onStore(error);
        this.sender.onStore();
      },
      onSteps: () => {
        onSteps();
        this.sender.onStore();
      },
      onUnreadable,
    });
    this.sender = new Sender({ ...options, journal });
    this.journal = journal;
    const correlator = new ConsentCorrelator({
      journal,
      correlator: this.sender.correlation,
      now: () => options.clock.now(),
      words: options.words,
      onChanged: options.onOptOut,
    });
    this.inbox = new Inbox({ ...options, journal, correlator });
    this.isShared = journal.isShared;
  }

  /** Whether nothing would be lost by forgetting it. */
  get isSettled(): boolean {
    return this.inbox.isSettled && this.sender.isSettled;
  }
}
