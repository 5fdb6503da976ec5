import { createOrder, type OrderPlan } from './outgoing-plan';
import type { FlowTrouble, NetworkTrouble, Plan, PlannedEvent, StoreTrouble } from './plan';
import type { Random } from './random';

/** Creates the events of a scene. All times are relative to the start of the scene, in ms. */
class Stage {
  /** Index of the process to which the faults of the scene happen. */
  readonly process: number;

  constructor(
    readonly plan: Plan,
    readonly random: Random,
  ) {
    this.process = random.below(plan.instances);
  }

  several(count: number, create: () => PlannedEvent): PlannedEvent[] {
    return Array.from({ length: count }, create);
  }

  /** Creates an event in half of the scenes, otherwise nothing. */
  perhaps(create: () => PlannedEvent): PlannedEvent[] {
    return this.random.chance(0.5) ? [create()] : [];
  }

  /** Creates incoming messages that look like replies. Some come by callback, with or without a poll. */
  messages(atMs: number, count: number): PlannedEvent {
    const { random } = this;
    const callback = random.pick(['form', 'xml', 'none', 'none'] as const);
    const polled = callback === 'none' || random.chance(0.7);
    return { atMs, type: 'message', count, isReply: true, polled, ...(callback !== 'none' && { callback }) };
  }

  order(atMs: number, options: Partial<OrderPlan> = {}): PlannedEvent {
    const { plan, random, process } = this;
    return { atMs, ...createOrder(random, plan.instances, plan.outgoing?.senders.length ?? 1), process, ...options };
  }

  /** Creates messages at random times: mostly outgoing ones if the plan has sending nodes, otherwise incoming ones. */
  traffic(count: number, maxMs: number): PlannedEvent[] {
    const { plan, random } = this;
    return this.several(count, () =>
      plan.outgoing && random.chance(0.7) ? this.order(random.below(maxMs)) : this.messages(random.below(maxMs), 2),
    );
  }

  /** @param login limits the fault to the store of that login */
  store(atMs: number, durationMs: number, trouble: StoreTrouble, login?: number): PlannedEvent {
    const { process } = this;
    return { atMs, type: 'store', process, durationMs, trouble, ...(login !== undefined && { login }) };
  }

  network(durationMs: number, trouble: NetworkTrouble, share: number, status: number, atMs = 0): PlannedEvent {
    return { atMs, type: 'network', durationMs, trouble, share, status };
  }

  /** Disturbs the flows of the process from the start of the scene. */
  flow(trouble: FlowTrouble, maxMs: number): PlannedEvent {
    return { atMs: 0, type: 'flow', process: this.process, durationMs: this.random.between(1, maxMs), trouble };
  }

  redeploy(atMs: number, durationMs: number, change: { isOtherLogin?: true; node?: number } = {}): PlannedEvent {
    return { atMs, type: 'redeploy', process: this.process, durationMs, ...change };
  }

  redeployNode(atMs: number, durationsMs: readonly number[]): PlannedEvent {
    const { plan, random } = this;
    const durationMs = random.pick(durationsMs);
    return this.redeploy(atMs, durationMs, { node: random.below(Math.max(1, plan.nodes.length)) });
  }

  killOrRedeploy(atMs: number): PlannedEvent {
    const { random, process } = this;
    const durationMs = random.pick([0, 300, 2_000]);
    return random.chance(0.5) ? { atMs, type: 'kill', process, durationMs } : this.redeploy(atMs, durationMs);
  }
}

/** Creates events that belong together. Chance alone rarely puts two or three such events within a few milliseconds. */
type Scene = (stage: Stage) => PlannedEvent[];

const inward: readonly Scene[] = [
  // Nodes attach while the store writes messages for nodes that are already attached.
  (stage) => [
    stage.store(0, 8_000, 'is slow'),
    ...stage.several(3, () => stage.redeployNode(stage.random.below(4_000), [0, 5, 300, 1_000])),
    ...stage.several(4, () => stage.messages(stage.random.below(5_000), 2)),
  ],
  // The store recovers while a node is missing.
  (stage) => [
    stage.messages(0, 2),
    stage.flow('is silent', 100),
    stage.store(20, stage.random.pick([5, 300, 3_000]), 'fails'),
    stage.redeployNode(stage.random.below(6_000), [5_000]),
    stage.messages(stage.random.below(6_000), 2),
  ],
  // The flows stop while the store fails.
  (stage) => [
    stage.flow(stage.random.pick(['is silent', 'fails', 'is late']), 8_000),
    stage.messages(stage.random.below(1_000), 3),
    stage.store(500, 8_000, stage.random.pick(['fails', 'is full', 'fails afterwards'])),
    stage.messages(stage.random.below(3_000), 3),
    stage.redeploy(1_000 + stage.random.below(4_000), stage.random.pick([0, 5, 300, 5_000])),
  ],
  // The flow sometimes throws when a node sends messages to it.
  (stage) => [stage.flow('throws', 2_000), ...stage.several(3, () => stage.messages(stage.random.below(2_000), 3))],
  changeLogin,
  emptyServer,
  changeToFailing,
  endWhileFailing,
  // A backlog arrives from a nearby service, one message after the other.
  (stage) => {
    stage.plan.isNear = true;
    stage.plan.parallelPolls = 1;
    return stage.several(stage.random.between(1, 3), () => stage.messages(stage.random.below(1_000), 20));
  },
];

