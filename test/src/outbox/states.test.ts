import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as transitions from '../../../src/outbox/transitions';

describe('the states of a text', () => {
  it('and every way between them are in the documentation, each under the name of its step', () => {
    const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
    const [, section = ''] = page.split('## The states of a text');
    const [table = ''] = section.split('\n## ');
    const documented = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    const { judge: _, ...steps } = transitions;
    assert.deepEqual(documented.sort(), Object.keys(steps).sort());
  });
});
