import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { createConnections } from '../../../src/http/connections';
import { Closing } from '../closing';
import { createSelfSigned, findClosedPort, type RawService, startRawService } from '../raw-service';
import { Caller, failure, readEcho } from './exchange-caller';

describe('a request', () => {
  const closing = new Closing();
  afterEach(() => closing.run());
  const caller = new Caller(closing);
  const { call, failsOnBoth, startEcho } = caller;

  describe('through a proxy', () => {
    interface Proxy extends RawService {
      forwarded: string[];
      tunnels: string[];
      authorizations: (string | undefined)[];
    }

    async function startProxy(requiredAuthorization?: string): Promise<Proxy> {
      const forwarded: string[] = [];
      const tunnels: string[] = [];
      const authorizations: (string | undefined)[] = [];
      const service = await startRawService(closing, (incoming, outgoing) => {
        authorizations.push(incoming.headers['proxy-authorization']);
        forwarded.push(incoming.url ?? '');
        const { 'proxy-authorization': _, ...headers } = incoming.headers;
        const onward = request(incoming.url ?? '', { method: incoming.method, headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(outgoing);
        });
        onward.on('error', () => outgoing.writeHead(502).end());
        incoming.pipe(onward);
      });
      return { ...service, forwarded, tunnels, authorizations, ...(await addTunnels()) };

      async function addTunnels() {
        const tunnel = createServer((socket) => {
          socket.on('error', () => {});
          socket.once('data', (head) => {
            const text = head.toString('latin1');
            const target = /^CONNECT (\S+):(\d+)/.exec(text);
            if (!target) {
              const onward = connect(service.port, '127.0.0.1', () => onward.write(head));
              onward.on('error', () => socket.destroy());
              socket.pipe(onward).pipe(socket);
              return;
            }
            const authorization = /^proxy-authorization: (.*)$/im.exec(text)?.[1]?.trim();
            authorizations.push(authorization);
            tunnels.push(`${target[1]}:${target[2]}`);
            if (requiredAuthorization !== undefined && authorization !== requiredAuthorization) {
              socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n');
              return;
            }
            const onward = connect(Number(target[2]), '127.0.0.1', () => {
              socket.write('HTTP/1.1 200 OK\r\n\r\n');
              socket.pipe(onward).pipe(socket);
            });
            onward.on('error', () => socket.destroy());
            socket.on('close', () => onward.destroy());
          });
        });
        const sockets = new Set<Socket>();
        tunnel.on('connection', (socket: Socket) => sockets.add(socket));
        tunnel.listen(0, '127.0.0.1');
        await once(tunnel, 'listening');
        closing.add(tunnel, async () => {
          const closed = once(tunnel, 'close');
          tunnel.close();
          for (const socket of sockets) socket.destroy();
          await closed;
        });
        const { port } = tunnel.address() as { port: number };
        return { port, baseUrl: `http://127.0.0.1:${port}` };
      }
    }

    const user = `Basic ${Buffer.from('pat:proxy-secret').toString('base64')}`;

    it('forwards http and tunnels https, and keeps its login to the proxy', async () => {
      const proxy = await startProxy(user);
      const options = { proxy: { url: proxy.baseUrl, username: 'pat', password: 'proxy-secret' } };
      const plain = await startEcho();
      const seen = readEcho(await call(plain.baseUrl, options));
      assert.deepEqual(proxy.forwarded, [`${plain.baseUrl}/x`]);
      assert.equal(seen.headers.authorization, 'Bearer key-3141592653');
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const tunnelled = readEcho(await call(secure.baseUrl, { ...options, tls: { ca: pair.cert } }));
      assert.deepEqual(proxy.tunnels, [`127.0.0.1:${secure.port}`]);
      assert.equal(tunnelled.headers['proxy-authorization'], undefined);
      assert.deepEqual(proxy.authorizations, [user, user]);
    });

    it('reads user and password from the address', async () => {
      const proxy = await startProxy(user);
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const url = proxy.baseUrl.replace('//', '//pat:proxy%2Dsecret@');
      await call(secure.baseUrl, { proxy: { url }, tls: { ca: pair.cert } });
      assert.deepEqual(proxy.authorizations, [user]);
    });

    it('is SMS_UNREACHABLE if it refuses, without its password', async () => {
      const proxy = await startProxy('Basic other');
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const options = {
        proxy: { url: proxy.baseUrl, username: 'pat', password: 'proxy-secret' },
        tls: { ca: pair.cert },
      };
      await failsOnBoth(secure.baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', options);
    });

    it('is SMS_UNREACHABLE if it answers plain http with 407', async () => {
      const proxy = await startRawService(closing, (incoming, outgoing) => {
        incoming.resume();
        outgoing.writeHead(407, { 'proxy-authenticate': 'Basic realm="the proxy"' }).end('Who are you?');
      });
      const { baseUrl } = await startEcho();
      await failsOnBoth(baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { proxy: { url: proxy.baseUrl } });
      assert.match(
        (await failure(call(baseUrl, { proxy: { url: proxy.baseUrl } }))).message,
        /^The proxy .* needs a user name and a password \(HTTP 407/,
      );
    });

    it('is SMS_UNREACHABLE if the proxy is unreachable, and names it', async () => {
      const proxy = { url: `http://127.0.0.1:${await findClosedPort()}` };
      const { baseUrl } = await startEcho();
      await failsOnBoth(baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { proxy });
      const { message } = await failure(call(baseUrl, { proxy }));
      for (const { host } of [new URL(baseUrl), new URL(proxy.url)]) assert.ok(message.includes(host), message);
    });

    it('does not use the proxy for hosts in noProxy', async () => {
      const proxy = await startProxy();
      const { baseUrl } = await startEcho();
      await call(baseUrl, { proxy: { url: proxy.baseUrl, noProxy: ['sms.example.com', '127.0.0.1'] } });
      assert.deepEqual(proxy.forwarded, []);
      await call(baseUrl, { proxy: { url: proxy.baseUrl, noProxy: ['sms.example.com'] } });
      assert.equal(proxy.forwarded.length, 1);
    });

    it('refuses an invalid address without quoting it', async () => {
      for (const url of ['proxy-secret', 'socks5://pat:proxy-secret@127.0.0.1', 'http://pat:proxy-secret@', '']) {
        const error = await failure(
          Promise.resolve().then(() => createConnections({ baseUrl: 'https://sms.example.com', proxy: { url } })),
        );
        assert.equal(error.reason, 'proxyInvalid', url);
      }
    });

    describe('in the environment', () => {
      const names = ['http_proxy', 'https_proxy', 'no_proxy'].flatMap((name) => [name, name.toUpperCase()]);
      let before: Record<string, string | undefined>;
      beforeEach(() => {
        before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
        for (const name of names) delete process.env[name];
      });
      afterEach(() => {
        for (const name of names) {
          if (before[name] === undefined) delete process.env[name];
          else process.env[name] = before[name];
        }
      });

      for (const spell of [(name: string) => name, (name: string) => name.toUpperCase()]) {
        it(`${spell('http_proxy')}, ${spell('https_proxy')} and ${spell('no_proxy')} apply`, async () => {
          const proxy = await startProxy();
          const pair = createSelfSigned();
          const [plain, secure] = await Promise.all([startEcho(), startEcho(pair)]);
          const tls = { ca: pair.cert };
          await call(plain.baseUrl);
          process.env[spell('http_proxy')] = proxy.baseUrl;
          await call(plain.baseUrl);
          assert.deepEqual(proxy.forwarded, [`${plain.baseUrl}/x`]);
          process.env[spell('https_proxy')] = proxy.baseUrl;
          await call(secure.baseUrl, { tls });
          assert.deepEqual(proxy.tunnels, [`127.0.0.1:${secure.port}`]);
          process.env[spell('no_proxy')] = 'sms.example.com,127.0.0.1';
          await call(plain.baseUrl);
          await call(secure.baseUrl, { tls });
          assert.deepEqual([proxy.forwarded.length, proxy.tunnels.length], [1, 1]);
        });
      }

      it('is refused without quoting it if its address is invalid', async () => {
        process.env.https_proxy = 'not a url proxy-secret';
        assert.equal(
          (await failure(Promise.resolve().then(() => createConnections({ baseUrl: 'https://sms.example.com' }))))
            .reason,
          'proxyInvalid',
        );
      });
    });
  });
});
