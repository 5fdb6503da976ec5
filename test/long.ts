import { Random } from './simulation/random';

/** True in `npm run test:long`: new seeds, more kills and power cuts, and half an hour of random schedules. */
export const isLong = process.env.TEST_LONG === '1';

/**
 * Returns and prints the seed of random tests: `TEST_SEED` if it is set, a new seed in `npm run test:long`, and otherwise
 * always the same seed.
 */
export function readSeed(): number {
  const seed = Number(process.env.TEST_SEED ?? (isLong ? 1_000_000 + (Date.now() % 1_000_000_000) : 1));
  console.log(`      TEST_SEED=${seed}`);
  return seed;
}

let chance: Random | undefined;

/** Returns a number from 0 to less than 1 that depends on the seed of this process. */
export function random(): number {
  chance ??= new Random(readSeed());
  return chance.next();
}
