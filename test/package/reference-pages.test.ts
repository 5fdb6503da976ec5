import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildPage, pages } from '../../scripts/build-reference';
import { root } from './packed';

describe('docs/reference', () => {
  for (const page of pages) {
    it(`has the current properties, errors and metrics in ${page}`, () => {
      const text = readFileSync(join(root, 'docs', 'reference', page), 'utf8');
      assert.equal(text, buildPage(page), 'Run npm run docs.');
    });
  }
});
