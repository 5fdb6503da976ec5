import { type Clock, wait } from '../clock';
import { type SmsError, Told } from '../errors';
import type { Client } from '../http/client';
import type { CallOptions } from '../http/exchange';
import type { Verdict } from '../inbox/identity';
import type { Arrival, Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind } from '../model';
import { type PollEvents, PollLoop, type PollOutcome, type PollState } from './poll-loop';

/** How an endpoint is polled, and for how long what it brings is known. */
export interface PollSettings {
  /** How long to wait after an empty poll (§8). */
  pauseMs: number;
  /** Polls in flight at once while messages keep coming. */
  parallelPolls: number;
  /** Whether duplicates are left out. */
  dedupe: boolean;
  /** How long an identifier is remembered. */
  dedupeMs: number;
}

/** In whose name an endpoint is polled, and by whose settings. */
export interface Poller {
  readonly settings: PollSettings;
  readonly client: Client;
}

/** Who wants an endpoint polled. */
export interface Watcher {
  /** The loop has changed its state; also called once when the watcher joins a loop that runs. */
  onState(state: PollState): void;
  /** The service, or the store, has begun to fail. Called once for each time. */
  onFailing(error: SmsError): void;
  /** All of it works again. Called once for the loop: only the watcher that has been there the longest is told. */
  onRecovered(): void;
  /** How often to poll; the shortest interval of all watchers holds. Only for the outbox. */
  intervalMs?: number;
}

/** Who takes what is polled. */
export interface Receiving {
  /** Records that its flow has and has not acknowledged. */
  readonly outstanding: number;
  /** Further records that it can take before one is acknowledged. */
  readonly room: number;
}

/** Where the loop of an endpoint stands. */
export interface PollSummary {
  kind: Kind;
  state: PollState['name'];
  /** When it came to that state. */
  since: number;
  /** When the service last answered as it should, with something or with nothing. */
  lastAnswerAt?: number;
  /** Why it fails, if it does. */
  error?: SmsError;
}

/** Who asked for a poll, if not the loop. */
type Asker = Pick<Arrival, 'asker' | 'context'>;

/** What an endpoint stands on. */
export interface EndpointHost {
  readonly clock: Clock;
  readonly polls: Polls;
  /** Those who are here. */
  readonly members: ReadonlySet<Poller>;
  /** Those that hold while nobody watches. */
  readonly settings: PollSettings | undefined;
  /** Why what comes cannot be kept now, if so. */
  failure(): SmsError | undefined;
  inboxOf(member: Poller): Inbox;
  /**
   * Resolves when what comes can be kept, and be told what it answers, with a member, or with another while that is here no more.
   *
   * @throws SmsError `SMS_STORE` when it cannot be kept, `SMS_CLOSED` when nobody is here
   */
  ready(member: Poller | undefined): Promise<Poller>;
  /** The poll has come to another state, or has been answered. */
  onChanged(): void;
  /** The service has nothing more of a kind for now. */
  onDrained(kind: Kind): void;
}

/** What sets an endpoint apart from the others. */
interface Plan {
  fetch(client: Client, options: CallOptions): Promise<readonly InboxRecord[]>;
  /** How long to wait when there was nothing. */
  pauseMs(settings: PollSettings | undefined, watchers: Iterable<Watcher>): number;
  /** Polls in flight at once while messages keep coming. */
  parallelPolls(settings: PollSettings | undefined): number;
  /** What a poll brought, as the loop has to see it. */
  judge(verdicts: readonly Verdict[]): PollOutcome;
  /** One poll at a time, since each moves the one date on that they all go by. */
  takesTurns: boolean;
}

/**
 * Answers of an endpoint that may be held and not flushed beside one for each poll of its `parallelPolls`, so that a disk that is slow to
 * flush does not set the pace; each of them is a message more that a power cut may cost.
 */
const maxAhead = 2;

/** What comes piece by piece, each piece once (§4.2, §4.4). */
const queue: Omit<Plan, 'fetch'> = {
  pauseMs: (settings) => settings?.pauseMs ?? 0,
  parallelPolls: (settings) => settings?.parallelPolls ?? 1,
  judge: (verdicts) => (verdicts.every((verdict) => verdict === 'repeated') ? 'repeated' : 'new'),
  takesTurns: false,
};

