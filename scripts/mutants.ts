// Plants mistakes in a copy of the project, one at a time, and prints the tests that find each (the kill matrix).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { allMutants, promiseMutants } from '../test/mutants';
import { promises } from '../test/promises';
import { applyMutant, type Mutant } from '../test/simulation/library';
import { readCommand } from './command-line';

const usage = `Usage: npm run mutants -- [options] [folders or files below test/]

  Without folders, plants the mistake of each promise, and runs the tests that test/promises.json names for it.
  With folders, plants every mistake, and runs these tests.

  --only <text>  plant only mistakes whose name contains this text
  --help         print this text`;

const { values, positionals: folders } = readCommand(usage, {
  allowPositionals: true,
  options: { only: { type: 'string', default: '' } },
});
const root = join(__dirname, '..');
/** Time limit for a test run with one planted mistake, in seconds. A mistake can make the tests loop forever. */
const maxSeconds = 600;

/** Copies the project into a new folder, with links to its packages. */
function copyProject(): string {
  const copy = mkdtempSync(join(tmpdir(), 'sms-mutants-'));
  const isLinked = (path: string) => /(?:^|\/)(?:node_modules|\.cache|\.git|dist)$/.test(path);
  cpSync(root, copy, { recursive: true, filter: (path) => !isLinked(relative(root, path)) });
  const packages = ['', 'test/node-red-5/', 'test/example-packages/'];
  for (const path of ['.cache', ...packages.map((folder) => `${folder}node_modules`)]) {
    if (existsSync(join(root, path))) symlinkSync(join(root, path), join(copy, path));
  }
  return copy;
}

async function run(copy: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
  await once(spawn(process.execPath, args, { cwd: copy, env, stdio: 'ignore', timeout: maxSeconds * 1_000 }), 'close');
}

/** Returns the test files to run, and a pattern that matches the titles of the tests to run in them. */
function chooseTests({ name }: Mutant): { files: string[]; titles: string } {
  if (folders.length > 0) return { files: folders.map((folder) => `test/${folder}`), titles: '' };
  const tests = (promises['npm test']?.[name] ?? []).map((test) => test.split(/: (.*)/s));
  const files = new Set(tests.map(([file = '']) => file));
  // Escapes only the literal text between `…`, because `…` in a title of test/promises.json stands for any text.
  const escapePattern = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const titles = tests.map(([, title = '']) => title.split('…').map(escapePattern).join('.*'));
  return { files: [...files], titles: titles.join('|') };
}

/** Returns the tests that fail because of a mistake. */
async function findFailures(copy: string, mutant: Mutant): Promise<string[]> {
  const path = join(copy, mutant.file);
  const resultFile = join(copy, 'result.json');
  const { files, titles } = chooseTests(mutant);
  rmSync(resultFile, { force: true });
  writeFileSync(path, applyMutant(mutant, root));
  try {
    await run(copy, ['scripts/build.mjs']);
    const mocha = ['node_modules/mocha/bin/mocha.js', '--exit', '--grep', titles, ...files];
    await run(copy, mocha, { ...process.env, TEST_RESULT: resultFile });
    if (!existsSync(resultFile)) return ['The tests did not end.'];
    const { failures, passed } = JSON.parse(readFileSync(resultFile, 'utf8')) as { failures: string[]; passed: number };
    if (passed + failures.length === 0) throw new Error(`No test has a title of ${mutant.name}.`);
    return failures.map((failure) => failure.split('\n')[0] ?? '');
  } finally {
    writeFileSync(path, readFileSync(join(root, mutant.file)));
  }
}

async function main(): Promise<void> {
  const mutants = (folders.length > 0 ? allMutants : promiseMutants).filter(({ name }) => name.includes(values.only));
  const queue = [...mutants];
  let foundCount = 0;
  const work = async () => {
    const copy = copyProject();
    try {
      for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
        const failures = await findFailures(copy, mutant);
        if (failures.length > 0) foundCount++;
        const verdict = failures.length > 0 ? 'found' : 'NOT FOUND';
        console.log([`${verdict}: ${mutant.name} (${mutant.file})`, ...failures].join('\n    '));
      }
    } finally {
      rmSync(copy, { recursive: true });
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(`\n${foundCount} of ${mutants.length} mistakes found`);
  if (foundCount < mutants.length) process.exitCode = 1;
}

void main();
