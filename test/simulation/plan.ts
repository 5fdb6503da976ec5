import { addAsks } from './ask-plan';
import {
  createOrder,
  createOutgoingPlan,
  handsets,
  type OrderPlan,
  type OutgoingPlan,
  type ResetPlan,
} from './outgoing-plan';
import { Random } from './random';
import { addReplacements } from './replace-plan';
import { addScene } from './scenes';

/** How long the account remembers deduplication keys and message identifiers, in ms. */
export const dedupeMs = 72 * 3_600_000;

/** Faults of requests while the network or the service has problems. */
export const networkTroubles = [
  'refused',
  'connection hangs',
  'broken before it left',
  'request lost',
  'no answer',
  'answer cut off',
  'slow',
  'status',
  'status after the work',
  'garbage',
] as const;
/** `anything`: each request gets one of the other faults at random. */
export type NetworkTrouble = (typeof networkTroubles)[number] | 'anything';

/** Behaviour of a store during a fault. */
export const storeTroubles = ['fails', 'fails afterwards', 'is full', 'is slow', 'fails now and then'] as const;
export type StoreTrouble = (typeof storeTroubles)[number];

/** Behaviour of a flow during a fault. */
export const flowTroubles = ['fails', 'is silent', 'is late', 'answers twice', 'throws', 'anything'] as const;
export type FlowTrouble = (typeof flowTroubles)[number];

export type Format = 'form' | 'xml';

/** An event of a plan, with its time. */
export type PlannedEvent = { atMs: number } & (
  | { type: 'message'; count: number; isReply: boolean; callback?: Format; polled: boolean }
  | { type: 'status'; count: number; callback?: Format; polled: boolean }
  | { type: 'outgoing'; count: number }
  | OrderPlan
  | ResetPlan
  /** A handset revokes or gives consent. `handset` is the last digit of its number. */
  | { type: 'word'; handset: number; word: 'STOP' | 'START'; callback?: Format; polled: boolean }
  | Fault
);

/** Types of faults that end a process. */
export const processEnds = ['kill', 'power failure', 'stop'] as const;

export type Fault =
  | { type: 'network'; durationMs: number; trouble: NetworkTrouble; share: number; status: number }
  | { type: 'forgetful service'; durationMs: number }
  /** `login` limits the fault to the store of that login. Only for stores on disk. */
  | { type: 'store'; process: number; durationMs: number; trouble: StoreTrouble; login?: number }
  | { type: 'flow'; process: number; durationMs: number; trouble: FlowTrouble }
  | { type: (typeof processEnds)[number]; process: number; durationMs: number }
  | { type: 'redeploy'; process: number; durationMs: number; node?: number; isOtherLogin?: boolean }
  | { type: 'emptied'; durationMs: number }
  | { type: 'stall'; durationMs: number }
  | { type: 'clock'; process: number; byMs: number };

/** A node of the flows. All instances of a plan have the same nodes. */
export interface NodePlan {
  id: string;
  kind: 'incoming' | 'status' | 'outbox' | 'callback';
  acknowledge: 'auto' | 'flow';
  ackTimeoutMs: number;
  maxAttempts: number;
  /** True if the node wants no incoming messages except replies. */
  repliesOnly: boolean;
}

/**
 * All parameters of a run as plain data, created from a seed. The seed also decides the order of events at the same
 * moment, which is not part of the plan.
 */
export interface Plan {
  seed: number;
  store: 'memory' | 'disk' | 'shared';
  instances: number;
  method: 'GET' | 'POST';
  timeoutMs: number;
  concurrency: number;
  queueLimit: number;
  pauseMs: number;
  parallelPolls: number;
  /** True if the service answers fast while turns of the event loop take time. */
  isNear?: true;
  nodes: NodePlan[];
  /** Present if the plan is about outgoing messages. */
  outgoing?: OutgoingPlan;
  plannedEvents: PlannedEvent[];
}

/** Restrictions for the plans that are created. */
export interface PlanLimits {
  stores?: readonly Plan['store'][];
  /**
   * Subject of the plan:
   * - `in`: incoming messages
   * - `out`: also outgoing messages
   * - `consent`: like `out`, with consent words and due times
   * - `replace`: like `out`, with `replace` keys and resets
   * - `ask`: like `out`, with questions
   */
  way?: Way;
  /** Number of scenes to choose from, to reproduce a seed that was found when fewer existed. Default: all. */
  scenes?: number;
}

export const allWays = ['in', 'out', 'consent', 'replace', 'ask'] as const;
export type Way = (typeof allWays)[number];

