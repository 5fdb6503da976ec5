import type { OptOutPage } from '../consent/opt-outs';
import type { Wish } from '../consent/words';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Channel } from '../inbox/entry';
import type { Inbox } from '../inbox/inbox';
import type { Outlet, SendingNode } from '../outbox/outlet';
import type { Consent, OptOutQuery } from './consent';
import type { Estate } from './estate';
import type { Member } from './member';
import type { FormerPlace, Membership, Subscribers, Subscriptions } from './membership';
import type { Overview } from './overview';
import type { AccountSettings } from './settings';
import type { AccountState, Counts, Decided, Decision, EntryAction, EntryList, EntryState } from './state';
import { type Surroundings, subscribe } from './subscribe';

/** What a membership needs of its account. */
export interface MembershipHost extends Omit<Surroundings, 'member' | 'inbox'> {
  /** Names the login. */
  readonly key: string;
  readonly overview: Overview;
  readonly consent: Consent;
  /** What is kept for a member. */
  estateOf(member: Member): Estate;
  /** See {@link Membership.inherit}. */
  inherit(member: Member, former: FormerPlace, onFailure?: (failure: SmsError) => void): Promise<boolean>;
  /** See {@link Membership.leave}. */
  leave(member: Member, returning: Promise<void> | undefined): Promise<void>;
}

/** A member of an account: its part, with what the nodes need not see. */
export class JoinedMembership implements Membership, Member {
  readonly settings: AccountSettings;
  readonly client: Client;
  readonly left: Promise<void>;
  readonly #host: MembershipHost;
  #onLeft = () => {};
  #leaving: Promise<void> | undefined;

  constructor(settings: AccountSettings, client: Client, host: MembershipHost) {
    this.settings = settings;
    this.client = client;
    this.#host = host;
    this.left = new Promise((resolve) => {
      this.#onLeft = resolve;
    });
  }

  get key(): string {
    return this.#host.key;
  }

  /** What all members share. */
  get inbox(): Inbox {
    return this.#host.estateOf(this).inbox;
  }

  inherit(former: FormerPlace, onFailure?: (failure: SmsError) => void): Promise<boolean> {
    return this.#host.inherit(this, former, onFailure);
  }

  subscribe<C extends Channel>(channel: C, subscriber: Subscribers[C]): Subscriptions[C] {
    return subscribe[channel]({ ...this.#host, member: this, inbox: this.inbox }, subscriber);
  }

  attachSender(outlet: Omit<Outlet, 'client'>): SendingNode {
    const sending = this.#host.estateOf(this).sender.attach({ ...outlet, client: this.client });
    const detach = this.#host.consent.attach(outlet.id, this.settings.prefixes);
    return {
      send: (request) => sending.send(request),
      countRefused: () => sending.countRefused(),
      close: () => {
        detach();
        return sending.close();
      },
    };
  }

  state(): AccountState {
    return this.#host.overview.state;
  }

  countsToday(): Counts {
    return this.#host.overview.countsToday;
  }

  knowsEntries(): boolean {
    return this.inbox.find();
  }

  entries(state: EntryState, most: number, after?: string): EntryList {
    return this.#host.overview.entries(state, most, after);
  }

  act(id: string, action: EntryAction): Promise<Decision> {
    return this.#host.overview.act(id, action);
  }

  actOnAll(state: EntryState, action: EntryAction): Promise<Decided | 'unfit'> {
    return this.#host.overview.actOnAll(state, action);
  }

  refresh(): Promise<void> {
    return this.#host.consent.refresh();
  }

  optOuts(query?: OptOutQuery): Promise<OptOutPage> {
    return this.#host.consent.list(this.#host.estateOf(this).journal, query);
  }

  changeOptOuts(msisdns: readonly string[], wish: Wish): Promise<number> {
    return this.#host.consent.change(this.#host.estateOf(this).journal, msisdns, wish);
  }

  leave(returning?: Promise<void>): Promise<void> {
    this.#leaving ??= this.#host.leave(this, returning);
    this.#onLeft();
    return this.#leaving;
  }
}
