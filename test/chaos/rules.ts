import { findProcessWarnings } from '../process-warnings';
import { crash } from '../reliability/recorder';
import { ackSeconds, reportSeconds, timeoutSeconds, waitSeconds } from './node-red';
import { during, type Feed, type Happening, type Seen, type Story } from './record';
import { type Event, isAccepted, isBlocked, type SentText, type Service, troubles } from './service';

/** Result of a run. */
export interface Account {
  seed: number;
  failures: Failure[];
  /** Remarks about events that break no promise. */
  notes: string[];
  counts: Record<string, number>;
  log: string;
}

export interface Failure {
  /** The promise that was broken: the name of a rule. */
  rule: string;
  what: string;
  /** Time of the observation that shows it, in seconds since the run began. */
  atSeconds: number;
}

/** One promise of docs/delivery.md. Lists each message that breaks it. */
interface Rule {
  name: string;
  check(world: World): Iterable<Finding>;
}

type Finding = readonly [at: number, what: string];

/** Nodes that receive an event by polling. A callback reaches the node `callback` instead. */
const polledAt = { message: ['in', 'asked'], status: ['status'] } as const;
const kept = new Set<Feed['node']>(['kept', 'once', 'ask', 'report']);
const unknown = new Set(['SMS_UNCERTAIN', 'SMS_RESPONSE', 'SMS_SERVICE']);
/** If a process ends within this time of receiving a message, its node might not have stored the message. */
const freshMs = 1_500;

/** Time until another process has claimed the items of a dead process in Redis and read the rest from the service. */
const leftMs = 120_000;

/** Time that a new process can need to find the items of the process before it. */
const findingMs = 2_000;

/** A reply without a message ID waits this long for the outcome of a message that left for its handset. */
const maxHoldMs = 61_000;

/** Time for which the account matches replies and statuses to a sent message. */
const rememberedSeconds = 7 * 86_400;
/** Time for which the account recognises a received event as a duplicate. */
const seenSeconds = 72 * 3_600;

/** Time until an account uses a repaired store again: it retries a failed store every 5 s. */
const reopenMs = 7_000;

/** Time between two tries of an import, if the former store fails. */
const againMs = 12_000;

/** Observations, grouped by their subject. */
class World {
  readonly events: readonly Event[];
  readonly texts: ReadonlyMap<string, SentText>;
  readonly #deliveries = new Map<string, Seen[]>();
  readonly #byFeed = new Map<string, Seen[]>();

