// Bundles the simulator with what it needs beyond the package's own dependencies into the command
// dist/simulator/cli.js, which names the licences of what it contains, and puts its page beside it.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'dist', 'simulator');
const command = join(folder, 'cli.js');
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

rmSync(folder, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['simulator/cli.ts'],
  outfile: command,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  external: Object.keys(dependencies),
  legalComments: 'inline',
  metafile: true,
  logLevel: 'warning',
});

const packages = new Set(
  Object.keys(metafile.inputs).flatMap((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []),
);
const notices = [...packages].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
  const licence = readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8').trim();
  return `/*!\nThis file contains parts of ${name} ${version}:\n\n${licence}\n*/\n`;
});
const [hashbang, ...lines] = readFileSync(command, 'utf8').split('\n');
writeFileSync(command, [hashbang, ...notices, ...lines].join('\n'), { mode: 0o755 });

cpSync(join(root, 'simulator', 'page'), join(folder, 'page'), { recursive: true });
