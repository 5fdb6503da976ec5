import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { installOnce, packPackage } from './packed';

describe('the simulator as the command of the packed package', () => {
  let child: ChildProcess | undefined;

  after(() => child?.kill('SIGKILL'));

  it('serves its page and polls on loopback, and stops on an interrupt', async () => {
    const { name, bin = {} } = packPackage().json;
    assert.deepEqual(Object.keys(bin), ['sms-simulator'], 'npx runs the only command by the package name');
    const program = join('node_modules', name, bin['sms-simulator'] ?? '');
    const started = spawn(process.execPath, [program, '--port', '0', '--wait-ms', '0'], {
      cwd: installOnce(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    let output = '';
    for await (const chunk of started.stdout.setEncoding('utf8')) {
      output += chunk;
      if (output.includes('Stop with')) break;
    }
    const read = (label: string): string => new RegExp(`^${label} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
    assert.match(read('Base URL'), /^http:\/\/127\.0\.0\.1:\d+$/);

    const text = await (await fetch(read('Page'))).text();
    const loaded = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
    assert.ok(loaded.length > 5, loaded.join());
    for (const path of loaded) assert.equal((await fetch(new URL(path, read('Page')))).status, 200, path);
    const headers = { authorization: `Bearer ${read('API key')}` };
    assert.equal((await fetch(`${read('Base URL')}/api/1/sms/in`, { headers })).status, 204);

    const exit = once(started, 'exit');
    started.kill('SIGINT');
    assert.deepEqual(await exit, [0, null]);
  });
});
