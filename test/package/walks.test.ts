import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Walk } from '../walks/recorder';
import { root } from './packed';

/** Files entered and moves between files at most, on the way that somebody takes who reads along. */
const budgets: Readonly<Record<string, { files: number; moves: number }>> = {
  'a plain text': { files: 39, moves: 118 },
  'a polled message': { files: 46, moves: 251 },
  'a kept text': { files: 54, moves: 515 },
  'a question and its reply': { files: 70, moves: 693 },
  'a callback': { files: 43, moves: 189 },
};

describe('a walk through the library', function () {
  this.timeout(120_000);
  let walks: Record<string, Walk> = {};

  before(() => {
    const script = join(root, 'scripts', 'walks.ts');
    const printed = execFileSync(process.execPath, ['--require', 'tsx/cjs', script, '--json'], { cwd: root });
    walks = JSON.parse(printed.toString());
  });

  for (const [way, { files, moves }] of Object.entries(budgets)) {
    it(`with ${way} enters ${files} files at most, in ${moves} moves`, () => {
      const walk = walks[way] ?? assert.fail('this way was not gone');
      assert.ok(walk.files.length <= files, `${walk.files.length} files: ${walk.files.join(', ')}`);
      assert.ok(walk.moves <= moves, `${walk.moves} moves`);
      assert.ok(walk.calls > 0 && walk.functions <= walk.calls);
    });
  }
});
