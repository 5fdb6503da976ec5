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

describe('the repository', () => {
  it('has no download address in a lock file', () => {
    for (const folder of ['', 'test/node-red-5', 'test/reference', 'test/example-packages']) {
      const packages = Object.values(readJson<PackageLock>(join(root, folder, 'package-lock.json')).packages);
      assert.ok(packages.length > 1);
      assert.ok(
        packages.every(({ resolved }) => resolved === undefined),
        folder,
      );
    }
  });

  it('names neither a registry nor a folder of a developer machine', () => {
    const registry = /registry\.(npmjs|yarnpkg|npmmirror)\.|npm\.pkg\.github\.|_authToken\s*=/;
    const ownFolder = /(^|[\s"'`(=:])(\/(home|root|work|Users)\/\w|[A-Z]:\\Users\\)/m;
    assert.ok(listProjectFiles().includes('package.json'));
    assert.deepEqual([...findFilesWith(registry), ...findFilesWith(ownFolder)], []);
  });
});
