import { createOrder, type OrderPlan } from './outgoing-plan';
import type { Fault, Plan, PlannedEvent } from './plan';
import type { Random } from './random';

/** Events that belong together. Their times are relative to the start of the scene. */
type Scene = (plan: Plan, random: Random, process: number) => PlannedEvent[];

/** Scenes with two or three events within milliseconds, which pure chance produces too rarely. */
const inward: readonly Scene[] = [
  // Nodes attach while the store writes messages for the attached nodes.
  (plan, random, process) => [
    { atMs: 0, type: 'store', process, durationMs: 8_000, trouble: 'is slow' },
    ...several(3, () => redeployNode(plan, random, process, random.below(4_000), [0, 5, 300, 1_000])),
    ...several(4, () => messages(random, random.below(5_000), 2)),
  ],
  // The store recovers while a node is missing.
  (plan, random, process) => [
    messages(random, 0, 2),
    flow(random, process, 'is silent', 100),
    { atMs: 20, type: 'store', process, durationMs: random.pick([5, 300, 3_000]), trouble: 'fails' },
    redeployNode(plan, random, process, random.below(6_000), [5_000]),
    messages(random, random.below(6_000), 2),
  ],
  // The flows stop while the store fails.
  (_plan, random, process) => [
    flow(random, process, random.pick(['is silent', 'fails', 'is late']), 8_000),
    messages(random, random.below(1_000), 3),
    {
      atMs: 500,
      type: 'store',
      process,
      durationMs: 8_000,
      trouble: random.pick(['fails', 'is full', 'fails afterwards']),
    },
    messages(random, random.below(3_000), 3),
    { atMs: 1_000 + random.below(4_000), type: 'redeploy', process, durationMs: random.pick([0, 5, 300, 5_000]) },
  ],
  // The flow sometimes throws when a node sends messages to it.
  (_plan, random, process) => [
    flow(random, process, 'throws', 2_000),
    ...several(3, () => messages(random, random.below(2_000), 3)),
  ],
  changeLogin,
  emptyServer,
  changeToFailing,
  endWhileFailing,
  // A backlog arrives from a nearby service, one message after the other.
  (plan, random) => {
    plan.isNear = true;
    plan.parallelPolls = 1;
    return several(random.between(1, 3), () => messages(random, random.below(1_000), 20));
  },
];

const outgoing: readonly Scene[] = [
  // Each attempt to send meets a different network fault.
  (plan, random, process) => [
    {
      atMs: 0,
      type: 'network',
      durationMs: 20_000,
      trouble: 'anything',
      share: 0.8,
      status: random.pick([500, 503, 401, 400]),
    },
    ...several(4, () => order(plan, random, process, random.below(10_000), { retryUncertain: random.chance(0.5) })),
  ],
  // The store is slow, or fails after writing, while messages are stored, leave, expire and end.
  (plan, random, process) => [
    {
      atMs: 0,
      type: 'store',
      process,
      durationMs: 10_000,
      trouble: random.pick(['is slow', 'fails afterwards', 'fails now and then']),
    },
    ...several(3, () =>
      order(plan, random, process, random.below(5_000), { expireMs: random.pick([0, 2_000, 5_000]) }),
    ),
    { atMs: random.below(10_000), type: random.pick(['redeploy', 'kill']), process, durationMs: random.pick([0, 300]) },
  ],
  // Replies and the ends of reply requests coincide with redeploys and other interruptions.
  (plan, random, process) => [
    ...several(3, () =>
      order(plan, random, process, random.below(3_000), { waitMs: random.pick([500, 2_000, 20_000]) }),
    ),
    { atMs: 0, type: 'store', process, durationMs: 30_000, trouble: 'is slow' },
    { atMs: random.below(20_000), type: 'redeploy', process, durationMs: random.pick([0, 300, 5_000]) },
  ],
  // Messages with one deduplication key follow each other while the first is refused, sent or has an unknown outcome.
  (plan, random, process) => [
    {
      atMs: random.below(2_000),
      type: 'network',
      durationMs: random.pick([1_000, 5_000, 20_000]),
      trouble: random.pick(['anything', 'status', 'status after the work', 'no answer']),
      share: 0.8,
      status: random.pick([400, 403, 500, 503]),
    },
    ...several(5, () => order(plan, random, process, random.below(30_000), { key: 0, sender: 0, count: 1 })),
  ],
  // Many messages go to one handset, and some attempts may have reached it.
  (plan, random, process) => [
    { atMs: 0, type: 'network', durationMs: 20_000, trouble: 'anything', share: 0.5, status: 500 },
    ...several(5, () => order(plan, random, process, random.below(30_000), { to: [1], count: 2, unlimited: false })),
  ],
  changeLogin,
  emptyServer,
  changeToFailing,
  replyInTime,
  awayForLong,
  reports,
  downForLong,
];

