import assert from 'node:assert/strict';
import { buildPage, pages } from '../../scripts/build-reference';
import { readPage } from './pages';

describe('docs/reference', () => {
  for (const page of pages) {
    it(`has an up-to-date page ${page}`, () => {
      const text = readPage(`docs/reference/${page}`);
      assert.equal(text, buildPage(page), 'Run npm run docs.');
    });
  }
});
