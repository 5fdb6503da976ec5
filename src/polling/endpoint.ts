import { type Clock, wait } from '../clock';
import { Notices, type SmsError } from '../errors';
import type { Client } from '../http/client';
import type { CallOptions } from '../http/exchange';
import type { Verdict } from '../inbox/identity';
import type { Arrival, Inbox } from '../inbox/inbox';
import type { InboxRecord, Kind } from '../model';
import { type PollEvents, PollLoop, type PollOutcome, type PollState } from './poll-loop';

/** How an endpoint is polled, and how long the identifiers of its records are remembered. */
export interface PollSettings {
  /** Wait after an empty poll (§8), in ms. */
  pauseMs: number;
  /** Maximum number of simultaneous polls while messages keep arriving. */
  parallelPolls: number;
  /** Whether duplicates are dropped. */
  dedupe: boolean;
  /** How long an identifier is remembered, in ms. */
  dedupeMs: number;
}

/** The client and the settings with which one member of an account polls. */
export interface Poller {
  readonly settings: PollSettings;
  readonly client: Client;
}

/** A node or another part of the library that needs polls of an endpoint. */
export interface Watcher {
  /** Called when the state of the poll loop has changed, and when the watcher joins a running poll loop. */
  onState(state: PollState): void;
  /** Called once per failure, when the service or the store starts to fail. */
  onFailing(error: SmsError): void;
  /** Called only for the first watcher, when both the service and the store work again. */
  onRecovered(): void;
  /** Interval of outbox polls, in ms. The shortest interval of all watchers applies. */
  intervalMs?: number;
}

/** A node that receives the polled records. */
export interface Receiving {
  /** Number of records that the flow has not acknowledged. */
  readonly unacknowledgedCount: number;
  /** Number of further records that the node can receive before the flow acknowledges one. */
  readonly room: number;
}

/** The state of an endpoint's poll loop. */
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

/** The node that requested a poll. Absent: the poll loop started the poll. */
type Asker = Pick<Arrival, 'asker' | 'context'>;

/** The account of an endpoint, with the functions that the endpoint needs. */
export interface EndpointHost {
  readonly clock: Clock;
  readonly polls: Polls;
  readonly members: ReadonlySet<Poller>;
  /** Settings that apply while the endpoint has no watcher. */
  readonly settings: PollSettings | undefined;
  /** Returns the reason why answers cannot be stored now, or `undefined` if they can. */
  failure(): SmsError | undefined;
  inboxOf(member: Poller): Inbox;
  /**
   * Resolves when polling can begin, because answers can be stored and matched with sent messages. The result is the
   * member that polls: `member` or, if it has left the account, another member.
   *
   * @throws SmsError `SMS_STORE` if answers cannot be stored, `SMS_CLOSED` if the account has no members
   */
  ready(member: Poller | undefined): Promise<Poller>;
  /** Called when the state of the poll loop has changed, or the service has answered a poll. */
  onChanged(): void;
  /** Called when the service has no more records of a kind for now. */
  onDrained(kind: Kind): void;
}

/**
 * Maximum number of saved answers that wait for their flush while polling continues. If polling waited for each flush,
 * a slow disk would slow it down. A power cut can lose the waiting answers.
 */
const maxSavedAnswers = 2;

function fetchRecords(kind: Kind, client: Client, options: CallOptions): Promise<readonly InboxRecord[]> {
  if (kind === 'incoming') return client.pollIncoming(options);
  return kind === 'status' ? client.pollStatuses(options) : client.pollOutbox(options);
}

/**
 * An endpoint of the service, with a poll loop that runs while the endpoint has watchers.
 *
 * - Incoming messages and statuses: a poll returns a few records, and each record only once (§4.2, §4.4).
 * - Outbox: a poll returns everything since the last poll (§4.3), so polls have an interval.
 */
