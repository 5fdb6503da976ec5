// Runs the library on a virtual clock against a model of the service, the stores and the flows. Each seed gives one
// random schedule.
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { createPlans, describeCampaign, runCampaign } from '../test/simulation/campaign';
import { type Hunt, hunt, secondsSince } from '../test/simulation/hunt';
import { applyMutant, loadLibrary, type Mutant } from '../test/simulation/library';
import { mutants } from '../test/simulation/mutants';
import { allStores, allWays, createPlan } from '../test/simulation/plan';
import { describeFinding, shrink } from '../test/simulation/shrink';
import { simulate } from '../test/simulation/simulation';
import { readCommand, refuse } from './command-line';

const usage = `Usage: npm run schedules -- [options]

  --seed <number>      seed of the first schedule (default 1)
  --runs <number>      number of schedules (default 1); a failing schedule is shrunk and described
  --trace              print all events of one schedule
  --store <store>      use only this store: ${allStores.join(', ')}; can be repeated
  --way <way>          in (default): incoming messages; out: stored messages, deduplication keys, reply requests, reports and
                       limits; consent: out with STOP, START and due times; replace: out with
                       messages that are replaced and withdrawn; ask: out with questions of sms-ask
  --mutants            search for each mutant of src/, and print the number of schedules that find it
  --mutant <name>      search for one mutant
  --max <number>       maximum number of schedules per mutant (default 20000)
  --help               print this text`;

const { values } = readCommand(usage, {
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    store: { type: 'string', multiple: true, default: [...allStores] },
    way: { type: 'string', default: 'in' },
    trace: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    max: { type: 'string', default: '20000' },
  },
});
const limits = {
  stores: values.store.map((name) => readChoice('store', name, allStores)),
  way: readChoice('way', values.way, allWays),
};
const seed = readNumber('seed');
const runs = readNumber('runs');
const maxSchedules = readNumber('max');

function readNumber(name: 'seed' | 'runs' | 'max'): number {
  const text = values[name];
  if (!/^\d+$/.test(text)) refuse(usage, `--${name} must be a whole number, not "${text}".`);
  return Number(text);
}

function readChoice<Choice extends string>(name: string, text: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((item) => item === text);
  return choice ?? refuse(usage, `--${name} must be one of ${choices.join(', ')}, not "${text}".`);
}

/** Time limit for testing one mutant (the library with a planted mistake), because a mutant can loop forever. */
const maxHuntMs = 15 * 60_000;

async function trace(): Promise<void> {
  const lines: string[] = [];
  await simulate(loadLibrary(), createPlan(seed, limits), lines);
  console.log(lines.join('\n'));
}

async function run(): Promise<void> {
  const library = loadLibrary();
  const startedAt = performance.now();
  const campaign = await runCampaign(library, createPlans(seed, runs, limits));
  console.log(`${describeCampaign(campaign)}, in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  if (!campaign.failed) return;
  console.log(describeFinding(await shrink(library, campaign.failed)));
  process.exitCode = 1;
}

async function huntOne(name: string): Promise<void> {
  const mutant = mutants.find((item) => item.name === name);
  if (!mutant) refuse(usage, `There is no mutant "${name}". test/simulation/mutants.ts has the names.`);
  console.log(JSON.stringify(await hunt(mutant, maxSchedules)));
}

/** Tests each mutant in its own process, because a mutant can loop forever or end its process. */
async function huntAll(): Promise<void> {
  for (const mutant of mutants) applyMutant(mutant);
  const queue = [...mutants];
  let caughtCount = 0;
  const work = async () => {
    for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
      const { name, isCaught, schedules, seconds, by } = await huntInChild(mutant);
      if (isCaught) caughtCount++;
      console.log(`${isCaught ? 'caught' : 'NOT CAUGHT'}: ${name} (${schedules} schedules, ${seconds} s, ${by})`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(`\n${caughtCount} of ${mutants.length} found, within ${maxSchedules} schedules each`);
  if (caughtCount < mutants.length) process.exitCode = 1;
}

function huntInChild({ name }: Mutant): Promise<Hunt> {
  const startedAt = performance.now();
  const options = ['--require', 'tsx/cjs', __filename, '--mutant', name, '--max', values.max];
  return new Promise((resolve) => {
    execFile(process.execPath, options, { timeout: maxHuntMs }, (error, output) => {
      if (output) return resolve(JSON.parse(output) as Hunt);
      const isCaught = typeof error?.signal === 'string';
      const by = isCaught ? 'spins' : `could not be run: ${error?.message}`;
      resolve({ name, isCaught, schedules: 1, seconds: secondsSince(startedAt), by });
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
