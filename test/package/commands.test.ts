import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type PackageJson, readJson, root } from './packed';

const { name, repository, scripts, devDependencies, optionalDependencies } = readJson<
  PackageJson & {
    repository: { url: string };
    devDependencies: Record<string, string>;
    optionalDependencies: Record<string, string>;
  }
>(join(root, 'package.json'));

/** The pages whose `curl` commands a test runs, with that test. */
const curlIsRunBy: Record<string, string> = {
  'docs/reference/simulator.md': 'test/package/simulator-library.test.ts',
  'docs/receiving.md': 'test/package/receiving.test.ts',
  'docs/troubleshooting.md': 'test/package/receiving.test.ts',
};

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface Command {
  page: string;
  line: string;
}

/** Every command in the pages: in shell blocks and in code spans. */
function listCommands(): Command[] {
  const pages = ['', 'docs', 'docs/adr', 'docs/reference', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((file) => file.endsWith('.md'))
      .map((file) => (folder ? `${folder}/${file}` : file)),
  );
  return pages.flatMap((page) => {
    const text = read(page);
    const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].flatMap(([, block = '']) =>
      block.replace(/\\\n\s*/g, ' ').split('\n'),
    );
    const prose = text.replace(/^ *```[\s\S]*?^ *```$/gm, '');
    const inText = [...prose.matchAll(/`((?:npm|npx|node|curl|git|bash|docker|kubectl) [^`]+)`/g)].map(
      ([, line = '']) => line,
    );
    return [...blocks, ...inText]
      .flatMap((line) => line.split('&&'))
      .map((line) => line.replace(/^\s*(?:[A-Z_]+=\S+ )*/, '').trim())
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => ({ page, line }));
  });
}

/** The options of a command, without dashes. */
const options = (words: readonly string[]): string[] =>
  words.filter((word) => word.startsWith('--') && word !== '--').map((word) => word.slice(2).replace(/=.*/, ''));

/** The options that do not occur in the source of a program. */
function unknownOptions(file: string, words: readonly string[]): string[] {
  const source = read(file);
  return options(words).filter(
    (option) => !source.includes(`--${option}`) && !new RegExp(`'?\\b${option}'?: \\{ type:`).test(source),
  );
}

const isPackage = (spec: string): boolean =>
  spec === name ||
  spec in optionalDependencies ||
  spec === '<file>' ||
  spec.endsWith('messaging-service-node-red-sms-<version>.tgz') ||
  spec in devDependencies;

type Fault = string | undefined;

const programs: Record<string, (words: readonly string[], page: string) => Fault> = {
  npm: ([verb = '', ...rest]) => {
    if (verb === 'ci' || verb === 'pack') return rest.length === 0 ? undefined : 'too much';
    if (verb === 'install')
      return rest.every((word) => word === '--save-dev' || isPackage(word)) ? undefined : 'another package';
    if (`${verb} ${rest.join(' ')}` === 'audit signatures') return undefined;
    const [script = '', ...given] = verb === 'run' ? rest : [verb, ...rest];
    const command = scripts[script];
    if (command === undefined) return `no script ${script}`;
    const [, program] = /(?:tsx|node) (\S+)(?: --\S+)*$/.exec(command) ?? [];
    if (program !== undefined) return unknownOptions(program, given).map((option) => `no option --${option}`)[0];
    if (script === 'test:one') return missing(given.filter((word) => word.startsWith('test/')));
    return undefined;
  },
  npx: ([program = '', ...rest]) => {
    if (program === name || program === 'sms-simulator') return unknownOptions('simulator/cli.ts', rest)[0];
    if (program === 'mocha' && rest.length === 0) return undefined;
    if (program === 'node-red') return rest.join(' ') === '--userDir . flows.json' ? undefined : 'other options';
    return program === 'tsx' ? missing(rest) : `what is ${program}?`;
  },
  git: ([verb, address]) =>
    verb === 'clone' && `git+${address}` === repository.url ? undefined : 'another repository',
  cd: () => undefined,
  rm: (words) => (words.join(' ') === '-rf node_modules' ? undefined : 'removes something else'),
  bash: ([script = '']) => missing([script]),
  node: ([script = '']) => missing([script]),
  // test/package/containers.test.ts compares names and files.
  kubectl: ([verb = '']) => (['create', 'apply'].includes(verb) ? undefined : `what is kubectl ${verb}?`),
  docker: (words) => {
    if (words[0] === 'run') return sameImage(words);
    if (words[0] !== 'compose') return `what is docker ${words[0]}?`;
    const compose = read('docs/containers/compose.yaml');
    const [, profile] = /--profile (\S+)/.exec(words.join(' ')) ?? [];
    return profile === undefined || compose.includes(`profiles: [${profile}]`) ? undefined : `no profile ${profile}`;
  },
  curl: (_, page) => {
    const test = curlIsRunBy[page];
    return test !== undefined && existsSync(join(root, test)) && read(test).includes(basename(page))
      ? undefined
      : 'no test runs it';
  },
};

/** A command uses the image of the Dockerfile, so Docker downloads only one. */
function sameImage(words: readonly string[]): Fault {
  const [, image = ''] = /^FROM (\S+)$/m.exec(read('docs/containers/Dockerfile')) ?? [];
  return words.includes(image) ? undefined : `not the image ${image}`;
}

function missing(files: readonly string[]): Fault {
  const gone = files.filter((file) => !existsSync(join(root, file)));
  return gone.length > 0 ? `not there: ${gone.join()}` : undefined;
}

describe('the commands in README and docs', () => {
  it('name existing scripts, options, files and packages, or run in a test', () => {
    const commands = listCommands();
    assert.ok(commands.length > 40, `${commands.length} commands`);
    const faults = commands.flatMap(({ page, line }) => {
      const [program = '', ...words] = line.split(/\s+/);
      const check = programs[program];
      const fault = check === undefined ? 'a program without a check' : check(words, page);
      return fault === undefined ? [] : [`${page}: ${line}: ${fault}`];
    });
    assert.deepEqual(faults, []);
  });

  it('fail the check if a script, an option or a file is missing', () => {
    assert.equal(programs.npm?.(['run', 'nothing'], ''), 'no script nothing');
    assert.equal(programs.npm?.(['start', '--', '--no-such-port', '1'], ''), 'no option --no-such-port');
    assert.equal(programs.npm?.(['start', '--', '--simulator-port', '1'], ''), undefined);
    assert.equal(programs.npx?.([name, '--data', 'folder'], ''), undefined);
    assert.equal(programs.npx?.([name, '--dta', 'folder'], ''), 'dta');
    assert.equal(programs.npx?.(['tsx', 'bench/nothing.ts'], ''), 'not there: bench/nothing.ts');
    assert.equal(programs.curl?.([], 'README.md'), 'no test runs it');
  });
});
