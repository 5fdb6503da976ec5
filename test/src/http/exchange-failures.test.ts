import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Dispatcher } from 'undici';
import { SmsError } from '../../../src/errors';
import { until } from '../../until';
import { createSelfSigned, findClosedPort, startRawService, startSocketService } from '../raw-service';
import { Caller, createTimeouts, failure } from './exchange-caller';

describe('a request', () => {
  const caller = new Caller();
  const { closing, call, failsOnBoth, startEcho } = caller;

  describe('without a connection', () => {
    it('fails with SMS_UNREACHABLE if the host is unknown', () =>
      failsOnBoth('http://sms.invalid', 'SMS_UNREACHABLE', 'SMS_UNREACHABLE'));

    it('fails with SMS_UNREACHABLE if the TLS handshake does not complete', async () => {
      const garbage = await startSocketService(closing, (socket) => socket.end('hello\r\n'));
      await failsOnBoth(`https://127.0.0.1:${garbage.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE');
      const { clock, expire } = createTimeouts();
      const mute = await startSocketService(closing, expire);
      await failsOnBoth(`https://127.0.0.1:${mute.port}`, 'SMS_UNREACHABLE', 'SMS_UNREACHABLE', { clock });
    });

    it('names the host in its error', async () => {
      const host = `127.0.0.1:${await findClosedPort()}`;
      const baseUrl = `http://${host}`;
      const unreachable = `The service at ${host} could not be reached (ECONNREFUSED ${host}).`;
      const signal = AbortSignal.abort();
      for (const [effect, advice, onStop] of [
        ['send', ' Nothing was sent.', /message was sent/],
        ['read', ' Check', /^(?!.*sent)/],
      ] as const) {
        const error = await failure(call(baseUrl, { effect }));
        assert.equal(error.code, 'SMS_UNREACHABLE');
        assert.ok(error.message.startsWith(unreachable + advice), error.message);
        const stopped = await failure(call(baseUrl, { effect, signal }));
        assert.equal(stopped.code, 'SMS_CLOSED');
        assert.match(stopped.message, onStop);
      }
    });

    it('names a remedy for each kind of TLS failure', async () => {
      const pair = createSelfSigned();
      const expired = createSelfSigned('210101000000Z');
      const secure = await startEcho(pair);
      const expiredService = await startEcho(expired);
      const plain = await startEcho();
      const other = { ca: pair.cert, servername: 'other.example.com' };
      for (const [reason, port, tls, words] of [
        ['certificateUntrusted', secure.port, undefined, /not trusted.*TLS settings.*CA/],
        ['certificateName', secure.port, other, /another host name.*server name/],
        ['certificateDate', expiredService.port, { ca: expired.cert }, /not valid at this time.*renewed/],
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
  });

  describe('after it was sent', () => {
    const listeners: Record<string, RequestListener> = {
      'the connection is dropped without an answer': (incoming) => incoming.socket.destroy(),
      'the connection is reset': (incoming) => incoming.socket.resetAndDestroy(),
      'only half of the answer arrives': (incoming, outgoing) => {
        outgoing.writeHead(200, { 'content-length': '100' });
        outgoing.write('x'.repeat(50), () => incoming.socket.destroy());
      },
      'a chunked answer is cut off': (incoming, outgoing) =>
        void outgoing.write('<half/>', () => incoming.socket.end()),
      'the answer is not HTTP': ({ socket }) => socket.end('the-text-3141592653 is no HTTP\r\n\r\n'),
    };
    for (const [title, listener] of Object.entries(listeners)) {
      it(`fails if ${title}`, async () => {
        const { baseUrl } = await startRawService(closing, listener);
        await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE');
      });
    }

    it('fails if the complete answer does not arrive in time', async () => {
      const { clock, expire } = createTimeouts();
      const mute = await startRawService(closing, expire);
      await failsOnBoth(mute.baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { clock });
      assert.match((await failure(call(mute.baseUrl, { clock, timeoutMs: 60 }))).message, /timed out after 0\.06 s/);
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => void outgoing.write('x'));
      await failsOnBoth(baseUrl, 'SMS_UNCERTAIN', 'SMS_RESPONSE', { clock, onAnswer: expire });
    });
  });

  describe('with a timeout', () => {
    it('accepts an answer that arrived while the process was blocked', async () => {
      const { clock, expire } = createTimeouts();
      const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
        const answerWhileBlocked = () => {
          outgoing.end('ok');
          setTimeout(expire);
          // Blocks until the timer is due. The event loop then runs the timer before the client reads the answer.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
        };
        incoming.resume().on('end', () => setImmediate(answerWhileBlocked));
      });
      for (const effect of ['send', 'read'] as const) {
        assert.equal((await call(baseUrl, { effect, clock })).bytes.toString(), 'ok');
      }
    });

    it('sends nothing if the timeout passes before it connects', async () => {
      const { clock, expire } = createTimeouts();
      let requests = 0;
      const { baseUrl } = await startRawService(closing, (_incoming, outgoing) => {
        requests++;
        outgoing.end();
      });
      const late = failure(call(baseUrl, { effect: 'send', clock }));
      expire();
      assert.equal((await late).code, 'SMS_UNREACHABLE');
      assert.equal(requests, 0);
    });
  });

  describe('with `beforeLeaving`', () => {
    it('sends nothing if `beforeLeaving` rejects', async () => {
      let bytes = 0;
      const { baseUrl, connections } = await startSocketService(closing, (socket) => {
        socket.on('data', (chunk) => {
          bytes += chunk.length;
        });
      });
      const beforeLeaving = () => Promise.reject(new SmsError('storeUnavailable', { params: { detail: 'ENOSPC' } }));
      assert.equal((await failure(call(baseUrl, { effect: 'send', beforeLeaving }))).code, 'SMS_STORE');
      await until(() => connections.every(({ closed }) => closed));
      assert.equal(bytes, 0);
    });

    it('is reported as not sent if it ends during `beforeLeaving`', async () => {
      const { baseUrl } = await startSocketService(closing, () => {});
      const { clock, expire } = createTimeouts();
      const stop = new AbortController();
      const { signal } = stop;
      for (const [end, code] of [
        [expire, 'SMS_UNREACHABLE'],
        [() => stop.abort(), 'SMS_CLOSED'],
      ] as const) {
        const beforeLeaving = () => {
          end();
          return new Promise<void>(() => {});
        };
        assert.equal((await failure(call(baseUrl, { effect: 'send', clock, signal, beforeLeaving }))).code, code);
      }
    });
  });

  describe('with a broken connection', () => {
    it('fails with SMS_UNREACHABLE if the second connection breaks too', async () => {
      const tries: { body: AsyncIterator<unknown>; handler: Dispatcher.DispatchHandler }[] = [];
      const connections: Pick<Dispatcher, 'dispatch'> = {
        dispatch({ body }, handler) {
          tries.push({ body: (body as unknown as AsyncIterable<unknown>)[Symbol.asyncIterator](), handler });
          return true;
        },
      };
      const breakOff = (index: number) =>
        tries[index]?.handler.onResponseError?.({} as Dispatcher.DispatchController, new Error('broken'));
      let permit = () => {};
      const beforeLeaving = () =>
        new Promise<void>((resolve) => {
          permit = resolve;
        });
      const ended = failure(call('http://127.0.0.1', { connections, effect: 'send', beforeLeaving }));
      const leaving = tries[0]?.body.next().catch(() => {});
      breakOff(0);
      permit();
      await leaving;
      breakOff(1);
      assert.equal((await ended).code, 'SMS_UNREACHABLE');
      assert.equal(tries.length, 2);
    });
  });

  describe('with an AbortSignal', () => {
    it('fails with SMS_UNCERTAIN if it is aborted after sending', async () => {
      const controller = new AbortController();
      let gone: Promise<unknown> = Promise.resolve();
      const { baseUrl } = await startRawService(closing, (incoming) => {
        gone = once(incoming.socket, 'close');
        controller.abort();
      });
      assert.equal((await failure(call(baseUrl, { signal: controller.signal, effect: 'send' }))).code, 'SMS_UNCERTAIN');
      await gone;
    });

    it('removes its listener from the signal after an answer', async () => {
      const { signal } = new AbortController();
      const { baseUrl } = await startEcho();
      await Promise.all(Array.from({ length: 20 }, () => call(baseUrl, { signal })));
      assert.equal(getEventListeners(signal, 'abort').length, 0);
    });
  });
});
