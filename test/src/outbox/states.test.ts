import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { printArrows } from '../../../src/outbox/text';

describe('the states of a text', () => {
  it('and every way between them are in the documentation as they are in the source', () => {
    const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
    assert.ok(page.includes(printArrows()), `docs/architecture.md is to have\n\n${printArrows()}`);
  });
});
