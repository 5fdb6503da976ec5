import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Walk } from '../walks/recorder';
import { root } from './packed';

/** Files entered and moves between files at most, on the way that somebody takes who reads along: what the page says. */
const budgets = [
  ...readFileSync(join(root, 'docs', 'architecture.md'), 'utf8').matchAll(/^\| (a [a-z ]+) \| (\d+) \| (\d+) \|$/gm),
].map(([, way = '', files, moves]) => ({ way, files: Number(files), moves: Number(moves) }));

describe('a walk through the library', function () {
  this.timeout(120_000);
  let walks: Record<string, Walk> = {};

  before(() => {
    const script = join(root, 'scripts', 'walks.ts');
    const printed = execFileSync(process.execPath, ['--require', 'tsx/cjs', script, '--json'], { cwd: root });
    walks = JSON.parse(printed.toString());
  });

  it('is told of every way in docs/architecture.md', () => {
    assert.deepEqual(
      budgets.map(({ way }) => way),
      Object.keys(walks),
    );
  });

  for (const { way, files, moves } of budgets) {
    it(`with ${way} enters ${files} files at most, in ${moves} moves`, () => {
      const walk = walks[way] ?? assert.fail('this way was not gone');
      assert.ok(walk.files.length <= files, `${walk.files.length} files: ${walk.files.join(', ')}`);
      assert.ok(walk.moves <= moves, `${walk.moves} moves`);
      assert.ok(walk.calls > 0 && walk.functions <= walk.calls);
    });
  }
});