export class Endpoint {
  /** Number of answers of the service, including empty ones. */
  answers = 0;
  readonly #kind: Kind;
  readonly #host: EndpointHost;
  readonly #loop: PollLoop;
  /** Watchers in the order in which they joined, with the account members that poll for them. */
  readonly #watchers = new Map<Watcher, { member: Poller; receiver: Receiving | undefined }>();
  /** Failures that the watchers were notified of. */
  readonly #notices = new Notices<'service' | 'store'>();
  #lastOutboxPoll: Promise<unknown> = Promise.resolve();
  /** When the current state of the poll loop began, in ms since 1970. */
  #since = 0;
  /** When the service last answered, in ms since 1970. */
  #lastAnswerAt: number | undefined;

  constructor(kind: Kind, host: EndpointHost) {
    this.#kind = kind;
    this.#host = host;
    this.#loop = new PollLoop(
      {
        poll: (events) => this.#poll(events),
        maxUnderWay: () => Math.min(this.#parallelPolls + maxSavedAnswers, ...this.#receivers.map(({ room }) => room)),
        pauseMs: () => this.#pauseMs,
        parallelPolls: () => this.#parallelPolls,
      },
      (state, previousState) => this.#notify(state, previousState),
      host.clock,
    );
  }

  /** The settings of the member that started the poll loop. If no poll loop runs, the settings of the account. */
  get settings(): PollSettings | undefined {
    return this.#starter?.settings ?? this.#host.settings;
  }

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** The state of the poll loop. Absent if it does not run. */
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
   * Adds a watcher. The endpoint polls while it has watchers and each receiver has room. Returns a function that
   * removes the watcher.
   *
   * @param receiver the node that gets the records; absent: the watcher has no limit
   */
  watch(member: Poller, watcher: Watcher, receiver?: Receiving): () => void {
    const isFirst = this.#watchers.size === 0;
    const formerSettings = this.settings;
    this.#watchers.set(watcher, { member, receiver });
    this.pauseOrResume();
    if (isFirst) {
      // The watcher that starts the poll loop must be notified of a failure, even if an earlier watcher was notified of
      // it.
      this.#notices.clear();
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
      else this.pauseOrResume();
      this.#host.onChanged();
    };
  }

  /** Polls now, because a node requested it. Returns the number of new records. */
  async pollFor(member: Poller, asker: string, context: unknown): Promise<number> {
    const verdicts = await this.#fetch(member, {}, { asker, context });
    return verdicts.filter((verdict) => verdict === 'new').length;
  }