/** What comes whole since the last time (§4.3): polled at intervals, whatever it brings. */
const list: Omit<Plan, 'fetch'> = {
  pauseMs: (_, watchers) => Math.min(...[...watchers].map(({ intervalMs }) => intervalMs ?? Number.POSITIVE_INFINITY)),
  parallelPolls: () => 1,
  judge: () => 'empty',
  takesTurns: true,
};

const plans: Readonly<Record<Kind, Plan>> = {
  incoming: { ...queue, fetch: (client, options) => client.pollIncoming(options) },
  status: { ...queue, fetch: (client, options) => client.pollStatuses(options) },
  outbox: { ...list, fetch: (client, options) => client.pollOutbox(options) },
};

/** One endpoint that is polled, for all who want it: its loop runs while somebody does. */
export class Endpoint {
  /** How often the service has answered. */
  answers = 0;
  readonly #kind: Kind;
  readonly #plan: Plan;
  readonly #host: EndpointHost;
  readonly #loop: PollLoop;
  /** In the order in which they came, each with the member it belongs to. */
  readonly #watchers = new Map<Watcher, { member: Poller; receiver: Receiving | undefined }>();
  /** What fails, and the watchers have been told of: the service, the store. */
  readonly #told = new Told<'service' | 'store'>();
  #turn: Promise<unknown> = Promise.resolve();
  /** Since when the loop has been in its state, and when the service last answered. */
  #since = 0;
  #lastAnswerAt: number | undefined;

  constructor(kind: Kind, host: EndpointHost) {
    this.#kind = kind;
    this.#plan = plans[kind];
    this.#host = host;
    this.#loop = new PollLoop(
      {
        poll: (events) => this.#poll(events),
        // No more than each receiver can take.
        maxUnderWay: () =>
          Math.min(this.#plan.parallelPolls(this.settings) + maxAhead, ...this.#receivers.map(({ room }) => room)),
        pauseMs: () => this.#plan.pauseMs(this.settings, this.#watchers.keys()),
        parallelPolls: () => this.#plan.parallelPolls(this.settings),
      },
      (state, previous) => this.#tell(state, previous),
      host.clock,
    );
  }

  /** Those of the member who started the loop; while none runs, the account's. */
  get settings(): PollSettings | undefined {
    return this.#starter?.settings ?? this.#host.settings;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Where the loop stands, while it runs. */
  get summary(): PollSummary | undefined {
    if (!this.isWatched) return undefined;
    const { state } = this.#loop;
    const lastAnswerAt = this.#lastAnswerAt;
    return {
      kind: this.#kind,
      state: state.name,
      since: this.#since,
      ...(lastAnswerAt === undefined ? undefined : { lastAnswerAt }),
      ...(state.name === 'failing' ? { error: state.error } : undefined),
    };
  }

  /**
   * Polls for as long as somebody watches, and only while each receiver can take more. Returns how to stop watching.
   *
   * @param receiver takes what is polled; absent: it goes by no measure
   */
  watch(member: Poller, watcher: Watcher, receiver?: Receiving): () => void {
    const isFirst = this.#watchers.size === 0;
    const formerSettings = this.settings;
    this.#watchers.set(watcher, { member, receiver });
    this.holdOrResume();
    if (isFirst) {
      // Whoever starts it is not told of the end of what those before have seen begin.
      this.#told.clear();
      this.#since = this.#host.clock.now();
      this.#loop.start();
    } else {
      const { state } = this.#loop;
      watcher.onState(state);
      if (state.name === 'failing') watcher.onFailing(state.error);
      if (watcher.intervalMs !== undefined || this.settings !== formerSettings) this.#loop.nudge();
    }
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#loop.stop();
      else this.holdOrResume();
      this.#host.onChanged();
    };
  }

  /** Polls now for one who asked. Returns how many records were new. */
  async pollFor(member: Poller, asker: string, context: unknown): Promise<number> {
    const verdicts = await this.#fetch(member, {}, { asker, context });
    return verdicts.filter((verdict) => verdict === 'new').length;
  }

