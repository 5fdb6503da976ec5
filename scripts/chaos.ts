// Runs Node-RED with a service that follows the specification, causes random faults, and lists the broken delivery
// promises.
import { runChaos } from '../test/chaos';
import type { RunReport } from '../test/chaos/rules';
import { readCommand, refuse } from './command-line';

const usage = `Usage: npm run chaos -- [--seed 1] [--minutes 10] [--runs 1]

  --seed     seed of the faults and their times; further runs use the following seeds
  --minutes  duration of a run
  --runs     number of runs`;

const { values } = readCommand(usage, {
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '10' },
    runs: { type: 'string', default: '1' },
  },
});

function readNumber(name: 'seed' | 'minutes' | 'runs'): number {
  const number = Number(values[name]);
  return number > 0 ? number : refuse(usage, `--${name} must be a number, not "${values[name]}".`);
}

function describe({ seed, failures, counts }: RunReport): string {
  const numbers = Object.entries(counts).map(([name, number]) => `${number} ${name}`);
  return [
    '',
    ...failures.map(({ atSeconds, rule, description }) => `  ✘ ${atSeconds} s: ${rule}: ${description}`),
    `seed ${seed}: ${numbers.join(', ')}: ${failures.length === 0 ? 'no broken promise' : `${failures.length} broken promises`}`,
  ].join('\n');
}

async function main(): Promise<void> {
  const firstSeed = readNumber('seed');
  let failures = 0;
  for (let seed = firstSeed; seed < firstSeed + readNumber('runs'); seed++) {
    console.log(`seed ${seed}, ${values.minutes} minutes`);
    const report = await runChaos({ seed, minutes: readNumber('minutes'), log: console.log });
    failures += report.failures.length;
    if (report.failures.length > 0) console.log(report.log);
    console.log(describe(report));
  }
  process.exit(failures > 0 ? 1 : 0);
}

void main();
