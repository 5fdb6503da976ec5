import type { Disturbance, Input, Observation, Story } from './record';
import type { Event, SentMessage, Service } from './service';

/**
 * One promise of docs/delivery.md. Its checks return a finding for each violation:
 * - `check` checks the whole run.
 * - `checkInput` checks one input of the flow. The report adds the input to the description of the finding.
 * - `checkEvent` checks one event of the service. The report adds the event to the description of the finding.
 */
export interface Rule {
  name: string;
  check?(world: World): Iterable<Finding>;
  checkInput?(world: World, input: Input): Iterable<Finding>;
  checkEvent?(world: World, event: Event): Iterable<Finding>;
}

export type Finding = readonly [at: number, description: string];

/** Nodes that receive an event by polling. A callback reaches the node `callback` instead. */
export const polledAt = { message: ['in', 'asked'], status: ['status'] } as const;
/** Time after the arrival of a message in which its node might not have stored it yet, in ms. */
export const freshMs = 1_500;

/**
 * Maximum time after the death of a process until another one has claimed its items in Redis and received all unread
 * events.
 */
export const claimMs = 120_000;

/** Time that a new process can need to find the items of the process before it. */
const findingMs = 2_000;

/**
 * Maximum time for which the account delays a reply without a message ID, in ms. It waits for the outcome of a message
 * to the same handset.
 */
const maxHoldMs = 61_000;

/** Time until an account uses a repaired store again: it retries a failed store every 5 s. */
const reopenMs = 7_000;

/** Maximum time between an input and a deploy that refuses it, in ms. */
export const maxRefusalMs = 12_000;

/** Time between two tries of an import whose former store fails, in ms. */
const importRetryMs = 12_000;

/** All observations of a run, with functions that find those of an event, an input or a node. */
export class World {
  readonly events: readonly Event[];
  readonly sentMessages: ReadonlyMap<string, SentMessage>;
  readonly #deliveries = new Map<string, Observation[]>();
  readonly #outcomesByInput = new Map<string, Observation[]>();