  /** Pauses or resumes polling: the endpoint polls only while answers can be stored and each receiver has room. */
  pauseOrResume(): void {
    const error = this.#host.failure();
    const fullReceivers = this.#receivers.filter(({ room }) => room === 0);
    if (error) this.#loop.pause({ name: 'failing', error });
    else if (fullReceivers.length > 0) {
      this.#loop.pause({
        name: 'paused',
        unacknowledged: Math.max(...fullReceivers.map(({ unacknowledgedCount }) => unacknowledgedCount)),
      });
    } else this.#loop.resume();
  }

  /**
   * The member of the first watcher whose member is still in the account. A watcher can stay longer than its member.
   */
  get #starter(): Poller | undefined {
    for (const { member } of this.#watchers.values()) if (this.#host.members.has(member)) return member;
    return undefined;
  }

  get #parallelPolls(): number {
    return this.#kind === 'outbox' ? 1 : (this.settings?.parallelPolls ?? 1);
  }

  get #pauseMs(): number {
    if (this.#kind !== 'outbox') return this.settings?.pauseMs ?? 0;
    return Math.min(...[...this.#watchers.keys()].map(({ intervalMs = Number.POSITIVE_INFINITY }) => intervalMs));
  }

  get #receivers(): Receiving[] {
    return [...this.#watchers.values()].flatMap(({ receiver }) => receiver ?? []);
  }

  async #poll(events: PollEvents): Promise<PollOutcome> {
    const verdicts = await this.#fetch(this.#starter, events);
    if (verdicts.length === 0) this.#host.onDrained(this.#kind);
    if (verdicts.length === 0 || this.#kind === 'outbox') return 'empty';
    return verdicts.every((verdict) => verdict === 'repeated') ? 'repeated' : 'new';
  }

  /** Makes one poll, and stores its records. */
  #fetch(member: Poller | undefined, events: Partial<PollEvents>, asker?: Asker): Promise<Verdict[]> {
    const host = this.#host;
    // Runs only one poll of the outbox at a time, because each poll returns the records since the poll before it.
    const isSequential = this.#kind === 'outbox';
    const fetch = async (onAnswer: () => void) => {
      const poller = await host.ready(member);
      const records = await fetchRecords(this.#kind, poller.client, { beforeLeaving: events.onSent, onAnswer });
      this.#lastAnswerAt = host.clock.now();
      this.answers++;
      host.onChanged();
      if (records.length === 0) return [];
      const arrival = { kind: this.#kind, records, via: 'poll', ...asker } as Arrival;
      // The poll loop must not receive the events of an outbox poll. Otherwise, it would poll again as soon as the
      // answer is saved, instead of after the interval.
      return host.inboxOf(poller).accept(arrival, isSequential ? {} : events);
    };
    return host.polls.track((onAnswer) => {
      if (!isSequential) return fetch(onAnswer);
      const polling = this.#lastOutboxPoll.then(() => fetch(onAnswer));
      this.#lastOutboxPoll = polling.catch(() => {});
      return polling;
    });
  }

  #notify(state: PollState, previousState: PollState): void {
    if (state.name !== previousState.name) this.#since = this.#host.clock.now();
    this.#host.onChanged();
    const failure = state.name === 'failing' ? state.error : undefined;
    // Notifies of failures of the service and of the store separately, because the store can fail and recover while
    // the service still fails.
    const part = failure?.code === 'SMS_STORE' ? 'store' : 'service';
    const isNew = failure !== undefined && this.#notices.note(part);
    const hasRecovered = !failure && state.name !== 'paused' && this.#notices.size > 0;
    if (hasRecovered) this.#notices.clear();
    for (const watcher of this.#watchers.keys()) {
      watcher.onState(state);
      if (isNew) watcher.onFailing(failure);
    }
    const [firstWatcher] = this.#watchers.keys();
    if (hasRecovered) firstWatcher?.onRecovered();
  }
}

/** The endpoints of an account. */
export type Endpoints = Readonly<Record<Kind, Endpoint>>;

/** Polls whose records are not stored yet. They can outlive the nodes that requested them. */
export class Polls {
  /** One promise per poll, which resolves when the records of the poll are stored. */
  readonly #pollsInFlight = new Set<Promise<void>>();
  /** The polls whose answers have begun to arrive. */
  readonly #arrivingPolls = new Set<Promise<void>>();

  get size(): number {
    return this.#pollsInFlight.size;
  }

  /**
   * Tracks a poll until its records are stored.
   *
   * @param poll runs the poll, and calls `onAnswer` when the answer begins to arrive
   */
  track<T>(poll: (onAnswer: () => void) => Promise<T>): Promise<T> {
    const polling = poll(() => void this.#arrivingPolls.add(whenStored));
    const end = () => {
      this.#pollsInFlight.delete(whenStored);
      this.#arrivingPolls.delete(whenStored);
    };
    const whenStored = polling.then(end, end);
    this.#pollsInFlight.add(whenStored);
    return polling;
  }

  /** Resolves when all current polls have ended. */
  async whenEnded(): Promise<void> {
    await Promise.all(this.#pollsInFlight);
  }

  /** Resolves when all polls with a partly received answer have ended, or after `graceMs`. */
  async whenArrived(clock: Clock, graceMs: number): Promise<void> {
    if (this.#arrivingPolls.size === 0) return;
    const grace = new AbortController();
    const timeout = wait(clock, graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.all(this.#arrivingPolls), timeout]);
    grace.abort();
  }
}
