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
  /** Of each test that passed only when it was tried again: the same, with the error of the first time. */
  retried: string[];
}

/**
 * Mocha's spec report, closed by the plain line `N passed, N failed`.
 * A caller that adds up several runs sets `TEST_RESULT` to the name of a file: the result goes there instead, as JSON.
 */
class PlainReporter extends reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const failures: string[] = [];
    const retried = new Map<string, string>();
    runner.on('retry', (test: Test, error: unknown) => retried.set(test.fullTitle(), describeFailure(test, error)));
    runner.on('fail', (test: Test, error: unknown) => {
      // What the second try met may only follow from the first.
      const title = test.fullTitle();
      const first = retried.get(title);
      retried.delete(title);
      failures.push(describeFailure(test, error) + (first === undefined ? '' : `\nThe first time: ${first}`));
    });
    // Listeners run in the order they were added: this one comes after the closing of the spec report.
    runner.once('end', () => {
      const { passes, failures: failed, pending } = this.stats;
      const counts = { passed: passes, failed, skipped: pending };
      const result: TestResult = { ...counts, failures, retried: [...retried.values()] };
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
