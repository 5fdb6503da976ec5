import type { Clock } from '../clock';
import type { SmsError } from '../errors';
import { type EntryQuery, searchIn } from '../page';
import type { ReplyRequest } from '../replies/follow-ups';
import { present } from '../wire/fields';
import type { Dispatcher } from './dispatcher';
import { concernedBy, createResolved, isKept, type MessageItem, parseOutcome } from './message-item';
import type { MessageRepository } from './message-repository';
import type { MessageEntryPlace, MessageEntryState, OutgoingMessage } from './messages';
import type { SendFailure } from './outage';
import type { SendQueue } from './queue';
import type { Reconciliations } from './reconciliation';
import type { SendCounts } from './send-counts';
import type { SenderRegistrations } from './sender-registrations';
import type { Settlement } from './settlement';
import { stale } from './transitions';

/** Counts of outgoing messages, for users. */
export interface SendState {
  /** Messages that are being sent, or for which the account still checks whether the service accepted them. */
  inFlight: number;
  /** Messages that wait for their turn or for the service, including stored messages. */
  waiting: number;
  /** Stored messages that wait or are being sent. */
  kept: number;
  /** Stored messages that cannot be sent yet, because of their scheduled time or quiet hours. */
  scheduled: number;
  /** Time at which the oldest stored message arrived, in ms since 1970. */
  oldestKeptAt?: number;
  /** Messages with an unknown outcome about which a user can decide. */
  uncertain: number;
  /** Open reply requests. */
  awaitingReply: number;
  /** Open reports. */
  awaitingReport: number;
  /** The current outage. Present only while stored messages wait for its end. */
  failing?: SendFailure;
}

/** The counts before the first message is sent. */
export const nothingSent: SendState = {
  inFlight: 0,
  waiting: 0,
  kept: 0,
  scheduled: 0,
  uncertain: 0,
  awaitingReply: 0,
  awaitingReport: 0,
};

/** A message about which a user can decide. */
export interface MessageEntry extends MessageEntryPlace {
  id: string;
  /** Time at which a scheduled message can be sent, in ms since 1970. */
  dueAt?: number;
  /** Time at which the message was last sent, in ms since 1970. Absent if the message waits. */
  leftAt?: number;
  node: string;
  to: readonly string[];
  from?: string;
  body: string;
  /** The `replace` key of the message. */
  key?: string;
  /** Why the outcome is unknown. */
  error?: SmsError;
}

/** Decisions of a user. `markSent` means that a message with an unknown outcome was sent. */
export type MessageAction = 'send' | 'markSent' | 'discard';

/** A page of entries, oldest first, with the total number of entries. */
export interface MessageEntryList {
  entries: MessageEntry[];
  total: number;
  /** The value of `after` for the next page. Absent: this is the last page. */
  next?: string;
}

/** Components that {@link Admin} uses. */
export interface AdminOptions {
  clock: Clock;
  counts: SendCounts;
  queue: SendQueue;
  repository: MessageRepository;
  registrations: SenderRegistrations;
  reconciliations: Reconciliations;
  settlement: Settlement;
  dispatcher: Dispatcher;
}

/** Shows the activity of the outbox, and carries out the decisions of users. */
export class Admin {
  readonly counts: SendCounts;
  readonly #options: AdminOptions;

  constructor(options: AdminOptions) {
    this.counts = options.counts;
    this.#options = options;
  }

  get state(): SendState {
    const { repository, reconciliations, queue, dispatcher } = this.#options;
    const { failing } = dispatcher;
    const { messages, followUps } = repository;
    const { openCounts } = followUps;
    const kept = messages.countEntries('kept');
    return {
      inFlight: queue.inFlight + reconciliations.searches.size,
      waiting: queue.waitingUnkept + kept,
      kept,
      scheduled: messages.counts.scheduled,
      uncertain: messages.countEntries('uncertain'),
      awaitingReply: sumOf(openCounts.replyRequest),
      awaitingReport: sumOf(openCounts.report),
      ...present({ oldestKeptAt: messages.oldestKeptAt, failing }),
    };
  }

