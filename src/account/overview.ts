import { SmsError } from '../errors';
import type { DeadLetter } from '../inbox/dead-letters';
import type { InboxState } from '../inbox/inbox';
import { nothingSent } from '../outbox/desk';
import type { Endpoints } from '../polling/endpoint';
import type { Consent } from './consent';
import type { Estate } from './estate';
import type {
  AccountState,
  AsideEntry,
  Counts,
  Decided,
  Decision,
  EntryAction,
  EntryList,
  EntryState,
  StoreState,
} from './state';
import type { Tally } from './tally';

/** What an overview looks at. */
export interface OverviewParts {
  readonly endpoints: Endpoints;
  readonly tally: Tally;
  readonly consent: Pick<Consent, 'optedOut'>;
  /** What the account keeps, if anybody has asked for it. */
  estate(): Estate | undefined;
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
    const { endpoints, tally } = this.#parts;
    const { inbox, sender } = this.#parts.estate() ?? {};
    return {
      polls: endpoints.summaries,
      inbox: inbox?.state ?? nothingReceived,
      sends: sender?.state ?? nothingSent,
      consent: { optedOut: this.#parts.consent.optedOut },
      store: this.#store,
      counts: tally.counts,
    };
  }

  /** See {@link Membership.entries}. */
  entries(state: EntryState, most: number, after?: string): EntryList {
    const estate = this.#parts.estate();
    if (!estate) return { entries: [], total: 0 };
    const { inbox, sender } = estate;
    if (state !== 'aside') return sender.desk.entries(state, most, after);
    const { items, ...more } = inbox.deadLetters.page(most, after);
    return { entries: items.map(createAsideEntry), total: inbox.deadLetters.size, ...more };
  }

  /** @throws SmsError `SMS_STORE` when the store is needed for it and cannot be used */
  async act(id: string, action: EntryAction): Promise<Decision> {
    const estate = this.#parts.estate();
    if (!estate) return 'gone';
    const { desk } = estate.sender;
    const { deadLetters } = estate.inbox;
    const item = deadLetters.get(id);
    if (!item) {
      if (action !== 'deliver') return desk.act(id, action);
      return desk.has(id) ? 'unfit' : 'gone';
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

  /** As {@link state} counts, since midnight or the start of the process. */
  get countsToday(): Counts {
    return this.#parts.tally.countsToday;
  }

  get #store(): StoreState {
    const [kind = ''] = this.#parts.storeName().split(' ');
    const error = this.#parts.estate()?.inbox.failure;
    return error ? { kind, ok: false, error } : { kind, ok: true };
  }
}

function createAsideEntry({ id, at, node, kind, record, attempts }: DeadLetter): AsideEntry {
  const { to, from, body, statusCode } = record as Partial<Record<'to' | 'from' | 'body' | 'statusCode', string>>;
  const { code, message } = new SmsError('undelivered', { params: { attempts } });
  return {
    id,
    state: 'aside',
    at,
    node,
    ...(to === undefined ? undefined : { to: [to] }),
    ...(from === undefined ? undefined : { from }),
    body: String((kind === 'status' ? statusCode : body) ?? ''),
    error: { code, message },
  };
}
