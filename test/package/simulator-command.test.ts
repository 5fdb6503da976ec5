import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Program } from '../program';
import { installOnce, packPackage } from './packed';

describe('the command `sms-simulator`', () => {
  it('serves its page and answers polls until an interrupt', async () => {
    const { name, bin = {} } = packPackage().json;
    assert.deepEqual(Object.keys(bin), ['sms-simulator'], 'npx runs the only command by the package name');
    const command = join('node_modules', name, bin['sms-simulator'] ?? '');
    const args = [command, '--port', '0', '--wait-ms', '0'];
    const program = new Program(process.execPath, args, { cwd: installOnce() });
    await program.printed(/Stop with/);
    const read = (label: string): string => new RegExp(`^${label} +(\\S+)$`, 'm').exec(program.output)?.[1] ?? '';
    assert.match(read('Base URL'), /^http:\/\/127\.0\.0\.1:\d+$/);

    const text = await (await fetch(read('Page'))).text();
    const loaded = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
    assert.ok(loaded.length > 5, loaded.join());
    for (const path of loaded) assert.equal((await fetch(new URL(path, read('Page')))).status, 200, path);
    const headers = { authorization: `Bearer ${read('API key')}` };
    assert.equal((await fetch(`${read('Base URL')}/api/1/sms/in`, { headers })).status, 204);

    assert.deepEqual(await program.end('SIGINT'), { code: 0, signal: null });
  });
});
