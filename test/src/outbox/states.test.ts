import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/journal/step';
import { formatOutcome, type MessageItem } from '../../../src/outbox/message-item';
import { phases } from '../../../src/outbox/messages';
import {
  discard,
  markLeaving,
  requeue,
  type StepContext,
  sendAgain,
  sendNow,
  settle,
  stale,
  startsFrom,
} from '../../../src/outbox/transitions';
import { FollowUpBook } from '../../../src/replies/follow-ups';
import { createChanges } from '../../../src/store/store';
import { createError } from '../some-error';

/** Returns the first two columns of a table in `docs/architecture.md`: names, and the states of each. */
function readTable(title: string): Record<string, string[]> {
  const page = readFileSync(join(__dirname, '../../../docs/architecture.md'), 'utf8');
  const [, section = ''] = page.split(`## ${title}`);
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)];
  return Object.fromEntries(rows.map(([, name, states = '']) => [name, states === '–' ? [] : states.split(', ')]));
}

describe('an outgoing message', () => {
  it('has its steps documented with the states from which they start', () => {
    assert.deepEqual(readTable('The states of an outgoing message'), startsFrom);
  });

  it('has its phases documented with their states', () => {
    assert.deepEqual(readTable('The phases of an outgoing message'), phases);
  });
});

describe('a step of a message that another step has moved', () => {
  const outcome = createError('uncertain');
  const books = {
    messages: Object.assign(new Map<string, MessageItem>(), { replaceable: new Set<string>() }),
    followUps: new FollowUpBook(() => {}),
  };
  const rules = { limits: [], quietHours: [], optOut: false, prefixes: new Map() };
  const time = { now: 1_000, clock: 'clock/0' };
  const context: StepContext = { now: 1_000, time, rules, dedupeMs: () => 0, sentMs: 0, current: books };
  const steps: Record<string, (text: MessageItem) => Step<unknown>> = {
    sendNow: (text) => sendNow(text, context),
    markLeaving: (text) => markLeaving(text, context),
    requeue: (text) => requeue(text, {}, context),
    sendAgain: (text) => sendAgain(text, { outcome: formatOutcome(outcome), change: {} }, context),
    settle: (text) => settle(text, { by: 'settle', outcome }, context),
    expire: (text) => settle(text, { by: 'expire', outcome }, context),
    markSent: (text) => settle(text, { by: 'markSent', outcome }, context),
    discard: (text) => discard({ ...text, state: books.messages.get(text.id)?.state ?? text.state }, context, 'refuse'),
  };

  for (const [name, create] of Object.entries(steps)) {
    it(`writes nothing if it cannot start from the new state: ${name}`, () => {
      for (const state of ['waiting', 'leaving', 'settled', 'uncertain'] as const) {
        const text = {
          id: 'a',
          state,
          message: { to: [], body: '' },
          options: { keep: { expireMs: undefined } },
        } as unknown as MessageItem;
        books.messages.set(text.id, text);
        const changes = createChanges();
        const result = create({ ...text, state: 'waiting' }).decide(() => undefined, changes)(true);
        const from: readonly string[] = startsFrom[name as keyof typeof startsFrom];
        assert.equal(result === stale, !from.includes(state), state);
        if (result === stale) assert.deepEqual(changes, createChanges());
      }
    });
  }
});