const outgoing: readonly Scene[] = [
  // Each attempt to send meets a different network fault.
  (stage) => {
    const { random } = stage;
    return [
      stage.network(20_000, 'anything', 0.8, random.pick([500, 503, 401, 400])),
      ...stage.several(4, () => stage.order(random.below(10_000), { retryUncertain: random.chance(0.5) })),
    ];
  },
  // The store is slow, or fails after writing, while messages are stored, leave, expire and end.
  (stage) => {
    const { random, process } = stage;
    return [
      stage.store(0, 10_000, random.pick(['is slow', 'fails afterwards', 'fails now and then'])),
      ...stage.several(3, () => stage.order(random.below(5_000), { expireMs: random.pick([0, 2_000, 5_000]) })),
      {
        atMs: random.below(10_000),
        type: random.pick(['redeploy', 'kill']),
        process,
        durationMs: random.pick([0, 300]),
      },
    ];
  },
  // Replies and the ends of reply requests coincide with redeploys and other interruptions.
  (stage) => {
    const { random } = stage;
    return [
      ...stage.several(3, () => stage.order(random.below(3_000), { waitMs: random.pick([500, 2_000, 20_000]) })),
      stage.store(0, 30_000, 'is slow'),
      stage.redeploy(random.below(20_000), random.pick([0, 300, 5_000])),
    ];
  },
  // Messages with one deduplication key follow each other while the first is refused, sent or has an unknown outcome.
  (stage) => {
    const { random } = stage;
    const atMs = random.below(2_000);
    const durationMs = random.pick([1_000, 5_000, 20_000]);
    const trouble = random.pick(['anything', 'status', 'status after the work', 'no answer'] as const);
    return [
      stage.network(durationMs, trouble, 0.8, random.pick([400, 403, 500, 503]), atMs),
      ...stage.several(5, () => stage.order(random.below(30_000), { key: 0, sender: 0, count: 1 })),
    ];
  },
  // Many messages go to one handset, and the outcome of some attempts may be unknown.
  (stage) => [
    stage.network(20_000, 'anything', 0.5, 500),
    ...stage.several(5, () => stage.order(stage.random.below(30_000), { to: [1], count: 2, unlimited: false })),
  ],
  changeLogin,
  emptyServer,
  changeToFailing,
  replyInTime,
  awayForLong,
  reports,
  downForLong,
];

/** Changes the login, and perhaps changes it back, while polls are in flight and flows are busy. */
function changeLogin(stage: Stage): PlannedEvent[] {
  const { random } = stage;
  return [
    stage.flow(random.pick(['is silent', 'is late', 'fails']), 3_000),
    ...stage.traffic(4, 8_000),
    ...stage.several(random.between(1, 2), () =>
      stage.redeploy(random.below(8_000), random.pick([0, 5, 300]), { isOtherLogin: true }),
    ),
  ];
}

/** Switches to another login while the store of that login fails. Then kills the process or redeploys. */
function changeToFailing(stage: Stage): PlannedEvent[] {
  const { random } = stage;
  if (stage.plan.store === 'shared') return changeLogin(stage);
  const durationMs = random.pick([3_000, 20_000, 40_000]);
  return [
    stage.store(0, durationMs, random.pick(['fails', 'is full', 'fails now and then']), 1),
    stage.flow(random.pick(['is silent', 'is late']), 3_000),
    ...stage.traffic(3, 4_000),
    stage.redeploy(1_000 + random.below(2_000), random.pick([0, 5, 300]), { isOtherLogin: true }),
    stage.killOrRedeploy(3_000 + random.below(20_000)),
  ];
}