export const allStores: readonly Plan['store'][] = ['memory', 'disk', 'shared'];

const faultWeights: readonly (readonly [Fault['type'], number])[] = [
  ['network', 6],
  ['forgetful service', 1],
  ['store', 4],
  ['flow', 4],
  ['kill', 4],
  ['power failure', 1],
  ['stop', 1],
  ['redeploy', 5],
  ['stall', 2],
  ['clock', 1],
];

/** Creates the plan of a seed. */
export function createPlan(seed: number, { stores = allStores, way = 'in', scenes }: PlanLimits = {}): Plan {
  if (way === 'consent')
    return addConsent(createPlan(seed, { stores, way: 'out', scenes: 0 }), new Random(seed, 'consent'));
  if (way === 'replace')
    return addReplacements(createPlan(seed, { stores, way: 'out', scenes: 0 }), new Random(seed, 'replace'));
  if (way === 'ask') return addAsks(createPlan(seed, { stores, way: 'out', scenes: 0 }), new Random(seed, 'ask'));
  const random = new Random(seed, way === 'in' ? 'plan' : 'plan of the way out');
  const store = random.weigh(
    (
      [
        ['disk', 6],
        ['memory', 1],
        ['shared', 3],
      ] as const
    ).filter(([name]) => stores.includes(name)),
  );
  const instances = store === 'shared' ? random.between(1, 2) : 1;
  const lengthMs = random.pick([2_000, 10_000, 40_000, 90_000]);
  const nodes = createNodes(random).filter(() => way === 'in' || random.chance(0.6));
  const outgoing = way === 'out' ? createOutgoingPlan(random) : undefined;
  const senders = outgoing?.senders.length ?? 0;
  const plannedEvents: PlannedEvent[] = [];
  const load = random.between(2, 10);
  for (let index = 0; index < load; index++) {
    if (outgoing && random.chance(0.85)) {
      plannedEvents.push({ atMs: random.below(lengthMs), ...createOrder(random, instances, senders) });
    } else plannedEvents.push(createLoad(random, lengthMs));
  }
  const faults = random.pick([0, 1, 1, 2, 2, 3, 4, 6]);
  for (let index = 0; index < faults; index++) {
    plannedEvents.push({ atMs: random.below(lengthMs), ...createFault(random, instances, nodes.length + senders) });
  }
  // Half of the plans put faults close together, because mistakes often show if two faults meet.
  if (plannedEvents.length > 1 && random.chance(0.5)) {
    const times = plannedEvents.map(({ atMs }) => atMs);
    for (const planned of plannedEvents) {
      if (random.chance(0.5)) planned.atMs = random.pick(times) + random.pick([0, 0, 1, 2, 5, 20, 100, 1_000]);
    }
  }
  plannedEvents.sort((a, b) => a.atMs - b.atMs);
  const plan: Plan = {
    seed,
    store,
    instances,
    method: random.pick(['GET', 'POST']),
    timeoutMs: random.pick([1_000, 5_000, 30_000]),
    concurrency: random.pick([1, 2, 8]),
    queueLimit: random.pick([1, 100, 10_000]),
    pauseMs: random.pick([0, 1_000, 30_000]),
    parallelPolls: random.pick([1, 1, 1, 3, 16]),
    nodes,
    ...(outgoing && { outgoing }),
    plannedEvents,
  };
  if (scenes !== 0) addScene(plan, new Random(seed, 'scene'), scenes);
  // Removes store faults, because no rule covers them if two instances share a reply request.
  if (outgoing && instances > 1) plan.plannedEvents = plan.plannedEvents.filter(({ type }) => type !== 'store');
  // If there are several instances, removes changes of the login, because different logins do not share deduplication
  // keys.
  if (outgoing && instances > 1)
    for (const event of plan.plannedEvents) if (event.type === 'redeploy') delete event.isOtherLogin;
  return plan;
}

