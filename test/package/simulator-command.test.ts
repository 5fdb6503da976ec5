import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackage, packPackage } from './packed';

describe('the simulator as the command of the packed package', () => {
  let folder: string;
  let child: ChildProcess;
  let output = '';

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sms-command-'));
    const installed = installPackage(folder);
    const [command] = Object.values(packPackage().json.bin ?? {});
    assert.ok(command, 'package.json names no command');
    const started = spawn(process.execPath, [join(installed, command), '--port', '0', '--wait-ms', '0'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    for await (const chunk of started.stdout.setEncoding('utf8')) {
      output += chunk;
      if (output.includes('Stop with')) break;
    }
  });

  after(async () => {
    if (child?.exitCode === null) {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const read = (name: string): string => new RegExp(`^${name} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';

  it('is the only command, which npx runs by the package name, on loopback', () => {
    assert.deepEqual(Object.keys(packPackage().json.bin ?? {}), ['sms-simulator']);
    assert.match(read('Base URL'), /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it('serves the page and all files that the page loads', async () => {
    const page = await fetch(read('Page'));
    assert.equal(page.status, 200);
    const text = await page.text();
    assert.match(text, /<h1>SMS simulator<\/h1>/);
    const loaded = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
    assert.ok(loaded.length > 5, loaded.join());
    for (const path of loaded) assert.equal((await fetch(new URL(path, read('Page')))).status, 200, path);
  });

  it('answers a poll with the printed API key', async () => {
    const headers = { authorization: `Bearer ${read('API key')}` };
    assert.equal((await fetch(`${read('Base URL')}/api/1/sms/in`, { headers })).status, 204);
    assert.equal((await fetch(`${read('Base URL')}/api/1/sms/in`)).status, 401);
  });

  it('stops on an interrupt', async () => {
    const exit = once(child, 'exit');
    child.kill('SIGINT');
    assert.deepEqual(await exit, [0, null]);
  });
});
