import { type Clock, wait } from '../clock';
import { type SmsError, Told } from '../errors';
import type { Client } from '../http/client';
import type { CallOptions } from '../http/exchange';
import type { Verdict } from '../inbox/identity';
import type { Arrival, Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind } from '../model';
import { type PollEvents, PollLoop, type PollOutcome, type PollState } from './poll-loop';

/** How an endpoint is polled, and how long its identifiers are remembered. */
export interface PollSettings {
  /** Time to wait after an empty poll (§8). */
  pauseMs: number;
  /** Polls in flight at the same time while messages keep coming. */
  parallelPolls: number;
  /** Whether duplicates are left out. */
  dedupe: boolean;
  /** How long an identifier is remembered. */
  dedupeMs: number;
}

/** A member whose login and settings a poll uses. */
export interface Poller {
  readonly settings: PollSettings;
  readonly client: Client;
}

/** A node, or another part of the library, that needs an endpoint polled. */
export interface Watcher {
  /** The loop has changed its state. Also called when the watcher joins a running loop. */
  onState(state: PollState): void;
  /** The service or the store has begun to fail. Called once per failure. */
  onFailing(error: SmsError): void;
  /** Service and store work again. Only the first watcher of the loop is called. */
  onRecovered(): void;
  /** Interval of polls of outgoing messages. The shortest interval of all watchers applies. */
  intervalMs?: number;
}

/** A node that gets the polled records. */
export interface Receiving {
  /** Number of records that the flow has not acknowledged. */
  readonly outstanding: number;
  /** Number of records that it can get before one is acknowledged. */
  readonly room: number;
}

/** The state of an endpoint's loop. */
export interface PollSummary {
  kind: Kind;
  state: PollState['name'];
  /** When the state began, in ms since 1970. */
  since: number;
  /** When the service last answered without an error, in ms since 1970. */
  lastAnswerAt?: number;
  /** The error, in state `failing`. */
  error?: SmsError;
}

/** The node that asked for a poll. Absent: the loop did. */
type Asker = Pick<Arrival, 'asker' | 'context'>;

/** The account of an endpoint. */
export interface EndpointHost {
  readonly clock: Clock;
  readonly polls: Polls;
  /** Members of the account. */
  readonly members: ReadonlySet<Poller>;
  /** Settings that apply while no watcher is here. */
  readonly settings: PollSettings | undefined;
  /** Why answers cannot be stored now. */
  failure(): SmsError | undefined;
  inboxOf(member: Poller): Inbox;
  /**
   * Resolves when answers can be stored and matched. Results in the member, or in another one if that has left.
   *
   * @throws SmsError `SMS_STORE` when it cannot be kept, `SMS_CLOSED` when nobody is here
   */
  ready(member: Poller | undefined): Promise<Poller>;
  /** The state has changed, or a poll was answered. */
  onChanged(): void;
  /** The service has no more records of a kind for now. */
  onDrained(kind: Kind): void;
}

/** The differences between the endpoints. */
interface Plan {
  fetch(client: Client, options: CallOptions): Promise<readonly InboxRecord[]>;
  /** Time to wait after an empty answer. */
  pauseMs(settings: PollSettings | undefined, watchers: Iterable<Watcher>): number;
  /** Polls in flight at the same time while messages keep coming. */
  parallelPolls(settings: PollSettings | undefined): number;
  /** The outcome of a poll for the loop. */
  judge(verdicts: readonly Verdict[]): PollOutcome;
  /** One poll at a time, because each advances the last poll date. */
  takesTurns: boolean;
}

/**
 * Answers that can be held and not flushed, in addition to `parallelPolls`, so that a slow disk does not set the pace. A
 * power cut can lose each of them.
 */
const maxAhead = 2;

/** Endpoints that give records piece by piece, each once (§4.2, §4.4). */
const queue: Omit<Plan, 'fetch'> = {
  pauseMs: (settings) => settings?.pauseMs ?? 0,
  parallelPolls: (settings) => settings?.parallelPolls ?? 1,
  judge: (verdicts) => (verdicts.every((verdict) => verdict === 'repeated') ? 'repeated' : 'new'),
  takesTurns: false,
};