  /** Polls only while what comes can be kept and taken. */
  holdOrResume(): void {
    const error = this.#host.failure();
    const full = this.#receivers.filter(({ room }) => room === 0);
    if (error) this.#loop.hold({ name: 'failing', error });
    else if (full.length > 0) {
      this.#loop.hold({ name: 'paused', unacknowledged: Math.max(...full.map(({ outstanding }) => outstanding)) });
    } else this.#loop.resume();
  }

  /**
   * The member who started the loop, or whose node has watched it the longest since that one has gone: what watches in its name may
   * stay.
   */
  get #starter(): Poller | undefined {
    for (const { member } of this.#watchers.values()) if (this.#host.members.has(member)) return member;
    return undefined;
  }

  get #receivers(): Receiving[] {
    return [...this.#watchers.values()].flatMap(({ receiver }) => receiver ?? []);
  }

  async #poll(events: PollEvents): Promise<PollOutcome> {
    const verdicts = await this.#fetch(this.#starter, events);
    if (verdicts.length > 0) return this.#plan.judge(verdicts);
    this.#host.onDrained(this.#kind);
    return 'empty';
  }

  /** One poll, from the request until what it brought is kept. The account outlives it. */
  #fetch(member: Poller | undefined, events: Partial<PollEvents>, asker?: Asker): Promise<Verdict[]> {
    const host = this.#host;
    const fetch = async (onAnswer: () => void) => {
      const poller = await host.ready(member);
      const records = await this.#plan.fetch(poller.client, { beforeLeaving: events.onSent, onAnswer });
      this.#lastAnswerAt = host.clock.now();
      this.answers++;
      host.onChanged();
      if (records.length === 0) return [];
      const arrival = { kind: this.#kind, records, via: 'poll', ...asker } as Arrival;
      // What moves one date on is asked for when it is due, whatever it has brought.
      return host.inboxOf(poller).accept(arrival, this.#plan.takesTurns ? {} : events);
    };
    return host.polls.track((onAnswer) => {
      if (!this.#plan.takesTurns) return fetch(onAnswer);
      const polling = this.#turn.then(() => fetch(onAnswer));
      this.#turn = polling.catch(() => {});
      return polling;
    });
  }

  #tell(state: PollState, previous: PollState): void {
    if (state.name !== previous.name) this.#since = this.#host.clock.now();
    this.#host.onChanged();
    const failing = state.name === 'failing' ? state.error : undefined;
    // The store may fail and come back while the service fails all the time.
    const what = failing?.code === 'SMS_STORE' ? 'store' : 'service';
    const isNew = failing !== undefined && this.#told.tell(what);
    const hasRecovered = !failing && state.name !== 'paused' && this.#told.size > 0;
    if (hasRecovered) this.#told.clear();
    for (const watcher of this.#watchers.keys()) {
      watcher.onState(state);
      if (isNew) watcher.onFailing(failing);
    }
    const [first] = this.#watchers.keys();
    if (hasRecovered) first?.onRecovered();
  }
}

/** The endpoints of an account. */
export type Endpoints = Readonly<Record<Kind, Endpoint>>;

/** Polls that are not handed over yet; they outlive those who wanted them. */
export class Polls {
  /** Each resolves when it is handed over. */
  readonly #inFlight = new Set<Promise<void>>();
  /** Those whose answer has begun to arrive. */
  readonly #arriving = new Set<Promise<void>>();

  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * Keeps sight of a poll until it has been handed over.
   *
   * @param poll tells by its argument that its answer has begun to arrive
   */
  track<T>(poll: (onAnswer: () => void) => Promise<T>): Promise<T> {
    const polling = poll(() => void this.#arriving.add(handedOver));
    const end = () => {
      this.#inFlight.delete(handedOver);
      this.#arriving.delete(handedOver);
    };
    const handedOver = polling.then(end, end);
    this.#inFlight.add(handedOver);
    return polling;
  }

  /** Resolves when those that are in flight now have been handed over. */
  async ended(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  /** Resolves when one of those that are in flight now has been handed over; at once when there is none. */
  async oneEnded(): Promise<void> {
    if (this.size > 0) await Promise.race(this.#inFlight);
  }

  /** Resolves when those have been handed over whose answer has begun to arrive by now, or after `graceMs`. */
  async arrived(clock: Clock, graceMs: number): Promise<void> {
    if (this.#arriving.size === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.all(this.#arriving), timeout]);
    grace.abort();
  }
}
