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
}

/** Runs schedules on a mutant until one of them breaks a rule that it does not break by itself. */
export async function hunt(mutant: Mutant, mostSchedules: number): Promise<Hunt> {
  const { name, file, way = 'in' } = mutant;
  // It has to be the mistake that is found.
  applyMutant(mutant);
  const limits = { way };
  const [library, broken] = [loadLibrary(), loadLibrary(mutant)];
  for (let first = 1; ; ) {
    const campaign = await runCampaign(broken, { seeds: seedsFrom(first, mostSchedules + 1 - first), limits });
    const [failed] = campaign.failed;
    const found = { name, file, schedules: first - 1 + campaign.runs };
    if (!failed) return { ...found, isCaught: false, by: describeCampaign(campaign) };
    const { seed } = failed.plan;
    const anyway = await runCampaign(library, { seeds: [seed], limits });
    if (anyway.failed.length === 0) return { ...found, isCaught: true, by: failed.violations[0]?.rule ?? '' };
    first = seed + 1;
  }
}

/** A table for `docs/reliability.md`. */
export function formatHunts(hunts: readonly Hunt[]): string {
  const rows = hunts.map(
    ({ name, file, isCaught, schedules, by }) =>
      `| ${name} | \`${file}\` | ${isCaught ? schedules.toLocaleString('en') : `not within ${schedules.toLocaleString('en')}`} | ${isCaught ? by : ''} |`,
  );
  return ['| mistake | file | found after schedules | by the rule |', '|---|---|---|---|', ...rows].join('\n');
}