  /** Returns a page of the entries of a state. */
  entries(state: MessageEntryState, query: EntryQuery): MessageEntryList {
    const { repository } = this.#options;
    const searchedTextsOf = ({ message: { to, from, body, messageId }, options }: MessageItem) => [
      ...to,
      from,
      body,
      messageId,
      options.replaceKey,
    ];
    const { page, ...more } = repository.messages.page(state, searchIn(query, searchedTextsOf));
    return { entries: page.flatMap((message) => formatEntry(message) ?? []), ...more };
  }

  /** The reply requests that have no result yet. */
  get openRequests(): ReplyRequest[] {
    const followUps = [...this.#options.repository.followUps.values()];
    return followUps.filter((followUp) => followUp.kind === 'replyRequest' && !followUp.result) as ReplyRequest[];
  }

  /**
   * Carries out a user's decision about a message. `send` sends a message with an unknown outcome again. It also sends
   * a stored message immediately, if its node is deployed. `discard` removes either kind of message. `markSent` marks a
   * message with an unknown outcome as sent.
   *
   * @returns `gone` if the entry no longer exists, `unfit` if the action does not fit the state of the entry
   * @throws SmsError `SMS_STORE` if the store cannot write the decision now. The entry then stays
   */
  async act(id: string, action: MessageAction | 'deliver'): Promise<'done' | 'gone' | 'unfit'> {
    const { messages } = this.#options.repository;
    const { item, listing } = messages.find(id) ?? {};
    const entry = listing?.entry;
    // Does not return `gone` for a stored message that is being sent, because the message might wait again afterwards.
    if (!entry && !(item?.state === 'leaving' && isKept(item))) return 'gone';
    if (!item || !entry || action === 'deliver') return 'unfit';
    return (await this.#decide(item, action, entry.state === 'kept')) ? 'done' : 'unfit';
  }

  /** Carries out an action. Returns `false` if the action does not fit the state of the message. */
  async #decide(item: MessageItem, action: MessageAction, isKept: boolean): Promise<boolean> {
    const { clock, dispatcher, repository, registrations, settlement } = this.#options;
    if (action === 'discard') {
      if (isKept && !dispatcher.remove(item.id)) return false;
      const isDiscarded = await settlement.discard(item).catch((error: unknown) => {
        if (isKept) dispatcher.admit(item);
        throw error;
      });
      if (!isDiscarded) return false;
    } else if (isKept) {
      const mayLeave = action === 'send' && registrations.handlerOf(item.node);
      if (!mayLeave || repository.messages.find(item.id)?.abort) return false;
      const isWritten = (await repository.sendNow(item)) !== stale;
      return isWritten && dispatcher.sendNow(item.id);
    } else if (action === 'markSent') {
      const sent = createResolved(item.message.messageId, concernedBy(item), 'person');
      return settlement.end(item, { by: 'markSent', outcome: sent, change: { isManuallyResent: true } });
    } else {
      const { node, outcome } = item;
      if (!registrations.handlerOf(node) || !outcome) return false;
      const change = { isManuallyResent: true, arrivedAt: clock.now() } as const;
      const requeued = await repository.sendAgain(item, outcome, change);
      if (requeued === stale) return false;
      dispatcher.admit(requeued);
    }
    return true;
  }
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

function formatEntry({ item, listing, dueAt }: OutgoingMessage): MessageEntry | undefined {
  const { id, node, message, outcome, state, leftAt } = item;
  const error = outcome && (parseOutcome(outcome) as SmsError);
  return (
    listing.entry && {
      id,
      ...listing.entry,
      node,
      to: message.to,
      body: message.body,
      ...present({
        dueAt,
        leftAt: state === 'waiting' ? undefined : leftAt,
        from: message.from,
        key: item.options.replaceKey,
        error,
      }),
    }
  );
}
