import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/journal/step';
import { formatOutcome, type Text } from '../../../src/outbox/text';
import {
  discard,
  leave,
  putBack,
  type StepContext,
  sendAgain,
  sendNow,
  settle,
  stale,
  startsFrom,
} from '../../../src/outbox/transitions';
import { FollowUpBook } from '../../../src/replies/follow-up-book';
import { createChanges } from '../../../src/store/store';
import { createError } from '../some-error';

describe('the states of an outgoing message', () => {
  it('are documented with each step and the states from which it starts', () => {
    const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
    const [, section = ''] = page.split('## The states of an outgoing message');
    const [table = ''] = section.split('\n## ');
    const documented = [...table.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(([, name, from = '']) => [
      name,
      from === '–' ? [] : from.split(', '),
    ]);
    assert.deepEqual(Object.fromEntries(documented), startsFrom);
  });
});

describe('a step of a message that another step has moved', () => {
  const outcome = createError('uncertain');
  const books = { texts: new Map<string, Text>(), followUps: new FollowUpBook(() => {}) };
  const rules = { limits: [], quietHours: [], optOut: false, prefixes: new Map() };
  const moment = { now: 1_000, lead: 0, origin: 'clock' };
  const context: StepContext = { now: 1_000, moment, rules, dedupeMs: () => 0, sentMs: 0, books };
  const steps: Record<string, (text: Text) => Step<unknown>> = {
    sendNow: (text) => sendNow(text, context),
    leave: (text) => leave(text, context),
    putBack: (text) => putBack(text, {}, context),
    sendAgain: (text) => sendAgain(text, { outcome: formatOutcome(outcome), change: {} }, context),
    settle: (text) => settle(text, { by: 'settle', outcome }, context),
    expire: (text) => settle(text, { by: 'expire', outcome }, context),
    markSent: (text) => settle(text, { by: 'markSent', outcome }, context),
    discard: (text) => discard(text, context, 'refuse'),
  };

  for (const [name, create] of Object.entries(steps)) {
    it(`writes nothing and is stale: ${name}`, () => {
      for (const state of ['waiting', 'leaving', 'settled', 'uncertain'] as const) {
        const text = {
          id: 'a',
          state,
          message: { to: [], body: '' },
          options: { keep: { expireMs: undefined } },
        } as unknown as Text;
        books.texts.set(text.id, text);
        const changes = createChanges();
        const result = create({ ...text, state: 'waiting' }).decide(() => undefined, changes)(true);
        const from: readonly string[] = startsFrom[name as keyof typeof startsFrom];
        assert.equal(result === stale, !from.includes(state), state);
        if (result === stale) assert.deepEqual(changes, createChanges());
      }
    });
  }
});
