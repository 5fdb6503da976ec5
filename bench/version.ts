import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { runNpm } from './npm';

const root = join(__dirname, '..');

/** A built version of the package. */
export interface Version {
  name: string;
  /** Folder with its `package.json`, `dist` and `node_modules`. */
  folder: string;
}

/** What is built in this checkout. */
export const present: Version = { name: 'this version', folder: root };

/** The commit that git knows as `ref`, if there is one. */
export function findCommit(ref: string): string | undefined {
  try {
    return run('git', ['rev-parse', '--quiet', '--verify', '--end-of-options', `${ref}^{commit}`]).trim();
  } catch {
    return undefined;
  }
}

/**
 * Builds a commit, with the dependencies of its own lock file, in a folder of the ignored cache, where the next comparison finds it.
 *
 * @throws Error when it cannot be built
 */
export function buildVersion(name: string, commit: string): Version {
  const version = { name, folder: join(root, '.cache', 'versions', commit) };
  if (existsSync(version.folder)) return version;
  const unfinished = `${version.folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const archive = join(unfinished, 'version.tar');
  run('git', ['archive', '--format=tar', `--output=${archive}`, commit]);
  run('tar', ['-xf', archive, '-C', unfinished]);
  rmSync(archive);
  runNpm(['ci', '--prefer-offline', '--no-audit', '--no-fund'], unfinished);
  runNpm(['run', 'build'], unfinished);
  renameSync(unfinished, version.folder);
  return version;
}

/** Whether a form of that version has a property: what came later cannot be compared. */
export function hasProperty({ folder }: Version, node: string, property: string): boolean {
  return readFileSync(join(folder, 'dist', 'nodes', `${node}.html`), 'utf8').includes(`${property}: {`);
}

/** Copies what Node-RED loads, so that a build meanwhile disturbs nothing. */
export function copyVersion({ folder }: Version, target: string): void {
  mkdirSync(target, { recursive: true });
  for (const part of ['package.json', 'dist']) cpSync(join(folder, part), join(target, part), { recursive: true });
  symlinkSync(join(folder, 'node_modules'), join(target, 'node_modules'), 'junction');
}

function run(command: string, parameters: readonly string[]): string {
  return execFileSync(command, parameters, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
