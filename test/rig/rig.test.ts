import assert from 'node:assert/strict';
import { isLong, readSeed } from '../long';
import { runRig } from '.';

/** Two whose story has been looked at: they differ in the store, and in what is broken. */
const seeds = [1, 11];
const minutes = isLong ? 10 : 0.4;
const runs = isLong ? 12 : 0;

describe('Node-RED beside a service written from its specification, while everything breaks', function () {
  // Each rests for up to three minutes when something did not come.
  this.timeout(minutes * 60_000 + 280_000);

  for (const seed of seeds) {
    it(`keeps every promise with the seed ${seed}`, () => run(seed));
  }

  const first = runs > 0 ? readSeed() : 0;
  for (let index = 0; index < runs; index++) {
    it(`keeps every promise with a new seed, ${index + 1} of ${runs}`, () => run(first + index));
  }
});

async function run(seed: number): Promise<void> {
  const lines: string[] = [];
  const { failures, counts } = await runRig({ seed, minutes, tell: (line) => lines.push(line) });
  const told = failures.map(({ atSeconds, rule, what }) => `${atSeconds} s: ${rule}: ${what}`);
  if (told.length > 0) console.log(lines.join('\n'));
  assert.deepEqual(told, []);
  assert.ok((counts.messages ?? 0) > 20 && (counts.texts ?? 0) > 20, 'there was traffic');
}
