import { describeCampaign, runCampaign, seedsFrom } from './campaign';
import { applyMutant, loadLibrary, type Mutant } from './library';
import type { Way } from './plan';

/** Result for one mutant. */
export interface Hunt {
  name: string;
  file: string;
  /** The way that the schedules were about. */
  way: Way;
  isCaught: boolean;
  /** After so many. */
  schedules: number;
  /** Seconds on this machine. */
  seconds: number;
  /** The first broken rule, or another sign of the mutant. */
  by: string;
}

/** Runs schedules on a mutant until one of them breaks a rule that it does not break by itself. */
export async function hunt(mutant: Mutant, mostSchedules: number): Promise<Hunt> {
  const { name, file, way = 'in' } = mutant;
  // It has to be the mistake that is found.
  applyMutant(mutant);
  const limits = { way };
  const began = performance.now();
  const [library, broken] = [loadLibrary(), loadLibrary(mutant)];
  for (let first = 1; ; ) {
    const campaign = await runCampaign(broken, { seeds: seedsFrom(first, mostSchedules + 1 - first), limits });
    const [failed] = campaign.failed;
    const seconds = secondsSince(began);
    const found = { name, file, way, seconds, schedules: first - 1 + campaign.runs };
    if (!failed) return { ...found, isCaught: false, by: describeCampaign(campaign) };
    const { seed } = failed.plan;
    const anyway = await runCampaign(library, { seeds: [seed], limits });
    if (anyway.failed.length === 0) return { ...found, isCaught: true, by: failed.violations[0]?.rule ?? '' };
    first = seed + 1;
  }
}

/** Whole seconds since `performance.now()` was so much. */
export function secondsSince(beganMs: number): number {
  return Math.ceil((performance.now() - beganMs) / 1_000);
}

const ways: readonly (readonly [way: Way, name: string])[] = [
  ['in', 'The way in'],
  ['out', 'The way out'],
  ['consent', 'Consent and times'],
];

/** Formats the tables of `npm run schedules -- --mutants`. */
export function formatHunts(hunts: readonly Hunt[]): string {
  return ways
    .map(([way, name]) => {
      const rows = hunts.filter((one) => one.way === way).map(formatHunt);
      return [
        `${name}:\n`,
        '| mistake | file | found after schedules | in s | by the rule |',
        '|---|---|---|---|---|',
        ...rows,
      ].join('\n');
    })
    .join('\n\n');
}

function formatHunt({ name, file, isCaught, schedules, seconds, by }: Hunt): string {
  const count = schedules.toLocaleString('en');
  return `| ${name} | \`${file}\` | ${isCaught ? count : `not within ${count}`} | ${seconds} | ${isCaught ? by : ''} |`;
}
