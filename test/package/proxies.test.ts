import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { limits } from '../../nodes/limits';
import { type NodeRedProcess, startNodeRed } from '../node-red-process';
import { skip } from '../skip';
import { root } from './packed';

const run = promisify(execFile);
const read = (page: string): string => readFileSync(join(root, 'docs', page), 'utf8');
const page = read('proxies.md');
const nginx = /```nginx\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
const directive = (name: string): string => new RegExp(`${name} (\\S+?);`).exec(nginx)?.[1] ?? '';
const path = /location = (\S+)/.exec(nginx)?.[1] ?? '';

/** Does what the page has nginx do: forwards one path, and nothing else. */
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

describe('docs/proxies.md', () => {
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
    ['proxies.md', /^curl .*$/m.exec(page)?.[0]],
    ['troubleshooting.md', /`(curl -i -X POST '<URL>')`/.exec(read('troubleshooting.md'))?.[1]],
  ] as const) {
    it(`and the command in ${name} that tries a callback from outside: 400 is well, 401 the token, 404 the path`, async function () {
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
        assert.equal(await statusOf('the-token', '/sms/wrong'), '404', 'a path that the node does not have');
        assert.equal(await statusOf('the-token', '/sms/callback2'), '404', 'a path that begins as the one of the node');
        assert.equal(await statusOf('the-token', '/flows'), '404', 'the editor');
      } catch (error) {
        if ((error as { code?: unknown }).code !== 127) throw error;
        skip(this, 'curl is not installed');
      }
    });
  }

  it('has neither proxy write the token to its logs', () => {
    assert.equal(directive('access_log'), 'off');
    assert.equal(directive('error_log'), '/dev/null');
    assert.match(page, /exclude http\.log\.error/);
  });

  it('lets as much through as the node takes, and waits longer than the node waits for the flow', () => {
    assert.equal(path, '/sms/callback');
    assert.equal(directive('client_max_body_size'), '256k');
    assert.match(page, /max_size 256KB/);
    assert.ok(Number.parseInt(directive('proxy_read_timeout'), 10) > limits['sms-callback-in'].ackTimeout.byDefault);
    assert.match(page, new RegExp(`\\(${limits['sms-callback-in'].ackTimeout.byDefault} seconds by default\\)`));
  });
});
