import { execFileSync } from 'node:child_process';

/**
 * Runs the npm that runs this, and returns what it prints: on the path of a script comes first the one that some
 * dependency brings, which may be older than the lock file.
 */
export function runNpm(parameters: readonly string[], folder: string): string {
  const path = process.env.npm_execpath;
  return execFileSync(path ? process.execPath : 'npm', path ? [path, ...parameters] : parameters, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: !path && process.platform === 'win32',
  });
}
