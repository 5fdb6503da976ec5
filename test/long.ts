import { Random } from './simulation/random';

/** True in `npm run test:long`: more kills and power cuts, and half an hour of random schedules instead of seconds. */
export const isLong = process.env.TEST_LONG === '1';

/** Returns the seed of `TEST_SEED`, which repeats an earlier test, or a new seed. Prints the seed. */
export function readSeed(): number {
  const seed = Number(process.env.TEST_SEED ?? 1_000_000 + (Date.now() % 1_000_000_000));
  console.log(`      TEST_SEED=${seed}`);
  return seed;
}

let chance: Random | undefined;

/** Returns a number from 0 to less than 1 that depends on the seed of this process. */
export function random(): number {
  chance ??= new Random(readSeed());
  return chance.next();
}
