import { findProcessWarnings } from '../process-warnings';
import { crash } from '../reliability/recorder';
import { ackSeconds } from './node-red';
import type { Story } from './record';
import { sendingRules } from './sending-rules';
import { type Event, isAccepted, type Service } from './service';
import { byTime, claimMs, describeEvent, describeInput, type Finding, polledAt, type Rule, World } from './world';

export interface Failure {
  /** The promise that was broken: the name of a rule. */
  rule: string;
  description: string;
  /** Time of the observation that shows the broken promise, in seconds since the run began. */
  atSeconds: number;
}

/** Result of a run. */
export interface RunReport {
  seed: number;
  failures: Failure[];
  counts: Record<string, number>;
  log: string;
}

const rules: readonly Rule[] = [
  {
    name: 'received: at least once',
    *checkEvent(world, event) {
      const { answer } = event;
      const isCalled = isAccepted(event.callbacks);
      if (!isCalled && !answer?.isWhole) return;
      const missing = polledAt[event.kind].filter((node) => world.deliveriesAt(event, node).length === 0);
      if (missing.length === 0 || world.deliveriesAt(event, 'callback').length > 0) return;
      if (!isCalled && (isInTransit(world, event) || world.wasUnwritten(answer?.at ?? 0))) return;
      if (world.wasDeletedUnread(answer?.at ?? event.created)) return;
      const how = isCalled ? 'its callback was accepted' : 'a poll was answered with it';
      yield [answer?.at ?? event.created, `lost: ${how}, but it never reached ${missing.join(', ')}`];
    },
  },
  {
    name: 'received: once, or marked as redelivered',
    *checkEvent(world, event) {
      const groups = [...polledAt[event.kind], 'callback'].map((node) => world.deliveriesAt(event, node));
      for (const [first, ...further] of groups) {
        const again = further.find(({ sms }) => !sms?.redelivered);
        // The service can repeat a callback that a dead process has stored. After a change of login or store, the
        // account does not recognize the repetition until it has imported the items of the dead process.
        const isCalledAgain = again?.node === 'callback' && again.at - event.created < claimMs;
        if (first && isCalledAgain && world.wasHeldByDeadProcess(event, again.at)) continue;
        if (!first || !again || world.isSeenForgotten(first.at, again.at)) continue;
        // Until the import, the account does not know which messages the former login or store has received.
        if (!world.isImportDelayed(first.at, again.at))
          yield [again.at, `delivered twice at ${first.node}, but not marked as redelivered`];
      }
      const unmarked = world.all(event).filter(({ sms }) => !sms?.redelivered);
      const vias = new Set(unmarked.map(({ sms }) => sms?.via));
      const [from, to] = [unmarked[0]?.at ?? 0, unmarked.at(-1)?.at ?? 0];
      const hasChangedStore = world.hasChangedStore(from, to) || world.isImportDelayed(from, to);
      if (vias.size < 2 || hasChangedStore || world.isSeenForgotten(from, to)) return;
      const times = unmarked.map(({ at, node }) => `${node} at ${world.secondsOf(at)}`);
      yield [to, `delivered twice (${times.join(', ')}), by poll and by callback, but not marked as redelivered`];
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
            const first = world.deliveriesAt(event, node)[0];
            const { at } = event.answer ?? { at: 0 };
            if (first && world.wasUnclaimed(at, first.at)) return [];
            // Does not check the order if a failing store delays an import: the account then delivers newer messages of
            // the new login before the imported ones.
            if (first && world.isImportDelayed(at, first.at)) return [];
            // Does not check the order of a reply that the account delays until it knows the outcome of a message to
            // the same handset.
            if (world.isReplyOnTheWay(event)) return [];
            return first && !first.sms?.redelivered ? [{ at: first.at, number: event.answer?.number ?? 0, event }] : [];
          })
          .sort(byTime);
        let last = firsts[0];
        for (const one of firsts) {
          if (last && one.number < last.number) {
            const [description, before] = [one, last].map(({ event, at }) => {
              const answered = world.secondsOf(event.answer?.at ?? 0);
              return `the ${describeEvent(event)} (answered at ${answered}, seen at ${world.secondsOf(at)})`;
            });
            yield [one.at, `out of order: ${description}, at ${node}, after ${before}`];
          } else last = one;
        }
      }
    },
  },
  {
    name: 'received: redelivered if the flow does not acknowledge',
    *checkEvent(world, event) {
      const [first, ...further] = world.deliveriesAt(event, 'asked');
      if (!first || further.length > 0 || !isRefusedAtFirst(event)) return;
      // The flow acknowledges each redelivery. If the first recorded delivery is a redelivery, the original delivery
      // went to a flow that a deploy replaced.
      if (first.sms?.redelivered || world.wasStoreDeleted(first.at, first.at + ackSeconds * 1_000)) return;
      if (world.wasDeletedUnread(first.at)) return;
      yield [first.at, 'not redelivered, although the flow had not acknowledged it'];
    },
  },
  {
    name: 'polling continues',
    *checkEvent(_world, { answer, created }) {
      if (!answer) yield [created, 'not polled'];
    },
  },
  {
    name: 'no connection is closed while the service answers a poll',
    *checkEvent(world, { answer }) {
      if (!answer || answer.isWhole || answer.cause !== 'its connection went away') return;
      const { at } = answer;
      if (world.ends(at - 5_000, at + 5_000).length > 0) return;
      if (world.findDisturbances(/suspend/, at - 60_000, at).length > 0) return;
      // The service ended this connection itself, because it ends all connections when it begins to refuse new ones.
      if (world.findDisturbances(/refused/, at - 500, at + 500).length > 0) return;
      yield [at, 'the connection was ended while the service answered'];
    },
  },
  ...sendingRules,
  {
    name: 'no work is left at the end',
    *check({ story }) {
      const { state, ended } = story;
      if (!state) return yield [ended, 'the account does not report its state'];
      const { sends, store } = state as Record<string, Record<string, unknown>>;
      for (const [description, count] of Object.entries(countWork(state)))
        if (count !== 0) yield [ended, `left over: ${description}: ${count}`];
      if (sends?.failing) yield [ended, `sends still fail: ${JSON.stringify(sends.failing)}`];
      if (store?.ok !== true) yield [ended, `the store still fails: ${JSON.stringify(store)}`];
    },
  },
  {
    name: 'Node-RED never ends unexpectedly',
    *check({ story }) {
      for (const { at, how } of story.endedBy) yield [at, `the process ended unexpectedly: ${how}`];
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
];

/**
 * Checks whether a poll answer with the event might have been lost when a process ended. This can happen to the last
 * answer before the end, and to every answer between the end and the next start. For some time after a change of the
 * login or the store, two poll loops run, so it can then happen to the last two answers before the end.
 */
function isInTransit(world: World, event: Event): boolean {
  const answered = world.events.filter(({ kind, answer }) => kind === event.kind && answer);
  const at = event.answer?.at ?? 0;
  return world.story.pids.some(({ to }, index) => {
    const next = world.story.pids[index + 1]?.from ?? Number.POSITIVE_INFINITY;
    if (at > next) return false;
    if (at >= to) return true;
    const before = new Set(answered.flatMap(({ answer }) => (answer && answer.at < to ? [answer.number] : [])));
    const loops = world
      .findDisturbances(/deploy/, to - 45_000, to)
      .some(({ description }) => /login|store/.test(description))
      ? 2
      : 1;
    return [...before].slice(-loops).includes(event.answer?.number ?? 0);
  });
}

/** Checks whether the flow of this test refuses the first delivery of an event. Uses the same formula as the flow. */
function isRefusedAtFirst({ key }: Event): boolean {
  return [...key].reduce((sum, one) => sum + one.charCodeAt(0), 0) % 20 < 2;
}

function* findingsOf(rule: Rule, world: World): Iterable<Finding> {
  yield* rule.check?.(world) ?? [];
  for (const input of world.story.inputs)
    for (const [at, text] of rule.checkInput?.(world, input) ?? []) yield [at, `${text}: ${describeInput(input)}`];
  for (const event of world.events)
    for (const [at, text] of rule.checkEvent?.(world, event) ?? []) yield [at, `${text}: the ${describeEvent(event)}`];
}

/** Checks every promise against the observations. */
export function judge(story: Story, service: Pick<Service, 'events' | 'sentMessages'>): RunReport {
  const world = new World(story, service);
  const failures = rules.flatMap((rule) =>
    [...findingsOf(rule, world)].map(([at, description]) => ({
      rule: rule.name,
      description,
      atSeconds: Math.round((at - story.begun) / 100) / 10,
    })),
  );
  return {
    seed: story.seed,
    failures: failures.sort((one, other) => one.atSeconds - other.atSeconds),
    counts: {
      messages: world.events.filter(({ kind }) => kind === 'message').length,
      statuses: world.events.filter(({ kind }) => kind === 'status').length,
      inputs: story.inputs.length,
      confirmed: story.inputs.filter(({ confirmedAt }) => confirmedAt !== undefined).length,
      sent: service.sentMessages.size,
      superseded: story.observations.filter(({ sms }) => /REPLACED|WITHDRAWN/.test(sms?.error?.code ?? '')).length,
      disturbances: story.disturbances.length,
      processes: story.pids.length,
    },
    log: story.log,
  };
}

/** Returns the number of items that each part of the account still works on, by name. */
export function countWork(state: Record<string, unknown>): Record<string, unknown> {
  const { inbox, sends } = state as Record<string, Record<string, unknown> | undefined>;
  return {
    undelivered: inbox?.undelivered,
    inFlight: sends?.inFlight,
    waiting: sends?.waiting,
    kept: sends?.kept,
    awaitingReply: sends?.awaitingReply,
    awaitingReport: sends?.awaitingReport,
  };
}
