import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from './packed';

/** Imports of one file, including types. */
interface SourceFile {
  /** Path from the root of the repository. */
  path: string;
  text: string;
  /** Files of the repository. */
  files: string[];
  /** Node's own modules and packages. */
  packages: string[];
}

function read(path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  const files: string[] = [];
  const packages: string[] = [];
  for (const name of importsOf(text)) {
    if (name.startsWith('.')) files.push(findFile(join(dirname(path), name)));
    else packages.push(name);
  }
  return { path, text, files, packages };
}

/** Finds all imports, re-exports, `require` calls and dynamic imports. */
function importsOf(text: string): string[] {
  const code = text.replace(/^ *(?:\/?\*|\/\/).*$/gm, '');
  const found = code.matchAll(/(?:^(?:import|export|\}).*\bfrom |^import |\bimport\(|\brequire\()'([^']+)'/gm);
  return [...found].map(([, name = '']) => name);
}

function findFile(path: string): string {
  const candidates = [`${path}.ts`, join(path, 'index.ts'), path];
  return candidates.find((candidate) => existsSync(join(root, candidate))) ?? assert.fail(`no file ${path}`);
}

function readAll(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => read(join(folder, name)));
}

/** Returns the folder of a file in `src`, or the name of a file directly in `src`. */
function roomOf(path: string): string {
  const [first = ''] = relative('src', path).split('/');
  return first.replace(/\.ts$/, '');
}

const plain = ['clock', 'errors', 'login', 'model', 'page', 'reasons'];

/**
 * Imports that a folder or file of `src` is limited to. A folder or file that is not listed can import anything in
 * `src`.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  clock: [],
  model: [],
  page: [],
  reasons: [],
  errors: ['reasons'],
  login: ['errors'],
  wire: ['model', 'errors'],
  http: ['wire', ...plain],
  store: ['http', 'clock', 'errors', 'login'],
  journal: ['store', ...plain],
  consent: ['store', ...plain],
};

/** Finds circular imports. */
function findCircles(files: ReadonlyMap<string, SourceFile>): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, way: readonly string[]) => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '));
    else if (!done.has(path)) for (const next of files.get(path)?.files ?? []) walk(next, [...way, path]);
    done.add(path);
  };
  for (const path of files.keys()) walk(path, []);
  return circles;
}

/** Finds all direct and indirect imports of files. */
function reach(start: Iterable<string>, files: ReadonlyMap<string, SourceFile>): SourceFile[] {
  const reached = new Map<string, SourceFile>();
  const visit = (path: string) => {
    const file = files.get(path);
    if (!file || reached.has(path)) return;
    reached.set(path, file);
    for (const next of file.files) visit(next);
  };
  for (const path of start) visit(path);
  return [...reached.values()];
}

describe('the source code', () => {
  const library = readAll('src');
  const nodes = readAll('nodes');
  const files = new Map([...library, ...nodes].map((file) => [file.path, file]));
  const forms = nodes.map(({ path }) => path).filter((path) => /\.(form|plugin)\.ts$/.test(path));

  it('has no forbidden import between folders of `src`', () => {
    const wrong = library.flatMap(({ path, files }) => {
      const room = roomOf(path);
      const allowed = arrows[room];
      return files
        .filter((other) => allowed && roomOf(other) !== room && !allowed.includes(roomOf(other)))
        .map((other) => `${path} → ${other}`);
    });
    assert.deepEqual(wrong, []);
    assert.ok(Object.keys(arrows).every((room) => library.some(({ path }) => roomOf(path) === room)));
  });

  it('imports neither Node-RED, `nodes` nor `simulator` in `src`', () => {
    const wrong = library.flatMap(({ path, files, packages }) =>
      [...files.filter((other) => !other.startsWith('src/')), ...packages.filter((name) => /node-red/.test(name))].map(
        (other) => `${path} → ${other}`,
      ),
    );
    assert.deepEqual(wrong, []);
  });

  it('imports only allowed `src` files into nodes and forms', () => {
    const ofForms = reach(forms, files);
    const inForms = new Set(ofForms.map(({ path }) => path));
    const pastTheDoor = nodes
      .filter(({ path }) => !inForms.has(path))
      .flatMap(({ path, files }) =>
        files
          .filter((other) => other.startsWith('src/') && other !== 'src/index.ts')
          .map((other) => `${path} → ${other}`),
      );
    assert.deepEqual(pastTheDoor, []);
    const needy = ofForms
      .filter(({ path, packages }) => path.startsWith('src/') && packages.length > 0)
      .map(({ path, packages }) => `${path} → ${packages}`);
    assert.deepEqual(needy, []);
  });

  it('has no import cycle, including imports of types', () => {
    assert.deepEqual(findCircles(files), []);
  });

  it('has no file of more than 500 lines in `src`', () => {
    const long = library.map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }));
    assert.deepEqual(
      long.filter(({ lines }) => lines > 500),
      [],
    );
  });
});
