import { Random } from './simulation/random';

/** `npm run test:long` sets it: more kills, more power cuts, and half an hour of new schedules in place of seconds. */
export const isLong = process.env.TEST_LONG === '1';

/** The seed of what is random in a test: that of `TEST_SEED`, to have it again, or another each time. It is printed. */
export function readSeed(): number {
  const seed = Number(process.env.TEST_SEED ?? 1_000_000 + (Date.now() % 1_000_000_000));
  console.log(`      TEST_SEED=${seed}`);
  return seed;
}

let chance: Random | undefined;

/** At least 0, less than 1, as the seed of this process determines. */
export function random(): number {
  chance ??= new Random(readSeed());
  return chance.next();
}
