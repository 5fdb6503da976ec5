import type { Library } from './library';
import { describePlannedEvent, type Plan, type PlannedEvent } from './plan';
import { type Result, simulate } from './simulation';

/** A reduced plan that still breaks a rule, with the log of its run. */
export interface Finding {
  plan: Plan;
  rule: string;
  detail: string;
  lines: string[];
}

const maxTries = 300;

/** Removes everything from a plan that is not needed to break the same rule: first events, then nodes, then counts. */
export async function shrink(library: Library, failed: Result): Promise<Finding> {
  const rule = failed.violations[0]?.rule ?? '';
  let { plan } = failed;
  let tries = 0;
  const fails = async (candidate: Plan): Promise<boolean> => {
    if (tries++ >= maxTries) return false;
    const { violations } = await simulate(library, candidate);
    return violations[0]?.rule === rule;
  };
  for (let isSmaller = true; isSmaller && tries < maxTries; ) {
    isSmaller = false;
    for (const candidate of smaller(plan)) {
      if (!(await fails(candidate))) continue;
      plan = candidate;
      isSmaller = true;
      break;
    }
  }
  const lines: string[] = [];
  const { violations } = await simulate(library, plan, lines);
  return { plan, rule, detail: violations[0]?.detail ?? '', lines };
}

function* smaller(plan: Plan): Generator<Plan> {
  const { plannedEvents, nodes } = plan;
  for (let size = plannedEvents.length; size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < plannedEvents.length; start += size) {
      yield { ...plan, plannedEvents: plannedEvents.filter((_, index) => index < start || index >= start + size) };
    }
  }
  for (const node of nodes) {
    if (!plannedEvents.some((planned) => planned.type === 'redeploy' && planned.node !== undefined)) {
      yield { ...plan, nodes: nodes.filter((other) => other !== node) };
    }
  }
  for (const [index, planned] of plannedEvents.entries()) {
    if (!('count' in planned) || planned.count === 1) continue;
    const one: PlannedEvent = { ...planned, count: planned.count > 2 ? Math.floor(planned.count / 2) : 1 };
    yield { ...plan, plannedEvents: plannedEvents.map((other, at) => (at === index ? one : other)) };
  }
  if (plan.parallelPolls > 1) yield { ...plan, parallelPolls: 1 };
}

/** Describes a broken rule with its smallest plan, as text for the failed test. */
export function describeFinding({ plan, rule, detail, lines }: Finding): string {
  const { seed, nodes, plannedEvents, outgoing, ...settings } = plan;
  return [
    `Seed ${seed} breaks a rule: ${rule} (${detail})`,
    '',
    `Settings: ${Object.entries(settings)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')}`,
    ...(outgoing ? [`Outgoing messages: ${JSON.stringify(outgoing)}`] : []),
    ...nodes.map(
      ({ id, kind, acknowledge, ackTimeoutMs, maxAttempts, repliesOnly }) =>
        `Node ${id}: ${kind}${repliesOnly ? ' (replies only)' : ''}, acknowledge ${acknowledge}, ackTimeout ${ackTimeoutMs} ms, maxAttempts ${maxAttempts}`,
    ),
    'Events that are necessary to break the rule:',
    ...plannedEvents.map((planned) => `  ${describePlannedEvent(planned)}`),
    'Log:',
    ...lines,
  ].join('\n');
}