  constructor(
    readonly story: Story,
    service: Pick<Service, 'events' | 'texts'>,
  ) {
    this.events = service.events;
    this.texts = service.texts;
    for (const seen of story.seen) {
      const key = deliveryKey(seen);
      if (key !== undefined) add(this.#deliveries, key, seen);
      else if (seen.feed !== undefined && seen.sms?.error?.waiting === undefined) add(this.#byFeed, seen.feed, seen);
    }
  }

  /** Deliveries of an event to one node, in order. */
  at({ kind, key }: Event, node: string): Seen[] {
    return this.#deliveries.get(`${kind} ${node} ${key}`) ?? [];
  }

  all(event: Event): Seen[] {
    return [...polledAt[event.kind], 'callback'].flatMap((node) => this.at(event, node)).sort(byTime);
  }

  /** Outcomes of the node for one input. */
  outcomes({ id }: Feed): Seen[] {
    return this.#byFeed.get(id) ?? [];
  }

  /** Times at which processes ended, within a period. */
  ends(from: number, to: number): number[] {
    return this.story.pids.map((one) => one.to).filter((end) => end >= from && end <= to);
  }

  /** Seconds since the run began. */
  secondsOf(at: number): string {
    return ((at - this.story.begun) / 1_000).toFixed(1);
  }

  happened(kinds: RegExp, from: number, to: number): Happening[] {
    return during(this.story, kinds, from, to);
  }

  /** Checks whether the store was deleted during the period or just before it. */
  wasForgotten(from: number, to: number): boolean {
    return this.happened(/deleted/, from - movingMs, to).length > 0;
  }

  /**
   * Checks whether an event is in no store, because the store failed and the process ended before the store worked
   * again ("What cannot be promised").
   */
  wasUnwritten(at: number): boolean {
    return this.story.pids.some(({ from, to }) =>
      this.happened(/disk|redis/, Math.max(from, this.before(to, reopenMs)), to).some(
        (one) => one.from - freshMs <= at && at <= to,
      ),
    );
  }

  /**
   * Returns the latest end of a wait of some seconds. Each process that ends in the meantime can leave the wait to
   * another process, which first reads the unread events from the service.
   */
  openUntil(from: number, seconds: number): number {
    return this.story.pids.reduce(
      (until, { to }) => (to > from && to < until ? Math.max(until, to + leftMs) : until),
      from + seconds * 1_000 + leftMs,
    );
  }

  /** Checks whether the clock was set and a process ended, so that the next process starts with another clock. */
  wasClockWrong(from: number, to: number): boolean {
    return this.happened(/clock/, 0, to).length > 0 && this.ends(from, to).length > 0;
  }

  /** Checks whether data looked expired to a new process because its clock is ahead of the clock that dated the data. */
  wasOutdated(from: number, to: number, seconds = rememberedSeconds): boolean {
    const settings = this.happened(/clock/, from, to).map((one) => Math.min(one.to, to));
    const most = Math.max(...[to, ...settings].map((at) => this.#aheadSeconds(at)));
    return this.ends(from, to).length > 0 && most - this.#aheadSeconds(from) > seconds;
  }

  /** Checks whether the store was deleted with an undelivered event before the next process or login had read it. */
  wasDeletedUnread(at: number): boolean {
    // A process that ends too early does not deliver the event.
    const next = this.story.pids.find(({ from, to, listening }) => from > at && to > listening + findingMs);
    // A process does not deliver it during a deploy either.
    const deployed = next && this.happened(/deploy/, next.from, next.listening + findingMs).map(({ to }) => to);
    const listening = next && Math.max(next.listening, ...(deployed ?? [])) + findingMs;
    // An account can retry the store some time after the disk works again.
    const opened =
      listening && Math.max(listening, ...this.happened(/disk/, next.from, listening).map(({ to }) => to + reopenMs));
    const until = Math.max(opened ?? at, this.wasMoved(at, at) ? at + movingMs : at);
    return this.happened(/deleted/, at, until).length > 0;
  }

  /** Returns the time at which a process has run for `ms` since `at`. Suspensions do not count. */
  after(at: number, ms: number): number {
    return this.happened(/suspend/, at, Number.POSITIVE_INFINITY).reduce(
      (end, { from, to }) => (from < end ? end + to - Math.max(from, at) : end),
      at + ms,
    );
  }

  /** Time from which a process has run for `ms` until `at`. Suspensions do not count. */
  before(at: number, ms: number): number {
    return this.happened(/suspend/, Number.NEGATIVE_INFINITY, at).reduceRight(
      (begin, { from, to }) => (to > begin ? begin + from - Math.min(to, at) : begin),
      at - ms,
    );
  }

  /** Checks whether the account no longer knows that it has received an event. */
  isSeenForgotten({ created }: Event, from: number, to: number): boolean {
    // An earlier process might have stored the event without delivering it.
    const wasOutdated = [created, from].some((at) => this.wasOutdated(at, to, seenSeconds));
    return wasOutdated || this.wasForgotten(from, to) || this.wasUnwritten(from);
  }

  /**
   * Returns the largest change of the clock that the account does not notice, in ms. Such a change is less than a
   * minute. A wait that begins at that moment, or that another login or store imports later, can end too early by this
   * time.
   */
  nudgedMs(from: number, to: number): number {
    const until = this.wasMoved(from, to) ? to : from + freshMs;
    const seconds = this.happened(/clock/, from - freshMs, until).map((one) =>
      Math.abs(this.#aheadSeconds(one.to) - this.#aheadSeconds(one.from - 1)),
    );
    return Math.max(0, ...seconds.filter((by) => by < 60)) * 1_000;
  }

  /** Seconds by which the clock of Node-RED was ahead. */
  #aheadSeconds(at: number): number {
    return this.happened(/clock/, 0, at).reduce((seconds, { what, to }) => {
      if (what.includes('4 days ahead')) return (to <= at ? 8 : 4) * 86_400;
      return Number(/set to (-?\d+) s/.exec(what)?.[1] ?? seconds);
    }, 0);
  }

  /** Checks whether a process left items in Redis. Another instance claims them up to a minute later. */
  wasLeftOnRedis(from: number, to: number): boolean {
    return this.ends(from, to).some((end) => {
      const storeIn = ({ what }: Happening) => /store: (redis|disk)/.exec(what)?.[1] ?? [];
      const before = this.happened(/deploy/, 0, end - leftMs).flatMap(storeIn);
      const since = this.happened(/deploy/, end - leftMs, end).flatMap(storeIn);
      const stores = [before.at(-1) ?? (this.story.startsOnRedis ? 'redis' : 'disk'), ...since];
      return stores.includes('redis');
    });
  }

  /** Checks whether a dead process might hold the event in Redis while the account uses another login or store. */
  wasWithDead({ created }: Event, again: number): boolean {
    return this.wasLeftOnRedis(created, again) && this.wasMoved(created, again);
  }

  /** Checks whether a kill interrupted an import from Redis, and the login or store changed again before a claim. */
  wasKilledMoving(from: number, to: number): boolean {
    return this.ends(from, to).some((end) => {
      const isBack = this.happened(/deploy/, end, end + leftMs).some(isMove);
      return this.wasLeftOnRedis(end, end) && isBack && this.wasMoved(end, end);
    });
  }

  /** Checks whether a failing store delayed the import after a change of the login or the store. */
  isStuckMoving(from: number, to = from): boolean {
    const isInTrouble =
      this.wasMoved(from, to) && this.happened(/disk|redis/, this.before(from, reopenMs), to).length > 0;
    return (
      isInTrouble || this.happened(/disk|redis/, from - againMs, to).some((one) => this.wasMoved(one.from, one.to))
    );
  }

  /** Checks whether a reply without a message ID came before the outcome of a message to its handset. */
  isReplyOnTheWay({ fields, answer }: Event): boolean {
    if (fields.inReplyToId !== undefined || !answer) return false;
    return this.story.feeds.some((feed) => {
      const sent = this.texts.get(feed.body)?.attempts.find(({ end }) => end !== 'refused');
      if (feed.node !== 'ask' || !feed.to.includes(fields.from ?? '') || !sent) return false;
      if (sent.at > answer.at || answer.at - sent.at > maxHoldMs) return false;
      return this.outcomes(feed).every(({ at }) => at > answer.at);
    });
  }

  /** Returns the time at which the service accepted a message. Waits for its replies and statuses begin no earlier. */
  takenAt({ body }: Feed): number {
    return this.texts.get(body)?.attempts.find(({ isSent }) => isSent)?.at ?? 0;
  }

  /**
   * Checks whether the login or the store changed during the period, just before it, or just before a store failed. The
   * new login or store does not know which events the former one has received.
   */
  wasMoved(from: number, to: number): boolean {
    const troubles = this.happened(/disk|redis/, from - movingMs, to);
    const since = Math.min(from, ...troubles.map((trouble) => trouble.from)) - movingMs;
    return this.happened(/deploy/, since, to).some(isMove);
  }
}

function deliveryKey({ node, output, payload, sms }: Seen): string | undefined {
  if (output === 0) return undefined;
  if (node === 'status' || (node === 'callback' && output === 2)) return `status ${node} ${sms?.messageId}`;
  return node === 'in' || node === 'asked' || node === 'callback' ? `message ${node} ${payload}` : undefined;
}

function add<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}

const isMove = ({ what }: Happening) => /changes the (?:login|store)/.test(what);

/** Time after a deploy in which polls and callbacks of the former login can still arrive. */
const movingMs = 2_000;

const byTime = (one: { at: number }, other: { at: number }) => one.at - other.at;

const rules: readonly Rule[] = [
  {
    name: 'received: at least once',
    *check(world) {
      for (const event of world.events) {
        const { answer } = event;
        const isCalled = isAccepted(event.callbacks);
        if (!isCalled && !answer?.isWhole) continue;
        const missing = polledAt[event.kind].filter((node) => world.at(event, node).length === 0);
        if (missing.length === 0 || world.at(event, 'callback').length > 0) continue;
        if (!isCalled && (isInTransit(world, event) || world.wasUnwritten(answer?.at ?? 0))) continue;
        if (world.wasDeletedUnread(answer?.at ?? event.created)) continue;
        const how = isCalled ? 'its callback was accepted' : 'a poll was answered with it';
        yield [
          answer?.at ?? event.created,
          `lost: the ${name(event)}: ${how}, and it never came to ${missing.join(', ')}`,
        ];
      }
    },
  },
  {
    name: 'received: once, or marked',
    *check(world) {
      for (const event of world.events) {
        const groups = [...polledAt[event.kind], 'callback'].map((node) => world.at(event, node));
        for (const [first, ...further] of groups) {
          const again = further.find(({ sms }) => !sms?.redelivered);
          // Until another login imports the callbacks of a dead process, it treats them as new.
          const isCalledAgain = again?.node === 'callback' && again.at - event.created < leftMs;
          if (first && isCalledAgain && world.wasWithDead(event, again.at)) continue;
          if (!first || !again || world.isSeenForgotten(event, first.at, again.at)) continue;
          // The account knows the identifiers of the former login or store only after the import.
          if (!world.isStuckMoving(first.at, again.at))
            yield [again.at, `doubled without a mark: the ${name(event)}, at ${first.node}`];
        }
        const unmarked = world.all(event).filter(({ sms }) => !sms?.redelivered);
        const vias = new Set(unmarked.map(({ sms }) => sms?.via));
        const [from, to] = [unmarked[0]?.at ?? 0, unmarked.at(-1)?.at ?? 0];
        const wasMoved = world.wasMoved(from, to) || world.isStuckMoving(from, to);
        if (vias.size < 2 || wasMoved || world.isSeenForgotten(event, from, to)) continue;
        const times = unmarked.map(({ at, node }) => `${node} at ${world.secondsOf(at)}`);
        yield [unmarked.at(-1)?.at ?? 0, `doubled: the ${name(event)}, by poll and by callback: ${times.join(', ')}`];
      }
    },
  },
  {
    name: 'received: twice only for a reason',
    *check(world) {
      for (const event of world.events) {
        for (const node of [...polledAt[event.kind], 'callback']) {
          const seen = world.at(event, node);
          for (const [index, second] of seen.entries()) {
            const first = seen[index - 1];
            if (!first || !second.sms?.redelivered || world.ends(first.at, second.at).length > 0) continue;
            // A dead process can hold the event too. Another login does not know this until it imports the event.
            const isSoon = second.at - first.at < leftMs + ackSeconds * 1_000;
            if (isSoon && world.wasWithDead(event, second.at)) continue;
            const isLate = second.at - first.at > ackSeconds * 1_000 - 250;
            // These faults can interrupt a delivery between its two nodes.
            const isUnsettled = world.happened(/deploy|suspend|disk|redis/, first.at - 500, second.at).length > 0;
            // The store does not record which nodes acknowledged. If one did not, both nodes receive the message again.
            const isShared = world
              .at(event, 'asked')
              .some((one) => one.sms?.redelivered && Math.abs(one.at - second.at) < 500);
            if (node === 'in' && isShared && world.happened(/deploy/, first.at, second.at).length > 0) continue;
            if (node === 'asked' && (isLate || isUnsettled || isRefusedAtFirst(event))) continue;
            const secondsLater = ((second.at - first.at) / 1_000).toFixed(1);
            yield [
              second.at,
              `delivered again ${secondsLater} s later without a reason: the ${name(event)}, at ${node}`,
            ];
          }
        }
      }
    },
  },
  {
    name: 'received: in order',
    *check(world) {
      for (const [node, kind] of [
        ['in', 'message'],
        ['status', 'status'],
      ] as const) {
        const firsts = world.events
          .filter((event) => event.kind === kind && event.answer)
          .flatMap((event) => {
            const first = world.at(event, node)[0];
            const { at } = event.answer ?? { at: 0 };
            if (first && world.wasLeftOnRedis(at, first.at)) return [];
            // A message of a new login does not wait forever for the data of the former login.
            if (first && world.isStuckMoving(at, first.at)) return [];
            // The account holds this reply back until it knows the outcome of the message, and delivers later events.
            if (world.isReplyOnTheWay(event)) return [];
            return first && !first.sms?.redelivered ? [{ at: first.at, number: event.answer?.number ?? 0, event }] : [];
          })
          .sort(byTime);
        let last = firsts[0];
        for (const one of firsts) {
          if (last && one.number < last.number) {
            const [what, before] = [one, last].map(({ event, at }) => {
              const answered = world.secondsOf(event.answer?.at ?? 0);
              return `the ${name(event)} (answered at ${answered}, seen at ${world.secondsOf(at)})`;
            });
            yield [one.at, `out of order: ${what}, at ${node}, after ${before}`];
          } else last = one;
        }
      }
    },
  },
  {
    name: 'received: again when the flow says that it could not',
    *check(world) {
      for (const event of world.events.filter(({ kind }) => kind === 'message')) {
        const [first, ...further] = world.at(event, 'asked');
        if (!first || further.length > 0 || !isRefusedAtFirst(event)) continue;
        // An earlier delivery went to a flow that a deploy replaced. The flow acknowledges every redelivery.
        if (first.sms?.redelivered || world.wasForgotten(first.at, first.at + ackSeconds * 1_000)) continue;
        if (world.wasDeletedUnread(first.at)) continue;
        yield [first.at, `not delivered again, though the flow had not acknowledged it: the ${name(event)}`];
      }
    },
  },
  {
    name: 'polls go on',
    *check(world) {
      for (const kind of ['message', 'status'] as const) {
        const left = world.events.filter((event) => event.kind === kind && !event.answer);
        if (left.length > 0)
          yield [
            left[0]?.created ?? 0,
            `${left.length} left at the service: the first is the ${name(left[0] as Event)}`,
          ];
      }
    },
  },
  {
    name: 'a poll that is answered is the last of one loop',
    *check(world) {
      const broken = world.events.filter(
        ({ answer }) => answer && !answer.isWhole && answer.why === 'its connection went away',
      );
      for (const event of broken) {
        const at = event.answer?.at ?? 0;
        if (world.ends(at - 5_000, at + 5_000).length > 0) continue;
        if (world.happened(/suspend/, at - 60_000, at).length > 0) continue;
        // The service ends all connections when it begins to refuse new ones.
        if (world.happened(/refused/, at - 500, at + 500).length > 0) continue;
        yield [at, `the connection was ended while the service answered with the ${name(event)}`];
      }
    },
  },
  {
    name: 'a text: sent at most once',
    *check(world) {
      for (const { body, to, attempts } of world.texts.values()) {
        const first = attempts.findIndex(({ end }) => end !== 'refused');
        const again = attempts[first + 1];
        const isGuarded = body.startsWith('once');
        // The account knows the deduplication key from the time at which the flow sent the message to the node.
        const fedAt = world.story.feeds.find((feed) => isGuarded && feed.body === body)?.from;
        const from = fedAt ?? attempts[first]?.at ?? 0;
        if (first < 0 || !again || world.wasForgotten(from, again.at)) continue;
        // If no recipient was accepted, *once* counts the message as not sent.
        if (isGuarded && to.every(isBlocked)) continue;
        // The age of stored data of an earlier process depends on the wall clock.
        if (isGuarded && world.wasClockWrong(from, again.at)) continue;
        const how = attempts[first]?.why || 'the service had taken it';
        const feeds = world.story.feeds.filter((feed) => feed.body === body);
        const given = feeds.map((feed) => `${feed.id} at ${world.secondsOf(feed.from)}: ${told(world.outcomes(feed))}`);
        const tries = attempts.map(({ at, end }) => `${world.secondsOf(at)} ${end}`);
        yield [
          again.at,
          `sent twice: "${body}" (after the first: ${how}; ${tries.join(', ')}; given ${given.join('; ')})`,
        ];
      }
    },
  },
  {
    name: 'a text: an outcome',
    *check(world) {
      for (const feed of world.story.feeds) {
        if (feed.taken === undefined || world.outcomes(feed).length > 0) continue;
        // During a deploy, Node-RED drops flow messages to a node that it is replacing.
        if (world.happened(/deploy/, feed.from, feed.taken).length > 0) continue;
        // The store was deleted with the flow message, and the process that had it in memory might have ended.
        if (world.wasForgotten(feed.from, feed.taken + 60_000)) continue;
        if (kept.has(feed.node)) {
          const isFresh = world.ends(feed.from, world.after(feed.taken, freshMs)).length > 0;
          const end = world.ends(feed.from, feed.taken + 15_000)[0];
          const wasStuck =
            end !== undefined && world.happened(/disk|redis|suspend|deploy/, end - 15_000, end).length > 0;
          if (isFresh || wasStuck) continue;
        } else if (world.ends(feed.from, feed.taken + 60_000).length > 0) continue;
        // If the deploy stops the Catch node first, only the log shows the error.
        else if (world.happened(/deploy/, feed.taken, feed.taken + 12_000).length > 0) continue;
        yield [feed.from, `without an outcome: ${textOf(feed)}`];
      }
    },
  },
  {
    name: 'a text: one outcome',
    *check(world) {
      for (const feed of world.story.feeds) {
        const lastOutput = feed.node === 'ask' ? 0 : 1;
        const outcomes = world.outcomes(feed).filter(({ output }) => output <= lastOutput);
        const unmarked = outcomes.filter(({ sms }) => !sms?.redelivered);
        const last = outcomes.at(-1);
        if (world.wasForgotten(feed.from, last?.at ?? 0)) continue;
        const [before] = outcomes.slice(-2, -1);
        const isUnknown = last?.sms?.error?.code === 'SMS_UNCERTAIN';
        // A store that does not answer might still write the data.
        const isKeptAfterAll = before?.sms?.error?.code === 'SMS_STORE';
        if (before && (isUnknown || isKeptAfterAll) && world.wasUnwritten(before.at)) continue;
        if (unmarked.length > 1)
          yield [last?.at ?? 0, `two outcomes without a mark: ${textOf(feed)}: ${told(outcomes)}`];
        else if (new Set(outcomes.map(codeOf)).size > 1)
          yield [last?.at ?? 0, `two different outcomes: ${textOf(feed)}: ${told(outcomes)}`];
        const [first, second] = outcomes;
        // If a message enters a flow during a deploy, it is unknown whether the flow passed it on.
        const wasReplaced = first && world.happened(/deploy/, first.at, first.at).length > 0;
        if (first && second?.sms?.redelivered && !wasReplaced && world.ends(first.at - 100, second.at).length === 0)
          yield [second.at, `told again without a reason: ${textOf(feed)}: ${told(outcomes)}`];
      }
    },
  },
  {
    name: 'a text: unknown only with a cause',
    *check(world) {
      for (const feed of world.story.feeds) {
        for (const { at, sms } of world.outcomes(feed)) {
          const code = sms?.error?.code;
          if (code === undefined || !unknown.has(code)) continue;
          const from = first(world, feed);
          const attempts = world.texts.get(feed.body)?.attempts ?? [];
          const isTroubled = attempts.some(({ end, why }) => end === 'unclear' && troubles.some((one) => one === why));
          // A duplicate repeats the outcome of the earlier message with its key, however old that outcome is.
          const since = feed.from > from ? from : Math.max(from, at - timeoutSeconds * 1_000 - 3_000);
          const isDisturbed = world
            .happened(/^(service|refused)$/, since, at)
            .some(({ kind, what }) => !kept.has(feed.node) || kind === 'refused' || what.includes('reset before'));
          // A suspension that is as long as the time limit of a request.
          const wasAsleep = world
            .happened(/suspend/, since, at)
            .some((sleep) => sleep.to - sleep.from > timeoutSeconds * 1_000 - 1_000);
          if (isTroubled || isDisturbed || wasAsleep || world.ends(from, at).length > 0) continue;
          yield [at, `unknown without a cause: ${textOf(feed)}: ${sms?.error?.message}`];
        }
      }
    },
  },
  {
    name: 'a text: fails only with a cause',
    *check(world) {
      for (const feed of world.story.feeds) {
        for (const { at, sms } of world.outcomes(feed)) {
          const code = sms?.error?.code;
          if (code === undefined || unknown.has(code)) continue;
          if (code === 'SMS_OPTED_OUT' && hasStopped(world, feed, at)) continue;
          const causes = kept.has(feed.node) ? keptMayFail[code] : plainMayFail[code];
          if (causes && world.happened(causes, world.before(first(world, feed), 12_000), at).length > 0) continue;
          yield [at, `failed without a cause: ${textOf(feed)}: ${code}: ${sms?.error?.message}`];
        }
      }
    },
  },
  {
    name: 'a text: none after the STOP of its handset',
    *check(world) {
      const words = world.events.flatMap((event) => {
        const word = /^(STOP|START)[.!]+$/.exec(event.key)?.[1];
        const heard = world.all(event).map(({ at }) => at);
        return word ? [{ word, event, handset: event.fields.from, heard }] : [];
      });
      for (const { event, handset, heard } of words.filter(({ word }) => word === 'STOP')) {
        const [heardAt] = heard;
        if (heardAt === undefined) continue;
        // A message that was marked as leaving before the STOP was stored still arrives.
        const from = heardAt + leavingMs;
        const texts = [...world.texts.values()].filter(({ to }) => to.join() === handset);
        for (const { body, attempts } of texts) {
          for (const { at } of attempts.filter((attempt) => attempt.at > from && attempt.isSent)) {
            // The time at which a START was stored is unknown, but it was stored before the flow received it.
            const isBack = words.some(
              (one) =>
                one.word === 'START' &&
                one.handset === handset &&
                one.event.created < at &&
                // An opt-out word counts again if the account had forgotten the identifier of the earlier message.
                (one.heard.length === 0 || one.heard.some((again) => again > heardAt - leavingMs)),
            );
            const isHeldUp = world.happened(/suspend|redis/, heardAt - leavingMs, at).length > 0;
            if (!isBack && !isHeldUp && !world.wasForgotten(heardAt, at))
              yield [at, `sent "${body}" to ${handset} after the ${name(event)}`];
          }
        }
      }
    },
  },
  {
    name: 'a text: what is told is so',
    *check(world) {
      for (const feed of world.story.feeds) {
        const text = world.texts.get(feed.body);
        for (const { at, output, topic, sms } of world.outcomes(feed)) {
          const isSent = text?.attempts.some((attempt) => attempt.isSent) ?? false;
          if (output === 1 && !isSent) yield [at, `told to be sent, and is not: ${textOf(feed)}`];
          const accepted = feed.to.filter((handset) => !isBlocked(handset));
          if (output === 1 && feed.node !== 'ask' && sms?.accepted?.join() !== accepted.join())
            yield [at, `told to be accepted for ${sms?.accepted?.join()}: ${textOf(feed)}`];
          const hasFailed = output === 2 && (feed.node !== 'ask' || sms?.reason === 'failed');
          if (hasFailed && !isBlocked(String(topic))) yield [at, `told to have failed for ${topic}: ${textOf(feed)}`];
        }
      }
    },
  },
  {
    name: 'a reply request: one end for each recipient',
    *check(world) {
      for (const feed of world.story.feeds.filter(({ node }) => node === 'ask')) {
        const seen = world.outcomes(feed);
        const takenAt = world.takenAt(feed);
        const isCounted = seen.length > 0 && seen.every(({ output }) => output > 0);
        if (!isCounted || takenAt === 0) continue;
        for (const handset of feed.to) {
          const ends = seen.filter(({ topic }) => topic === handset);
          const [end] = ends;
          if (!end) {
            const until = world.openUntil(takenAt, waitSeconds);
            if (world.wasForgotten(feed.from, until) || world.wasUnwritten(takenAt)) continue;
            yield [takenAt, `neither an answer nor no answer: ${textOf(feed)}, from ${handset}`];
            continue;
          }
          const unmarked = ends.filter(({ sms }) => !sms?.redelivered);
          const isDoneTwice = world.wasKilledMoving(takenAt, ends.at(-1)?.at ?? 0);
          if (unmarked.length > 1 && !isDoneTwice)
            yield [end.at, `two ends without a mark: ${textOf(feed)}, from ${handset}`];
          if (new Set(ends.map(({ output }) => output)).size > 1 && !isDoneTwice)
            yield [end.at, `an answer and no answer: ${textOf(feed)}, from ${handset}`];
          yield* checkSilence(world, feed, takenAt, end, handset);
        }
      }
    },
  },
  {
    name: 'a report: one for each text that was accepted',
    *check(world) {
      for (const feed of world.story.feeds.filter(({ node }) => node === 'report')) {
        const seen = world.outcomes(feed);
        const sent = seen.find(({ output }) => output === 1);
        const reports = seen.filter(({ output }) => output === 3);
        const [report] = reports;
        if (!sent && report) yield [report.at, `a report, and nobody was accepted: ${textOf(feed)}`];
        if (!sent || world.wasUnwritten(sent.at)) continue;
        if (world.wasForgotten(sent.at, report?.at ?? world.openUntil(sent.at, reportSeconds))) continue;
        if (!report) {
          yield [sent.at, `no report: ${textOf(feed)}`];
          continue;
        }
        const isDoneTwice = world.wasKilledMoving(sent.at, reports.at(-1)?.at ?? 0);
        if (reports.filter(({ sms }) => !sms?.redelivered).length > 1 && !isDoneTwice)
          yield [report.at, `two reports without a mark: ${textOf(feed)}`];
        if (new Set(reports.map(describeReport)).size > 1 && !isDoneTwice)
          yield [report.at, `two different reports: ${textOf(feed)}: ${reports.map(describeReport).join(', then ')}`];
        yield* checkReport(world, feed, sent, report);
      }
    },
  },
  {
    name: 'nothing is left over',
    *check({ story }) {
      const { state, ended } = story;
      if (!state) return yield [ended, 'the account does not say how it is'];
      const { inbox, sends, store } = state as Record<string, Record<string, unknown>>;
      const left = {
        undelivered: inbox?.undelivered,
        inFlight: sends?.inFlight,
        kept: sends?.kept,
        awaitingReply: sends?.awaitingReply,
        awaitingReport: sends?.awaitingReport,
      };
      for (const [what, count] of Object.entries(left)) if (count !== 0) yield [ended, `left over: ${what}: ${count}`];
      if (sends?.failing) yield [ended, `sends still fail: ${JSON.stringify(sends.failing)}`];
      if (store?.ok !== true) yield [ended, `the store still fails: ${JSON.stringify(store)}`];
    },
  },
  {
    name: 'Node-RED goes on',
    *check({ story }) {
      for (const { at, how } of story.endedBy) yield [at, `the process ended by itself: ${how}`];
    },
  },
  {
    name: 'no warning in the log',
    *check({ story }) {
      const lines = new Set([
        ...findProcessWarnings(story.log),
        ...story.log.split('\n').filter((line) => crash.test(line)),
      ]);
      for (const line of lines) yield [story.ended, line];
    },
  },
  {
    name: 'memory does not grow',
    *check({ story }) {
      for (const { pid } of story.pids) {
        const windows = story.loops.filter((one) => one.pid === pid);
        const [first, last] = [windows[0], windows.at(-1)];
        if (!first || !last || last.at - first.at < 180_000) continue;
        const least = (from: number, to: number) =>
          Math.min(...windows.slice(windows.length * from, windows.length * to).map(({ heapBytes }) => heapBytes));
        const grown = (least(0.75, 1) - least(0.25, 0.5)) / 2 ** 20;
        if (grown > 30) yield [last.at, `the heap grew by ${grown.toFixed()} MiB in the second half of a process`];
      }
    },
  },
];

/** Stored messages fail only with this error, and otherwise wait. A suspension lets a Redis command in flight fail. */
const keptMayFail: Readonly<Record<string, RegExp>> = { SMS_STORE: /disk|redis|deploy|kill|stop|suspend/ };

const plainMayFail: Readonly<Record<string, RegExp>> = {
  SMS_CLOSED: /deploy|stop/,
  SMS_UNREACHABLE: /service|refused/,
  SMS_UNAUTHORIZED: /service/,
  SMS_STORE: /disk|redis|deploy|kill|stop|suspend/,
};

/** Maximum difference between the times that two processes record for the same moment. */
const clockMs = 10;

/** Maximum time between the decision to send a request and its arrival at the service. */
const leavingMs = 1_500;

/** Checks whether the handset had written STOP by this time. */
function hasStopped(world: World, { to }: Feed, at: number): boolean {
  return world.events.some(
    ({ key, fields, created }) => key.startsWith('STOP') && fields.from === to[0] && created < at,
  );
}

/** Checks that a reply in time ended the reply request, and that a timeout did not come early. */
function* checkSilence(world: World, feed: Feed, takenAt: number, end: Seen, handset: string): Iterable<Finding> {
  if (end.output !== 2 || end.sms?.reason !== 'timeout' || world.wasForgotten(takenAt, end.at)) return;
  const { messageId } = world.texts.get(feed.body) ?? {};
  const replies = world.events.filter(
    ({ kind, fields }) => kind === 'message' && fields.from === handset && fields.inReplyToId === messageId,
  );
  for (const reply of replies) {
    const delivered = world.all(reply)[0];
    if (!delivered || world.wasUnwritten(delivered.at)) continue;
    // A wrong clock can let the account forget the reply request, or the reply itself.
    if (world.wasOutdated(takenAt, delivered.at) || world.wasOutdated(delivered.at, end.at)) continue;
    // The reply does not wait forever for data of the former login or store.
    if (world.isStuckMoving(delivered.at)) continue;
    if (delivered.at < end.at - 1_000)
      yield [end.at, `timed out though the reply had come: ${textOf(feed)}, from ${handset}`];
  }
  const isEarly = end.at - takenAt < waitSeconds * 1_000 - clockMs - world.nudgedMs(takenAt, end.at);
  if (isEarly && !world.wasClockWrong(takenAt, end.at) && !end.sms?.redelivered)
    yield [end.at, `timed out after ${((end.at - takenAt) / 1_000).toFixed(1)} s: ${textOf(feed)}, from ${handset}`];
}

interface ReportSeen {
  delivered?: string[];
  undelivered?: { msisdn: string; statusCode: string }[];
  pending?: string[];
}

const finalCodes = new Set(['RCV', 'NUR', 'NRCV']);

/** Checks that a report shows the status of every accepted recipient, or shows it as pending. */
function* checkReport(world: World, feed: Feed, sent: Seen, report: Seen): Iterable<Finding> {
  const { delivered = [], undelivered = [], pending = [] } = (report.sms ?? {}) as ReportSeen;
  const told = describeReport(report);
  const all = [...delivered, ...undelivered.map(({ msisdn }) => msisdn), ...pending];
  if (all.sort().join() !== [...(sent.sms?.accepted ?? [])].sort().join())
    yield [report.at, `a report of others than were accepted: ${textOf(feed)}: ${told}`];
  const some = delivered.length > 0 ? (undelivered.length > 0 ? 'partly' : 'delivered') : 'undelivered';
  if (report.payload !== (pending.length > 0 ? 'unknown' : some))
    yield [report.at, `a report that contradicts itself: ${textOf(feed)}: ${told}`];
  const statusesOf = (msisdn: string) =>
    world.events.filter(
      ({ kind, fields }) => kind === 'status' && fields.from === msisdn && fields.inReplyToId === sent.sms?.messageId,
    );
  const known = [...delivered.map((msisdn) => ({ msisdn, statusCode: 'RCV' })), ...undelivered];
  for (const { msisdn, statusCode } of known)
    if (!statusesOf(msisdn).some(({ fields }) => fields.statusCode === statusCode))
      yield [report.at, `a report says ${statusCode} of ${msisdn}, which no status has said: ${textOf(feed)}`];
  if (pending.length === 0 || world.wasClockWrong(world.takenAt(feed), report.at)) return;
  for (const status of pending.flatMap(statusesOf)) {
    const came = world.all(status)[0];
    const isKnown = finalCodes.has(status.fields.statusCode ?? '') && came && came.at < report.at - 1_000;
    // The status does not wait forever for data of the former login or store.
    if (isKnown && !world.wasUnwritten(came.at) && !world.isStuckMoving(came.at))
      yield [report.at, `a report does not know of the ${name(status)}, which had come: ${textOf(feed)}: ${told}`];
  }
  const afterMs = report.at - world.takenAt(feed);
  if (afterMs < reportSeconds * 1_000 - world.nudgedMs(sent.at, report.at) && !sent.sms?.redelivered)
    yield [report.at, `a report before its time, after ${(afterMs / 1_000).toFixed(1)} s: ${textOf(feed)}: ${told}`];
}

function describeReport({ payload, sms }: Seen): string {
  const { delivered, undelivered, pending } = (sms ?? {}) as ReportSeen;
  return `${payload} ${JSON.stringify({ delivered, undelivered, pending })}`;
}

/**
 * Checks whether an answer reached a process that was about to end: the last answer of its kind before the end, or an
 * answer after it. For some time after a change of the login or the store, two poll loops run.
 */
function isInTransit(world: World, event: Event): boolean {
  const answered = world.events.filter(({ kind, answer }) => kind === event.kind && answer);
  const at = event.answer?.at ?? 0;
  return world.story.pids.some(({ to }, index) => {
    const next = world.story.pids[index + 1]?.from ?? Number.POSITIVE_INFINITY;
    if (at > next) return false;
    if (at >= to) return true;
    const before = new Set(answered.flatMap(({ answer }) => (answer && answer.at < to ? [answer.number] : [])));
    const loops = world.happened(/deploy/, to - 45_000, to).some(({ what }) => /login|store/.test(what)) ? 2 : 1;
    return [...before].slice(-loops).includes(event.answer?.number ?? 0);
  });
}

/** Returns the time at which a message was first sent into the flow. */
function first({ story }: World, { body, from }: Feed): number {
  return story.feeds.find((one) => one.body === body)?.from ?? from;
}

/** Checks whether the flow of this test refuses the first delivery of an event. It uses the same formula. */
function isRefusedAtFirst({ key }: Event): boolean {
  return [...key].reduce((sum, one) => sum + one.charCodeAt(0), 0) % 20 < 2;
}

function name({ kind, key, fields }: Event): string {
  return kind === 'message' ? `message "${key}"` : `status ${fields.statusCode} of ${fields.from}`;
}

function textOf({ node, body, id }: Feed): string {
  return `the text "${body}" (${node}, ${id})`;
}

const codeOf = ({ output, sms }: Seen) => (output === 1 ? 'sent' : (sms?.error?.code ?? 'failed'));

function told(outcomes: readonly Seen[]): string {
  return outcomes.map((one) => `${codeOf(one)}${one.sms?.redelivered ? ' (marked)' : ''}`).join(', then ');
}

/** Maximum time for which the event loop can be blocked. */
const maxStallMs = 50;

/** Lists stalls of the event loop. Leaves out those that a start, deploy or suspension explains. */
function listStalls(story: Story): string[] {
  const { control, loops, pids } = story;
  return loops.flatMap(({ at, pid, stallMs }) => {
    if (stallMs <= maxStallMs) return [];
    const process = pids.find((one) => one.pid === pid);
    if (process && at < process.listening + 2_000) return [];
    if (during(story, /deploy|suspend|stop|kill/, at - 1_500, at + 250).length > 0) return [];
    const around = control.filter((one) => Math.abs(one.at - at) < 600);
    const isBusy = around.some((one) => one.stallMs + one.waitedMs > 20);
    const when = ((at - story.begun) / 1_000).toFixed(1);
    return [`${isBusy ? 'on a busy machine: ' : ''}a stall of ${stallMs.toFixed()} ms after ${when} s`];
  });
}

/** Checks every promise against the observations. */
export function judge(story: Story, service: Pick<Service, 'events' | 'texts'>): Account {
  const world = new World(story, service);
  const failures = rules.flatMap((rule) =>
    [...rule.check(world)].map(([at, what]) => ({
      rule: rule.name,
      what,
      atSeconds: Math.round((at - story.begun) / 100) / 10,
    })),
  );
  const warned = new Map<string, number>();
  for (const [, line = ''] of story.log.matchAll(/\[(?:warn|error)\] (.*)/g)) {
    const kind = line.replace(/\d+/g, 'n').slice(0, 160);
    warned.set(kind, (warned.get(kind) ?? 0) + 1);
  }
  return {
    seed: story.seed,
    failures: failures.sort((one, other) => one.atSeconds - other.atSeconds),
    notes: [...listStalls(story), ...[...warned].map(([line, count]) => `logged ${count} times: ${line}`)],
    counts: {
      messages: world.events.filter(({ kind }) => kind === 'message').length,
      statuses: world.events.filter(({ kind }) => kind === 'status').length,
      fed: story.feeds.length,
      taken: story.feeds.filter(({ taken }) => taken !== undefined).length,
      texts: service.texts.size,
      happenings: story.happenings.length,
      processes: story.pids.length,
    },
    log: story.log,
  };
}
