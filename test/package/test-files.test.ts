import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './packed';

type TestFiles = typeof import('../../scripts/test-files.mjs');

function findTestFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(({ name }) => {
    if (name === 'node_modules') return [];
    if (name.endsWith('.test.ts')) return [`${folder}/${name}`];
    return name.includes('.') ? [] : findTestFiles(`${folder}/${name}`);
  });
}

describe('npm test', () => {
  let lib: TestFiles;
  let files: string[];

  before(async () => {
    lib = await import('../../scripts/test-files.mjs');
    files = lib.listTestFiles(root);
  });

  it('runs every test file of the project', () => {
    const found = ['test', 'src', 'nodes', 'simulator', 'scripts', 'bench'].flatMap(findTestFiles);
    assert.deepEqual([...files].sort(), found.sort());
  });

  it('puts each file into exactly one process', () => {
    const planned = lib.planProcesses(files, {}).flatMap((process) => process.files);
    assert.deepEqual(planned.sort(), [...files].sort());
  });

  it('can run every file that uses Node-RED or a browser on both generations', () => {
    const installedOnly = files.filter(
      (file) =>
        !lib.isOnEveryGeneration(file) &&
        !['package', 'editor/simulator-page.test.ts'].some((own) => lib.isIn(file, own)),
    );
    const usesNodeRed =
      /'[^']*(?:\/node-red-process|\/running-flow|\/editor\/browser|node-red-node-test-helper|playwright-core)'/;
    assert.ok(installedOnly.length > 50);
    assert.deepEqual(
      installedOnly.filter((file) => usesNodeRed.test(readFileSync(join(root, file), 'utf8'))),
      [],
    );
  });

  it('names only existing files for the second generation', () => {
    for (const name of lib.secondGeneration) assert.ok(files.includes(`test/${name}`), name);
    assert.deepEqual(
      files.filter((file) => lib.isOnSecondGeneration(file) && !lib.isOnEveryGeneration(file)),
      [],
    );
  });

  it('runs no failed test again', () => {
    const retries = /\.retries\(|'--retries'|"retries"/;
    const searched = [...files, 'scripts/test.mjs', '.mocharc.json', 'package.json'];
    assert.deepEqual(
      searched.filter(
        (file) => !file.endsWith('test-files.test.ts') && retries.test(readFileSync(join(root, file), 'utf8')),
      ),
      [],
    );
  });

  it('skips a test only with a reason', () => {
    const bare = /this\.skip\(\)|\b(?:it|describe|specify)\.(?:skip|only)\b|\bx(?:it|describe)\(/;
    assert.deepEqual(
      files.filter((file) => !file.endsWith('test-files.test.ts') && bare.test(readFileSync(join(root, file), 'utf8'))),
      [],
    );
  });
});
