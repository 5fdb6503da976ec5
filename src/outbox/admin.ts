import type { SmsError } from '../errors';
import { present } from '../wire/fields';
import type { Dispatcher, DispatcherOptions } from './dispatcher';
import type { TextEntryPlace, TextEntryState } from './messages';
import type { SendFailure } from './outage';
import type { SendCounts } from './send-counts';
import { concernedBy, createResolved, isKept, parseOutcome, type Text } from './text';
import { stale } from './transitions';

/** What goes on with texts that go out. */
export interface SendState {
  /** Texts that are being sent, or for which evidence is being looked for. */
  inFlight: number;
  /** Texts that wait for their turn or for the service, kept ones included. */
  waiting: number;
  kept: number;
  /** Kept ones that may not leave yet: by their own time, or for quiet hours. */
  scheduled: number;
  /** ms */
  oldestKeptAt?: number;
  /** Texts with an unknown outcome that somebody may decide about. */
  uncertain: number;
  /** Replies that wait for a reply. */
  awaitingReply: number;
  /** Reports that wait for statuses. */
  awaitingReport: number;
  /** Why kept texts do not leave, while that is so. */
  failing?: SendFailure;
}

/** How it is before anything was sent. */
export const nothingSent: SendState = {
  inFlight: 0,
  waiting: 0,
  kept: 0,
  scheduled: 0,
  uncertain: 0,
  awaitingReply: 0,
  awaitingReport: 0,
};

/** A text that somebody may decide about. */
export interface TextEntry extends TextEntryPlace {
  id: string;
  /** When it may leave, where that is not yet; ms. */
  dueAt?: number;
  /** When it has left, while its outcome is awaited; ms. */
  leftAt?: number;
  node: string;
  to: readonly string[];
  from?: string;
  body: string;
  /** Its key of `replace`. */
  key?: string;
  /** Why it is uncertain. */
  error?: SmsError;
}

/** What can be decided about a text: `sent` says of one whose outcome is unknown that it has arrived. */
export type TextAction = 'send' | 'markSent' | 'discard';

/** The oldest first, and how many there are in all. */
export interface TextEntryList {
  entries: TextEntry[];
  total: number;
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/** What the admin looks at. */
export interface AdminOptions extends DispatcherOptions {
  dispatcher: Dispatcher;
}

/** Shows what goes on, and takes the decisions of people. */
export class Admin {
  readonly counts: SendCounts;
  readonly #options: AdminOptions;

  constructor(options: AdminOptions) {
    this.counts = options.counts;
    this.#options = options;
  }

  get state(): SendState {
    const { ledger, reconciliations, queue, dispatcher } = this.#options;
    const { failing } = dispatcher;
    const { messages } = ledger;
    const kept = messages.countEntries('kept');
    return {
      inFlight: queue.inFlight + reconciliations.searches.size,
      waiting: queue.waitingUnkept + kept,
      kept,
      scheduled: messages.count(['scheduled']),
      uncertain: messages.countEntries('uncertain'),
      awaitingReply: ledger.followUps.open.replyRequest.total,
      awaitingReport: ledger.followUps.open.report.total,
      ...present({ oldestKeptAt: messages.oldestKeptAt, failing }),
    };
  }

  /** At most so many entries, the first or those after an earlier list's `next`. */
  entries(state: TextEntryState, most: number, after?: string): TextEntryList {
    const { messages } = this.#options.ledger;
    const { page, ...more } = messages.page(state, most, after);
    const entries = page.map(({ text, place }) => formatEntry(text, place, this.#options.dispatcher.dueAt(text.id)));
    return { entries, ...more };
  }

  /**
   * Does what somebody has decided: `send` an uncertain text once more or a kept one now, which takes its node; `discard` either;
   * `sent`: an uncertain one has arrived.
   *
   * @returns `gone` when there is no such entry any more, `unfit` when the action does not fit its state
   * @throws SmsError `SMS_STORE` when what is to be discarded, or sent before its time, cannot be written now: it stays
   */
  async act(id: string, action: TextAction | 'deliver'): Promise<'done' | 'gone' | 'unfit'> {
    const { messages } = this.#options.ledger;
    const text = messages.get(id);
    const entry = messages.entry(id);
    // Evidence may be looked for of one that has left, and it may have to wait again.
    if (!entry && !(text?.state === 'leaving' && isKept(text))) return 'gone';
    if (!text || !entry || action === 'deliver') return 'unfit';
    return (await this.#decide(text, action, entry.state === 'kept')) ? 'done' : 'unfit';
  }

  /** Says whether the action fits. */
  async #decide(text: Text, action: TextAction, isKept: boolean): Promise<boolean> {
    const { clock, dispatcher, ledger, registrations, settlement } = this.#options;
    if (action === 'discard') {
      if (isKept && !dispatcher.remove(text.id)) return false;
      const isDiscarded = await settlement.discard(text).catch((error: unknown) => {
        if (isKept) dispatcher.admit(text);
        throw error;
      });
      if (!isDiscarded) return false;
    } else if (isKept) {
      const mayLeave = action === 'send' && registrations.handlerOf(text.node);
      if (!mayLeave || ledger.messages.find(text.id)?.abort) return false;
      const isWritten = (await ledger.sendNow(text)) !== stale;
      return isWritten && dispatcher.sendNow(text.id);
    } else if (action === 'markSent') {
      const sent = createResolved(text.message.messageId, concernedBy(text), 'person');
      return settlement.end(text, { by: 'markSent', outcome: sent, change: { isManuallyResent: true } });
    } else {
      const { node, outcome } = text;
      if (!registrations.handlerOf(node) || !outcome) return false;
      const change = { isManuallyResent: true, arrivedAt: clock.now() } as const;
      const again = await ledger.sendAgain(text, outcome, change);
      if (again === stale) return false;
      dispatcher.admit(again);
    }
    return true;
  }
}

function formatEntry(text: Text, place: TextEntryPlace, dueAt: number | undefined): TextEntry {
  const { id, node, message, outcome, state, leftAt } = text;
  const error = outcome && (parseOutcome(outcome) as SmsError);
  return {
    id,
    ...place,
    node,
    to: message.to,
    body: message.body,
    ...present({
      dueAt,
      leftAt: state === 'leaving' ? leftAt : undefined,
      from: message.from,
      key: text.options.replaceKey,
      error,
    }),
  };
}
