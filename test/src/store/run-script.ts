import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(__dirname, '..', '..', '..');
const typeScript = `--require=${require.resolve('tsx/cjs')}`;

/** Runs a script in a separate process. The script and its threads can load TypeScript. Returns the output. */
export function runScript(script: string, more: NodeJS.ProcessEnv = {}): { stdout: string; stderr: string } {
  const { NODE_V8_COVERAGE: _, NODE_EXTRA_CA_CERTS: __, ...env } = process.env;
  const options = { cwd: root, env: { ...env, NODE_OPTIONS: typeScript, ...more } };
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', ...options });
  return { stdout, stderr };
}

/** Returns the expression that loads a file of the project in a script. */
export function requireFrom(...path: string[]): string {
  return `require(${JSON.stringify(join(root, ...path))})`;
}
