import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { startRawService, startSocketService } from '../raw-service';
import { basic, Caller, failure, readEcho } from './exchange-caller';

describe('createExchange', () => {
  const caller = new Caller();
  const { closing, call, failsOnBoth, startEcho } = caller;

  it('sends Basic credentials only in a header', async () => {
    const { baseUrl } = await startEcho();
    const { method, url, body, headers } = readEcho(await call(baseUrl, { authentication: basic, method: 'GET' }));
    assert.deepEqual([method, url, body], ['GET', '/x?a=1', '']);
    assert.equal(headers.authorization, `Basic ${Buffer.from('ann:pässwörd-271828').toString('base64')}`);
    assert.equal(headers['accept-encoding'], 'identity');
  });

  it('does not quote the message of a connection error', async () => {
    const pool = caller.open('http://127.0.0.1');
    pool.dispatch = (_options, handler) => {
      handler.onResponseError?.(undefined as never, new Error('whatever was read'));
      return false;
    };
    const { params } = await failure(call('http://127.0.0.1', { connections: pool }));
    assert.equal(params.detail, 'connection failed');
  });

  describe('with an answer', () => {
    it('returns status, reason phrase, content type and body', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeHead(418, 'I am a teapot', { 'content-type': 'text/x' }).end('short and stout');
      });
      const { bytes, ...rest } = await call(baseUrl);
      assert.deepEqual(rest, { statusCode: 418, statusText: 'I am a teapot', contentType: 'text/x' });
      assert.equal(bytes.toString(), 'short and stout');
    });

    it('ignores the body of a 204', async () => {
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

    it('converts a date in Retry-After to seconds', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('Date', 'Sun, 06 Nov 1994 08:49:37 GMT');
        outgoing.writeHead(503, { 'retry-after': 'Sun, 06 Nov 1994 08:51:37 GMT' }).end();
      });
      assert.equal((await call(baseUrl)).retryAfter, '120');
    });

    it('skips informational answers such as 103', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.writeEarlyHints({ link: '</a>; rel=preload' });
        outgoing.end('real');
      });
      const answer = await call(baseUrl);
      assert.deepEqual([answer.statusCode, answer.bytes.toString()], [200, 'real']);
    });

    it('raises SMS_RESPONSE for a body larger than 8 MiB', async () => {
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

    it('reads a reason phrase in UTF-8 or Latin-1', async () => {
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

    it('accepts headers of 60 KiB', async () => {
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        outgoing.setHeader('x-long', 'x'.repeat(60 * 1024)).end('ok');
      });
      assert.equal((await call(baseUrl)).bytes.toString(), 'ok');
    });

    it('accepts a closed connection as the end of the body', async () => {
      const { baseUrl, connections } = await startSocketService(closing, (socket) => {
        socket.on('data', () => socket.write('HTTP/1.0 200 OK\r\n\r\nmessageId=1'));
      });
      const atOnce = (end: (socket: Socket) => void) => () => setImmediate(() => connections.forEach(end));
      const closed = await call(baseUrl, { onAnswer: atOnce((socket) => socket.end()) });
      assert.equal(closed.bytes.toString(), 'messageId=1');
      const onAnswer = atOnce((socket) => socket.resetAndDestroy());
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { onAnswer });
      assert.match((await failure(call(baseUrl, { onAnswer }))).message, /CONNECTION_RESET/);
    });
  });
});
