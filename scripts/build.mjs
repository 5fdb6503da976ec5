// Compiles src/ and nodes/ into dist/ and puts beside the built nodes what Node-RED looks for there:
// the forms, the icons and the locales. The simulator goes into dist/simulator/ as a command of the package.
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildForms } from './build-forms.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');

rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit', cwd: root });
await buildForms();
// The glossary is for those who translate.
const isShipped = (file) => !file.endsWith('.md');
cpSync(join(root, 'nodes', 'locales'), join(root, 'dist', 'nodes', 'locales'), { recursive: true, filter: isShipped });
cpSync(join(root, 'icons'), join(root, 'dist', 'nodes', 'icons'), { recursive: true });
await import('./bundle-simulator.mjs');
