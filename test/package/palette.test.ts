import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createUserDir, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { packPackage, readJson } from './packed';

const olderVersion = '0.0.1';

/** The palette manager installs with npm, which fetches the dependencies from the registry. */
describe('the package in the palette manager', function () {
  this.timeout(240_000);
  const { name, version, 'node-red': declared } = packPackage().json;
  const folder = mkdtempSync(join(tmpdir(), 'sms-palette-'));
  const userDir = createUserDir();
  const json = { accept: 'application/json' };
  let nodeRed: NodeRedProcess;

  before(async () => {
    nodeRed = await startNodeRed({ userDir });
  });

  after(async () => {
    await nodeRed?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function upload(tarball: string) {
    const form = new FormData();
    form.append('tarball', new Blob([readFileSync(tarball)], { type: 'application/x-compressed' }), 'package.tgz');
    const response = await fetch(`${nodeRed.url}/nodes`, { method: 'POST', headers: json, body: form });
    const text = await response.text();
    assert.equal(response.status, 200, `${text}\n${nodeRed.log}`);
    return JSON.parse(text) as {
      version: string;
      pending_version?: string;
      nodes: { types: string[]; err?: unknown }[];
    };
  }

  it('installs from an uploaded file, and keeps the flows in an update', async () => {
    const { version: installed, nodes } = await upload(packOlderVersion(folder));
    assert.equal(installed, olderVersion);
    assert.deepEqual(nodes.flatMap(({ types }) => types).sort(), Object.keys(declared.nodes).sort());
    await nodeRed.deploy([
      { id: 'tab', type: 'tab', label: 'flow' },
      { id: 'account', type: 'sms-account', baseUrl: 'http://127.0.0.1:9', name: 'kept' },
      { id: 'send', type: 'sms-send', z: 'tab', x: 100, y: 100, account: 'account', retries: 7, wires: [[], []] },
    ]);
    const updated = await upload(packPackage().tarball);
    assert.equal(updated.pending_version ?? updated.version, version);
    await nodeRed.stop();
    nodeRed = await startNodeRed({ userDir });
    const module = await (await fetch(`${nodeRed.url}/nodes/${name}`, { headers: json })).json();
    assert.equal((module as { version: string }).version, version);
    const kept = await nodeRed.readFlows();
    assert.deepEqual(kept.map(({ id }) => id).sort(), ['account', 'send', 'tab']);
    assert.equal(kept.find(({ id }) => id === 'send')?.retries, 7);
    assert.doesNotMatch(nodeRed.log, /missing node types|Waiting for missing types/i);
  });

  it('leaves no file after it is uninstalled', async () => {
    await nodeRed.deploy([]);
    const response = await fetch(`${nodeRed.url}/nodes/${name}`, { method: 'DELETE' });
    assert.equal(response.status, 204, await response.text());
    assert.equal((await fetch(`${nodeRed.url}/nodes/${name}`, { headers: json })).status, 404);
    assert.equal(existsSync(join(userDir, 'node_modules', name)), false);
    const { dependencies = {} } = readJson<{ dependencies?: object }>(join(userDir, 'package.json'));
    assert.equal(name in dependencies, false);
  });
});

/** Packs the same package with an older version number. */
function packOlderVersion(folder: string): string {
  const copy = join(folder, 'package');
  cpSync(packPackage().folder, copy, { recursive: true });
  writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...packPackage().json, version: olderVersion }));
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: copy,
    shell: process.platform === 'win32',
    stdio: 'pipe',
  });
  return join(folder, readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? assert.fail('no file'));
}
