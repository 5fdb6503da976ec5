import { readFileSync, writeFileSync } from 'node:fs';
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
  /** Processor time of this process and of those that it has started and that have ended. */
  processorSeconds: number;
}

/** Where a caller that adds up several runs wants the result, as JSON. */
const { TEST_RESULT: resultFile } = process.env;

/**
 * Mocha's spec report, closed by the plain line `N passed, N failed`.
 * A caller that adds up several runs sets `TEST_RESULT` to the name of a file: the result goes there instead, and nothing is
 * printed but what the tests themselves print.
 */
class PlainReporter extends (resultFile ? reporters.Base : reporters.Spec) {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    const failures: string[] = [];
    runner.on('fail', (test: Test, error: unknown) => failures.push(describeFailure(test, error)));
    // Listeners run in the order they were added: this one comes after the closing of the spec report.
    runner.once('end', () => {
      const { passes: passed, failures: failed, pending: skipped } = this.stats;
      if (!resultFile) return console.log(formatCounts({ passed, failed, skipped }));
      const result: TestResult = { passed, failed, skipped, failures, processorSeconds: readProcessorSeconds() };
      writeFileSync(resultFile, JSON.stringify(result));
    });
  }
}

function describeFailure(test: Test, error: unknown): string {
  const file = relative(process.cwd(), test.file ?? '');
  return `${file}: ${test.fullTitle()}\n${inspect(error)}`;
}

function formatCounts({ passed, failed, skipped }: Pick<TestResult, 'passed' | 'failed' | 'skipped'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function readProcessorSeconds(): number {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1_000_000;
  if (process.platform !== 'linux') return own;
  // Of the children, in hundredths of a second, behind the name of the program, which may hold spaces.
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return own + (Number(fields[13]) + Number(fields[14])) / 100;
}

export = PlainReporter;
