import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { inspect } from 'node:util';
import { createConnections } from '../../../src/http/connections';
import { ProxyFailure } from '../../../src/http/failure';
import { findProxy, type ProxyRules } from '../../../src/http/proxy';
import { createTunnel } from '../../../src/http/tunnel';
import fc from '../../fast-check';
import { until } from '../../until';
import {
  createSelfSigned,
  findClosedPort,
  startProxyService,
  startRawService,
  startSocketService,
} from '../raw-service';
import { Caller, createTimeouts, failure, readEcho } from './exchange-caller';

const { getProxyForUrl } = require('@node-red/nodes/core/network/lib/proxyHelper') as {
  getProxyForUrl(url: string, rules: ProxyRules & { env: object }): string;
};

describe('a request through a proxy', () => {
  const caller = new Caller();
  const { closing, call, failsOnBoth, startEcho } = caller;
  const pair = createSelfSigned();
  const tls = { ca: pair.cert };
  const login = { username: 'pat', password: 'proxy-secret' };
  const authorization = `Basic ${Buffer.from('pat:proxy-secret').toString('base64')}`;
  /** Sends a request to a service through a proxy. No test reaches the service. */
  const callBehind = (url: string) => call('https://sms.test', { proxy: { url }, effect: 'send' });

  it('sends the proxy login only to the proxy', async () => {
    const proxy = await startProxyService(closing);
    const [plain, secure] = [await startEcho(), await startEcho(pair)];
    const options = { proxy: { url: proxy.baseUrl, ...login }, tls };
    const forwarded = readEcho(await call(plain.baseUrl, options));
    assert.deepEqual(proxy.forwarded, [`${plain.baseUrl}/x`]);
    assert.equal(forwarded.headers.authorization, 'Bearer key-3141592653');
    const tunnelled = readEcho(await call(secure.baseUrl, options));
    assert.deepEqual(proxy.tunnels, [`127.0.0.1:${secure.port}`]);
    assert.equal(tunnelled.headers['proxy-authorization'], undefined);
    await call(secure.baseUrl, { proxy: { url: proxy.baseUrl.replace('//', '//pat:proxy%2Dsecret@') }, tls });
    assert.deepEqual(proxy.authorizations, [authorization, authorization, authorization]);
  });

  it('returns the reason phrase of a forwarded answer', async () => {
    const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
      outgoing.writeHead(400, 'No such number').end();
    });
    assert.equal((await call('http://sms.test', { proxy: { url: baseUrl } })).statusText, 'No such number');
  });

  it('accepts any 2xx status as the start of a tunnel', async () => {
    const service = await startEcho(pair);
    const { baseUrl } = await startProxyService(closing, { status: 299 });
    assert.equal((await call(service.baseUrl, { proxy: { url: baseUrl }, tls })).statusCode, 200);
  });

  it('names a remedy if the proxy refuses the login', async () => {
    const forwarding = await startRawService(closing, (incoming, outgoing) => {
      incoming.resume();
      outgoing.writeHead(407, { 'proxy-authenticate': 'Basic realm="the proxy"' }).end('Who are you?');
    });
    const error = await failure(call('http://sms.test', { proxy: { url: forwarding.baseUrl }, effect: 'send' }));
    assert.equal(error.code, 'SMS_UNREACHABLE');
    assert.match(error.message, /^The proxy .* needs a user name and a password \(HTTP 407/);
  });

  it('names an unreachable proxy in the error', async () => {
    const proxy = { url: `http://127.0.0.1:${await findClosedPort()}` };
    const { baseUrl } = await startEcho();
    await failsOnBoth(baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { proxy });
    const { message } = await failure(call(baseUrl, { proxy }));
    for (const { host } of [new URL(baseUrl), new URL(proxy.url)]) assert.ok(message.includes(host), message);
  });

  for (const [how, end] of [
    ['closes the connection', (socket: Socket) => socket.end()],
    ['resets the connection', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    it(`sends CONNECT only once if the proxy ${how}`, async () => {
      let request = '';
      const onConnection = (socket: Socket) =>
        socket.once('data', (data) => {
          request += data;
          end(socket);
        });
      const proxy = await startSocketService(closing, onConnection);
      const error = await failure(callBehind(proxy.baseUrl));
      assert.deepEqual([error.code, error.params.detail], ['SMS_UNREACHABLE', 'ECONNRESET of the proxy']);
      assert.match(request, /^CONNECT sms\.test:443 /);
      assert.equal(proxy.connections.length, 1);
    });
  }

  for (const [status, remedy] of [
    [302, /Check the base URL, the network and the proxy/],
    [403, /^(?!.*base URL).*does not allow this address/],
    [407, /^(?!.*base URL).*needs a user name/],
  ] as const) {
    it(`reports status ${status} if the proxy refuses a tunnel`, async () => {
      const proxy = await startSocketService(closing, (socket) => {
        socket.once('data', () => socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: 2\r\n\r\nno`));
      });
      const error = await failure(callBehind(proxy.baseUrl));
      assert.deepEqual([error.code, error.params.detail], ['SMS_UNREACHABLE', `HTTP ${status} of the proxy`]);
      assert.match(error.message, remedy);
      await until(() => proxy.connections.every(({ closed }) => closed));
    });
  }

  it('reports that the server lacks TLS if a web page arrives in the tunnel', async () => {
    const proxy = await startSocketService(closing, (socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n<h1>no</h1>'));
    });
    assert.equal((await failure(callBehind(proxy.baseUrl))).reason, 'noTls');
  });

  it('does not quote a proxy answer that is not HTTP', async () => {
    const proxy = await startSocketService(closing, (socket) => {
      socket.once('data', (data) => socket.end(`what is this: ${data}`));
    });
    const error = await failure(callBehind(proxy.baseUrl));
    assert.match(String(error.params.detail), /^HPE_\w+ of the proxy$/);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /what is this|rawPacket/);
  });

  it('times out if the proxy does not answer', async () => {
    const { clock, expire } = createTimeouts();
    const proxy = await startSocketService(closing, (socket) => socket.resume().once('data', expire));
    const address = findProxy('https://sms.test', { url: proxy.baseUrl }) ?? assert.fail();
    const options = { timeout: 1_000, autoSelectFamilyAttemptTimeout: 1_000 };
    const tunnel = createTunnel(address, options, () => assert.fail(), clock);
    const error = await new Promise((resolve) => {
      tunnel({ hostname: 'sms.test', host: 'sms.test', port: '', protocol: 'https:' }, (...[reason]) =>
        resolve(reason),
      );
    });
    assert.ok(error instanceof ProxyFailure);
    assert.equal(error.message, 'ETIMEDOUT of the proxy');
    const [socket] = proxy.connections;
    if (socket && !socket.closed) await once(socket, 'close');
  });

  it('names the proxy in the error about its certificate', async () => {
    const { baseUrl } = await startRawService(closing, () => {}, pair);
    const error = await failure(call('https://sms.test', { proxy: { url: baseUrl }, tls, effect: 'send' }));
    assert.deepEqual([error.reason, error.params.detail], ['unreachable', 'DEPTH_ZERO_SELF_SIGNED_CERT of the proxy']);
  });

  it('does not quote an invalid proxy address in the error', async () => {
    for (const url of ['proxy-secret', 'socks5://pat:proxy-secret@127.0.0.1', 'http://pat:proxy-secret@', '']) {
      const open = () => createConnections({ baseUrl: 'https://sms.example.com', proxy: { url } });
      assert.equal((await failure(Promise.resolve().then(open))).reason, 'proxyInvalid', url);
    }
  });

  describe('from the environment', () => {
    const clear = () => {
      for (const name of Object.keys(process.env)) if (/proxy/i.test(name)) delete process.env[name];
    };
    beforeEach(() => {
      const before = { ...process.env };
      clear();
      closing.add(clear, () => {
        clear();
        Object.assign(process.env, before);
      });
    });

    it('uses the same proxy as the HTTP nodes of Node-RED', () => {
      const proxies = fc.constantFrom('a.test', 'http://b.test:3128', 'https://c.test');
      const exceptions = fc.constantFrom(
        ...['*', 'SMS.Example.com', 'other.test,sms.example.com', 'example.com', '.example.com', '*.example.com'],
        ...['*example.com', 'sms.example.com:443', 'sms.example.com:8443', '[::1]', 'sms'],
      );
      const names = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy', 'npm_config_proxy']
        .flatMap((name) => [name, `npm_config_${name}`, name.toUpperCase()])
        .map((name) => [name, /no_proxy/i.test(name) ? exceptions : proxies] as const);
      const environments = fc.record(Object.fromEntries(names), { requiredKeys: [] });
      const addresses = fc.constantFrom(
        ...['https://sms.example.com', 'http://sms.example.com', 'https://example.com', 'https://sms-example.com'],
        ...['https://sms.example.com.test', 'http://[::1]:1880'],
      );
      const flag = fc.boolean();
      const rules = fc.record(
        { mode: fc.constantFrom('strict', 'legacy'), favourUpperCase: flag, lowerCaseOnly: flag, excludeNpm: flag },
        { requiredKeys: [] },
      );
      fc.assert(
        fc.property(environments, rules, addresses, (env, rule, baseUrl) => {
          clear();
          Object.assign(process.env, env);
          const [, host] = /^(?:https?:\/\/)?([^:]+)/.exec(getProxyForUrl(baseUrl, { ...rule, env })) ?? [];
          assert.equal(findProxy(baseUrl, undefined, rule)?.url.hostname, host);
        }),
        { numRuns: 2_000 },
      );
    });

    it('prefers NR_PROXY_MODE to the mode in settings.js', () => {
      process.env.all_proxy = 'socks5://a.test';
      assert.equal(findProxy('https://sms.test'), undefined);
      Object.assign(process.env, { http_proxy: 'b.test', NR_PROXY_MODE: 'legacy' });
      assert.equal(findProxy('https://sms.test', undefined, { mode: 'strict' })?.url.hostname, 'b.test');
    });
  });
});
