import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The parts of the test: the folders of test/ that hold test files, in the order in which they are begun: long ones first. */
export const parts = ['reliability', 'rig', 'examples', 'editor', 'simulation', 'package', 'nodes', 'src', 'simulator'];

/**
 * What meets Node-RED, a browser, or what a Node brings of its own (SQLite, HTTP) runs on every generation. All else runs once,
 * and so does test/package but for one file: it is about the files of the package.
 */
const onEveryGeneration = [
  'reliability',
  'rig',
  'examples',
  'editor',
  'nodes',
  'src/store',
  'src/http',
  'package/without-leveldb.test.ts',
];

/** Of those, what no generation of Node-RED has a part in, though it is opened in a browser. */
const once = ['editor/simulator-page.test.ts'];

/** Every test file as `test/src/clock.test.ts`, in the order of {@link parts}. */
export function listTestFiles(root) {
  return parts.flatMap((part) =>
    readdirSync(join(root, 'test', part), { recursive: true })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/${part}/${name.replaceAll('\\', '/')}`)
      .sort(),
  );
}

/** Says whether a file is, or is in, what is named from test/ on: `nodes`, `src/wire`, `test/src/clock.test.ts`. */
export function isIn(file, name) {
  const path = `test/${name.replace(/^test\/|\/$/g, '')}`;
  return file === path || file.startsWith(`${path}/`);
}

export function isOnEveryGeneration(file) {
  const isAmong = (names) => names.some((name) => isIn(file, name));
  return isAmong(onEveryGeneration) && !isAmong(once);
}
