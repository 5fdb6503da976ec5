import { createOrder } from './outgoing-plan';
import type { Fault, Plan, PlannedEvent } from './plan';
import type { Random } from './random';

/**
 * Gives `replace` keys to the messages of a plan. Adds messages and resets with the same keys, some only milliseconds
 * after another event. To some plans, adds an outage, so that messages wait.
 */
export function addReplacements(plan: Plan, random: Random): Plan {
  const keys = random.between(1, 2);
  const instances = plan.store === 'shared' && random.chance(0.7) ? 2 : plan.instances;
  const senders = plan.outgoing?.senders.length ?? 1;
  // Removes clock changes: an instance that claims a message would use another clock to decide whether it is due.
  const events = plan.plannedEvents
    .filter(({ type }) => type !== 'clock')
    .map((event): PlannedEvent => ('process' in event ? { ...event, process: random.below(instances) } : event));
  const lastMs = events.at(-1)?.atMs ?? 0;
  const soon = () => random.pick([...events.map(({ atMs }) => atMs), 0]) + random.pick([0, 0, 1, 2, 5, 20, 100, 1_000]);
  for (let count = random.between(1, 4); count > 0; count--) {
    events.push({ atMs: soon(), ...createOrder(random, instances, senders) });
  }
  for (const event of events) if (event.type === 'order') makeReplaceable(event, random, keys);
  for (let count = random.between(0, 4); count > 0; count--) {
    const [process, sender, replaceKey] = [random.below(instances), random.below(senders), random.below(keys)];
    events.push({ atMs: soon(), type: 'reset', process, sender, replaceKey });
  }
  if (random.chance(0.6)) events.push({ atMs: random.below(lastMs + 1), ...createOutage(random) });
  // Adds a store fault, because `createPlan` removes store faults from plans with two instances.
  if (instances > 1 && random.chance(0.3)) {
    const trouble = random.pick(['fails', 'fails afterwards', 'is full', 'is slow', 'fails now and then'] as const);
    const [process, durationMs] = [random.below(instances), random.pick([50, 1_000, 8_000, 40_000])];
    events.push({ atMs: random.below(lastMs + 1), type: 'store', process, durationMs, trouble });
  }
  // Changes the login only with one instance, because instances with different logins do not share keys.
  if (instances === 1 && random.chance(0.15)) {
    const [atMs, durationMs] = [random.below(lastMs + 1), random.pick([0, 300, 5_000])];
    events.push({ atMs, type: 'redeploy', process: 0, durationMs, isOtherLogin: true });
  }
  events.sort((a, b) => a.atMs - b.atMs);
  return { ...plan, instances, plannedEvents: events };
}

function makeReplaceable(order: PlannedEvent & { type: 'order' }, random: Random, keys: number): void {
  order.waitMs = 0;
  order.count = random.pick([1, 1, 2]);
  if (random.chance(0.8)) delete order.key;
  if (random.chance(0.15)) return;
  order.replaceKey = random.below(keys);
  if (random.chance(0.3)) order.inMs = random.pick([0, 1_000, 20_000]);
  order.keep = order.inMs === undefined || random.chance(0.7);
}

/** Creates a network fault that keeps messages waiting, or returns them to the queue after an attempt. */
function createOutage(random: Random): Fault {
  const trouble = random.pick(['refused', 'connection hangs', 'status', 'status', 'slow', 'anything'] as const);
  const [durationMs, share] = [random.pick([50, 1_000, 8_000, 40_000]), random.pick([0.5, 1])];
  return { type: 'network', durationMs, trouble, share, status: random.pick([503, 503, 429, 401]) };
}
