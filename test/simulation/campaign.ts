import type { Library } from './library';
import { createPlan, type PlanLimits } from './plan';
import { type Result, simulate } from './simulation';

/** Result of many runs. */
export interface Campaign {
  runs: number;
  events: number;
  /** Virtual time of all runs, in hours. */
  hours: number;
  failed: Result[];
}

/** Options of a campaign: its seeds and its limits. */
export interface CampaignOptions {
  /** The seeds, in order. Can be infinite if `untilMs` ends the campaign. */
  seeds: Iterable<number>;
  limits?: PlanLimits;
  /** When to stop, in ms of `performance.now()`. */
  untilMs?: number;
  /** The campaign stops after this number of failures. Default: 1. */
  mostFailures?: number;
  /** Called with each failure as it is found. */
  onFailed?(result: Result): void;
}

/** Runs the plans of the seeds one after the other. */
export async function runCampaign(library: Library, options: CampaignOptions): Promise<Campaign> {
  const { seeds, limits, untilMs = Number.POSITIVE_INFINITY, mostFailures = 1, onFailed = () => {} } = options;
  const campaign: Campaign = { runs: 0, events: 0, hours: 0, failed: [] };
  for (const seed of seeds) {
    if (performance.now() >= untilMs || campaign.failed.length >= mostFailures) break;
    const result = await simulate(library, createPlan(seed, limits));
    campaign.runs++;
    campaign.events += result.events;
    campaign.hours += result.seconds / 3_600;
    if (result.violations.length === 0) continue;
    campaign.failed.push(result);
    onFailed(result);
  }
  return campaign;
}

/** Generates `count` consecutive seeds. Without `count`, never ends. */
export function* seedsFrom(first: number, count = Number.POSITIVE_INFINITY): Generator<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** Describes a campaign in one line. */
export function describeCampaign({ runs, events, hours, failed }: Campaign): string {
  const counted = `${runs} schedules with ${events} events in ${hours.toFixed(1)} hours of virtual time`;
  return failed.length === 0 ? counted : `${counted}, ${failed.length} failed`;
}
