import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { inspect } from 'node:util';
import { type MochaOptions, type Runner, reporters, type Test } from 'mocha';

/** What one run of mocha came to. */
interface TestResult {
  passed: number;
  failed: number;
  skipped: number;
  /** Of each test that failed: its file, its full title and the error with its stack. */
  failures: string[];
}

/**
 * Mocha's spec report, closed by the plain line `N passed, N failed`.
 * A caller that adds up several runs sets `TEST_RESULT` to the name of a file: the result goes there instead, as JSON.
 */
class PlainReporter extends reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const failures: string[] = [];
    runner.on('fail', (test: Test, error: unknown) => failures.push(describeFailure(test, error)));
    // Listeners run in the order they were added: this one comes after the closing of the spec report.
    runner.once('end', () => {
      const { passes, failures: failed, pending } = this.stats;
      const counts = { passed: passes, failed, skipped: pending };
      const result: TestResult = { ...counts, failures };
      const { TEST_RESULT } = process.env;
      if (TEST_RESULT) writeFileSync(TEST_RESULT, JSON.stringify(result));
      else console.log(formatCounts(result));
    });
  }
}

function describeFailure(test: Test, error: unknown): string {
  const file = relative(process.cwd(), test.file ?? '');
  return `${file}: ${test.fullTitle()}\n${inspect(error)}`;
}

function formatCounts({ passed, failed, skipped }: TestResult): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

export = PlainReporter;
