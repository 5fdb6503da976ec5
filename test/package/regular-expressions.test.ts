import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Node, parse } from 'acorn';
import { transformSync } from 'esbuild';
import { checkSync } from 'recheck';
import { root } from './packed';

// Uses the checker in JavaScript, because its other backends start a native program or Java.
process.env.RECHECK_BACKEND = 'pure';

/** Files that build patterns at run time. */
const patternMakers = ['nodes/badge-words.ts', 'src/http/redact.ts'];

/** Returns the regular expression literals of a file, and whether the file builds others at run time. */
function readPatterns(file: string): { patterns: Set<string>; makesPatterns: boolean } {
  const patterns = new Set<string>();
  let makesPatterns = false;
  const { code } = transformSync(readFileSync(join(root, file), 'utf8'), { loader: 'ts', target: 'esnext' });
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const { type, regex, callee } = value as Node & { regex?: { pattern: string; flags: string }; callee?: Node };
    if (type === 'Literal' && regex !== undefined) patterns.add(`/${regex.pattern}/${regex.flags}`);
    if (callee?.type === 'Identifier' && (callee as Node & { name: string }).name === 'RegExp') makesPatterns = true;
    for (const child of Object.values(value)) if (typeof child === 'object') visit(child);
  };
  visit(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }));
  return { patterns, makesPatterns };
}

describe('each regular expression', () => {
  const files = ['src', 'nodes', 'simulator'].flatMap((folder) =>
    readdirSync(join(root, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => `${folder}/${file}`),
  );

  it('is a literal, except in two listed files', () => {
    assert.ok(readPatterns('src/wire/date.ts').patterns.size >= 2);
    const makers = files.filter((file) => readPatterns(file).makesPatterns);
    assert.deepEqual(makers.sort(), patternMakers);
  });

  for (const file of files) {
    const { patterns } = readPatterns(file);
    if (patterns.size === 0) continue;
    describe(`in ${file}`, () => {
      it('takes linear time', () => {
        for (const pattern of patterns) {
          const end = pattern.lastIndexOf('/');
          // Raises the time limits, because the checker guesses when a limit is exceeded. Its result would otherwise
          // depend on the load of the machine.
          const limits = { timeout: 50_000, incubationTimeout: 50_000, attackTimeout: 50_000 };
          const result = checkSync(pattern.slice(1, end), pattern.slice(end + 1), limits);
          const complexity = result.status === 'vulnerable' ? result.complexity.summary : result.status;
          assert.equal(result.status, 'safe', `${pattern}: ${complexity}`);
        }
      }).timeout(60_000);
    });
  }
});
