import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { SmsError, type SmsErrorCode } from '../../../src/errors';
import { createConnections, type TlsOptions } from '../../../src/http/connections';
import { type Answer, type Call, createExchange } from '../../../src/http/exchange';
import type { ProxyOptions } from '../../../src/http/proxy';
import { type Authentication, parseBaseUrl } from '../../../src/login';
import { Closing } from '../closing';
import { createSelfSigned, findClosedPort, type RawService, startRawService, startSocketService } from '../raw-service';

const bearer: Authentication = { type: 'bearer', apiKey: 'key-3141592653' };
const basic: Authentication = { type: 'basic', userId: 'ann', password: 'pässwörd-271828' };
const form: Authentication = { type: 'form', userId: 'ann', password: 'p&ss=w rd-161803' };
const secrets = ['3141592653', '271828', '161803', Buffer.from('ann:').toString('base64').slice(0, 5), 'proxy-secret'];

describe('createExchange', () => {
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

  describe('a request', () => {
    it('sends the key as Bearer and its parameters in the body (§5, §4)', async () => {
      const { baseUrl } = await startEcho();
      const { method, url, body, headers } = read(await call(baseUrl));
      assert.deepEqual([method, url, body], ['POST', '/x', 'a=1']);
      assert.equal(headers.authorization, 'Bearer key-3141592653');
      assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
      assert.equal(headers['content-length'], '3');
      assert.equal(headers['accept-encoding'], 'identity');
    });

    it('sends Basic credentials in UTF-8, and not in the query of a GET', async () => {
      const { baseUrl } = await startEcho();
      const { method, url, body, headers } = read(await call(baseUrl, { authentication: basic, method: 'GET' }));
      assert.deepEqual([method, url, body], ['GET', '/x?a=1', '']);
      assert.equal(headers.authorization, `Basic ${Buffer.from('ann:pässwörd-271828').toString('base64')}`);
    });

    it('sends form credentials in the body of a POST and the URL of a GET', async () => {
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

    it('appends its path to the path of the base URL', async () => {
      const { baseUrl } = await startEcho();
      for (const suffix of ['/deep/path', '/deep/path/']) {
        assert.equal(read(await call(parseBaseUrl(baseUrl + suffix))).url, '/deep/path/x');
      }
      assert.equal(read(await call(`${baseUrl}/`, { method: 'GET', parameters: [] })).url, '/x');
    });

    it('uses a kept-alive connection again', async () => {
      const { baseUrl, connections } = await startEcho();
      const pool = open('http://127.0.0.1');
      for (let index = 0; index < 20; index++) await call(baseUrl, { connections: pool });
      // One may still be on its way back into the pool as the next request asks for it.
      assert.ok(connections.length <= 2, `${connections.length} connections`);
    });

    it('does not wait for a slow request', async () => {
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

  describe('a connection', () => {
    it('is replaced if the service closes it after each answer', async () => {
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

    it('is opened again after a failure', async () => {
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

    it('waits 2.5 s before it tries the next address of a name', async () => {
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

    it('does not quote a failure without a code', async () => {
      const pool = open('http://127.0.0.1');
      pool.dispatch = (_options, handler) => {
        handler.onResponseError?.(undefined as never, new Error('whatever was read'));
        return false;
      };
      const { params } = await failure(call('http://127.0.0.1', { connections: pool }));
      assert.equal(params.detail, 'connection failed');
    });

    it('finishes running requests and starts no others after close()', async () => {
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
    it('is returned with any status, its reason phrase and content type', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeHead(418, 'I am a teapot', { 'content-type': 'text/x' }).end('short and stout');
      });
      const { bytes, ...rest } = await call(baseUrl);
      assert.deepEqual(rest, { statusCode: 418, statusText: 'I am a teapot', contentType: 'text/x' });
      assert.equal(bytes.toString(), 'short and stout');
    });

    it('has no body with 204, even if bytes follow', async () => {
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

    it('converts a date in Retry-After by the Date of the answer', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('Date', 'Sun, 06 Nov 1994 08:49:37 GMT');
        outgoing.writeHead(503, { 'retry-after': 'Sun, 06 Nov 1994 08:51:37 GMT' }).end();
      });
      assert.equal((await call(baseUrl)).retryAfter, '120');
    });

    it('is the one after informational answers', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeEarlyHints({ link: '</a>; rel=preload' });
        outgoing.end('real');
      });
      const answer = await call(baseUrl);
      assert.deepEqual([answer.statusCode, answer.bytes.toString()], [200, 'real']);
    });

    it('does not follow a redirect', async () => {
      const asked: string[] = [];
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        asked.push(incoming.url ?? '');
        outgoing.writeHead(307, { location: '/elsewhere' }).end();
      });
      assert.equal((await call(baseUrl)).statusCode, 307);
      assert.deepEqual(asked, ['/x']);
    });

    it('is read up to 8 MiB, and is SMS_RESPONSE beyond', async () => {
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

    it('is SMS_RESPONSE if it is compressed and not a refusal', async () => {
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

    it('keeps the characters of a status line in UTF-8 or Latin-1', async () => {
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

    it('can have headers of 60 KiB', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('x-long', 'x'.repeat(60 * 1024)).end('ok');
      });
      assert.equal((await call(baseUrl)).bytes.toString(), 'ok');
    });

    it('without a length ends with the connection, and not with a reset', async () => {
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

    it('is refused and its connection closed if it never ends', async () => {
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

    it('calls onAnswer when its head has arrived', async () => {
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

  describe('without a connection, a request is SMS_UNREACHABLE', () => {
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

    it('when the server does not speak TLS, or does not finish the handshake', async () => {
      const garbage = await startSocketService(closing, (socket) => socket.end('hello\r\n'));
      await failsOnBoth(`https://127.0.0.1:${garbage.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
      const mute = await startSocketService(closing, () => {});
      await failsOnBoth(`https://127.0.0.1:${mute.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { timeoutMs: 60 });
    });

    it('names the host, and says of a send that nothing was sent', async () => {
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

    it('has its own reasons and remedies for TLS failures', async () => {
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

    it('does not leave later after a timeout', async () => {
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

  describe('after the request has left, SMS_UNCERTAIN or SMS_RESPONSE', () => {
    it('when the connection is dropped without an answer', async () => {
      const { baseUrl } = await startRawService(closing, (incoming) => incoming.socket.destroy());
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when it is reset', async () => {
      const { baseUrl } = await startRawService(closing, (incoming) => incoming.socket.resetAndDestroy());
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
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

    it('when the answer is not HTTP, without quoting it', async () => {
      const { baseUrl } = await startSocketService(closing, (socket) => {
        socket.once('data', () => socket.end('the-text-3141592653 is no HTTP\r\n\r\n'));
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
    });

    it('when no answer arrives', async () => {
      const { baseUrl } = await startRawService(closing, () => {});
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { timeoutMs: 60 });
      assert.match((await failure(call(baseUrl, { timeoutMs: 60 }))).message, /timed out after 0\.06 s/);
    });

    it('when the answer arrives too slowly', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        const timer = setInterval(() => outgoing.write('x'), 5);
        outgoing.on('close', () => clearInterval(timer));
      });
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { timeoutMs: 80 });
    });
  });

  describe('an answer that arrived while the process was blocked', () => {
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
      it(`is read after its timeout (${size})`, async () => {
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

    it('does not send a request whose timeout is over', async () => {
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

  describe('beforeLeaving', () => {
    it('sends nothing and becomes the error if it rejects', async () => {
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

    it('ends with SMS_UNREACHABLE on a timeout and SMS_CLOSED on a stop', async () => {
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

  describe('a signal', () => {
    it('ends a request before it leaves with SMS_CLOSED', async () => {
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

    it('ends a request that has left with SMS_UNCERTAIN', async () => {
      const controller = new AbortController();
      let gone: Promise<unknown> = Promise.resolve();
      const { baseUrl } = await startRawService(closing, (incoming) => {
        gone = once(incoming.socket, 'close');
        controller.abort();
      });
      assert.equal((await failure(call(baseUrl, { signal: controller.signal, effect: 'send' }))).code, 'SMS_UNCERTAIN');
      await gone;
    });

    it('ends all its requests, and keeps no listener after an answer', async () => {
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

    it('has no effect after the answer', async () => {
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

    it('forwards http and tunnels https, and keeps its login to the proxy', async () => {
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
