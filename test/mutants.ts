import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './simulation/library';
import { mutants as scheduleMutants } from './simulation/mutants';

const byPromise = JSON.parse(readFileSync(join(__dirname, 'promise-mutants.json'), 'utf8')) as Record<
  string,
  Omit<Mutant, 'name'>
>;

/**
 * One mistake for each promise that `npm test` checks. `file` is a path from the root of the project. The tests of the
 * entry `name` in `test/promises.json` must find the mistake.
 */
export const promiseMutants: readonly Mutant[] = Object.entries(byPromise).map(([name, one]) => ({ name, ...one }));

/** All planted mistakes: {@link promiseMutants}, and the ones that the simulation must find. */
export const allMutants: readonly Mutant[] = [
  ...promiseMutants,
  ...scheduleMutants.map((mutant) => ({ ...mutant, file: `src/${mutant.file}` })),
];
