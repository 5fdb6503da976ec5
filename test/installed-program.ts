import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';

/** The program that is installed, or the one that `scripts/debian-program.sh` has unpacked. */
export function findProgram(program: string): string | undefined {
  const unpacked = join(dirname(__dirname), '.cache', 'debian', 'bin', program);
  return [program, unpacked].find((path) => spawnSync(path, ['--version']).status === 0);
}

/** @throws Error that says how to get it, when there is none */
export function requireProgram(program: string, debianPackage = program): string {
  const path = findProgram(program);
  if (path !== undefined) return path;
  throw new Error(
    `${program} is missing: install it, or run \`bash scripts/debian-program.sh ${debianPackage} ${program}\` for Debian's.`,
  );
}
