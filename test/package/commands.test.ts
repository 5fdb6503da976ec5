import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PackageJson, readJson, root } from './packed';

const { name, scripts } = readJson<PackageJson>(join(root, 'package.json'));

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Returns every `npm`, `npx`, `node` and `bash` command in the pages: in shell blocks and in code spans. */
function listCommands(): string[] {
  const pages = ['', 'docs', 'docs/adr', 'docs/reference', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => join(folder, file)),
  );
  return pages.flatMap((page) => {
    const text = read(page);
    const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].flatMap(([, block = '']) =>
      block.replace(/\\\n\s*/g, ' ').split('\n'),
    );
    const spans = [...text.replace(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/`([^`]+)`/g)].map(([, line = '']) => line);
    return [...blocks, ...spans]
      .flatMap((line) => line.split('&&'))
      .map((line) => line.replace(/^\s*(?:[A-Z_]+=\S+ )*/, '').trim())
      .filter((line) => /^(npm|npx|node|bash) /.test(line));
  });
}

/** Returns the problem of a command, if it has one. */
function findFault(command: string): string | undefined {
  const [program, first = '', ...rest] = command.split(/\s+/);
  if (program === 'node' || program === 'bash') return findMissing(first);
  if (program === 'npx') {
    if (first === name || first === 'sms-simulator') return findUnknownOption('simulator/cli.ts', rest);
    return first === 'tsx' ? findMissing(rest[0] ?? '') : undefined;
  }
  if (!['run', 'start', 'test'].includes(first)) return undefined;
  const [script = '', ...options] = first === 'run' ? rest : [first, ...rest];
  const line = scripts[script];
  if (line === undefined) return `no script ${script}`;
  const [, file] = /(?:tsx|node) (\S+)(?: --\S+)*$/.exec(line) ?? [];
  return file === undefined ? undefined : findUnknownOption(file, options);
}

function findMissing(file: string): string | undefined {
  return file.startsWith('-') || existsSync(join(root, file)) ? undefined : `no file ${file}`;
}

function findUnknownOption(file: string, words: readonly string[]): string | undefined {
  const source = read(file);
  const options = words.filter((word) => /^--\w/.test(word)).map((word) => word.slice(2).replace(/=.*/, ''));
  const unknown = options.find((option) => !new RegExp(`--${option}\\b|\\b${option}'?: \\{ type:`).test(source));
  return unknown && `no option --${unknown}`;
}

describe('the commands in README and docs', () => {
  it('name existing scripts, options and files', () => {
    const commands = listCommands();
    assert.ok(commands.length > 30, `${commands.length} commands`);
    const faults = commands.map((command) => [command, findFault(command)]).filter(([, fault]) => fault !== undefined);
    assert.deepEqual(faults, []);
  });
});
