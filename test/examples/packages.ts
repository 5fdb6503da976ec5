import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const folder = join(__dirname, '..', 'example-packages');

/** Loads a package that only the tests of some examples need. */
export const requirePackage = createRequire(join(folder, 'package.json'));

/** Packages whose nodes some examples use. */
export const nodePackages = ['@flowfuse/node-red-dashboard', 'node-red-node-email'] as const;

/** Links {@link nodePackages} into a user directory of Node-RED. */
export function linkNodePackages(userDir: string): void {
  for (const name of nodePackages) {
    const installed = join(folder, 'node_modules', name);
    if (!existsSync(installed)) throw new Error(`${name} is missing: run npm ci in test/example-packages.`);
    const link = join(userDir, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(installed, link, 'junction');
  }
}
