import type { Library } from './library';
import { describeHappening, type Happening, type Plan } from './plan';
import { type Result, simulate } from './simulation';

/** A reduced plan that still breaks a rule, with the log of its run. */
export interface Finding {
  plan: Plan;
  rule: string;
  detail: string;
  lines: string[];
}

const mostTries = 300;

/** Removes everything from a plan that is not needed to break the same rule: first events, then nodes, then counts. */
export async function shrink(library: Library, failed: Result): Promise<Finding> {
  const rule = failed.violations[0]?.rule ?? '';
  let { plan } = failed;
  let tries = 0;
  const fails = async (candidate: Plan): Promise<boolean> => {
    if (tries++ >= mostTries) return false;
    const { violations } = await simulate(library, candidate);
    return violations[0]?.rule === rule;
  };
  for (let isSmaller = true; isSmaller && tries < mostTries; ) {
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
  const { happenings, nodes } = plan;
  for (let size = happenings.length; size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < happenings.length; start += size) {
      yield { ...plan, happenings: happenings.filter((_, index) => index < start || index >= start + size) };
    }
  }
  for (const node of nodes) {
    if (!happenings.some((happening) => happening.what === 'redeploy' && happening.node !== undefined)) {
      yield { ...plan, nodes: nodes.filter((other) => other !== node) };
    }
  }
  for (const [index, happening] of happenings.entries()) {
    if (!('count' in happening) || happening.count === 1) continue;
    const one: Happening = { ...happening, count: happening.count > 2 ? Math.floor(happening.count / 2) : 1 };
    yield { ...plan, happenings: happenings.map((other, at) => (at === index ? one : other)) };
  }
  if (plan.parallelPolls > 1) yield { ...plan, parallelPolls: 1 };
}

/** Describes a finding. */
export function describeFinding({ plan, rule, detail, lines }: Finding): string {
  const { seed, nodes, happenings, outward, ...settings } = plan;
  return [
    `Seed ${seed} breaks a rule: ${rule} (${detail})`,
    '',
    `Settings: ${Object.entries(settings)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')}`,
    ...(outward ? [`Way out: ${JSON.stringify(outward)}`] : []),
    ...nodes.map(
      ({ id, kind, acknowledge, ackTimeoutMs, maxAttempts, repliesOnly }) =>
        `Node ${id}: ${kind}${repliesOnly ? ' (replies only)' : ''}, acknowledge ${acknowledge}, ackTimeout ${ackTimeoutMs} ms, maxAttempts ${maxAttempts}`,
    ),
    'What happens to it, with everything left out that it breaks the rule without:',
    ...happenings.map((happening) => `  ${describeHappening(happening)}`),
    'Story:',
    ...lines,
  ].join('\n');
}
