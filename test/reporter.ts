import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';
import { type MochaOptions, type Runner, reporters, type Suite, type Test } from 'mocha';
import { reasonOf } from './skip';

/** File for the result of this run. `scripts/test.mjs` sets the variable, and reads the file. */
const { TEST_RESULT: resultFile } = process.env;

/**
 * Mocha's spec report with the closing line `N passed, N failed, N skipped`.
 *
 * If `TEST_RESULT` is set, the reporter writes the result to that file instead, and prints nothing. The file
 * `TEST_RESULT` + `.running` contains the title of the running test, so that the caller can name the test if the
 * process ends early.
 */
class PlainReporter extends (resultFile ? reporters.Base : reporters.Spec) {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    /** One entry per failed test: file, full title, and error with stack. */
    const failures: string[] = [];
    /** One entry per skipped test: file, full title and reason. */
    const skips: string[] = [];
    /** Seconds of each file, hooks included. */
    const secondsOf: Record<string, number> = {};
    let began = 0;
    runner.on('fail', (test: Test, error: unknown) => failures.push(`${describeTest(test)}\n${inspect(error)}`));
    runner.on('pending', (test: Test) => {
      const reason = reasonOf(test);
      if (reason === undefined)
        failures.push(`${describeTest(test)}\nIt is skipped without a reason: use test/skip.ts.`);
      else skips.push(`${describeTest(test)}: ${reason}`);
    });
    runner.on('suite', (suite: Suite) => {
      if (suite.parent?.root) began = performance.now();
    });
    runner.on('suite end', (suite: Suite) => {
      if (!suite.parent?.root) return;
      const file = relative(process.cwd(), suite.file ?? '');
      secondsOf[file] = (secondsOf[file] ?? 0) + (performance.now() - began) / 1_000;
    });
    if (resultFile) runner.on('test', (test: Test) => writeFileSync(`${resultFile}.running`, describeTest(test)));
    // Because listeners run in the order in which they were added, this one prints below the spec report.
    runner.once('end', () => {
      const { passes: passed } = this.stats;
      const failed = failures.length;
      if (resultFile) return writeFileSync(resultFile, JSON.stringify({ passed, failed, failures, skips, secondsOf }));
      for (const skip of skips) console.log(`Skipped: ${skip}`);
      console.log(`${passed} passed, ${failed} failed, ${skips.length} skipped`);
    });
  }
}

function describeTest(test: Test): string {
  return `${relative(process.cwd(), test.file ?? '')}: ${test.fullTitle()}`;
}

export = PlainReporter;
