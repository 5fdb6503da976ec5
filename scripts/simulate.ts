// Runs the library on a virtual clock against a model of the world, one schedule for each seed.
//
//   npm run simulate -- --seed 1 --runs 1000     so many schedules from a seed on
//   npm run simulate -- --seed 17 --trace        the story of one
//   npm run simulate -- --mutants [--only NAME]  which mistakes in src/ the schedules find
import { parseArgs } from 'node:util';
import { describeCampaign, runCampaign, seedsFrom } from '../test/simulation/campaign';
import { loadLibrary } from '../test/simulation/library';
import { createPlan } from '../test/simulation/plan';
import { describeFinding, shrink } from '../test/simulation/shrink';
import { simulate } from '../test/simulation/simulation';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    store: { type: 'string', multiple: true, default: ['memory', 'disk', 'shared'] },
    failures: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const limits = { stores: values.store as ('memory' | 'disk' | 'shared')[] };
const seed = Number(values.seed);

async function trace(): Promise<void> {
  const lines: string[] = [];
  await simulate(loadLibrary(), createPlan(seed, limits), lines);
  console.log(lines.join('\n'));
}

async function run(): Promise<void> {
  const library = loadLibrary();
  const seeds = seedsFrom(seed, Number(values.runs));
  const began = performance.now();
  const campaign = await runCampaign(library, { seeds, limits, mostFailures: Number(values.failures) });
  console.log(`${describeCampaign(campaign)}, in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  const [first] = campaign.failed;
  for (const { plan, violations } of campaign.failed.slice(1)) {
    console.log(`Seed ${plan.seed}: ${violations[0]?.rule} (${violations[0]?.detail})`);
  }
  if (!first) return;
  console.log(describeFinding(await shrink(library, first)));
  process.exitCode = 1;
}

void (values.trace ? trace() : run());
