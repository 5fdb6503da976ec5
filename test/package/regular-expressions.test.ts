import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Node, parse } from 'acorn';
import { transformSync } from 'esbuild';
import { checkSync } from 'recheck';

// The other ways of the checker start a process for a program of a platform or of Java.
process.env.RECHECK_BACKEND = 'pure';

const root = join(__dirname, '..', '..');
/** It makes patterns as it runs, of literal texts. */
const patternMakers = ['src/http/redact.ts'];

/** The regular expressions that a file writes out, and whether it makes others as it runs. */
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

describe('the regular expressions', () => {
  const files = ['src', 'nodes', 'simulator'].flatMap((folder) =>
    readdirSync(join(root, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => `${folder}/${file}`),
  );

  it('are found by the check, and those that backtrack are told', () => {
    assert.ok(files.length > 100);
    assert.ok(readPatterns('src/wire/date.ts').patterns.size >= 2);
    assert.equal(checkSync('\\/+$', '').status, 'vulnerable');
    assert.equal(checkSync('^(a|a)+$', '').status, 'vulnerable');
  });

  it('are written out, so that they can be checked', () => {
    const makers = files.filter((file) => readPatterns(file).makesPatterns);
    assert.deepEqual(makers.sort(), patternMakers);
  });

  for (const file of files) {
    const { patterns } = readPatterns(file);
    if (patterns.size === 0) continue;
    it(`of ${file} take a time that grows with the text, and no faster`, () => {
      for (const pattern of patterns) {
        const end = pattern.lastIndexOf('/');
        // Its limit is one of the wall clock, and what it does not prove in that time it guesses.
        const result = checkSync(pattern.slice(1, end), pattern.slice(end + 1), { timeout: 50_000 });
        const found = result.status === 'vulnerable' ? result.complexity.summary : result.status;
        assert.equal(result.status, 'safe', `${pattern}: ${found}`);
      }
    }).timeout(60_000);
  }
});
