import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './packed';

/** Every test file there is, wherever it is. */
function findTestFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(({ name }) => {
    if (name === 'node_modules') return [];
    if (name.endsWith('.test.ts')) return [`${folder}/${name}`];
    return name.includes('.') ? [] : findTestFiles(`${folder}/${name}`);
  });
}

describe('the whole test', () => {
  it('runs every test file, wherever it is', async () => {
    const { listTestFiles } = await import('../../scripts/test-files.mjs');
    const found = ['test', 'src', 'nodes', 'simulator', 'scripts', 'bench'].flatMap(findTestFiles);
    assert.deepEqual([...listTestFiles(root)].sort(), found.sort());
  });

  it('runs what meets Node-RED or a browser on every generation, unless it is about the files of the package or the page of the simulator', async () => {
    const { isIn, isOnEveryGeneration, listTestFiles } = await import('../../scripts/test-files.mjs');
    const others = ['package', 'editor/simulator-page.test.ts'];
    const once = listTestFiles(root).filter(
      (file) => !isOnEveryGeneration(file) && !others.some((other) => isIn(file, other)),
    );
    const meets =
      /'[^']*(?:\/node-red-process|\/running-flow|\/editor\/browser|node-red-node-test-helper|playwright-core)'/;
    assert.ok(once.length > 50);
    assert.deepEqual(
      once.filter((file) => meets.test(readFileSync(join(root, file), 'utf8'))),
      [],
    );
  });

  it('tries no test a second time', async () => {
    const { listTestFiles } = await import('../../scripts/test-files.mjs');
    const again = /\.retries\(|'--retries'|"retries"/;
    const files = [...listTestFiles(root), 'scripts/test.mjs', '.mocharc.json', 'package.json'];
    assert.deepEqual(
      files.filter(
        (file) => !file.endsWith('test-files.test.ts') && again.test(readFileSync(join(root, file), 'utf8')),
      ),
      [],
    );
  });
});
