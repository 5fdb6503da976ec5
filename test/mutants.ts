import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mutants as scheduleMutants } from './simulation/mutants';

/** A mistake in one line of the project. */
export interface SourceMutant {
  /** The entry of `test/promises.json` whose tests must find the mistake, or the name of a mutant of the schedules. */
  name: string;
  /** Path of the file, from the root of the project. */
  file: string;
  /** Code that the mistake replaces. It must occur exactly once. */
  search: string;
  replace: string;
}

const root = join(__dirname, '..');
const byPromise = JSON.parse(readFileSync(join(__dirname, 'promise-mutants.json'), 'utf8')) as Record<
  string,
  Omit<SourceMutant, 'name'>
>;

/** One mistake for each promise that `npm test` checks. */
export const promiseMutants: readonly SourceMutant[] = Object.entries(byPromise).map(([name, one]) => ({
  name,
  ...one,
}));

/** The mistakes of the promises, and those that the schedules find. */
export const allMutants: readonly SourceMutant[] = [
  ...promiseMutants,
  ...scheduleMutants.map(({ file, ...mutant }) => ({ ...mutant, file: `src/${file}` })),
];

/**
 * Returns the content of the file with the mistake.
 * @throws Error if the code to replace does not occur exactly once
 */
export function plantMutant({ name, file, search, replace }: SourceMutant): string {
  const parts = readFileSync(join(root, file), 'utf8').split(search);
  if (parts.length !== 2) throw new Error(`Mutant "${name}": its code occurs ${parts.length - 1} times in ${file}`);
  return parts.join(replace);
}
