import type { Clock, Timer } from '../clock';
import { SmsError } from '../errors';
import type { DeadLetter } from '../inbox/entries';
import type { Acceptance, InboxState } from '../inbox/inbox';
import type { Kind } from '../model';
import { nothingSent, type SendState, type TextAction, type TextEntry } from '../outbox/admin';
import { SendCounts } from '../outbox/counts';
import { RetryAfter } from '../outbox/outage';
import type { Endpoints, PollSummary } from '../polling/endpoint';
import type { AccountData } from './account-data';
import type { Consent } from './consent';

/** What an account does and what waits in it. All times are in ms since 1970. */
export interface AccountState {
  /** The endpoints that are polled now. */
  polls: PollSummary[];
  inbox: InboxState;
  sends: SendState;
  /** How many want no more texts, as was known when somebody last looked. */
  consent: { optedOut: number };
  store: StoreState;
  /** Since the process started. */
  counts: Counts;
}

/** The store that the account is kept in. */
export interface StoreState {
  /** `memory`, `disk` or `redis`. */
  kind: string;
  /** Whether it can be used. */
  ok: boolean;
  /** Why not; or what of it was found damaged since the process started. */
  error?: SmsError;
}

/** What came in, in messages. */
export interface ReceiveCounts {
  received: number;
  statuses: number;
  /** What had been received before. */
  duplicates: number;
  redelivered: number;
  setAside: number;
}

/** What became of texts, and what came in. */
export type Counts = Omit<SendCounts, 'add'> & ReceiveCounts;

/** A message or status that a flow did not take. */
export interface AsideEntry {
  id: string;
  state: 'aside';
  /** When it was given up. */
  at: number;
  /** The node whose flow did not take it; blank: no node takes it. */
  node: string;
  to?: readonly string[];
  from?: string;
  /** The text, or the status code. */
  body: string;
  error?: SmsError;
}

/** What somebody may decide about. */
export type AccountEntry = TextEntry | AsideEntry;

/** What an entry is: a text that waits, one whose outcome is unknown, or what a flow did not take. */
export type EntryState = AccountEntry['state'];

/** What can be decided: `send` fits what goes out, `sent` what may have gone out, `deliver` what came in, `discard` all. */
export type EntryAction = TextAction | 'deliver';

/** What became of a decision: the entry is there no more, or the action does not fit its state. */
export type Decision = 'done' | 'gone' | 'unfit';

/** What became of a decision about all entries of a state. */
export interface Decided {
  done: number;
  /** Those that it could not be done to. */
  left: number;
}

/** The oldest entries first, and how many there are in all. */
export interface EntryList {
  entries: AccountEntry[];
  total: number;
  /** What to ask for more with; absent: these were the last. */
  next?: string;
}

/**
 * Counts what an account does, and knows until when the service wants to be left alone, and who knows that the store fails. It
 * outlives the account, which goes with the last of its members.
 */
