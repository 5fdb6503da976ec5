import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { root } from './packed';

/** How a command of the project ends. */
function run(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', ...words], {
    cwd: root,
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { status, stdout, stderr };
}

describe('a command of the project', function () {
  this.timeout(60_000);

  for (const [program, usage] of [
    ['bench/index.ts', /^Usage: npm run bench .*send, stored, .*soak\n$/],
    ['scripts/simulate.ts', /^Usage: npm run simulate /],
    ['scripts/start.ts', /^Usage: npm start /],
    ['simulator/cli.ts', /^Usage: sms-simulator /],
  ] as const) {
    it(`tells how ${program} is used when it is asked`, () => {
      const { status, stdout, stderr } = run(program, '--help');
      assert.deepEqual([status, stderr], [0, '']);
      assert.match(stdout, usage);
    });
  }

  for (const [words, why] of [
    ['bench/index.ts --fast', "Unknown option '--fast'"],
    ['bench/index.ts nothing', 'There is no row nothing.'],
    ['scripts/simulate.ts --fast', "Unknown option '--fast'"],
    ['scripts/simulate.ts --runs many', '--runs must be a whole number, not "many".'],
    ['scripts/simulate.ts --store tape', '--store must be one of memory, disk, shared, not "tape".'],
    ['scripts/simulate.ts --mutant none', 'There is no mistake "none": their names are in test/simulation/mutants.ts.'],
    ['scripts/start.ts --fast', "Unknown option '--fast'"],
    ['simulator/cli.ts --port 99999', '--port must be a whole number up to 65535, not "99999".'],
  ] as const) {
    it(`says what is wrong with ${words}, without a stack`, () => {
      const { status, stdout, stderr } = run(...words.split(' '));
      assert.ok(status !== 0 && stdout === '', stdout);
      assert.equal(stderr.trim().split('\n', 1)[0]?.startsWith(why), true, stderr);
      assert.doesNotMatch(stderr, /^\s+at /m);
    });
  }
});
