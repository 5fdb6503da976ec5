import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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

/** Forwards one path and nothing else, as the nginx settings of the page do. */
async function startReverseProxy(target: string): Promise<Server> {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url?.split('?')[0] !== path) return void outgoing.writeHead(404).end();
    const { method, headers } = incoming;
    const forwarded = request(`${target}${incoming.url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('docs/receiving.md', () => {
  let nodeRed: NodeRedProcess;
  let proxy: Server;
  let publicUrl: string;

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
    proxy = await startReverseProxy(nodeRed.url);
    publicUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });

  after(async () => {
    proxy?.close();
    await nodeRed?.stop();
  });

  for (const [name, command] of [
    ['receiving.md', /^curl .*$/m.exec(page)?.[0]],
    ['troubleshooting.md', /^curl .*$/m.exec(read('troubleshooting.md'))?.[0]],
  ] as const) {
    it(`tests a callback with the command of ${name}: 400, 401 or 404`, async function () {
      assert.ok(command, `there is no curl in ${name}`);
      const statusOf = async (token: string, at = path): Promise<string> => {
        const line = command
          .replace('<URL>', 'https://flows.example.com/sms/callback?token=<token>')
          .replace('https://flows.example.com', publicUrl)
          .replace('/sms/callback', at)
          .replace('<token>', token);
        const { stdout } = await run('sh', ['-c', line]);
        return stdout.split(' ')[1] ?? '';
      };
      try {
        assert.equal(await statusOf('the-token'), '400');
        assert.equal(await statusOf('another'), '401');
        assert.equal(await statusOf('the-token', '/sms/wrong'), '404', 'another path');
        assert.equal(await statusOf('the-token', '/sms/callback2'), '404', 'a longer path');
        assert.equal(await statusOf('the-token', '/flows'), '404', 'the editor');
      } catch (error) {
        if ((error as { code?: unknown }).code !== 127) throw error;
        skip(this, 'curl is not installed');
      }
    });
  }

  it('keeps the token out of the logs of both proxies', () => {
    assert.equal(directive('access_log'), 'off');
    assert.equal(directive('error_log'), '/dev/null');
    assert.match(page, /exclude http\.log\.error/);
  });

  it('lets a proxy pass callbacks of 256 KiB', () => {
    assert.equal(path, '/sms/callback');
    assert.equal(directive('client_max_body_size'), '256k');
    assert.match(page, /max_size 256KB/);
  });
});
