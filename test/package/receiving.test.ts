import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type NodeRedProcess, startNodeRed } from '../node-red-process';
import { skip } from '../skip';
import { root } from './packed';

const run = promisify(execFile);
const read = (page: string): string => readFileSync(join(root, 'docs', page), 'utf8');
const page = read('receiving.md');
const nginx = /```nginx\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
const directive = (name: string): string => new RegExp(`${name} (\\S+?);`).exec(nginx)?.[1] ?? '';
const path = /location = (\S+)/.exec(nginx)?.[1] ?? '';

describe('docs/receiving.md', () => {
  let nodeRed: NodeRedProcess;

  before(async function () {
    this.timeout(60_000);
    nodeRed = await startNodeRed({
      flows: [
        { id: 'tab', type: 'tab' },
        { id: 'account', type: 'sms-account', baseUrl: 'http://127.0.0.1:9', credentials: { apiKey: 'key' } },
        {
          id: 'callback',
          type: 'sms-callback-in',
          z: 'tab',
          account: 'account',
          path: '/sms/callback',
          credentials: { token: 'the-token' },
          wires: [[], []],
        },
      ],
    });
  });

  after(() => nodeRed?.stop());

  it('tests a callback with the commands of two pages: 400, 401 or 404', async function () {
    for (const text of [page, read('troubleshooting.md')]) {
      const [command = assert.fail('no curl')] = /^curl .*$/m.exec(text) ?? [];
      const statusOf = async (token: string, at = path): Promise<string> => {
        const line = command
          .replace('<URL>', 'https://flows.example.com/sms/callback?token=<token>')
          .replace('https://flows.example.com', nodeRed.url)
          .replace('/sms/callback', at)
          .replace('<token>', token);
        const { stdout } = await run('sh', ['-c', line]);
        return stdout.split(' ')[1] ?? '';
      };
      try {
        assert.equal(await statusOf('the-token'), '400');
        assert.equal(await statusOf('another'), '401');
        assert.equal(await statusOf('the-token', '/sms/wrong'), '404', 'another path');
      } catch (error) {
        if ((error as { code?: unknown }).code !== 127) throw error;
        skip(this, 'curl is not installed');
      }
    }
  });

  it('shows proxy settings that log no token and pass callbacks of 256 KiB', () => {
    assert.equal(path, '/sms/callback');
    assert.equal(directive('access_log'), 'off');
    assert.equal(directive('error_log'), '/dev/null');
    assert.match(page, /exclude http\.log\.error/);
    assert.equal(directive('client_max_body_size'), '256k');
    assert.match(page, /max_size 256KB/);
  });
});