export class Stats {
  readonly sends = new SendCounts();
  readonly retryAfter: RetryAfter;
  readonly #clock: Clock;
  readonly #receives: ReceiveCounts = { received: 0, statuses: 0, duplicates: 0, redelivered: 0, setAside: 0 };
  /** What had been counted when this day began. */
  #before: Counts | undefined;
  #midnight: Timer | undefined;
  #told = { storeName: '', nodes: new Set<string>() };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.retryAfter = new RetryAfter(clock);
    this.#awaitMidnight();
  }

  get counts(): Counts {
    const { add: _, ...sends } = this.sends;
    return { ...sends, ...this.#receives };
  }

  /** What was counted since the last midnight of the machine's time zone, or since the start. */
  get countsToday(): Counts {
    const { counts } = this;
    if (!this.#before) return counts;
    for (const [name, before] of Object.entries(this.#before)) counts[name as keyof Counts] -= before;
    return counts;
  }

  /** Nodes that know that a store fails; none of another than the last that was asked for. */
  toldOfStore(storeName: string): Set<string> {
    if (this.#told.storeName !== storeName) this.#told = { storeName, nodes: new Set() };
    return this.#told.nodes;
  }

  /** Records have come and are kept. */
  accepted(kind: Kind, acceptances: readonly Acceptance[]): void {
    const fresh = acceptances.filter(({ outcome }) => outcome === 'new').length;
    this.#receives.duplicates += acceptances.length - fresh;
    if (kind === 'incoming') this.#receives.received += fresh;
    if (kind === 'status') this.#receives.statuses += fresh;
  }

  redelivered(): void {
    this.#receives.redelivered++;
  }

  setAside(): void {
    this.#receives.setAside++;
  }

  /** Nothing is counted any more. */
  close(): void {
    this.#midnight?.cancel();
  }

  #awaitMidnight(): void {
    const now = this.#clock.now();
    const begin = () => {
      this.#before = this.counts;
      this.#awaitMidnight();
    };
    // A day may have 23 or 25 hours.
    this.#midnight = this.#clock.after(new Date(now).setHours(24, 0, 0, 0) - now, begin, true);
  }
}

/** What an overview looks at. */
export interface OverviewParts {
  readonly endpoints: Endpoints;
  readonly stats: Stats;
  readonly consent: Pick<Consent, 'optedOut'>;
  /** What the account keeps, if anybody has asked for it. */
  data(): AccountData | undefined;
  /** See {@link AccountSettings.storeName}. */
  storeName(): string;
  /** Somebody has discarded what belonged to a node. */
  onDiscarded(node: string): void;
}

const pageLength = 200;

const actions: Readonly<Record<EntryState, readonly EntryAction[]>> = {
  kept: ['send', 'discard'],
  uncertain: ['send', 'sent', 'discard'],
  aside: ['deliver', 'discard'],
};

const nothingReceived: InboxState = { undelivered: 0, setAside: 0 };

/** Tells what goes on in an account, and takes decisions about its entries. */
export class Overview {
  readonly #parts: OverviewParts;

  constructor(parts: OverviewParts) {
    this.#parts = parts;
  }

  get state(): AccountState {
    const { endpoints, stats } = this.#parts;
    const { inbox, outbox } = this.#parts.data() ?? {};
    return {
      polls: Object.values(endpoints).flatMap(({ summary }) => summary ?? []),
      inbox: inbox?.state ?? nothingReceived,
      sends: outbox?.admin.state ?? nothingSent,
      consent: { optedOut: this.#parts.consent.optedOut },
      store: this.#store,
      counts: stats.counts,
    };
  }

  /** See {@link Membership.entries}. */
  entries(state: EntryState, most: number, after?: string): EntryList {
    const data = this.#parts.data();
    if (!data) return { entries: [], total: 0 };
    const { inbox, outbox } = data;
    if (state !== 'aside') return outbox.admin.entries(state, most, after);
    const { items, ...more } = inbox.deadLetters.page(most, after);
    return { entries: items.map(createAsideEntry), total: inbox.deadLetters.size, ...more };
  }

  /** @throws SmsError `SMS_STORE` when the store is needed for it and cannot be used */
  async act(id: string, action: EntryAction): Promise<Decision> {
    const data = this.#parts.data();
    if (!data) return 'gone';
    const { admin } = data.outbox;
    const { deadLetters } = data.inbox;
    const item = deadLetters.get(id);
    if (!item) {
      if (action !== 'deliver') return admin.act(id, action);
      return admin.has(id) ? 'unfit' : 'gone';
    }
    if (action === 'send' || action === 'sent') return 'unfit';
    if (action === 'deliver') return deadLetters.deliver(id) ? 'done' : 'unfit';
    deadLetters.discard(id);
    this.#parts.onDiscarded(item.node);
    return 'done';
  }

  /** See {@link Membership.actOnAll}. */
  async actOnAll(state: EntryState, action: EntryAction): Promise<Decided | 'unfit'> {
    if (!actions[state].includes(action)) return 'unfit';
    const decided: Decided = { done: 0, left: 0 };
    let page = this.entries(state, pageLength);
    // Those that come meanwhile nobody has seen.
    for (let rest = page.total; ; rest -= page.entries.length) {
      const decisions = await Promise.all(page.entries.slice(0, rest).map(({ id }) => this.act(id, action)));
      for (const decision of decisions) {
        if (decision === 'done') decided.done++;
        else if (decision === 'unfit') decided.left++;
      }
      if (page.next === undefined || rest <= page.entries.length) return decided;
      page = this.entries(state, pageLength, page.next);
    }
  }

  get #store(): StoreState {
    const [kind = ''] = this.#parts.storeName().split(' ');
    const { failure, damage } = this.#parts.data()?.journal ?? {};
    const error = failure ?? damage;
    return { kind, ok: failure === undefined, ...(error && { error }) };
  }
}

function createAsideEntry({ id, at, node, kind, record, attempts }: DeadLetter): AsideEntry {
  const { to, from, body, statusCode } = record as Partial<Record<'to' | 'from' | 'body' | 'statusCode', string>>;
  return {
    id,
    state: 'aside',
    at,
    node,
    ...(to === undefined ? undefined : { to: [to] }),
    ...(from === undefined ? undefined : { from }),
    body: String((kind === 'status' ? statusCode : body) ?? ''),
    ...(node === '' ? undefined : { error: new SmsError('undelivered', { params: { attempts } }) }),
  };
}
