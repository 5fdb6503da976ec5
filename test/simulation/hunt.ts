import { describeCampaign, runCampaign, seedsFrom } from './campaign';
import { applyMutant, loadLibrary, type Mutant } from './library';

/** What became of a mutant. */
export interface Hunt {
  name: string;
  file: string;
  isCaught: boolean;
  /** After so many. */
  schedules: number;
  /** The rule that it broke first, or how else it gave itself away. */
  by: string;
  /** Those that found it. */
  seeds: number[];
}

/** Runs schedules on a mutant until one of them breaks a rule. */
export async function hunt(mutant: Mutant, mostSchedules: number): Promise<Hunt> {
  const { name, file, way = 'in' } = mutant;
  // It has to be the mistake that is found.
  applyMutant(mutant);
  const campaign = await runCampaign(loadLibrary(mutant), { seeds: seedsFrom(1, mostSchedules), limits: { way } });
  const [violation] = campaign.failed[0]?.violations ?? [];
  return {
    name,
    file,
    isCaught: violation !== undefined,
    schedules: campaign.runs,
    by: violation?.rule ?? describeCampaign(campaign),
    seeds: campaign.failed.map(({ plan }) => plan.seed),
  };
}

/** A table for `docs/reliability.md`. */
export function formatHunts(hunts: readonly Hunt[]): string {
  const rows = hunts.map(
    ({ name, file, isCaught, schedules, by }) =>
      `| ${name} | \`${file}\` | ${isCaught ? schedules.toLocaleString('en') : `not within ${schedules.toLocaleString('en')}`} | ${isCaught ? by : ''} |`,
  );
  return ['| mistake | file | found after schedules | by the rule |', '|---|---|---|---|', ...rows].join('\n');
}
