import type { Library } from './library';
import { createPlan, type Plan, type PlanLimits } from './plan';
import { type Result, simulate } from './simulation';

/** Result of many runs. */
export interface Campaign {
  runs: number;
  events: number;
  /** Virtual time of all runs, in hours. */
  hours: number;
  failed?: Result;
}

/**
 * Runs plans one after the other, until one fails or the time is over.
 *
 * @param untilMs when to stop, in ms of `performance.now()`
 */
export async function runCampaign(
  library: Library,
  plans: Iterable<Plan>,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<Campaign> {
  const campaign: Campaign = { runs: 0, events: 0, hours: 0 };
  for (const plan of plans) {
    if (performance.now() >= untilMs || campaign.failed) break;
    const result = await simulate(library, plan);
    campaign.runs++;
    campaign.events += result.events;
    campaign.hours += result.seconds / 3_600;
    if (result.violations.length > 0) campaign.failed = result;
  }
  return campaign;
}

/** Creates the plans of `count` consecutive seeds. */
export function* createPlans(first: number, count: number, limits?: PlanLimits): Generator<Plan> {
  for (let seed = first; seed < first + count; seed++) yield createPlan(seed, limits);
}

/** Describes a campaign in one line. */
export function describeCampaign({ runs, events, hours, failed }: Campaign): string {
  const counted = `${runs} schedules with ${events} events in ${hours.toFixed(1)} hours of virtual time`;
  return failed ? `${counted}, the last one failed` : counted;
}
