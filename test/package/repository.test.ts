import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PackageLock, readJson, root } from './packed';

const ignoredFolders = [
  '.git',
  ...readFileSync(join(root, '.gitignore'), 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('/'))
    .map((line) => line.slice(0, -1)),
];

/** Lists every file of the project, except in `.git` and the folders in .gitignore. */
function listProjectFiles(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return ignoredFolders.includes(entry.name) ? [] : listProjectFiles(path);
    return entry.isFile() && entry.name !== '.git' ? [path] : [];
  });
}

function findFilesWith(pattern: RegExp): string[] {
  return listProjectFiles().filter((file) => pattern.test(readFileSync(join(root, file), 'latin1')));
}

describe('the files of the project', () => {
  for (const lock of ['', 'test/node-red-5/', 'test/flow-library/', 'test/reference/', 'test/example-packages/'].map(
    (folder) => `${folder}package-lock.json`,
  )) {
    it(`have no download address in ${lock}`, () => {
      const { packages } = readJson<PackageLock>(join(root, lock));
      assert.ok(Object.keys(packages).length > 1);
      assert.deepEqual(
        Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined),
        [],
      );
    });
  }

  it('name no registry', () => {
    assert.deepEqual(findFilesWith(/registry\.(npmjs|yarnpkg|npmmirror)\.|npm\.pkg\.github\.|_authToken\s*=/), []);
  });

  it('name no folder of a developer machine', () => {
    assert.ok(listProjectFiles().includes('package.json'));
    assert.deepEqual(findFilesWith(/(^|[\s"'`(=:])(\/(home|root|work|Users)\/\w|[A-Z]:\\Users\\)/m), []);
  });
});
