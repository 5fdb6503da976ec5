// Bundles the simulator with what it needs beyond the package's own dependencies into dist/simulator/index.js, which names
// the licences of what it contains, and puts its types, its page and the command that starts it beside it.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
const folder = join(root, 'dist', 'simulator');
const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

rmSync(folder, { recursive: true, force: true });
const options = {
  absWorkingDir: root,
  outdir: folder,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  legalComments: 'inline',
  // Its own packages are found below node_modules, wherever those really are.
  preserveSymlinks: true,
  logLevel: 'warning',
};
const external = Object.keys({ ...dependencies, ...optionalDependencies });
const { metafile } = await build({ ...options, entryPoints: ['simulator/index.ts'], external, metafile: true });
await build({ ...options, entryPoints: ['simulator/cli.ts'], external: [...external, './index'] });

const packages = new Set(
  Object.keys(metafile.inputs).flatMap((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []),
);
const notices = [...packages].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
  const licence = readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8').trim();
  return `/*!\nThis file contains parts of ${name} ${version}:\n\n${licence}\n*/\n`;
});
const bundle = join(folder, 'index.js');
writeFileSync(bundle, [...notices, readFileSync(bundle, 'utf8')].join('\n'));
const command = join(folder, 'cli.js');
writeFileSync(command, readFileSync(command), { mode: 0o755 });

cpSync(join(root, 'simulator', 'page'), join(folder, 'page'), { recursive: true });

// Of the types only those that index.d.ts leads to: the others speak of packages that are bundled.
const types = join(root, '.cache', 'simulator-types');
rmSync(types, { recursive: true, force: true });
execFileSync(process.execPath, [tsc, '-p', join(root, 'simulator', 'tsconfig.types.json')], { stdio: 'inherit' });
const reached = new Set(['./index']);
for (const module of reached) {
  const text = readFileSync(join(types, `${module}.d.ts`), 'utf8');
  const base = dirname(module);
  for (const [, target] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g))
    reached.add(`./${join(base, target)}`);
  cpSync(join(types, `${module}.d.ts`), join(folder, `${module}.d.ts`));
}
