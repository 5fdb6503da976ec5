import assert from 'node:assert/strict';
import { isLong, readSeed } from '../long';
import { runChaos } from '.';

const fixedSeeds = [1];
const minutes = isLong ? 10 : 0.4;
const runs = isLong ? 12 : 0;

describe('Node-RED under random faults', function () {
  // Adds some minutes, because a run waits for the last messages after the faults.
  this.timeout(minutes * 60_000 + 280_000);

  for (const seed of fixedSeeds) {
    it(`keeps every documented promise (seed ${seed})`, () => run(seed));
  }

  const firstSeed = runs > 0 ? readSeed() : 0;
  for (let index = 0; index < runs; index++) {
    it(`keeps every documented promise (new seed ${index + 1} of ${runs})`, () => run(firstSeed + index));
  }
});

async function run(seed: number): Promise<void> {
  const lines: string[] = [];
  const { failures, counts } = await runChaos({ seed, minutes, log: (line) => lines.push(line) });
  const broken = failures.map(({ atSeconds, rule, description }) => `${atSeconds} s: ${rule}: ${description}`);
  if (broken.length > 0) console.log(lines.join('\n'));
  assert.deepEqual(broken, []);
  assert.ok((counts.messages ?? 0) > 20 && (counts.sent ?? 0) > 20, 'too little traffic');
}
