import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { createTemporaryFolder } from '../temporary-folder';

/** The root of the checkout. */
export const root = join(__dirname, '..', '..');

/** Properties of package.json that these tests read. */
export interface PackageJson {
  name: string;
  version: string;
  license: string;
  keywords: string[];
  repository: { url: string };
  bugs: { url: string };
  files: string[];
  bin?: Record<string, string>;
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  engines: { node: string };
  'node-red': { version: string; nodes: Record<string, string>; plugins: Record<string, string> };
}

/** Installed packages of package-lock.json, by folder. */
export interface PackageLock {
  packages: Record<string, LockedPackage>;
}

interface LockedPackage {
  version?: string;
  resolved?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** The package as npm would publish it. */
export interface PackedPackage {
  tarball: string;
  /** Folder of the unpacked tarball. */
  folder: string;
  /** Paths relative to `folder`, with `/`, sorted. */
  files: string[];
  json: PackageJson;
}

let packed: PackedPackage | undefined;

/** Packs the built package, once per run of the tests. It does not build `dist/`. */
export function packPackage(): PackedPackage {
  if (packed) return packed;
  if (!existsSync(join(root, 'dist'))) throw new Error('There is nothing to pack. Run `npm run build` first.');
  const folder = createTemporaryFolder('sms-packed');
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: root,
    shell: process.platform === 'win32',
    stdio: 'pipe',
  });
  const [name, ...others] = readdirSync(folder);
  if (name === undefined || others.length > 0) throw new Error('npm pack did not make exactly one file.');
  const tarball = join(folder, name);
  execFileSync('tar', ['-xzf', tarball, '-C', folder]);
  const unpacked = join(folder, 'package');
  packed = { tarball, folder: unpacked, files: listFiles(unpacked), json: readJson(join(unpacked, 'package.json')) };
  return packed;
}

/**
 * Installs the packed package into `folder` as npm would, with the versions of the lock file.
 * Copies the dependencies from this checkout, so that it needs no registry.
 */
export function installPackage(folder: string): void {
  const { folder: unpacked, json } = packPackage();
  cpSync(unpacked, join(folder, 'node_modules', json.name), { recursive: true });
  for (const path of runtimeDependencies()) cpSync(join(root, path), join(folder, path), { recursive: true });
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'node-red-project', private: true, dependencies: { [json.name]: json.version } }),
  );
}

let folderOfInstalled: string | undefined;

/** Installs the packed package into a new folder, once per run of the tests, and returns this folder. */
export function installOnce(): string {
  if (folderOfInstalled) return folderOfInstalled;
  const folder = createTemporaryFolder('sms-installed');
  installPackage(folder);
  folderOfInstalled = folder;
  return folder;
}

/** Folders of all run-time dependencies in the lock file, relative to the root. */
export function runtimeDependencies(): string[] {
  const { packages } = readJson<PackageLock>(join(root, 'package-lock.json'));
  const found = new Set<string>();
  const visit = (from: string): void => {
    const { dependencies, optionalDependencies } = packages[from] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const path = resolveLocked(packages, from, name);
      if (path === undefined || found.has(path) || !existsSync(join(root, path))) continue;
      found.add(path);
      visit(path);
    }
  };
  visit('');
  return [...found].sort();
}

/** Finds the dependency `name` of the package in the folder `from`: in its `node_modules`, or in one above it. */
function resolveLocked(packages: PackageLock['packages'], from: string, name: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('node_modules/') - 1))) {
    const path = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`;
    if (packages[path]) return path;
    if (base === '') return undefined;
  }
}

/** Returns the files under `folder`, as sorted paths relative to it with `/`. */
export function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .split(sep)
        .join('/'),
    )
    .sort();
}

export function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}
