import { writeFileSync } from 'node:fs';
import { type MochaOptions, type Runner, reporters } from 'mocha';

/** What one run of mocha came to. */
interface TestCounts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Mocha's spec report, closed by the plain line `N passed, N failed`.
 * A caller that adds up several runs sets `TEST_COUNTS` to the name of a file: the counts go there instead, as JSON.
 */
class PlainReporter extends reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    // Listeners run in the order they were added: this one comes after the closing of the spec report.
    runner.once('end', () => {
      const { passes, failures, pending } = this.stats;
      const counts: TestCounts = { passed: passes, failed: failures, skipped: pending };
      const { TEST_COUNTS } = process.env;
      if (TEST_COUNTS) writeFileSync(TEST_COUNTS, JSON.stringify(counts));
      else console.log(formatCounts(counts));
    });
  }
}

function formatCounts({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

export = PlainReporter;
