import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Arrow, arrows } from '../../../src/outbox/text';

/** The table, in Markdown. */
function printArrows(): string {
  const rows = Object.entries<Arrow>(arrows).map(([name, { from = ['–'], to = '–', when, written }]) =>
    ['', `\`${name}\``, from.join(', '), to, when, written, ''].join(' | ').trim(),
  );
  return ['| step | from | to | when | written |', '|---|---|---|---|---|', ...rows].join('\n');
}

describe('the states of a text', () => {
  it('and every way between them are in the documentation as they are in the source', () => {
    const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
    assert.ok(page.includes(printArrows()), `docs/architecture.md is to have\n\n${printArrows()}`);
  });
});