/**
 * Creates a scene: the account changes its login, and perhaps changes back, while polls are in flight and flows are
 * busy.
 */
function changeLogin(plan: Plan, random: Random, process: number): PlannedEvent[] {
  return [
    flow(random, process, random.pick(['is silent', 'is late', 'fails']), 3_000),
    ...several(4, () =>
      plan.outgoing && random.chance(0.7)
        ? order(plan, random, process, random.below(8_000), {})
        : messages(random, random.below(8_000), 2),
    ),
    ...several(random.between(1, 2), () => ({
      atMs: random.below(8_000),
      type: 'redeploy' as const,
      process,
      durationMs: random.pick([0, 5, 300]),
      isOtherLogin: true,
    })),
  ];
}

/** Creates a scene: the account changes to a login whose store fails. Then the flows or the process stop. */
function changeToFailing(plan: Plan, random: Random, process: number): PlannedEvent[] {
  if (plan.store === 'shared') return changeLogin(plan, random, process);
  const durationMs = random.pick([3_000, 20_000, 40_000]);
  return [
    {
      atMs: 0,
      type: 'store',
      process,
      durationMs,
      trouble: random.pick(['fails', 'is full', 'fails now and then']),
      login: 1,
    },
    flow(random, process, random.pick(['is silent', 'is late']), 3_000),
    ...several(3, () =>
      plan.outgoing && random.chance(0.7)
        ? order(plan, random, process, random.below(4_000), {})
        : messages(random, random.below(4_000), 2),
    ),
    {
      atMs: 1_000 + random.below(2_000),
      type: 'redeploy',
      process,
      durationMs: random.pick([0, 5, 300]),
      isOtherLogin: true,
    },
    { atMs: 3_000 + random.below(20_000), ...endOrRedeploy(random, process) },
  ];
}

/** Creates a scene: the store fails, a flow still gets a message, and then the process ends. */
function endWhileFailing(_plan: Plan, random: Random, process: number): PlannedEvent[] {
  const endsMs = random.between(500, 8_000);
  return [
    ...(random.chance(0.7) ? [flow(random, process, random.pick(['is silent', 'is late', 'fails']), 8_000)] : []),
    messages(random, 0, 3),
    {
      atMs: 200 + random.below(300),
      type: 'store',
      process,
      durationMs: random.between(500, 10_000),
      trouble: random.pick(['is full', 'is full', 'fails', 'fails afterwards', 'fails now and then']),
    },
    ...several(3, () => messages(random, random.below(endsMs), 2)),
    { atMs: endsMs, type: random.pick(['kill', 'stop']), process, durationMs: random.pick([0, 300, 5_000]) },
  ];
}

function endOrRedeploy(random: Random, process: number): Fault {
  const durationMs = random.pick([0, 300, 2_000]);
  return random.chance(0.5) ? { type: 'kill', process, durationMs } : { type: 'redeploy', process, durationMs };
}

/**
 * Creates a scene: replies come exactly at the timeout, or before the acceptance is known, while the store is slow
 * and flows stop.
 */
function replyInTime(plan: Plan, random: Random, process: number): PlannedEvent[] {
  const waitMs = random.pick([2_000, 5_000, 60_000]);
  return [
    { atMs: 0, type: 'store', process, durationMs: 30_000, trouble: 'is slow' },
    ...(random.chance(0.5)
      ? [{ atMs: 0, type: 'network' as const, durationMs: 20_000, trouble: 'slow' as const, share: 0.5, status: 500 }]
      : []),
    ...several(3, () =>
      order(plan, random, process, random.below(3_000), {
        waitMs,
        replyMs: random.chance(0.5) ? random.below(3_000) : waitMs - random.below(2_000),
      }),
    ),
    ...several(random.between(0, 2), () => ({
      atMs: waitMs + random.below(5_000),
      type: 'redeploy' as const,
      process,
      durationMs: random.pick([0, 300, 5_000]),
      ...(random.chance(0.5) && { node: plan.nodes.length }),
    })),
  ];
}

/**
 * Creates a scene: while reply requests are open, the receiving node is missing for longer than any deployment, so
 * that messages become unhandled.
 */
function awayForLong(plan: Plan, random: Random, process: number): PlannedEvent[] {
  // Removes the second node, because one node would miss the messages that the other has finished.
  plan.nodes = plan.nodes.filter(({ id }) => id !== 'in b');
  const durationMs = random.pick([25_000, 40_000]);
  const away = plan.nodes.flatMap(({ kind }, node) => (kind === 'incoming' ? [node] : []));
  return [
    ...several(3, () => order(plan, random, process, random.below(2_000), { waitMs: 60_000 })),
    ...away.map((node) => ({ atMs: random.below(5_000), type: 'redeploy' as const, process, durationMs, node })),
    ...several(4, () => messages(random, random.below(40_000), 3)),
    ...(random.chance(0.5) ? [{ atMs: random.below(60_000), ...endOrRedeploy(random, process) }] : []),
  ];
}

