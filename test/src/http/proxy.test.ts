import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { SmsError } from '../../../src/errors';
import { type Connections, createConnections, type TlsOptions } from '../../../src/http/connections';
import { createExchange } from '../../../src/http/exchange';
import { ProxyFailure } from '../../../src/http/failure';
import { findProxy, type ProxyRules } from '../../../src/http/proxy';
import { createTunnel } from '../../../src/http/tunnel';
import { Closing } from '../closing';
import { createSelfSigned, startRawService, startSocketService } from '../raw-service';

describe('a proxy', () => {
  const closing = new Closing();
  afterEach(() => closing.run());

  function open(baseUrl: string, proxyUrl: string, tls?: TlsOptions): Connections {
    const connections = createConnections({ baseUrl, proxy: { url: proxyUrl }, ...(tls && { tls }) });
    return closing.add(connections, (it) => it.destroy());
  }

  function call(baseUrl: string, connections: Connections, timeoutMs = 5_000) {
    const exchange = createExchange({ baseUrl, authentication: { type: 'bearer', apiKey: 'key' }, connections });
    return exchange({ method: 'POST', path: '/x', parameters: [], timeoutMs, effect: 'send' });
  }

  async function failure(answer: Promise<unknown>): Promise<SmsError> {
    const error = await answer.then(
      () => assert.fail('resolved'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof SmsError);
    return error;
  }

  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  for (const [how, end] of [
    ['closes the connection', (socket: Socket) => socket.end()],
    ['resets the connection', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    it(`gets one request and is named in the error if it ${how} at CONNECT`, async () => {
      const proxy = await startSocketService(closing, (socket) => socket.once('data', () => end(socket)));
      const connections = open('https://sms.test', proxy.baseUrl);
      const error = await failure(call('https://sms.test', connections));
      assert.deepEqual([error.code, error.params.detail], ['SMS_UNREACHABLE', 'ECONNRESET of the proxy']);
      await pause(50);
      assert.equal(proxy.connections.length, 1);
      await connections.close();
    });
  }

  for (const status of [302, 403, 407, 502] as const) {
    it(`is named with its status if it refuses a tunnel with ${status}`, async () => {
      const proxy = await startSocketService(closing, (socket) => {
        socket.once('data', () => socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: 2\r\n\r\nno`));
      });
      const error = await failure(call('https://sms.test', open('https://sms.test', proxy.baseUrl)));
      assert.deepEqual([error.code, error.params.detail], ['SMS_UNREACHABLE', `HTTP ${status} of the proxy`]);
      const wishes: Record<number, RegExp> = { 403: /does not allow this address/, 407: /needs a user name/ };
      assert.match(error.message, wishes[status] ?? /Check the base URL, the network and the proxy/);
      if (wishes[status]) assert.doesNotMatch(error.message, /base URL|network/);
      const [socket] = proxy.connections;
      if (socket && !socket.closed) await once(socket, 'close');
    });
  }

  it('is a server without TLS if it answers a tunnel with a page', async () => {
    const proxy = await startSocketService(closing, (socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n<h1>no</h1>'));
    });
    const error = await failure(call('https://sms.test', open('https://sms.test', proxy.baseUrl)));
    assert.equal(error.reason, 'noTls');
  });

  it('is not quoted if it does not speak HTTP', async () => {
    const proxy = await startSocketService(closing, (socket) => {
      socket.once('data', (data) => socket.end(`what is this: ${data}`));
    });
    const error = await failure(call('https://sms.test', open('https://sms.test', proxy.baseUrl)));
    assert.match(String(error.params.detail), /^HPE_\w+ of the proxy$/);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /what is this|rawPacket/);
  });

  it('fails after a timeout if it does not answer', async () => {
    const proxy = await startSocketService(closing, (socket) => socket.resume());
    const address = findProxy('https://sms.test', { url: proxy.baseUrl }) ?? assert.fail();
    const tunnel = createTunnel(address, { timeout: 50, autoSelectFamilyAttemptTimeout: 50 }, () => assert.fail());
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

  it('passes on the status text of a forwarded request', async () => {
    const proxy = await startRawService(closing, (_incoming, outgoing) =>
      outgoing.writeHead(400, 'No such number').end(),
    );
    const { statusText } = await call('http://sms.test', open('http://sms.test', proxy.baseUrl));
    assert.equal(statusText, 'No such number');
  });

  it('keeps connections alive', async () => {
    const proxy = await startRawService(closing, (_incoming, outgoing) => outgoing.end('ok'));
    const connections = open('http://sms.test', proxy.baseUrl);
    for (let time = 0; time < 3; time++) {
      await call('http://sms.test', connections);
      await pause(10);
    }
    assert.equal(proxy.connections.length, 1);
  });

  it('is named if its own certificate is not trusted', async () => {
    const pair = createSelfSigned();
    const { baseUrl } = await startRawService(closing, () => {}, pair);
    const error = await failure(call('https://sms.test', open('https://sms.test', baseUrl, { ca: pair.cert })));
    assert.deepEqual([error.reason, error.params.detail], ['unreachable', 'DEPTH_ZERO_SELF_SIGNED_CERT of the proxy']);
  });

  for (const status of [200, 201, 204, 299]) {
    it(`opens a tunnel with ${status}`, async () => {
      const pair = createSelfSigned();
      const service = await startRawService(closing, (_incoming, outgoing) => outgoing.end('ok'), pair);
      const proxy = await startSocketService(closing, (socket) => {
        socket.once('data', () => {
          const onward = connect(service.port, '127.0.0.1', () => {
            socket.write(`HTTP/1.1 ${status} Fine\r\n\r\n`);
            socket.pipe(onward).pipe(socket);
          });
          socket.on('close', () => onward.destroy());
        });
      });
      const answer = await call(service.baseUrl, open(service.baseUrl, proxy.baseUrl, { ca: pair.cert }));
      assert.equal(answer.bytes.toString(), 'ok');
    });
  }

  describe('is found in the environment as by nodes of Node-RED, and', () => {
    const names = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'];
    const all = [...names, 'proxy', 'NR_PROXY_MODE'].flatMap((name) => [name, `npm_config_${name}`]);
    const variables = all.flatMap((name) => [name, name.toUpperCase()]);
    let before: Record<string, string | undefined>;
    beforeEach(() => {
      before = Object.fromEntries(variables.map((name) => [name, process.env[name]]));
      for (const name of variables) delete process.env[name];
    });
    afterEach(() => {
      for (const name of variables) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    });

    const cases: [title: string, env: Record<string, string>, rules: ProxyRules, proxy: string | undefined][] = [
      ['no proxy of another scheme', { http_proxy: 'http://a.test' }, {}, undefined],
      ['all_proxy', { all_proxy: 'http://a.test' }, {}, 'a.test'],
      ['no SOCKS proxy', { all_proxy: 'socks5://a.test' }, {}, undefined],
      ['npm_config_proxy', { npm_config_proxy: 'http://a.test', all_proxy: 'http://b.test' }, {}, 'a.test'],
      ['https_proxy before these', { npm_config_proxy: 'http://a.test', HTTPS_PROXY: 'b.test' }, {}, 'b.test'],
      ['npm_config_https_proxy first', { npm_config_https_proxy: 'a.test', https_proxy: 'b.test' }, {}, 'a.test'],
      ['no variables of npm', { npm_config_proxy: 'http://a.test' }, { excludeNpm: true }, undefined],
      ['npm_config_no_proxy', { all_proxy: 'a.test', npm_config_no_proxy: 'sms.test' }, {}, undefined],
      ['lower case first', { https_proxy: 'a.test', HTTPS_PROXY: 'b.test' }, {}, 'a.test'],
      ['upper case first', { https_proxy: 'a.test', HTTPS_PROXY: 'b.test' }, { favourUpperCase: true }, 'b.test'],
      ['lower case only', { HTTPS_PROXY: 'b.test' }, { lowerCaseOnly: true }, undefined],
      ['http_proxy in legacy mode', { http_proxy: 'a.test', https_proxy: 'b.test' }, { mode: 'legacy' }, 'a.test'],
      ['parts of addresses in legacy mode', { http_proxy: 'a.test', no_proxy: 'sms' }, { mode: 'legacy' }, undefined],
      ['NR_PROXY_MODE', { http_proxy: 'a.test', NR_PROXY_MODE: 'legacy' }, {}, 'a.test'],
    ];
    for (const [title, env, rules, proxy] of cases) {
      it(`uses ${title}`, () => {
        Object.assign(process.env, env);
        assert.equal(findProxy('https://sms.test', undefined, rules)?.url.hostname, proxy);
      });
    }
  });

  describe('is left out by no_proxy as by nodes of Node-RED', () => {
    const leavesOut = (noProxy: string, baseUrl: string) =>
      findProxy(baseUrl, { url: 'http://proxy.test', noProxy: noProxy.split('|') }) === undefined;
    for (const [noProxy, baseUrl, expected] of [
      ['', 'https://sms.example.com', false],
      ['*', 'https://sms.example.com', true],
      ['sms.example.com', 'https://sms.example.com/path', true],
      ['SMS.Example.com', 'https://sms.example.com', true],
      ['other.test, sms.example.com', 'https://sms.example.com', true],
      ['other.test|sms.example.com', 'https://sms.example.com', true],
      ['example.com', 'https://sms.example.com', false],
      ['.example.com', 'https://sms.example.com', true],
      ['*.example.com', 'https://sms.example.com', true],
      ['.example.com', 'https://example.com', false],
      ['*example.com', 'https://sms-example.com', true],
      ['sms.example.com:443', 'https://sms.example.com', true],
      ['sms.example.com:8443', 'https://sms.example.com', false],
      ['sms.example.com:8443', 'https://sms.example.com:8443', true],
      ['[::1]', 'http://[::1]:1880', true],
    ] as const) {
      it(`${expected ? 'excepts' : 'does not except'} ${baseUrl} for ${noProxy || 'a blank value'}`, () => {
        assert.equal(leavesOut(noProxy, baseUrl), expected);
      });
    }
  });
});
