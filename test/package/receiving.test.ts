import assert from 'node:assert/strict';
import { type NodeRedProcess, startNodeRed } from '../node-red-process';
import { readPage, runCommands } from './pages';

const page = readPage('docs/receiving.md');
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

  it('has a command that detects a wrong token or a wrong path', async function () {
    for (const text of [page, readPage('docs/troubleshooting.md')]) {
      const [command = assert.fail('no curl')] = /^curl .*$/m.exec(text) ?? [];
      const statusOf = async (token: string, at = path): Promise<string> => {
        const line = command
          .replace('<URL>', 'https://flows.example.com/sms/callback?token=<token>')
          .replace('https://flows.example.com', nodeRed.url)
          .replace('/sms/callback', at)
          .replace('<token>', token);
        return (await runCommands(this, line)).split(' ')[1] ?? '';
      };
      assert.equal(await statusOf('the-token'), '400');
      assert.equal(await statusOf('another'), '401');
      assert.equal(await statusOf('the-token', '/sms/wrong'), '404', 'another path');
    }
  });

  it('shows safe proxy settings for callbacks of up to 256 KiB', () => {
    assert.equal(path, '/sms/callback');
    assert.equal(directive('access_log'), 'off');
    assert.equal(directive('error_log'), '/dev/null');
    assert.match(page, /exclude http\.log\.error/);
    assert.equal(directive('client_max_body_size'), '256k');
    assert.match(page, /max_size 256KB/);
  });
});
