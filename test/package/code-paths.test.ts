import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { CodePath } from '../code-paths/recorder';
import { root } from './packed';
import { readPage } from './pages';

/**
 * Maximum number of files, and of moves from one file to another, in each scenario. They are in a table in
 * docs/architecture.md.
 */
const budgets = [...readPage('docs/architecture.md').matchAll(/^\| (a [a-z ]+) \| (\d+) \| (\d+) \|$/gm)].map(
  ([, scenario = '', files, moves]) => ({ scenario, maxFiles: Number(files), maxMoves: Number(moves) }),
);

describe('the code path of a message', function () {
  this.timeout(120_000);
  let paths: Record<string, CodePath> = {};

  before(() => {
    const script = join(root, 'scripts', 'code-paths.ts');
    const printed = execFileSync(process.execPath, ['--require', 'tsx/cjs', script, '--json'], { cwd: root });
    paths = JSON.parse(printed.toString());
  });

  it('has documented limits for files and moves in each scenario', () => {
    assert.deepEqual(
      budgets.map(({ scenario }) => scenario),
      Object.keys(paths),
    );
  });

  for (const { scenario, maxFiles, maxMoves } of budgets) {
    it(`visits at most ${maxFiles} files for ${scenario}`, () => {
      const path = paths[scenario] ?? assert.fail('this scenario did not run');
      assert.ok(
        path.files.length > 0 && path.files.length <= maxFiles,
        `${path.files.length} files: ${path.files.join(', ')}`,
      );
      assert.ok(path.moves <= maxMoves, `${path.moves} moves`);
    });
  }
});
