import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTexts } from '../catalogs';
import { languages } from '../languages';
import { root } from './packed';

const locales = join(root, 'nodes', 'locales');
const [words = '', places = '', others = ''] = readFileSync(join(locales, 'GLOSSARY.md'), 'utf8').split(/^## /m);

function readHelp(language: string): string {
  const files = readdirSync(join(locales, language)).filter((name) => name.endsWith('.html'));
  return files.map((name) => readFileSync(join(locales, language, name), 'utf8')).join('\n');
}

/** Returns the cells of a table, without its head. */
function readRows(table: string): string[][] {
  const lines = table.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) => line.slice(2, -2).split(' | '));
}

const head = words.split('\n').find((line) => line.startsWith('| term'));
const columns = head?.slice(2, -2).split(' | ').slice(3) ?? [];
const rows = readRows(words).map(([term = '', , key = '', ...cells]) => ({ term, key: key.slice(1, -1), cells }));

describe('the glossary', () => {
  it('translates each term into each language', () => {
    assert.deepEqual([...columns].sort(), languages);
    assert.ok(rows.length > 20);
    for (const { term, cells } of rows) {
      assert.equal(cells.length, columns.length, term);
      assert.ok(!cells.includes(''), term);
    }
  });
});

for (const [column, language] of columns.entries()) {
  describe(`language ${language}`, () => {
    const texts = readTexts(language);

    it('uses the terms of the glossary', () => {
      for (const { term, key, cells } of rows) assert.equal(texts.get(key), cells[column], `${term} (${key})`);
    });

    it('contains no word that the glossary forbids', () => {
      const all = `${[...texts.values()].join('\n')}\n${readHelp(language)}`.toLowerCase();
      for (const [, not = '', but] of readRows(others).filter(([one]) => one === language))
        assert.ok(!all.includes(not.toLowerCase()), `${not}: ${but}`);
    });

    // Skips English, because GLOSSARY.md limits the places of the word for *body* only in the nine other languages.
    if (language === 'en-US') return;
    it('uses the word for "body" only where the glossary permits it', () => {
      const word = rows.find(({ term }) => term === 'body')?.cells[column] ?? '';
      // In languages with spaces, ignores longer words that end with the word, such as "context" for "text". Also
      // ignores names such as `text/plain`.
      const isSpaced = /^[\p{Script=Latin}\p{Script=Cyrillic}]/u.test(word);
      const pattern = new RegExp(isSpaced ? `(?<!\\p{L})${word}(?!/)` : word, 'iu');
      const meant = new Set([...places.matchAll(/^- `(.+)`$/gm)].map(([, key]) => key));
      const elsewhere = [...texts].filter(([key, text]) => pattern.test(text) && !meant.has(key));
      assert.deepEqual(elsewhere, []);
    });
  });
}