/** Creates a scene: statuses come before and after the acceptance of their messages is known, while flows stop. */
function reports(plan: Plan, random: Random, process: number): PlannedEvent[] {
  return [
    ...several(3, () =>
      order(plan, random, process, random.below(3_000), {
        reportMs: random.pick([2_000, 20_000, 60_000]),
        waitMs: random.pick([0, 0, 20_000]),
      }),
    ),
    ...(random.chance(0.5)
      ? [{ atMs: 0, type: 'network' as const, durationMs: 10_000, trouble: 'slow' as const, share: 0.5, status: 500 }]
      : []),
    ...several(random.between(0, 2), () => ({ atMs: random.below(20_000), ...endOrRedeploy(random, process) })),
  ];
}

/**
 * Creates a scene: while reply requests and reports are open, the process is down for longer than anything is
 * remembered.
 */
function downForLong(plan: Plan, random: Random, process: number): PlannedEvent[] {
  if (plan.store !== 'disk') return reports(plan, random, process);
  // Removes events that repeat messages: callbacks repeat for days, and a repetition after weeks counts as new.
  plan.plannedEvents = plan.plannedEvents.filter((one) => !('callback' in one) && one.type !== 'forgetful service');
  const orders = several(3, () => {
    const waitMs = random.pick([0, 60_000]);
    const isReported = waitMs === 0 || random.chance(0.5);
    return order(plan, random, process, random.below(3_000), { waitMs, ...(isReported && { reportMs: 60_000 }) });
  });
  return [...orders, { atMs: random.between(3_000, 8_000), type: 'kill', process, durationMs: 20 * 24 * 3_600_000 }];
}

/** Creates a scene: the server returns without data. */
function emptyServer(plan: Plan, random: Random, process: number): PlannedEvent[] {
  if (plan.store !== 'shared') return changeLogin(plan, random, process);
  return [
    flow(random, process, random.pick(['is silent', 'is late', 'fails']), 3_000),
    ...several(3, () =>
      plan.outgoing && random.chance(0.7)
        ? order(plan, random, process, random.below(8_000), {})
        : messages(random, random.below(8_000), 2),
    ),
    { atMs: random.below(8_000), type: 'emptied', durationMs: random.pick([50, 1_000, 8_000]) },
  ];
}

const share = 0.35;

/**
 * Adds a scene to some plans. The seed alone decides which plans and which scene.
 * @param maxScenes number of scenes to choose from, counted from the first. Default: all
 */
export function addScene(plan: Plan, random: Random, maxScenes?: number): void {
  if (!random.chance(share)) return;
  const scene = random.pick((plan.outgoing ? outgoing : inward).slice(0, maxScenes));
  const startsMs = random.below(plan.plannedEvents.at(-1)?.atMs ?? 1_000);
  const plannedEvents = scene(plan, random, random.below(plan.instances));
  for (const planned of plannedEvents) planned.atMs += startsMs;
  plan.plannedEvents.push(...plannedEvents);
  plan.plannedEvents.sort((a, b) => a.atMs - b.atMs);
}

function several(count: number, create: () => PlannedEvent): PlannedEvent[] {
  return Array.from({ length: count }, create);
}

function messages(random: Random, atMs: number, count: number): PlannedEvent {
  const callback = random.pick(['form', 'xml', 'none', 'none'] as const);
  return {
    atMs,
    type: 'message',
    count,
    isReply: true,
    polled: callback === 'none' || random.chance(0.7),
    ...(callback !== 'none' && { callback }),
  };
}

function flow(
  random: Random,
  process: number,
  trouble: Extract<PlannedEvent, { type: 'flow' }>['trouble'],
  maxMs: number,
): PlannedEvent {
  return { atMs: 0, type: 'flow', process, durationMs: random.between(1, maxMs), trouble };
}

function redeployNode(
  { nodes }: Plan,
  random: Random,
  process: number,
  atMs: number,
  durationMs: readonly number[],
): PlannedEvent {
  return {
    atMs,
    type: 'redeploy',
    process,
    durationMs: random.pick(durationMs),
    node: random.below(Math.max(1, nodes.length)),
  };
}

function order(plan: Plan, random: Random, process: number, atMs: number, options: Partial<OrderPlan>): PlannedEvent {
  return { atMs, ...createOrder(random, plan.instances, plan.outgoing?.senders.length ?? 1), process, ...options };
}
