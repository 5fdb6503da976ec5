import { createPlans, describeCampaign, runCampaign } from './campaign';
import { applyMutant, loadLibrary, type Mutant } from './library';

/** Result for one mutant. */
export interface Hunt {
  name: string;
  isCaught: boolean;
  /** Number of schedules that ran: up to the one that caught the mutant, or all. */
  schedules: number;
  /** Duration on this machine, in seconds. */
  seconds: number;
  /** The first broken rule. If no schedule caught the mutant: the number of schedules and events. */
  by: string;
}

/**
 * Runs schedules until one breaks a rule with the mutation, but not without it.
 * @param from seed of the first schedule
 */
export async function hunt(mutant: Mutant, maxSchedules: number, from = 1): Promise<Hunt> {
  const { name, way = 'in' } = mutant;
  // Throws if the mutant cannot be applied, for example because its file does not exist.
  applyMutant(mutant);
  const began = performance.now();
  const [library, broken] = [loadLibrary(), loadLibrary(mutant)];
  for (let first = from; ; ) {
    const campaign = await runCampaign(broken, createPlans(first, from + maxSchedules - first, { way }));
    const { failed } = campaign;
    const seconds = secondsSince(began);
    const found = { name, seconds, schedules: first - from + campaign.runs };
    if (!failed) return { ...found, isCaught: false, by: describeCampaign(campaign) };
    const { seed } = failed.plan;
    const withoutMutant = await runCampaign(library, [failed.plan]);
    if (!withoutMutant.failed) return { ...found, isCaught: true, by: failed.violations[0]?.rule ?? '' };
    first = seed + 1;
  }
}

/** Seconds since a value of `performance.now()`, rounded up. */
export function secondsSince(beganMs: number): number {
  return Math.ceil((performance.now() - beganMs) / 1_000);
}
