import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { phases } from '../../../src/outbox/messages';
import { startsFrom } from '../../../src/outbox/transitions';

/** Reads a table in `docs/architecture.md`: a name in the first column, and its states in the second one. */
function readTable(title: string): Record<string, string[]> {
  const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
  const [, section = ''] = page.split(`## ${title}`);
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)];
  return Object.fromEntries(rows.map(([, name, states = '']) => [name, states === '–' ? [] : states.split(', ')]));
}

describe('docs/architecture.md', () => {
  it('lists the start states of each step of an outgoing message', () => {
    assert.deepEqual(readTable('The states of an outgoing message'), startsFrom);
  });

  it('lists the states of each phase of an outgoing message', () => {
    assert.deepEqual(readTable('The phases of an outgoing message'), phases);
  });
});
