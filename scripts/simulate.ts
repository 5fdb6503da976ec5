// Runs the library on a virtual clock against a model of the world, one schedule for each seed.
//
//   npm run simulate -- --seed 1 --runs 1000     so many schedules from a seed on; a failure is shrunk and told
//   npm run simulate -- --seed 17 --trace        the story of one
//   npm run simulate -- --plain ...              without the scenes
//   npm run simulate -- --way out ...            schedules about kept texts, keys, questions and limits
//   npm run simulate -- --mutants                which mistakes in src/ the schedules find, as a table
//   npm run simulate -- --mutant "NAME"          one of them
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { describeCampaign, runCampaign, seedsFrom } from '../test/simulation/campaign';
import { formatHunts, type Hunt, hunt, secondsSince } from '../test/simulation/hunt';
import { applyMutant, loadLibrary, type Mutant } from '../test/simulation/library';
import { mutants } from '../test/simulation/mutants';
import { createPlan, type Plan, type Way } from '../test/simulation/plan';
import { describeFinding, shrink } from '../test/simulation/shrink';
import { type Result, simulate } from '../test/simulation/simulation';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    store: { type: 'string', multiple: true, default: ['memory', 'disk', 'shared'] },
    way: { type: 'string', default: 'in' },
    plain: { type: 'boolean', default: false },
    failures: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    most: { type: 'string', default: '20000' },
  },
});
const limits = { stores: values.store as Plan['store'][], way: values.way as Way, ...(values.plain && { scenes: 0 }) };
const seed = Number(values.seed);

/** A mutant that spins without an end is caught, too. */
const longestHuntMs = 15 * 60_000;

async function trace(): Promise<void> {
  const lines: string[] = [];
  await simulate(loadLibrary(), createPlan(seed, limits), lines);
  console.log(lines.join('\n'));
}

async function run(): Promise<void> {
  const library = loadLibrary();
  const seeds = seedsFrom(seed, Number(values.runs));
  const began = performance.now();
  const onFailed = ({ plan, violations: [first] }: Result) =>
    console.log(`Seed ${plan.seed}: ${first?.rule} (${first?.detail})`);
  const campaign = await runCampaign(library, { seeds, limits, mostFailures: Number(values.failures), onFailed });
  console.log(`${describeCampaign(campaign)}, in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
  const [first] = campaign.failed;
  if (!first) return;
  console.log(describeFinding(await shrink(library, first)));
  process.exitCode = 1;
}

async function huntOne(name: string): Promise<void> {
  const mutant = mutants.find((one) => one.name === name);
  if (!mutant) throw new Error(`no mutant "${name}"`);
  console.log(JSON.stringify(await hunt(mutant, Number(values.most))));
}

/** Each in a process of its own, since a mutant may do anything. */
async function huntAll(): Promise<void> {
  for (const mutant of mutants) applyMutant(mutant);
  const left = [...mutants];
  const hunts = new Map<string, Hunt>();
  const work = async () => {
    for (let mutant = left.shift(); mutant; mutant = left.shift()) {
      const found = await huntInChild(mutant);
      hunts.set(mutant.name, found);
      console.error(`${found.isCaught ? 'caught' : 'NOT CAUGHT'}: ${found.name} (${found.schedules}, ${found.by})`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  const all = mutants.map(({ name }) => hunts.get(name)).filter((found) => found !== undefined);
  const caught = all.filter(({ isCaught }) => isCaught).length;
  console.log(`${formatHunts(all)}\n\n${caught} of ${all.length} found, within ${values.most} schedules each`);
}

function huntInChild({ name, file, way = 'in' }: Mutant): Promise<Hunt> {
  const began = performance.now();
  const options = ['--require', 'tsx/cjs', __filename, '--mutant', name, '--most', values.most];
  const child = spawn(process.execPath, options, { stdio: ['ignore', 'pipe', 'ignore'], timeout: longestHuntMs });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  return new Promise((resolve) => {
    child.on('close', (_code, signal) => {
      const how = signal ? 'spins' : 'could not be run';
      resolve(
        output
          ? (JSON.parse(output) as Hunt)
          : { name, file, way, isCaught: signal !== null, schedules: 1, seconds: secondsSince(began), by: how },
      );
    });
  });
}

async function main(): Promise<void> {
  if (values.mutants) await huntAll();
  else if (values.mutant !== undefined) await huntOne(values.mutant);
  else if (values.trace) await trace();
  else await run();
}

void main();