  constructor(
    readonly story: Story,
    service: Pick<Service, 'events' | 'sentMessages'>,
  ) {
    this.events = service.events;
    this.sentMessages = service.sentMessages;
    for (const observation of story.observations) {
      const key = deliveryKey(observation);
      if (key !== undefined) add(this.#deliveries, key, observation);
      else if (observation.inputId !== undefined && observation.sms?.error?.waiting === undefined)
        add(this.#outcomesByInput, observation.inputId, observation);
    }
  }

  /** Deliveries of an event to one node, in order. */
  deliveriesAt({ kind, key }: Event, node: string): Observation[] {
    return this.#deliveries.get(`${kind} ${node} ${key}`) ?? [];
  }

  all(event: Event): Observation[] {
    return [...polledAt[event.kind], 'callback'].flatMap((node) => this.deliveriesAt(event, node)).sort(byTime);
  }

  /** Outcomes of the node for one input. */
  outcomes({ id }: Input): Observation[] {
    return this.#outcomesByInput.get(id) ?? [];
  }

  /**
   * Checks whether a full deploy refused an input, according to the log. No Catch node sees this error, because the
   * deploy stops the Catch node first. The log gives only the number of refused inputs. A node handles its inputs in
   * order, so the refused inputs are its last pending ones.
   */
  wasRefusedInLog(input: Input): boolean {
    return this.story.loggedRefusals.some(({ node, count, at }) => {
      const from = this.before(at, maxRefusalMs);
      const pendingInputs = this.story.inputs.filter((one) => {
        const { confirmedAt = Number.POSITIVE_INFINITY, isReset } = one;
        const mayBePending = one.node === node && confirmedAt >= from && confirmedAt <= at;
        return mayBePending && !isReset && this.outcomes(one).length === 0;
      });
      return pendingInputs.slice(-count).includes(input);
    });
  }

  /** Times at which processes ended, within a period. */
  ends(from: number, to: number): number[] {
    return this.story.pids.map((one) => one.to).filter((end) => end >= from && end <= to);
  }

  /** Seconds since the run began. */
  secondsOf(at: number): string {
    return ((at - this.story.begun) / 1_000).toFixed(1);
  }

  /** Finds the disturbances of some kinds that overlap a period. */
  findDisturbances(kinds: RegExp, from: number, to: number): Disturbance[] {
    return this.story.disturbances.filter((one) => kinds.test(one.kind) && one.from <= to && one.to >= from);
  }

  /** Checks whether the store was deleted during the period or just before it. */
  wasStoreDeleted(from: number, to: number): boolean {
    return this.findDisturbances(/deleted/, from - formerLoginMs, to).length > 0;
  }

  /**
   * Checks whether an event may be lost, because the store failed and the process ended before the store worked again
   * (docs/delivery.md, *Limits of the promises*).
   */
  wasUnwritten(at: number): boolean {
    return this.story.pids.some(({ from, to }) =>
      this.findDisturbances(/disk|redis/, Math.max(from, this.before(to, reopenMs)), to).some(
        (one) => one.from - freshMs <= at && at <= to,
      ),
    );
  }

  /**
   * Returns the latest time at which a wait of `seconds` from `from` on can end. If a process ends during the wait, it
   * can take longer, because the next process first reads the unread events from the service.
   */
  openUntil(from: number, seconds: number): number {
    return this.story.pids.reduce(
      (until, { to }) => (to > from && to < until ? Math.max(until, to + claimMs) : until),
      from + seconds * 1_000 + claimMs,
    );
  }

  /** Checks whether the store was deleted before a later process or another login could read the event in it. */
  wasDeletedUnread(at: number): boolean {
    // Finds the next process that ran long enough to deliver the event.
    const next = this.story.pids.find(({ from, to, listening }) => from > at && to > listening + findingMs);
    // This process delivers the event only after the deploys that follow its start.
    const deployed = next && this.findDisturbances(/deploy/, next.from, next.listening + findingMs).map(({ to }) => to);
    const listening = next && Math.max(next.listening, ...(deployed ?? [])) + findingMs;
    // Adds the time that the account needs to retry the store after the disk works again.
    const opened =
      listening &&
      Math.max(listening, ...this.findDisturbances(/disk/, next.from, listening).map(({ to }) => to + reopenMs));
    const until = Math.max(opened ?? at, this.hasChangedStore(at, at) ? at + formerLoginMs : at);
    return this.findDisturbances(/deleted/, at, until).length > 0;
  }

  /** Returns the time that is `ms` after `at`, not counting the time in which the process was suspended. */
  after(at: number, ms: number): number {
    return this.findDisturbances(/suspend/, at, Number.POSITIVE_INFINITY).reduce(
      (end, { from, to }) => (from < end ? end + to - Math.max(from, at) : end),
      at + ms,
    );
  }

  /** Returns the time that is `ms` before `at`, not counting the time in which the process was suspended. */
  before(at: number, ms: number): number {
    return this.findDisturbances(/suspend/, Number.NEGATIVE_INFINITY, at).reduceRight(
      (begin, { from, to }) => (to > begin ? begin + from - Math.min(to, at) : begin),
      at - ms,
    );
  }

  /** Checks whether the account may have forgotten that it received an event. */
  isSeenForgotten(from: number, to: number): boolean {
    return this.wasStoreDeleted(from, to) || this.wasUnwritten(from);
  }

  /**
   * Checks whether a process ended in the period and left items in Redis. Another instance claims them up to a minute
   * later.
   */
  wasUnclaimed(from: number, to: number): boolean {
    return this.ends(from, to).some((end) => {
      const storeIn = ({ description }: Disturbance) => /store: (redis|disk)/.exec(description)?.[1] ?? [];
      const before = this.findDisturbances(/deploy/, 0, end - claimMs).flatMap(storeIn);
      const since = this.findDisturbances(/deploy/, end - claimMs, end).flatMap(storeIn);
      const stores = [before.at(-1) ?? (this.story.startsOnRedis ? 'redis' : 'disk'), ...since];
      return stores.includes('redis');
    });
  }

  /**
   * Checks whether an account with a new login or store still has to import the items of a dead process from Redis.
   * Until then, the account stores nothing.
   */
  awaitsImport(at: number): boolean {
    const changes = this.findDisturbances(/deploy/, at - claimMs, at).filter(isChangeOfStore);
    return changes.some(({ from }) => this.wasUnclaimed(from - claimMs, at));
  }

  /**
   * Checks whether a dead process might have an event in Redis while the account already uses another login or store.
   */
  wasHeldByDeadProcess({ created }: Event, again: number): boolean {
    return this.wasUnclaimed(created, again) && this.hasChangedStore(created, again);
  }

  /**
   * Checks whether a kill interrupted an import from Redis, and a deploy changed the login or store again before
   * another process claimed the items.
   */
  wasImportKilled(from: number, to: number): boolean {
    return this.ends(from, to).some((end) => {
      const isBack = this.findDisturbances(/deploy/, end, end + claimMs).some(isChangeOfStore);
      return this.wasUnclaimed(end, end) && isBack && this.hasChangedStore(end, end);
    });
  }

  /** Checks whether a store failed around a change of the login or store, and so delayed the import. */
  isImportDelayed(from: number, to = from): boolean {
    const isInTrouble =
      this.hasChangedStore(from, to) && this.findDisturbances(/disk|redis/, this.before(from, reopenMs), to).length > 0;
    return (
      isInTrouble ||
      this.findDisturbances(/disk|redis/, from - importRetryMs, to).some((one) =>
        this.hasChangedStore(one.from, one.to),
      )
    );
  }

  /** Checks whether a reply without a message ID came while a message to its handset had no outcome yet. */
  isReplyOnTheWay({ fields, answer }: Event): boolean {
    if (fields.inReplyToId !== undefined || !answer) return false;
    return this.story.inputs.some((input) => {
      const sent = this.sentMessages.get(input.body)?.attempts.find(({ end }) => end !== 'refused');
      if (input.node !== 'ask' || !input.to.includes(fields.from ?? '') || !sent) return false;
      if (sent.at > answer.at || answer.at - sent.at > maxHoldMs) return false;
      return this.outcomes(input).every(({ at }) => at > answer.at);
    });
  }

  /**
   * Returns the time at which the service accepted a message, or 0 if it did not. Only then does the account begin to
   * wait for replies and statuses of the message.
   */
  acceptedAt({ body }: Input): number {
    return this.sentMessages.get(body)?.attempts.find(({ isSent }) => isSent)?.at ?? 0;
  }

  /**
   * Checks whether the login or the store changed during the period, shortly before it, or shortly before a store
   * failure that overlaps it. The new login or store does not know which events the former one has received.
   */
  hasChangedStore(from: number, to: number): boolean {
    const troubles = this.findDisturbances(/disk|redis/, from - formerLoginMs, to);
    const since = Math.min(from, ...troubles.map((trouble) => trouble.from)) - formerLoginMs;
    return this.findDisturbances(/deploy/, since, to).some(isChangeOfStore);
  }
}

function deliveryKey({ node, output, payload, sms }: Observation): string | undefined {
  if (output === 0) return undefined;
  if (node === 'status' || (node === 'callback' && output === 2)) return `status ${node} ${sms?.messageId}`;
  return node === 'in' || node === 'asked' || node === 'callback' ? `message ${node} ${payload}` : undefined;
}

function add<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}

const isChangeOfStore = ({ description }: Disturbance) => /changes the (?:login|store)/.test(description);

/** Time after a deploy in which polls and callbacks of the former login can still arrive. */
const formerLoginMs = 2_000;

export const byTime = (one: { at: number }, other: { at: number }) => one.at - other.at;

export function describeEvent({ kind, key, fields }: Event): string {
  return kind === 'message' ? `message "${key}"` : `status ${fields.statusCode} of ${fields.from}`;
}

export function describeInput({ node, body, id }: Input): string {
  return `the message "${body}" (${node}, ${id})`;
}
