import type { Plan } from './plan';
import type { Random } from './random';

/** The answers that all asking nodes accept. */
export const answers = [
  { value: 'YES', words: ['yes', 'ja', '1'] },
  { value: 'NO', words: ['no', 'not now'] },
] as const;

/** The replies that handsets write, with the answers that they give. The rules do not ask the library. */
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

/** Makes most messages of a plan questions, of which only some replies are answers. */
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

/** Returns the answer that a reply gives. */
export function answerOf(body: string): string | undefined {
  return repliesOfHandsets.find(([reply]) => reply === body)?.[1];
}
