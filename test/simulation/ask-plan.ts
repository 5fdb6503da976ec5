import type { Plan } from './plan';
import type { Random } from './random';

/** Answers that the `sms-ask` nodes accept, each with the words that count as this answer. */
export const answers = [
  { value: 'YES', words: ['yes', 'ja', '1'] },
  { value: 'NO', words: ['no', 'not now'] },
] as const;

/**
 * Replies of handsets, each with its answer, or without an answer if the reply is unclear. The answers are listed here,
 * so that the rules do not depend on the library.
 */
export const repliesOfHandsets: readonly (readonly [body: string, answer: string | undefined])[] = [
  ['yes', 'YES'],
  ['  Ja! ', 'YES'],
  ['1.', 'YES'],
  ['NO', 'NO'],
  ['Not  now', 'NO'],
  ['yes please', undefined],
  ['maybe', undefined],
  ['?', undefined],
  ['11', undefined],
];

/** Turns most messages of a plan into questions, which accept only some replies as answers. */
export function addAsks(plan: Plan, random: Random): Plan {
  for (const event of plan.plannedEvents) {
    if (event.type !== 'order') continue;
    if (random.chance(0.7)) delete event.key;
    if (random.chance(0.15)) continue;
    event.waitMs = random.pick([2_000, 20_000, 60_000]);
    event.ask = { again: random.chance(0.65) };
  }
  return plan;
}

/** Returns the answer that a reply gives, or `undefined` if the reply is unclear. */
export function answerOf(body: string): string | undefined {
  return repliesOfHandsets.find(([reply]) => reply === body)?.[1];
}
