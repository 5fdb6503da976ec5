import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { isSmsError, SmsError, type SmsErrorCode } from '../../../src/errors';
import { createConnections, type TlsOptions } from '../../../src/http/connections';
import { type Answer, type Call, createExchange } from '../../../src/http/exchange';
import type { ProxyOptions } from '../../../src/http/proxy';
import { type Authentication, parseAuthentication, parseBaseUrl } from '../../../src/login';
import { Closing } from '../closing';
import { createSelfSigned, findClosedPort, type RawService, startRawService, startSocketService } from '../raw-service';

const bearer: Authentication = { type: 'bearer', apiKey: 'key-3141592653' };
const basic: Authentication = { type: 'basic', userId: 'ann', password: 'pässwörd-271828' };
const form: Authentication = { type: 'form', userId: 'ann', password: 'p&ss=w rd-161803' };
const secrets = ['3141592653', '271828', '161803', Buffer.from('ann:').toString('base64').slice(0, 5), 'proxy-secret'];

describe('http', () => {
  const closing = new Closing();
  afterEach(() => closing.run());

  function open(baseUrl: string, options: { tls?: TlsOptions; proxy?: ProxyOptions } = {}) {
    return closing.add(createConnections({ baseUrl, ...options }), (connections) => connections.destroy());
  }

  interface Options extends Partial<Call> {
    authentication?: Authentication;
    tls?: TlsOptions;
    proxy?: ProxyOptions;
    connections?: ReturnType<typeof createConnections>;
  }

  function call(baseUrl: string, options: Options = {}): Promise<Answer> {
    const { authentication = bearer, tls, proxy, connections, ...rest } = options;
    const pool = connections ?? open(baseUrl, { ...(tls && { tls }), ...(proxy && { proxy }) });
    const exchange = createExchange({ baseUrl, authentication, connections: pool });
    return exchange({
      method: 'POST',
      path: '/x',
      parameters: [['a', '1']],
      timeoutMs: 10_000,
      effect: 'read',
      ...rest,
    });
  }

  async function failure(promise: Promise<unknown>): Promise<SmsError> {
    const error = await promise.then(
      () => assert.fail('resolved'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof SmsError, inspect(error));
    for (const secret of secrets) {
      for (const text of [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), String(error.stack)]) {
        assert.ok(!text.includes(secret), `${secret} is in ${text}`);
      }
    }
    return error;
  }

  async function failsOnBoth(baseUrl: string, onSend: SmsErrorCode, onRead: SmsErrorCode, options: Options = {}) {
    assert.equal((await failure(call(baseUrl, { ...options, effect: 'send' }))).code, onSend);
    assert.equal((await failure(call(baseUrl, { ...options, effect: 'read' }))).code, onRead);
  }

  /** Answers with what it was asked. */
  function startEcho(tls?: ReturnType<typeof createSelfSigned>): Promise<RawService> {
    return startRawService(
      closing,
      async (incoming, outgoing) => {
        let body = '';
        for await (const chunk of incoming) body += chunk;
        const { method, url, headers } = incoming;
        outgoing.end(JSON.stringify({ method, url, body, headers }));
      },
      tls,
    );
  }

  const read = ({ bytes }: Answer) =>
    JSON.parse(bytes.toString()) as { method: string; url: string; body: string; headers: Record<string, string> };

  describe('parseBaseUrl (baseUrl)', () => {
    it('keeps the path and drops trailing slashes', () => {
      assert.equal(parseBaseUrl('https://sms.example.com'), 'https://sms.example.com');
      assert.equal(parseBaseUrl('https://sms.example.com/'), 'https://sms.example.com');
      assert.equal(
        parseBaseUrl(' https://SMS.example.com:8443/some/path// '),
        'https://sms.example.com:8443/some/path',
      );
    });

    it('refuses plain http to any host but this machine, unless it is allowed', () => {
      for (const host of ['sms.example.com', '127.0.0.1.example.com', 'localhost.example.com', '10.0.0.1', '[::2]']) {
        assert.throws(
          () => parseBaseUrl(`http://${host}`),
          (error: unknown) => isSmsError(error, 'SMS_CONFIG') && error.reason === 'baseUrlHttp',
          host,
        );
        assert.equal(parseBaseUrl(`http://${host}/a/`, true), `http://${host}/a`);
      }
      for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'a.localhost', 'LOCALHOST', '127.1']) {
        assert.doesNotThrow(() => parseBaseUrl(`http://${host}:1880`), host);
      }
    });

    it('refuses what is no base address, and never repeats the credentials in it', async () => {
      for (const text of [
        'https://ann:3141592653@sms.example.com',
        'https://ann@sms.example.com',
        'https://sms.example.com/?key=3141592653',
        'https://sms.example.com/#3141592653',
        'sms.example.com',
        'ftp://sms.example.com',
        'javascript:alert(1)',
        'https://',
        '//sms.example.com',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED leaves it as it is
        'https://sms.example.com/${PART}/x',
      ]) {
        const error = await failure(Promise.resolve().then(() => parseBaseUrl(text, true)));
        assert.equal(error.code, 'SMS_CONFIG', text);
        assert.equal(error.reason, 'baseUrlInvalid', text);
      }
      for (const text of [undefined, '', '  ']) {
        assert.throws(() => parseBaseUrl(text), { code: 'SMS_CONFIG', reason: 'baseUrlMissing' });
      }
    });
  });

  describe('parseAuthentication (§5)', () => {
    it('reads each of the three ways and takes a key for the default', () => {
      const credentials = { apiKey: ' key \n', userId: 'ann', password: ' secret ' };
      assert.deepEqual(parseAuthentication('bearer', credentials), { type: 'bearer', apiKey: 'key' });
      assert.deepEqual(parseAuthentication(undefined, credentials), { type: 'bearer', apiKey: 'key' });
      assert.deepEqual(parseAuthentication('basic', credentials), {
        type: 'basic',
        userId: 'ann',
        password: ' secret ',
      });
      assert.deepEqual(parseAuthentication('form', credentials), { type: 'form', userId: 'ann', password: ' secret ' });
    });

    it('misses what is not there', () => {
      for (const [type, credentials, reason] of [
        ['bearer', {}, 'apiKeyMissing'],
        ['bearer', { apiKey: '  ', userId: 'ann', password: 'x' }, 'apiKeyMissing'],
        ['basic', { apiKey: 'key', password: 'x' }, 'userIdMissing'],
        ['form', { userId: 'ann', password: '' }, 'passwordMissing'],
        ['basic', { userId: ' \t', password: 'x' }, 'userIdMissing'],
        ['form', { userId: 'ann', password: '  ' }, 'passwordMissing'],
      ] as const) {
        assert.throws(() => parseAuthentication(type, credentials), { code: 'SMS_CONFIG', reason });
      }
    });

    it('refuses a user name with a colon where the first one ends it', () => {
      const credentials = { userId: 'a:b', password: 'x' };
      assert.throws(() => parseAuthentication('basic', credentials), { code: 'SMS_CONFIG', reason: 'userIdColon' });
      assert.equal(parseAuthentication('form', credentials).type, 'form');
    });

    it('refuses an API key with characters that no header may carry, and does not repeat it', async () => {
      for (const apiKey of ['3141592653\r\nx: y', '3141592653 x', '3141592653é', '3141592653\u0000', '3141592653…']) {
        const error = await failure(Promise.resolve().then(() => parseAuthentication('bearer', { apiKey })));
        assert.equal(error.reason, 'apiKeyInvalid');
      }
    });
  });

  describe('a request', () => {
    it('carries the key as Bearer and its parameters in the body (§5, §4)', async () => {
      const { baseUrl } = await startEcho();
      const { method, url, body, headers } = read(await call(baseUrl));
      assert.deepEqual([method, url, body], ['POST', '/x', 'a=1']);
      assert.equal(headers.authorization, 'Bearer key-3141592653');
      assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
      assert.equal(headers['content-length'], '3');
      assert.equal(headers['accept-encoding'], 'identity');
    });

    it('carries Basic credentials in UTF-8, and the query of a GET has none of them', async () => {
      const { baseUrl } = await startEcho();
      const { method, url, body, headers } = read(await call(baseUrl, { authentication: basic, method: 'GET' }));
      assert.deepEqual([method, url, body], ['GET', '/x?a=1', '']);
      assert.equal(headers.authorization, `Basic ${Buffer.from('ann:pässwörd-271828').toString('base64')}`);
    });

    it('carries form credentials in the body of a POST and in the URL of a GET only', async () => {
      const { baseUrl } = await startEcho();
      const post = read(await call(baseUrl, { authentication: form }));
      assert.equal(post.url, '/x');
      assert.deepEqual(
        [...new URLSearchParams(post.body)],
        [
          ['userId', 'ann'],
          ['password', 'p&ss=w rd-161803'],
          ['a', '1'],
        ],
      );
      assert.equal(post.headers.authorization, undefined);
      const get = read(await call(baseUrl, { authentication: form, method: 'GET' }));
      assert.equal(get.body, '');
      assert.equal(new URL(get.url, baseUrl).searchParams.get('password'), 'p&ss=w rd-161803');
    });

    it('goes below the path of the base URL', async () => {
      const { baseUrl } = await startEcho();
      for (const suffix of ['/deep/path', '/deep/path/']) {
        assert.equal(read(await call(parseBaseUrl(baseUrl + suffix))).url, '/deep/path/x');
      }
      assert.equal(read(await call(`${baseUrl}/`, { method: 'GET', parameters: [] })).url, '/x');
    });

    it('keeps connections alive and uses them again', async () => {
      const { baseUrl, connections } = await startEcho();
      const pool = open('http://127.0.0.1');
      for (let index = 0; index < 20; index++) await call(baseUrl, { connections: pool });
      // One may still be on its way back into the pool as the next request asks for it.
      assert.ok(connections.length <= 2, `${connections.length} connections`);
    });

    it('does not wait for another one that takes its time', async () => {
      let release = () => {};
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        if (incoming.url === '/slow') release = () => outgoing.end('slow');
        else outgoing.end('quick');
      });
      const pool = open('http://127.0.0.1');
      const slow = call(baseUrl, { connections: pool, path: '/slow' });
      assert.equal((await call(baseUrl, { connections: pool })).bytes.toString(), 'quick');
      release();
      assert.equal((await slow).bytes.toString(), 'slow');
    });
  });

  describe('connections', () => {
    it('that the service has closed are replaced', async () => {
      const { baseUrl, connections } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('Connection', 'close');
        outgoing.end('ok');
      });
      const pool = open(baseUrl);
      for (let round = 0; round < 3; round++) {
        const answers = await Promise.all([1, 2, 3].map(() => call(baseUrl, { connections: pool })));
        assert.deepEqual(
          answers.map(({ bytes }) => bytes.toString()),
          ['ok', 'ok', 'ok'],
        );
      }
      assert.equal(connections.length, 9);
    });

    it('that the service closes without a word after each answer are replaced, though the next request is made at once', async () => {
      let connections = 0;
      const server = createServer((socket) => {
        connections++;
        socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
      }).listen(0, '127.0.0.1');
      closing.add(server, (it) => it.close());
      await once(server, 'listening');
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const pool = open(baseUrl);
      for (let index = 0; index < 50; index++) await call(baseUrl, { connections: pool, effect: 'send' });
      assert.equal(connections, 50);
    });

    it('that could not be opened are tried anew, when the service is back too', async () => {
      const port = await findClosedPort();
      const baseUrl = `http://127.0.0.1:${port}`;
      const pool = open(baseUrl);
      for (let index = 0; index < 3; index++) {
        assert.equal((await failure(call(baseUrl, { connections: pool }))).code, 'SMS_UNREACHABLE');
      }
      const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback';
      const server = createServer((socket) => socket.once('data', () => socket.end(answer))).listen(port, '127.0.0.1');
      closing.add(server, (it) => it.close());
      await once(server, 'listening');
      assert.equal((await call(baseUrl, { connections: pool })).bytes.toString(), 'back');
    });

    it('give each address of a name the time that a slow network takes', async () => {
      const net: { connect: typeof connect } = require('node:net');
      const { connect: original } = net;
      const seen: unknown[] = [];
      closing.add(net, (it) => Object.assign(it, { connect: original }));
      const watched = (options: NetConnectOpts) => {
        seen.push('autoSelectFamilyAttemptTimeout' in options && options.autoSelectFamilyAttemptTimeout);
        return original(options);
      };
      Object.assign(net, { connect: watched });
      const { baseUrl } = await startEcho();
      await call(baseUrl);
      assert.deepEqual(seen, [2_500]);
    });

    it('go to the service that each request names', async () => {
      const services = await Promise.all([startEcho(), startEcho()]);
      const pool = open('http://127.0.0.1');
      for (const { baseUrl } of [...services, ...services]) {
        const { host } = read(await call(baseUrl, { connections: pool })).headers;
        assert.equal(`http://${host}`, baseUrl);
      }
    });

    it('that fail for a reason without a code say nothing of it', async () => {
      const pool = open('http://127.0.0.1');
      pool.dispatch = (_options, handler) => {
        handler.onResponseError?.(undefined as never, new Error('whatever was read'));
        return false;
      };
      const { params } = await failure(call('http://127.0.0.1', { connections: pool }));
      assert.equal(params.detail, 'connection failed');
    });

    it('that are closed let what runs finish, and begin nothing more', async () => {
      let onAsked: (release: () => void) => void;
      const asked = new Promise<() => void>((resolve) => {
        onAsked = resolve;
      });
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        onAsked(() => outgoing.end('late'));
      });
      const pool = open(baseUrl);
      const running = call(baseUrl, { connections: pool });
      const release = await asked;
      const closed = pool.close();
      const error = await failure(call(baseUrl, { connections: pool }));
      assert.deepEqual([error.code, error.params.detail], ['SMS_UNREACHABLE', 'UND_ERR_CLOSED']);
      release();
      await closed;
      assert.equal((await running).bytes.toString(), 'late');
    });
  });

  describe('an answer', () => {
    it('comes back whatever its status, with its reason phrase and content type', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeHead(418, 'I am a teapot', { 'content-type': 'text/x' }).end('short and stout');
      });
      const { bytes, ...rest } = await call(baseUrl);
      assert.deepEqual(rest, { statusCode: 418, statusText: 'I am a teapot', contentType: 'text/x' });
      assert.equal(bytes.toString(), 'short and stout');
    });

    it('of 204 has no body', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => outgoing.writeHead(204).end());
      const answer = await call(baseUrl);
      assert.equal(answer.statusCode, 204);
      assert.equal(answer.bytes.length, 0);
    });

    it('of 204 has no body, whatever comes as one', async () => {
      for (const rest of [
        'Content-Length: 5\r\n\r\nhello',
        'Content-Length: 5\r\n\r\n',
        'Content-Encoding: x\r\n\r\n',
      ]) {
        const { baseUrl } = await startSocketService(closing, (socket) => {
          socket.on('data', () => socket.end(`HTTP/1.1 204 No Content\r\n${rest}`));
        });
        for (const effect of ['send', 'read'] as const) {
          const { statusCode, bytes } = await call(baseUrl, { effect });
          assert.deepEqual([statusCode, bytes.length], [204, 0], rest);
        }
      }
    });

    it('that says when to come again by a date is measured by its own clock', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('Date', 'Sun, 06 Nov 1994 08:49:37 GMT');
        outgoing.writeHead(503, { 'retry-after': 'Sun, 06 Nov 1994 08:51:37 GMT' }).end();
      });
      assert.equal((await call(baseUrl)).retryAfter, '120');
    });

    it('after an informational one is the real one', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeEarlyHints({ link: '</a>; rel=preload' });
        outgoing.end('real');
      });
      const answer = await call(baseUrl);
      assert.deepEqual([answer.statusCode, answer.bytes.toString()], [200, 'real']);
    });

    it('that redirects is not followed (SMS_SERVICE)', async () => {
      const asked: string[] = [];
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        asked.push(incoming.url ?? '');
        outgoing.writeHead(307, { location: '/elsewhere' }).end();
      });
      assert.equal((await call(baseUrl)).statusCode, 307);
      assert.deepEqual(asked, ['/x']);
    });

    it('of 8 MiB is read, and one byte more is refused (SMS_RESPONSE)', async () => {
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        for (let index = 0; index < 8; index++) outgoing.write(chunk);
        outgoing.end(incoming.url === '/more' ? 'y' : '');
      });
      assert.equal((await call(baseUrl)).bytes.length, 8 * 1024 * 1024);
      await failsOnBoth(baseUrl, 'SMS_RESPONSE', 'SMS_RESPONSE', { path: '/more' });
      const error = await failure(call(baseUrl, { path: '/more', effect: 'send' }));
      assert.match(error.message, /larger than 8 MiB.*might have been sent/);
    });

    it('that is compressed is SMS_RESPONSE, unless it is a refusal', async () => {
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        const statusCode = incoming.url === '/refused' ? 403 : 200;
        outgoing.writeHead(statusCode, { 'Content-Encoding': 'GZip' }).end(gzipSync('messageId=1&body=Hello'));
      });
      await failsOnBoth(baseUrl, 'SMS_RESPONSE', 'SMS_RESPONSE');
      const error = await failure(call(baseUrl, { effect: 'send' }));
      assert.deepEqual([error.reason, error.statusCode], ['responseUncertain', 200]);
      assert.match(error.message, /content encoding gzip/);
      assert.equal((await call(baseUrl, { path: '/refused' })).statusCode, 403);
    });

    it('with a status line in UTF-8 or in Latin-1 has its characters', async () => {
      for (const encoding of ['utf8', 'latin1'] as const) {
        const { baseUrl } = await startSocketService(closing, (socket) => {
          socket.on('data', () =>
            socket.end(Buffer.from('HTTP/1.1 400 Numéro inconnu\r\nContent-Length: 2\r\n\r\nok', encoding)),
          );
        });
        const { statusText, bytes } = await call(baseUrl);
        assert.deepEqual([statusText, bytes.toString()], ['Numéro inconnu', 'ok'], encoding);
      }
    });

    it('with headers of 60 KiB is read', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('x-long', 'x'.repeat(60 * 1024)).end('ok');
      });
      assert.equal((await call(baseUrl)).bytes.toString(), 'ok');
    });

    it('without a length is complete when the connection ends, and cut off when it is reset', async () => {
      for (const end of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
        const { baseUrl, connections } = await startSocketService(closing, (socket) => {
          socket.on('data', () => socket.write('HTTP/1.0 200 OK\r\n\r\nmessageId=1'));
        });
        const onAnswer = () => setImmediate(() => connections.forEach(end));
        if (end.name === '' && end.toString().includes('reset')) {
          await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { onAnswer });
          assert.match((await failure(call(baseUrl, { onAnswer }))).message, /CONNECTION_RESET/);
        } else assert.equal((await call(baseUrl, { onAnswer })).bytes.toString(), 'messageId=1');
      }
    });

    it('that never ends is refused too, and its connection closed', async () => {
      let gone: Promise<unknown> = Promise.resolve();
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        gone = once(outgoing, 'close');
        const chunk = Buffer.alloc(256 * 1024, 'x');
        const pump = () => {
          while (!outgoing.destroyed && outgoing.write(chunk));
        };
        outgoing.on('drain', pump);
        pump();
      });
      const error = await failure(call(baseUrl));
      assert.equal(error.reason, 'responseTooLarge');
      await gone;
    });

    it('announces itself as soon as its head is here', async () => {
      let finish = () => {};
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.write('half ');
        finish = () => outgoing.end('whole');
      });
      let announced = 0;
      const answer = call(baseUrl, {
        onAnswer: () => {
          announced++;
          finish();
        },
      });
      assert.equal((await answer).bytes.toString(), 'half whole');
      assert.equal(announced, 1);
    });
  });

  describe('without a connection nothing was sent (SMS_UNREACHABLE)', () => {
    it('when it is refused', async () => {
      const port = await findClosedPort();
      await failsOnBoth(`http://127.0.0.1:${port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
      const error = await failure(call(`http://127.0.0.1:${port}`));
      assert.match(error.message, /ECONNREFUSED/);
    });

    it('when the host is unknown', async () => {
      await failsOnBoth('http://sms.invalid', 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
    });

    it('when the certificate is not trusted, until it is', async () => {
      const pair = createSelfSigned();
      const { baseUrl } = await startEcho(pair);
      await failsOnBoth(baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
      assert.match((await failure(call(baseUrl))).message, /SELF_SIGNED/);
      assert.equal((await call(baseUrl, { tls: { ca: pair.cert } })).statusCode, 200);
      assert.equal((await call(baseUrl, { tls: { rejectUnauthorized: false } })).statusCode, 200);
    });

    it('when the certificate is for another host', async () => {
      const pair = createSelfSigned();
      const { port } = await startEcho(pair);
      const tls = { ca: pair.cert, servername: 'other.example.com' };
      await failsOnBoth(`https://127.0.0.1:${port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { tls });
      assert.equal((await call(`https://localhost:${port}`, { tls: { ca: pair.cert } })).statusCode, 200);
    });

    it('when the other side speaks no TLS, or only begins to', async () => {
      const garbage = await startSocketService(closing, (socket) => socket.end('hello\r\n'));
      await failsOnBoth(`https://127.0.0.1:${garbage.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
      const mute = await startSocketService(closing, () => {});
      await failsOnBoth(`https://127.0.0.1:${mute.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { timeoutMs: 60 });
    });

    it('says so of a send alone, and names the host that was tried', async () => {
      const port = await findClosedPort();
      const host = `127.0.0.1:${port}`;
      const error = await failure(call(`http://${host}/sms`, { effect: 'send' }));
      const unreachable = `The service at ${host} could not be reached (ECONNREFUSED ${host}).`;
      assert.ok(error.message.startsWith(`${unreachable} Nothing was sent.`), error.message);
      const onRead = await failure(call(`http://${host}`, { effect: 'read' }));
      assert.ok(onRead.message.startsWith(`${unreachable} Check`), onRead.message);
      const controller = new AbortController();
      controller.abort();
      const { signal } = controller;
      assert.match((await failure(call(`http://${host}`, { effect: 'send', signal }))).message, /message was sent/);
      assert.doesNotMatch((await failure(call(`http://${host}`, { effect: 'read', signal }))).message, /sent/);
    });

    it('has a reason of its own for a certificate and a server without TLS, with what to do', async () => {
      const pair = createSelfSigned();
      const expired = createSelfSigned('210101000000Z');
      const secure = await startEcho(pair);
      const former = await startEcho(expired);
      const plain = await startEcho();
      const other = { ca: pair.cert, servername: 'other.example.com' };
      for (const [reason, port, tls, words] of [
        ['certificateUntrusted', secure.port, undefined, /not trusted.*TLS settings.*CA/],
        ['certificateName', secure.port, other, /another host name.*server name/],
        ['certificateDate', former.port, { ca: expired.cert }, /not valid at this time.*renewed/],
        ['noTls', plain.port, undefined, /does not speak TLS.*use http/],
        [
          'tlsInvalid',
          secure.port,
          { ...pair, key: expired.key },
          /TLS settings.*certificate, private key and passphrase/,
        ],
      ] as const) {
        for (const effect of ['send', 'read'] as const) {
          const error = await failure(call(`https://127.0.0.1:${port}`, { effect, ...(tls && { tls }) }));
          assert.deepEqual([error.code, error.reason], ['SMS_UNREACHABLE', reason]);
          assert.match(error.message, words);
          assert.ok(error.message.includes(`127.0.0.1:${port}`), error.message);
          assert.doesNotMatch(error.message, /Nothing was sent/);
        }
      }
    });

    it('and a request that timed out while it waited for one does not leave later', async () => {
      const requests: string[] = [];
      const held: (() => void)[] = [];
      const { port } = await startSocketService(closing, (socket) => {
        socket.pause();
        held.push(() => socket.resume());
        socket.on('data', (data) => requests.push(data.toString('latin1')));
      });
      const connections = open('http://127.0.0.1');
      await failure(call(`https://127.0.0.1:${port}`, { connections, timeoutMs: 40, effect: 'send' }));
      for (const release of held) release();
      assert.ok(requests.every((data) => !data.includes('POST')));
    });
  });

  describe('after the request has left the outcome is unknown (SMS_UNCERTAIN, SMS_RESPONSE)', () => {
    it('when the connection is dropped without an answer', async () => {
      const { baseUrl } = await startRawService(closing, (incoming) => incoming.socket.destroy());
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when it is reset', async () => {
      const { baseUrl } = await startRawService(closing, (incoming) => incoming.socket.resetAndDestroy());
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when it is dropped before the request was read', async () => {
      const { baseUrl } = await startSocketService(closing, (socket) => socket.destroy());
      const error = await failure(call(baseUrl, { effect: 'send' }));
      assert.ok(['SMS_UNCERTAIN', 'SMS_UNREACHABLE'].includes(error.code));
    });

    it('when only half of the answer comes', async () => {
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        outgoing.writeHead(200, { 'content-length': '100' });
        outgoing.write('x'.repeat(50), () => incoming.socket.destroy());
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
      assert.equal((await failure(call(baseUrl, { effect: 'send' }))).statusCode, 200);
    });

    it('when a chunked answer is cut off', async () => {
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        outgoing.write('<half/>', () => incoming.socket.end());
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when the answer is no HTTP, and its text is in no error', async () => {
      const { baseUrl } = await startSocketService(closing, (socket) => {
        socket.once('data', () => socket.end('the-text-3141592653 is no HTTP\r\n\r\n'));
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when nothing ever comes', async () => {
      const { baseUrl } = await startRawService(closing, () => {});
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { timeoutMs: 60 });
      assert.match((await failure(call(baseUrl, { timeoutMs: 60 }))).message, /timed out after 0\.06 s/);
    });

    it('when the answer drips in for longer than it may take', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        const timer = setInterval(() => outgoing.write('x'), 5);
        outgoing.on('close', () => clearInterval(timer));
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { timeoutMs: 80 });
    });
  });

  describe('an answer that has come while the process was held up', () => {
    /** Holds up the event loop, as a function node, a paused container or a sleeping machine does. */
    const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

    async function startWorker(body: string): Promise<string> {
      const worker = new Worker(
        `const { createServer } = require('node:http');
        const { workerData, parentPort } = require('node:worker_threads');
        const server = createServer((incoming, outgoing) => {
          incoming.resume().on('end', () => setTimeout(() => outgoing.end(workerData), 20));
        });
        server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
        { eval: true, workerData: body },
      );
      closing.add(worker, (it) => it.terminate());
      const [port] = await once(worker, 'message');
      return `http://127.0.0.1:${port}`;
    }

    for (const [size, body] of [
      ['short', 'ok'],
      ['long', 'x'.repeat(200_000)],
    ] as const) {
      it(`is read though its time is up by then (${size})`, async () => {
        const baseUrl = await startWorker(body);
        const connections = open(baseUrl);
        for (const effect of ['send', 'read'] as const) {
          // After it timers come before sockets.
          const beforeLeaving = () => void setTimeout(() => setImmediate(block, 400), 10);
          const answer = call(baseUrl, { connections, effect, timeoutMs: 200, beforeLeaving });
          assert.equal((await answer).bytes.length, body.length);
        }
      });
    }

    it('does not let a request leave that waited for a connection until its time was up', async () => {
      let requests = 0;
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        requests++;
        outgoing.end();
      });
      const late = failure(call(baseUrl, { effect: 'send', timeoutMs: 20 }));
      block(60);
      assert.equal((await late).code, 'SMS_UNREACHABLE');
      assert.equal(requests, 0);
    });
  });

  describe('held back until something is written down', () => {
    for (const method of ['POST', 'GET'] as const) {
      it(`a ${method} lets no byte out before, on a new connection and on a kept one`, async () => {
        const seen: string[] = [];
        let heads = 0;
        const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
          heads++;
          const chunks: string[] = [];
          incoming.on('data', (chunk) => chunks.push(String(chunk)));
          incoming.on('end', () => {
            seen.push(`${incoming.method} ${incoming.url} ${chunks.join('')}`);
            outgoing.end('<ok/>');
          });
        });
        const connections = open(baseUrl);
        for (let time = 0; time < 2; time++) {
          let headsBefore: number | undefined;
          const beforeLeaving = async () => {
            await new Promise((resolve) => setTimeout(resolve, 30));
            headsBefore = heads;
          };
          const answer = await call(baseUrl, { connections, method, effect: 'send', beforeLeaving });
          assert.equal(answer.statusCode, 200);
          assert.equal(headsBefore, time);
          assert.equal(seen.length, time + 1);
          assert.match(seen[time] ?? '', /a=1/);
        }
      });
    }

    it('asks only when the connection stands', async () => {
      let asked = false;
      const beforeLeaving = () => {
        asked = true;
        return Promise.resolve();
      };
      const port = await findClosedPort();
      const error = await failure(call(`http://127.0.0.1:${port}`, { effect: 'send', beforeLeaving }));
      assert.equal(error.code, 'SMS_UNREACHABLE');
      assert.equal(asked, false);
    });

    it('sends nothing when it could not be written down, and says why', async () => {
      let bytes = 0;
      const { baseUrl } = await startSocketService(closing, (socket) => {
        socket.on('data', (chunk) => {
          bytes += chunk.length;
        });
      });
      const beforeLeaving = () => Promise.reject(new SmsError('storeUnavailable', { params: { detail: 'ENOSPC' } }));
      assert.equal((await failure(call(baseUrl, { effect: 'send', beforeLeaving }))).code, 'SMS_STORE');
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(bytes, 0);
    });

    it('a time-out and a stop before the first byte are no unknown outcomes', async () => {
      const { baseUrl } = await startSocketService(closing, () => {});
      const never = () => new Promise<void>(() => {});
      const late = await failure(call(baseUrl, { effect: 'send', timeoutMs: 40, beforeLeaving: never }));
      assert.equal(late.code, 'SMS_UNREACHABLE');
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 20);
      const stopped = await failure(call(baseUrl, { effect: 'send', signal: stop.signal, beforeLeaving: never }));
      assert.equal(stopped.code, 'SMS_CLOSED');
    });
  });

  describe('aborted', () => {
    it('before it left, it is closed and never leaves (SMS_CLOSED)', async () => {
      let requests = 0;
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        requests++;
        outgoing.end();
      });
      const connections = open('http://127.0.0.1');
      const signal = AbortSignal.abort();
      assert.equal((await failure(call(baseUrl, { connections, signal, effect: 'send' }))).code, 'SMS_CLOSED');
      const controller = new AbortController();
      const later = call(baseUrl, { connections, signal: controller.signal, effect: 'send' });
      controller.abort();
      assert.equal((await failure(later)).code, 'SMS_CLOSED');
      await call(baseUrl, { connections });
      assert.equal(requests, 1);
    });

    it('after it left, its outcome is unknown, and the connection closed', async () => {
      const controller = new AbortController();
      let gone: Promise<unknown> = Promise.resolve();
      const { baseUrl } = await startRawService(closing, (incoming) => {
        gone = once(incoming.socket, 'close');
        controller.abort();
      });
      assert.equal((await failure(call(baseUrl, { signal: controller.signal, effect: 'send' }))).code, 'SMS_UNCERTAIN');
      await gone;
    });

    it('all that share the signal end, and none is left on it that has its answer', async () => {
      const controller = new AbortController();
      const { signal } = controller;
      let listeners = 0;
      const listen = signal.addEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof listen>) => {
        listeners++;
        listen(...args);
      };
      const leave = signal.removeEventListener.bind(signal);
      signal.removeEventListener = (...args: Parameters<typeof leave>) => {
        listeners--;
        leave(...args);
      };
      const { baseUrl: echoing } = await startEcho();
      await Promise.all(Array.from({ length: 20 }, () => call(echoing, { signal })));
      assert.equal(listeners, 0);
      let arrived = 0;
      const { baseUrl } = await startRawService(closing, () => {
        arrived++;
        if (arrived === 20) controller.abort();
      });
      const hanging = Array.from({ length: 20 }, () => failure(call(baseUrl, { signal, effect: 'send' })));
      const codes = (await Promise.all(hanging)).map(({ code }) => code);
      assert.deepEqual(new Set(codes), new Set(['SMS_UNCERTAIN']));
      assert.equal((await failure(call(echoing, { signal, effect: 'send' }))).code, 'SMS_CLOSED');
    });

    it('after the answer, nothing happens', async () => {
      const { baseUrl, connections: sockets } = await startEcho();
      const pool = open(baseUrl);
      const controller = new AbortController();
      const answer = await call(baseUrl, { connections: pool, signal: controller.signal });
      controller.abort();
      assert.equal(read(answer).body, 'a=1');
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(read(await call(baseUrl, { connections: pool })).body, 'a=1');
      assert.equal(sockets.length, 1, 'its connection goes on');
    });
  });

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

    it('plain http is forwarded and https tunnelled, with user and password for the proxy alone', async () => {
      const proxy = await startProxy(user);
      const options = { proxy: { url: proxy.baseUrl, username: 'pat', password: 'proxy-secret' } };
      const plain = await startEcho();
      const seen = read(await call(plain.baseUrl, options));
      assert.deepEqual(proxy.forwarded, [`${plain.baseUrl}/x`]);
      assert.equal(seen.headers.authorization, 'Bearer key-3141592653');
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const tunnelled = read(await call(secure.baseUrl, { ...options, tls: { ca: pair.cert } }));
      assert.deepEqual(proxy.tunnels, [`127.0.0.1:${secure.port}`]);
      assert.equal(tunnelled.headers['proxy-authorization'], undefined);
      assert.deepEqual(proxy.authorizations, [user, user]);
    });

    it('takes user and password from its address too', async () => {
      const proxy = await startProxy(user);
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const url = proxy.baseUrl.replace('//', '//pat:proxy%2Dsecret@');
      await call(secure.baseUrl, { proxy: { url }, tls: { ca: pair.cert } });
      assert.deepEqual(proxy.authorizations, [user]);
    });

    it('that refuses, nothing was sent, and its password is in no error', async () => {
      const proxy = await startProxy('Basic other');
      const pair = createSelfSigned();
      const secure = await startEcho(pair);
      const options = {
        proxy: { url: proxy.baseUrl, username: 'pat', password: 'proxy-secret' },
        tls: { ca: pair.cert },
      };
      await failsOnBoth(secure.baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', options);
    });

    it('that refuses plain http, nothing was sent, and the error names its 407', async () => {
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

    it('that is not there, nothing was sent, and the error names it', async () => {
      const proxy = { url: `http://127.0.0.1:${await findClosedPort()}` };
      const { baseUrl } = await startEcho();
      await failsOnBoth(baseUrl, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { proxy });
      const { message } = await failure(call(baseUrl, { proxy }));
      for (const { host } of [new URL(baseUrl), new URL(proxy.url)]) assert.ok(message.includes(host), message);
    });

    it('goes around it for the hosts in noProxy', async () => {
      const proxy = await startProxy();
      const { baseUrl } = await startEcho();
      await call(baseUrl, { proxy: { url: proxy.baseUrl, noProxy: ['sms.example.com', '127.0.0.1'] } });
      assert.deepEqual(proxy.forwarded, []);
      await call(baseUrl, { proxy: { url: proxy.baseUrl, noProxy: ['sms.example.com'] } });
      assert.equal(proxy.forwarded.length, 1);
    });

    it('whose address is no address is refused without repeating it', async () => {
      for (const url of ['proxy-secret', 'socks5://pat:proxy-secret@127.0.0.1', 'http://pat:proxy-secret@', '']) {
        const error = await failure(
          Promise.resolve().then(() => createConnections({ baseUrl: 'https://sms.example.com', proxy: { url } })),
        );
        assert.equal(error.reason, 'proxyInvalid', url);
      }
    });

    describe('of the environment', () => {
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

      it('does not apply where one was chosen, nor does its no_proxy', async () => {
        const [chosen, other] = await Promise.all([startProxy(), startProxy()]);
        process.env.http_proxy = other.baseUrl;
        process.env.no_proxy = '127.0.0.1';
        const { baseUrl } = await startEcho();
        await call(baseUrl, { proxy: { url: chosen.baseUrl } });
        assert.deepEqual([chosen.forwarded.length, other.forwarded.length], [1, 0]);
      });

      it('applies to its own scheme alone, may lack a scheme, and may be blank in one case', async () => {
        const proxy = await startProxy();
        const pair = createSelfSigned();
        const [plain, secure] = await Promise.all([startEcho(), startEcho(pair)]);
        process.env.http_proxy = '';
        process.env.HTTP_PROXY = proxy.baseUrl.replace('http://', '');
        await call(secure.baseUrl, { tls: { ca: pair.cert } });
        assert.deepEqual(proxy.tunnels, []);
        await call(plain.baseUrl);
        assert.deepEqual(proxy.forwarded, [`${plain.baseUrl}/x`]);
        process.env.https_proxy = 'not a url';
        await call(plain.baseUrl);
        assert.equal(proxy.forwarded.length, 2);
      });

      it('that is unusable is refused without repeating it', async () => {
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
