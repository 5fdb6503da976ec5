import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The folders of test/ that contain test files. */
const parts = ['reliability', 'chaos', 'examples', 'editor', 'simulation', 'package', 'nodes', 'src', 'simulator'];

/**
 * Files and folders that can run on both generations. The first generation is Node-RED 4 on the Node.js that runs this
 * script. The second is Node-RED 5 on Node.js 24. All other files run only on the first.
 */
const everyGeneration = [
  'reliability',
  'chaos',
  'examples',
  'editor',
  'nodes',
  'src/store',
  'src/http',
  'package/install.test.ts',
  'package/without-leveldb.test.ts',
];

/**
 * Exceptions from {@link everyGeneration}. These files run only on the first generation, because they test the
 * simulator's page, which does not depend on Node-RED.
 */
const installedOnly = ['editor/simulator-page.test.ts', 'editor/simulator-service.test.ts'];

/**
 * Files that `npm test` also runs on the second generation (Node-RED 5). Their subject depends on the version of
 * Node-RED or Node.js. With `--generation 5`, all files of {@link everyGeneration} run on it.
 */
const secondGeneration = [
  'editor/every-form.test.ts',
  'editor/function-node.test.ts',
  'nodes/sms-callback-in.test.ts',
  'nodes/whole-flow.test.ts',
  'package/install.test.ts',
  'package/without-leveldb.test.ts',
  'reliability/redeploy.test.ts',
  'src/http/connections.test.ts',
  'src/store/disk.test.ts',
  'src/store/engines.test.ts',
];

/** Folders whose files share a few processes. All other files and {@link separateFiles} have one process each. */
const groups = [
  { name: 'src', maxProcesses: 3 },
  { name: 'nodes', maxProcesses: 4 },
  { name: 'package', maxProcesses: 3 },
  { name: 'simulator', maxProcesses: 1 },
];

/** Files and folders whose files have one process each, because they use TLS, measure the heap or open databases. */
const separateFiles = ['src/store', 'src/http', 'nodes/sms-account.test.ts'];

/**
 * Intended duration of one process, in seconds. A group whose files take longer gets more processes, up to its maximum.
 */
const secondsPerProcess = 5;
/** Assumed duration of a file that was not measured yet, in seconds. */
const defaultSeconds = 4;

/** Lists every test file, as `test/src/clock.test.ts`. */
export function listTestFiles(root) {
  return parts.flatMap((part) =>
    readdirSync(join(root, 'test', part), { recursive: true })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/${part}/${name.replaceAll('\\', '/')}`)
      .sort(),
  );
}

/** Checks whether a file is `name` or is inside it. Names are relative to test/, such as `nodes` or `src/wire`. */
export function isIn(file, name) {
  const path = `test/${name.replace(/^test\/|\/$/g, '')}`;
  return file === path || file.startsWith(`${path}/`);
}

function isInAny(file, names) {
  return names.some((name) => isIn(file, name));
}

export function isOnEveryGeneration(file) {
  return isInAny(file, everyGeneration) && !isInAny(file, installedOnly);
}

export function isOnSecondGeneration(file) {
  return isInAny(file, secondGeneration);
}

/**
 * Distributes files over processes.
 *
 * @param files the files to run on one generation
 * @param secondsOf recorded seconds by file
 * @returns one entry per process: its name, its files and its expected seconds
 */
export function planProcesses(files, secondsOf) {
  const measure = (file) => secondsOf[file] ?? defaultSeconds;
  const isShared = (file, name) => isIn(file, name) && !isInAny(file, separateFiles);
  const shared = groups.flatMap(({ name, maxProcesses }) => {
    const members = files.filter((file) => isShared(file, name));
    const total = members.reduce((sum, file) => sum + measure(file), 0);
    const count = Math.min(maxProcesses, members.length, Math.ceil(total / secondsPerProcess));
    const shares = Array.from({ length: count }, (_, index) => ({
      name: `test/${name}, process ${index + 1} of ${count}`,
      files: [],
      seconds: 0,
    }));
    for (const file of members.toSorted((a, b) => measure(b) - measure(a))) {
      const share = shares.reduce((a, b) => (b.seconds < a.seconds ? b : a));
      share.files.push(file);
      share.seconds += measure(file);
    }
    return shares;
  });
  const unshared = files.filter((file) => !groups.some(({ name }) => isShared(file, name)));
  return [...shared, ...unshared.map((file) => ({ name: file, files: [file], seconds: measure(file) }))];
}
