import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import { Journal } from '../journal';
import { Inbox } from '../receiving/inbox';
import type { InboxOptions } from '../receiving/inbox-context';
import type { LimitSettings } from '../sending/limits';
import type { Evidence } from '../sending/outgoing';
import type { SendQueue } from '../sending/queue';
import type { Respite } from '../sending/respite';
import type { SendCounts } from '../sending/send-counts';
import { Sender } from '../sending/sender';
import type { Store } from '../store/store';

/** What an account keeps in one store. */
export interface Estate {
  readonly inbox: Inbox;
  readonly sender: Sender;
  /** Whether several processes use the store at once. */
  readonly isShared: boolean;
  /** Whether nothing would be lost by forgetting it. */
  readonly isSettled: boolean;
}

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
  /** The account's own limits. */
  limits(): LimitSettings | undefined;
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
}

/** Joins what comes in and what goes out, which know nothing of each other, in one journal. */
export function createEstate(options: EstateOptions): Estate {
  const { store, onStore, onSteps, onUnreadable, ...rest } = options;
  const journal = new Journal({
    store,
    clock: options.clock,
    onStore(error) {
      onStore(error);
      sender.onStore();
    },
    onSteps() {
      onSteps();
      sender.onStore();
    },
    onUnreadable,
  });
  const sender = new Sender({ ...rest, journal });
  const inbox = new Inbox({ ...rest, journal, correlator: sender.correlation });
  return {
    sender,
    inbox,
    isShared: journal.isShared,
    get isSettled() {
      return inbox.isSettled && sender.isSettled;
    },
  };
}
