import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProcessWarnings } from '../process-warnings';

const root = join(__dirname, '..', '..');
const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js');

/** Runs one test with the guard of this suite, and gives the exit code and what was printed. */
function runTest(body: string): { code: number | null; output: string } {
  const folder = mkdtempSync(join(tmpdir(), 'sms-guard-'));
  const file = join(folder, 'guarded.js');
  writeFileSync(file, `it('is guarded', async () => { ${body}\n await new Promise(setImmediate); });`);
  const { TEST_RESULT: _, ...own } = process.env;
  const env = { ...own, LEFT_OPEN_MS: '200' };
  const guard = ['--require', 'tsx/cjs', '--require', join(root, 'test', 'process-warnings.ts')];
  const args = [mocha, '--no-config', ...guard, file];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  return { code: status, output: stdout + stderr };
}

describe('the guard of the suite', () => {
  it('lets a test pass that warns of nothing', () => {
    assert.equal(runTest('').code, 0);
  });

  it('fails for a process warning, and says in which test it came', () => {
    const { code, output } = runTest("process.emitWarning('too many');");
    assert.notEqual(code, 0);
    assert.match(output, /is guarded: Warning: too many/);
  });

  it('fails for a rejection that nobody handles', () => {
    const { code, output } = runTest("Promise.reject(new Error('lost'));");
    assert.notEqual(code, 0);
    assert.match(output, /rejected and not handled: Error: lost/);
  });

  it('fails for what a test has left open, and says what it is', () => {
    const { code, output } = runTest("require('node:net').createServer().listen(0, '127.0.0.1');");
    assert.notEqual(code, 0);
    assert.match(output, /still keeps the process alive: .*TCPServerWrap/);
  });

  it('finds in the log of a process what it was warned of, and nothing else', () => {
    const warning = '(node:1234) MaxListenersExceededWarning: Possible EventEmitter memory leak detected.';
    const deprecation = '(node:1) [DEP0169] DeprecationWarning: `url.parse()` behavior is not standardized';
    const crash = '[red] Uncaught Exception:';
    const log = [
      '22 Nov 08:00:00 - [info] Started flows',
      warning,
      '[warn] [sms-in:x] a warning of a node',
      deprecation,
      crash,
    ];
    assert.deepEqual(findProcessWarnings(log.join('\n')), [warning, deprecation, crash]);
  });
});