/** The endpoint that gives everything since the last poll (§4.3), polled at intervals. */
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

/** An endpoint of the service, with a loop that runs while it has watchers. */
export class Endpoint {
  /** Number of answers of the service. */
  answers = 0;
  readonly #kind: Kind;
  readonly #plan: Plan;
  readonly #host: EndpointHost;
  readonly #loop: PollLoop;
  /** Watchers in the order in which they came, with their members. */
  readonly #watchers = new Map<Watcher, { member: Poller; receiver: Receiving | undefined }>();
  /** Failures that the watchers know of. */
  readonly #told = new Told<'service' | 'store'>();
  #turn: Promise<unknown> = Promise.resolve();
  /** When the loop came to its state, and when the service last answered. */
  #since = 0;
  #lastAnswerAt: number | undefined;

  constructor(kind: Kind, host: EndpointHost) {
    this.#kind = kind;
    this.#plan = plans[kind];
    this.#host = host;
    this.#loop = new PollLoop(
      {
        poll: (events) => this.#poll(events),
        maxUnderWay: () =>
          Math.min(this.#plan.parallelPolls(this.settings) + maxAhead, ...this.#receivers.map(({ room }) => room)),
        pauseMs: () => this.#plan.pauseMs(this.settings, this.#watchers.keys()),
        parallelPolls: () => this.#plan.parallelPolls(this.settings),
      },
      (state, previous) => this.#tell(state, previous),
      host.clock,
    );
  }

  /** The settings of the member that started the loop. Without a loop, those of the account. */
  get settings(): PollSettings | undefined {
    return this.#starter?.settings ?? this.#host.settings;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** The state of the loop. Absent if it does not run. */
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
   * Polls until the watcher stops, and only while each receiver has room. Returns how to stop.
   *
   * @param receiver the node that gets the records; absent: the watcher has no limit
   */
  watch(member: Poller, watcher: Watcher, receiver?: Receiving): () => void {
    const isFirst = this.#watchers.size === 0;
    const formerSettings = this.settings;
    this.#watchers.set(watcher, { member, receiver });
    this.holdOrResume();
    if (isFirst) {
      // The next to start the loop has not seen its failure begin.
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

  /** Polls now for a node that asked. Returns the number of new records. */
  async pollFor(member: Poller, asker: string, context: unknown): Promise<number> {
    const verdicts = await this.#fetch(member, {}, { asker, context });
    return verdicts.filter((verdict) => verdict === 'new').length;
  }

  /** Polls only while answers can be stored and each receiver has room. */
  holdOrResume(): void {
    const error = this.#host.failure();
    const full = this.#receivers.filter(({ room }) => room === 0);
    if (error) this.#loop.hold({ name: 'failing', error });
    else if (full.length > 0) {
      this.#loop.hold({ name: 'paused', unacknowledged: Math.max(...full.map(({ outstanding }) => outstanding)) });
    } else this.#loop.resume();
  }

  /** The member of the first watcher, among those that are still here. A watcher can outlive its member. */
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

  /** Makes one poll, and stores its records. */
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
      // Polls that take turns are made at their interval, not as soon as the last answer is held.
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
    // The store can fail and recover while the service keeps failing.
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

/** Polls whose records are not stored yet. They outlive the nodes that wanted them. */
export class Polls {
  /** Each resolves when the records are stored. */
  readonly #inFlight = new Set<Promise<void>>();
  /** The polls whose answers have begun to arrive. */
  readonly #arriving = new Set<Promise<void>>();

  get size(): number {
    return this.#inFlight.size;
  }

  /**
   * Tracks a poll until its records are stored.
   *
   * @param poll calls its argument when its answer begins to arrive
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

  /** Resolves when the present polls have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  /** Resolves when any poll that is now in flight has ended. Resolves immediately if no poll is in flight. */
  async oneEnded(): Promise<void> {
    if (this.size > 0) await Promise.race(this.#inFlight);
  }

  /** Resolves when the polls have ended whose answers have begun to arrive, or after `graceMs`. */
  async arrived(clock: Clock, graceMs: number): Promise<void> {
    if (this.#arriving.size === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.all(this.#arriving), timeout]);
    grace.abort();
  }
}