/** Makes the store fail while messages arrive and a flow may fail, be late or stay silent. Then ends the process. */
function endWhileFailing(stage: Stage): PlannedEvent[] {
  const { random, process } = stage;
  const endsMs = random.between(500, 8_000);
  const troubles = ['is full', 'is full', 'fails', 'fails afterwards', 'fails now and then'] as const;
  return [
    ...(random.chance(0.7) ? [stage.flow(random.pick(['is silent', 'is late', 'fails']), 8_000)] : []),
    stage.messages(0, 3),
    stage.store(200 + random.below(300), random.between(500, 10_000), random.pick(troubles)),
    ...stage.several(3, () => stage.messages(random.below(endsMs), 2)),
    { atMs: endsMs, type: random.pick(['kill', 'stop']), process, durationMs: random.pick([0, 300, 5_000]) },
  ];
}

/**
 * Sends replies exactly at the timeout, or before the account knows that the service accepted the message. At the same
 * time, the store is slow and flows stop.
 */
function replyInTime(stage: Stage): PlannedEvent[] {
  const { plan, random } = stage;
  const waitMs = random.pick([2_000, 5_000, 60_000]);
  return [
    stage.store(0, 30_000, 'is slow'),
    ...stage.perhaps(() => stage.network(20_000, 'slow', 0.5, 500)),
    ...stage.several(3, () =>
      stage.order(random.below(3_000), {
        waitMs,
        replyMs: random.chance(0.5) ? random.below(3_000) : waitMs - random.below(2_000),
      }),
    ),
    ...stage.several(random.between(0, 2), () =>
      stage.redeploy(
        waitMs + random.below(5_000),
        random.pick([0, 300, 5_000]),
        random.chance(0.5) ? { node: plan.nodes.length } : {},
      ),
    ),
  ];
}

/**
 * Removes the receiving node for longer than any deployment while reply requests are open, so that messages become
 * unhandled.
 */
function awayForLong(stage: Stage): PlannedEvent[] {
  const { plan, random } = stage;
  // Removes the second receiving node. With two nodes, each would miss the messages that the other has finished.
  plan.nodes = plan.nodes.filter(({ id }) => id !== 'in b');
  const durationMs = random.pick([25_000, 40_000]);
  const away = plan.nodes.flatMap(({ kind }, node) => (kind === 'incoming' ? [node] : []));
  return [
    ...stage.several(3, () => stage.order(random.below(2_000), { waitMs: 60_000 })),
    ...away.map((node) => stage.redeploy(random.below(5_000), durationMs, { node })),
    ...stage.several(4, () => stage.messages(random.below(40_000), 3)),
    ...stage.perhaps(() => stage.killOrRedeploy(random.below(60_000))),
  ];
}

/** Sends statuses before and after the account knows that the service accepted their messages, while flows stop. */
function reports(stage: Stage): PlannedEvent[] {
  const { random } = stage;
  return [
    ...stage.several(3, () =>
      stage.order(random.below(3_000), {
        reportMs: random.pick([2_000, 20_000, 60_000]),
        waitMs: random.pick([0, 0, 20_000]),
      }),
    ),
    ...stage.perhaps(() => stage.network(10_000, 'slow', 0.5, 500)),
    ...stage.several(random.between(0, 2), () => stage.killOrRedeploy(random.below(20_000))),
  ];
}

/** Keeps the process down for longer than the account remembers anything, while reply requests and reports are open. */
function downForLong(stage: Stage): PlannedEvent[] {
  const { plan, random, process } = stage;
  if (plan.store !== 'disk') return reports(stage);
  // Removes events that repeat messages: callbacks repeat for days, and a repetition after weeks counts as new.
  plan.plannedEvents = plan.plannedEvents.filter((one) => !('callback' in one) && one.type !== 'forgetful service');
  const orders = stage.several(3, () => {
    const waitMs = random.pick([0, 60_000]);
    const isReported = waitMs === 0 || random.chance(0.5);
    return stage.order(random.below(3_000), { waitMs, ...(isReported && { reportMs: 60_000 }) });
  });
  return [...orders, { atMs: random.between(3_000, 8_000), type: 'kill', process, durationMs: 20 * 24 * 3_600_000 }];
}

/** Lets the server return without data. */
function emptyServer(stage: Stage): PlannedEvent[] {
  const { random } = stage;
  if (stage.plan.store !== 'shared') return changeLogin(stage);
  return [
    stage.flow(random.pick(['is silent', 'is late', 'fails']), 3_000),
    ...stage.traffic(3, 8_000),
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
  const createScene = random.pick((plan.outgoing ? outgoing : inward).slice(0, maxScenes));
  const startsMs = random.below(plan.plannedEvents.at(-1)?.atMs ?? 1_000);
  const plannedEvents = createScene(new Stage(plan, random));
  for (const planned of plannedEvents) planned.atMs += startsMs;
  plan.plannedEvents.push(...plannedEvents);
  plan.plannedEvents.sort((a, b) => a.atMs - b.atMs);
}
