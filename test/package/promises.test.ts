import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allMutants, promiseMutants } from '../mutants';
import { promises } from '../promises';
import { applyMutant } from '../simulation/library';
import { root } from './packed';

const page = readFileSync(join(root, 'docs', 'delivery.md'), 'utf8');

/** Returns the text of docs/delivery.md under a heading. */
function section(heading: string): string {
  return page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? assert.fail(`docs/delivery.md has no ${heading}`);
}

function listDocumentedPromises(): string[] {
  const promised = section('Promises');
  const rows = (text: string, kind: string) =>
    [...text.matchAll(/^\| ([^|]+) \|/gm)]
      .map(([, cell = '']) => cell)
      .filter((cell) => !/^(store|fault|-+)$/.test(cell))
      .map((cell) => `${kind}: ${cell}`);
  const bullets = [...promised.matchAll(/^- \*\*([\s\S]+?)\*\*/gm)].map(
    ([, text = '']) => `Promise: ${text.replace(/\s+/g, ' ')}`,
  );
  return [...bullets, ...rows(promised, 'Store'), ...rows(section('Faults'), 'Fault')];
}

describe('test/promises.json', () => {
  it('has an entry for each promise, store and fault of docs/delivery.md', () => {
    const documented = listDocumentedPromises();
    assert.ok(documented.length > 15);
    const entries = Object.values(promises).flatMap((byKey) => Object.keys(byKey));
    const inPage = entries.filter((entry) => /^(Promise|Store|Fault): /.test(entry));
    assert.deepEqual([...new Set(inPage)].sort(), documented.sort());
  });

  it('names only existing tests', async () => {
    const { readTitles } = await import('../../scripts/check-english.mjs');
    const hasTest = (name: string) => {
      const [file = '', title = ''] = name.split(/: (.*)/s);
      const path = join(root, file);
      return existsSync(path) && readTitles(readFileSync(path, 'utf8')).includes(title);
    };
    const faults = Object.values(promises).flatMap((byKey) =>
      Object.entries(byKey).flatMap(([entry, tests]) => {
        if (tests.length === 0) return [`${entry}: no test`];
        return tests.filter((name) => !hasTest(name)).map((name) => `${entry}: no such title: ${name}`);
      }),
    );
    assert.deepEqual(faults, []);
  });

  it('has one mutant for each promise that `npm test` checks', () => {
    assert.deepEqual(
      promiseMutants.map(({ name }) => name),
      Object.keys(promises['npm test'] ?? {}),
    );
    for (const mutant of allMutants) assert.notEqual(applyMutant(mutant, root), '');
  });
});
