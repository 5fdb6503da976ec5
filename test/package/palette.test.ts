import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { packPackage } from './packed';

const olderVersion = '0.0.1';

interface InstalledModule {
  version: string;
  pending_version?: string;
  nodes: { types: string[]; err?: unknown }[];
}

/** The palette manager installs with npm, which fetches the dependencies from the registry. */
describe('the package in the palette manager', function () {
  this.timeout(240_000);
  const { name, version, 'node-red': declared } = packPackage().json;
  const folder = mkdtempSync(join(tmpdir(), 'sms-palette-'));
  const userDir = createUserDir();
  let nodeRed: NodeRedProcess | undefined;

  before(async () => {
    nodeRed = await startNodeRed({ userDir });
  });

  after(async () => {
    await nodeRed?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('installs every node type from an uploaded file', async () => {
    const installed = await upload(packOlderVersion(folder));
    assert.equal(installed.version, olderVersion);
    assert.deepEqual(installed.nodes.flatMap(({ types }) => types).sort(), Object.keys(declared.nodes).sort());
    assert.deepEqual(
      installed.nodes.flatMap(({ err }) => err ?? []),
      [],
    );
  });

  it('updates an older version and keeps the flows', async () => {
    const flows: FlowNode[] = [
      { id: 'tab', type: 'tab', label: 'flow' },
      { id: 'account', type: 'sms-account', baseUrl: 'http://127.0.0.1:9', authType: 'bearer', name: 'kept' },
      { id: 'send', type: 'sms-send', z: 'tab', x: 100, y: 100, account: 'account', retries: 7, wires: [[], []] },
    ];
    await running().deploy(flows);
    const updated = await upload(packPackage().tarball);
    assert.equal(updated.pending_version ?? updated.version, version);
    await running().stop();
    nodeRed = await startNodeRed({ userDir });
    assert.equal((await readModule()).version, version);
    const kept = (await (await fetch(`${running().url}/flows`)).json()) as FlowNode[];
    assert.deepEqual(kept.map(({ id }) => id).sort(), ['account', 'send', 'tab']);
    assert.equal(kept.find(({ id }) => id === 'send')?.retries, 7);
    assert.doesNotMatch(running().log, /missing node types|Waiting for missing types/i);
  });

  it('leaves no file after it is uninstalled', async () => {
    await running().deploy([]);
    const response = await fetch(`${running().url}/nodes/${name}`, { method: 'DELETE' });
    assert.equal(response.status, 204, await response.text());
    assert.equal((await fetch(`${running().url}/nodes/${name}`, { headers: json })).status, 404);
    assert.equal(existsSync(join(userDir, 'node_modules', name)), false);
    const { dependencies = {} } = JSON.parse(readFileSync(join(userDir, 'package.json'), 'utf8'));
    assert.equal(dependencies[name], undefined);
  });

  const json = { accept: 'application/json' };

  function running(): NodeRedProcess {
    if (!nodeRed) throw new Error('Node-RED did not start');
    return nodeRed;
  }

  async function upload(tarball: string): Promise<InstalledModule> {
    const form = new FormData();
    form.append('tarball', new Blob([readFileSync(tarball)], { type: 'application/x-compressed' }), 'package.tgz');
    const response = await fetch(`${running().url}/nodes`, { method: 'POST', headers: json, body: form });
    const text = await response.text();
    assert.equal(response.status, 200, `${text}\n${running().log}`);
    return JSON.parse(text);
  }

  async function readModule(): Promise<InstalledModule> {
    const response = await fetch(`${running().url}/nodes/${name}`, { headers: json });
    return (await response.json()) as InstalledModule;
  }
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
  const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack made no file.');
  return join(folder, tarball);
}
