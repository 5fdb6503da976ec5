import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';

/** Finds an installed program, or the copy that `scripts/debian-program.sh` unpacked. */
export function findProgram(program: string): string | undefined {
  const unpacked = join(dirname(__dirname), '.cache', 'debian', 'bin', program);
  return [program, unpacked].find((path) => spawnSync(path, ['--version']).status === 0);
}

/** @throws Error that says how to install the program if it is missing */
export function requireProgram(program: string, debianPackage = program): string {
  const path = findProgram(program);
  if (path !== undefined) return path;
  throw new Error(
    `${program} is missing: install it, or run \`bash scripts/debian-program.sh ${debianPackage} ${program}\` for Debian's.`,
  );
}