/** Adds consent words and due times. Removes faults of the store and the clock, because no rule covers both together. */
function addConsent(plan: Plan, random: Random): Plan {
  const { outgoing, plannedEvents } = plan;
  const lastMs = plannedEvents.at(-1)?.atMs ?? 0;
  const rest = plannedEvents.filter(({ type }) => !['store', 'power failure', 'emptied', 'clock'].includes(type));
  for (const one of rest) {
    if (one.type !== 'order') continue;
    if (random.chance(0.15)) one.essential = true;
    if (one.keep && random.chance(0.25)) one.inMs = random.pick([1_000, 20_000, 90_000]);
  }
  for (let count = random.between(1, 6); count > 0; count--) {
    const callback = random.pick(['none', 'form', 'xml'] as const);
    rest.push({
      atMs: random.chance(0.5)
        ? random.pick([...rest.map(({ atMs }) => atMs), 0]) + random.pick([0, 1, 5, 100, 1_000])
        : random.below(lastMs + 1_000),
      type: 'word',
      handset: random.pick(handsets),
      word: random.pick(['STOP', 'STOP', 'START']),
      polled: callback === 'none' || random.chance(0.7),
      ...(callback !== 'none' && { callback }),
    });
  }
  // Changes the login only with one instance, because instances with different logins share no data.
  if (plan.instances === 1 && random.chance(0.3)) {
    const [atMs, durationMs] = [random.below(lastMs + 1_000), random.pick([0, 300, 5_000])];
    rest.push({ atMs, type: 'redeploy', process: 0, durationMs, isOtherLogin: true });
  }
  rest.sort((a, b) => a.atMs - b.atMs);
  const consent = random.chance(0.4) ? { quietMinute: random.below(3) } : {};
  return { ...plan, ...(outgoing && { outgoing: { ...outgoing, consent } }), plannedEvents: rest };
}

function createNodes(random: Random): NodePlan[] {
  const nodes: NodePlan[] = [];
  const add = (kind: NodePlan['kind'], id: string) => {
    const acknowledge = random.pick(['auto', 'flow'] as const);
    nodes.push({
      id,
      kind,
      acknowledge: kind === 'outbox' ? 'auto' : acknowledge,
      ackTimeoutMs: random.pick([500, 3_000, 10_000]),
      maxAttempts: random.pick([1, 2, 5, 5]),
      repliesOnly: kind === 'incoming' && random.chance(0.15),
    });
  };
  add('incoming', 'in a');
  if (random.chance(0.4)) add('incoming', 'in b');
  if (random.chance(0.5)) add('status', 'status a');
  if (random.chance(0.5)) add('callback', 'callback');
  if (random.chance(0.3)) add('outbox', 'outbox');
  return nodes;
}

function createLoad(random: Random, lengthMs: number): PlannedEvent {
  const atMs = random.below(lengthMs);
  const count = random.pick([1, 1, 2, 3, 8]);
  const format = random.pick(['form', 'xml'] as const);
  const way = random.weigh([
    ['polled', 4],
    ['both', 3],
    ['called back', 1],
  ] as const);
  const ways = { polled: way !== 'called back', ...(way === 'polled' ? undefined : { callback: format }) };
  const type = random.weigh([
    ['message', 6],
    ['status', 2],
    ['outgoing', 4],
  ] as const);
  if (type === 'message') return { atMs, type, count, isReply: random.chance(0.5), ...ways };
  if (type === 'status') return { atMs, type, count, ...ways };
  return { atMs, type, count };
}

function createFault(random: Random, instances: number, nodes: number): Fault {
  const type = random.weigh(faultWeights);
  const process = random.below(instances);
  const durationMs = random.pick([1, 50, 1_000, 8_000, 40_000]);
  if (type === 'network') {
    const share = random.pick([0.3, 0.7, 1]);
    const status = random.pick([500, 500, 503, 429, 401, 403, 400, 302]);
    return { type, durationMs, trouble: random.pick(networkTroubles), share, status };
  }
  if (type === 'store') return { type, process, durationMs, trouble: random.pick(storeTroubles) };
  if (type === 'flow') return { type, process, durationMs, trouble: random.pick(flowTroubles) };
  if (type === 'kill' || type === 'power failure' || type === 'stop') {
    return { type, process, durationMs: random.pick([100, 2_000, 50_000]) };
  }
  if (type === 'redeploy') {
    const down = { type, process, durationMs: random.pick([0, 5, 300, 5_000]) };
    return nodes > 0 && random.chance(0.4) ? { ...down, node: random.below(nodes) } : down;
  }
  if (type === 'clock') return { type, process, byMs: random.pick([-3_600_000, -1_000, 1_000, 3_600_000]) };
  if (type === 'stall') return { type, durationMs: random.pick([20, 300, 5_000]) };
  return { type: 'forgetful service', durationMs };
}

/** Describes an event of a plan. */
export function describePlannedEvent({ atMs, ...planned }: PlannedEvent): string {
  const { type, ...details } = planned;
  const rest = Object.entries(details).map(([name, value]) => `${name} ${value}`);
  return `at ${(atMs / 1_000).toFixed(3)} s: ${type}${rest.length > 0 ? ` (${rest.join(', ')})` : ''}`;
}
