import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createTemporaryFolder } from '../temporary-folder';
import { type PackageLock, packPackage, readJson, root, runtimeDependencies } from './packed';

const folder = join(root, '.github', 'workflows');
const workflows = readdirSync(folder).map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

const sha256 = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');

describe('a release', () => {
  it('uses only GitHub actions that are pinned to a commit', () => {
    for (const { name, text } of workflows) {
      for (const [line = ''] of text.matchAll(/uses: \S+.*/g))
        assert.match(line, /@[\da-f]{40} # v\d+\.\d+\.\d+$/, name);
    }
  });

  it('lists each runtime dependency in the bill of materials', () => {
    const command = ['scripts/bill-of-materials.mjs'];
    const release = workflows.find(({ name }) => name === 'release.yml')?.text ?? '';
    assert.ok(release.includes(`node ${command}`));
    const bill = JSON.parse(execFileSync(process.execPath, command, { cwd: root, encoding: 'utf8' })) as {
      metadata: { component: { purl: string } };
      components: { purl: string; licenses?: object[] }[];
    };
    const { name, version } = readJson<{ name: string; version: string }>(join(root, 'package.json'));
    assert.equal(bill.metadata.component.purl, `pkg:npm/${name.replace('@', '%40')}@${version}`);
    const { packages } = readJson<PackageLock>(join(root, 'package-lock.json'));
    const named = bill.components.map(({ purl }) => decodeURIComponent(purl));
    for (const path of runtimeDependencies()) {
      const purl = `pkg:npm/${path.replace(/^.*node_modules\//, '')}@${packages[path]?.version}`;
      assert.ok(named.includes(purl), purl);
    }
    for (const { purl, licenses = [] } of bill.components) assert.ok(licenses.length > 0, purl);
  });

  it('has identical bytes if it is built twice', () => {
    const copy = createTemporaryFolder('sms-again');
    const leftOut = ['.git', 'node_modules', 'dist', 'test', 'bench', '.cache', 'coverage', '.node-red'];
    for (const name of readdirSync(root).filter((name) => !leftOut.includes(name)))
      cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
    execFileSync('npm', ['pack', '--silent'], { cwd: copy, stdio: 'pipe', shell: process.platform === 'win32' });
    const tarball = readdirSync(copy).find((name) => name.endsWith('.tgz')) ?? assert.fail();
    assert.equal(sha256(join(copy, tarball)), sha256(packPackage().tarball));
  });
});
