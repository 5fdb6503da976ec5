// Prints the bill of materials (CycloneDX) of the package and its dependencies, with the versions of the lock file. It
// does not use `npm sbom --omit dev`, which leaves out packages that development dependencies need too.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);
const folder = mkdtempSync(join(tmpdir(), 'sms-bill-'));
const npm = (...args) =>
  execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe', shell: process.platform === 'win32' });
try {
  const { devDependencies, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  for (const name of ['package-lock.json', '.npmrc']) copyFileSync(join(root, name), join(folder, name));
  npm('install', '--package-lock-only', '--offline', '--no-audit', '--no-fund');
  const bill = JSON.parse(npm('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'));
  // Corrects the name of the package, because npm uses the name of the temporary folder.
  bill.metadata.component.name = manifest.name;
  process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
