// Compiles src/, nodes/ and simulator/ into dist/. Copies the forms, icons and catalogs beside the built nodes, where
// Node-RED looks for them, and the simulator's page beside the built simulator.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { buildForms } from './build-forms.mjs';

const root = dirname(import.meta.dirname);
const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');

rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit', cwd: root });
await buildForms();
const locales = join(root, 'dist', 'nodes', 'locales');
// Leaves out the glossary, which is only for translators.
const isShipped = (file) => !file.endsWith('.md');
cpSync(join(root, 'nodes', 'locales'), locales, { recursive: true, filter: isShipped });
addEnglishWords();
cpSync(join(root, 'icons'), join(root, 'dist', 'nodes', 'icons'), { recursive: true });
cpSync(join(root, 'simulator', 'page'), join(root, 'dist', 'simulator', 'page'), { recursive: true });
chmodSync(join(root, 'dist', 'simulator', 'cli.js'), 0o755);

/** Adds the English texts of errors and badges to the English catalog. The code is their source. */
function addEnglishWords() {
  const file = join(locales, 'en-US', 'sms-account.json');
  const catalog = JSON.parse(readFileSync(file, 'utf8'));
  const { reasons } = require('../dist/src/reasons.js');
  const { badgeWords } = require('../dist/nodes/badge-words.js');
  const texts = Object.entries(reasons).map(([reason, [, text]]) => [
    reason,
    text.replaceAll(/\{\{(\w+)\}\}/g, '__$1__'),
  ]);
  Object.assign(catalog['sms-account'], { errors: Object.fromEntries(texts) }, badgeWords);
  writeFileSync(file, `${JSON.stringify(catalog, null, 2)}\n`);
}
