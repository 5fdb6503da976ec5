import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import dns from 'node:dns';
import net, { type NetConnectOpts, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ConnectionsOptions, TlsOptions } from '../../../src/http/connections';
import type { Call } from '../../../src/http/exchange';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import {
  createSelfSigned,
  findClosedPort,
  startProxyService,
  startRawService,
  startSocketService,
} from '../raw-service';
import { Caller, failure } from './exchange-caller';

type Way = Omit<ConnectionsOptions, 'proxyRules'>;

describe('the connection pool', () => {
  const caller = new Caller();
  const { closing } = caller;

  /** Opens connections as an account does. */
  function open({ baseUrl, ...options }: Way) {
    const connections = caller.open(baseUrl, options);
    const call = (more: Partial<Call> = {}) => caller.call(baseUrl, { connections, effect: 'send', ...more });
    return { connections, call };
  }

  /** Starts a service that answers each request and counts the received bytes. */
  async function startCounting(tls?: ReturnType<typeof createSelfSigned>) {
    const traffic = { bytes: 0, port: 0 };
    const onConnection = (socket: Socket) => {
      let request = '';
      socket.on('data', (data) => {
        traffic.bytes += data.length;
        request += data.toString('latin1');
        if (!/^GET.*\r\n\r\n$|a=1$/s.test(request)) return;
        request = '';
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
    };
    traffic.port = (await startSocketService(closing, onConnection, tls)).port;
    return traffic;
  }

  const startTunnelling = async () => ({ url: (await startProxyService(closing)).baseUrl });

  const pair = createSelfSigned();
  const { cert: ca } = pair;

  describe('before `beforeLeaving` resolves', () => {
    for (const [name, secured, proxied] of [
      ['over http', undefined, false],
      ['over https', pair, false],
      ['through the tunnel of a proxy', pair, true],
      ['to a forwarding proxy', undefined, true],
    ] as const) {
      it(`sends no byte ${name}`, async () => {
        const traffic = await startCounting(secured);
        const url = `http${secured ? 's' : ''}://127.0.0.1:${traffic.port}`;
        const proxy = proxied && { proxy: secured ? await startTunnelling() : { url } };
        const baseUrl = proxied && !secured ? 'http://sms.test' : url;
        const way = { baseUrl, ...(secured && { tls: { ca } }), ...proxy };
        for (const method of ['POST', 'GET'] as const) {
          const { call } = open(way);
          for (let time = 0; time < 2; time++) {
            const { bytes } = traffic;
            let bytesBefore = Number.NaN;
            const beforeLeaving = async () => {
              for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
              bytesBefore = traffic.bytes;
            };
            assert.equal((await call({ method, beforeLeaving })).statusCode, 200);
            assert.equal(bytesBefore, bytes);
            assert.ok(traffic.bytes > bytes);
          }
        }
      });
    }
  });

  describe('when it cannot connect', () => {
    const ways: Record<string, () => Promise<Way>> = {
      'a refused connection': async () => ({ baseUrl: `http://127.0.0.1:${await findClosedPort()}` }),
      'an untrusted certificate in a tunnel': async () => {
        const { port } = await startCounting(pair);
        return { baseUrl: `https://127.0.0.1:${port}`, proxy: await startTunnelling() };
      },
      'a proxy that does not exist': async () => ({
        baseUrl: 'http://sms.test',
        proxy: { url: `http://127.0.0.1:${await findClosedPort()}` },
      }),
    };
    for (const [name, start] of Object.entries(ways)) {
      it(`does not call \`beforeLeaving\` for ${name}`, async () => {
        let isAsked = false;
        const beforeLeaving = () => {
          isAsked = true;
        };
        assert.equal((await failure(open(await start()).call({ beforeLeaving }))).code, 'SMS_UNREACHABLE');
        assert.equal(isAsked, false);
      });
    }
  });

  it('replaces a connection that the service has closed', async () => {
    const service = await startRawService(closing, (_incoming, outgoing) => outgoing.end('ok'));
    const { call } = open(service);
    for (let time = 0; time < 20; time++) {
      await call();
      await new Promise(setImmediate);
      // Ends the connections. The end reaches the client's socket immediately, but the client has not read it yet.
      for (const socket of service.connections) socket.destroy();
      assert.equal((await call()).bytes.toString(), 'ok');
    }
  });

  it('replaces a connection that closes before the first byte leaves', async () => {
    let requests = 0;
    const service = await startRawService(closing, (_incoming, outgoing) => {
      requests++;
      outgoing.end('ok');
    });
    const { call } = open(service);
    await call();
    let questions = 0;
    const beforeLeaving = async () => {
      questions++;
      const [socket] = service.connections;
      socket?.destroy();
      await until(() => service.connections.length > 1);
    };
    assert.equal((await call({ beforeLeaving })).bytes.toString(), 'ok');
    assert.deepEqual([questions, requests], [1, 2]);
  });

  it('replaces at most two connections for one request', async () => {
    const service = await startSocketService(closing, () => {});
    const closed = new Set<Socket>();
    const beforeLeaving = async () => {
      for (let count = 1; count <= 3; count++) {
        await until(() => service.connections.length === count);
        for (const socket of service.connections) closed.add(socket.destroy());
      }
      await new Promise(() => {});
    };
    const error = await failure(open(service).call({ beforeLeaving }));
    assert.deepEqual([error.code, closed.size], ['SMS_UNREACHABLE', 3]);
  });

  it('uses no connection older than 4 minutes for a request', async () => {
    let release: (() => void) | undefined;
    const service = await startRawService(closing, (incoming, outgoing) => {
      if (incoming.url === '/slow') release = () => outgoing.end('slow');
      else outgoing.end('ok');
    });
    const clock = new VirtualClock();
    const { baseUrl } = service;
    const connections = caller.open(baseUrl, { clock });
    const call = (path: string) => caller.call(baseUrl, { connections, path });
    for (let request = 0; request < 5; request++) {
      await call('/x');
      await new Promise(setImmediate);
    }
    // Allows more than one connection: on a slow machine, a connection can be idle for 1 s, after which it is closed.
    assert.ok(service.connections.length < 5);
    clock.stall(239_999);
    await call('/x');
    const slow = call('/slow');
    await until(() => release !== undefined);
    const formerSockets = [...service.connections];
    clock.stall(1);
    await call('/x');
    assert.equal(service.connections.length, formerSockets.length + 1);
    release?.();
    assert.equal((await slow).bytes.toString(), 'slow');
    await until(() => formerSockets.every(({ closed }) => closed));
  });

  it('first tries the address family that worked last', async () => {
    const service = await startRawService(closing, (_incoming, outgoing) => {
      outgoing.setHeader('Connection', 'close').end('ok');
    });
    const { lookup } = dns;
    const { connect: original } = net;
    const attempts: string[] = [];
    closing.add(dns, (it) => Object.assign(it, { lookup }));
    closing.add(net, (it) => Object.assign(it, { connect: original }));
    const addresses = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ];
    const answer = (...args: unknown[]) => setImmediate(args.at(-1) as (...result: unknown[]) => void, null, addresses);
    Object.assign(dns, { lookup: answer });
    Object.assign(net, {
      connect(options: NetConnectOpts & { autoSelectFamilyAttemptTimeout?: number }) {
        assert.equal(options.autoSelectFamilyAttemptTimeout, 2_500);
        return original(options).on('connectionAttempt', (address: string) => attempts.push(address));
      },
    });
    const { call } = open({ baseUrl: `http://sms.test:${service.port}` });
    await call();
    await call();
    assert.deepEqual(attempts, ['::1', '127.0.0.1', '127.0.0.1']);
  });

  for (const [how, method, end] of [
    ['is closed', 'POST', (socket: Socket) => socket.end()],
    ['is reset', 'GET', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    it(`does not repeat a ${method} if the connection ${how}`, async () => {
      let requests = 0;
      const service = await startRawService(closing, (incoming, outgoing) => {
        requests++;
        incoming.resume().on('end', () => (requests === 2 ? outgoing.end('ok') : end(incoming.socket)));
      });
      const { call } = open(service);
      assert.equal((await failure(call({ method }))).code, 'SMS_UNCERTAIN');
      await call({ method });
      assert.equal((await failure(call({ method }))).code, 'SMS_UNCERTAIN');
      assert.equal(requests, 3);
    });
  }

  it('closes an idle connection even if the service keeps it open', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';
    const service = await startSocketService(closing, (socket) => socket.once('data', () => socket.write(answer)));
    await open(service).call();
    await until(() => service.connections.every(({ closed }) => closed));
  });

  describe('with TLS', () => {
    const tls = { ca, ...pair, servername: 'localhost' };

    async function startAsking() {
      const visits: { isResumed: boolean; name: unknown }[] = [];
      const options = { ...pair, ca, requestCert: true, rejectUnauthorized: true };
      const service = await startRawService(
        closing,
        (incoming, outgoing) => {
          const socket = incoming.socket as TLSSocket & { servername: unknown };
          visits.push({ isResumed: socket.isSessionReused(), name: socket.servername });
          outgoing.setHeader('Connection', 'close').end('ok');
        },
        options,
      );
      return { ...service, visits };
    }

    it('presents the configured certificate and server name', async () => {
      const { baseUrl, visits } = await startAsking();
      assert.equal((await open({ baseUrl, tls }).call()).statusCode, 200);
      assert.equal((await open({ baseUrl, tls, proxy: await startTunnelling() }).call()).statusCode, 200);
      assert.equal(visits.map(({ name }) => name).join(), 'localhost,localhost');
      assert.notEqual((await failure(open({ baseUrl, tls: { ca } }).call())).code, 'SMS_RESPONSE');
    });

    const encrypted = createPrivateKey(pair.key)
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'right' })
      .toString();
    for (const [fault, wrongTls] of Object.entries<TlsOptions>({
      'an invalid certificate': { cert: 'none', key: pair.key },
      'a wrong passphrase': { cert: pair.cert, key: encrypted, passphrase: 'wrong' },
      'an invalid PFX': { pfx: 'none' },
    })) {
      it(`rejects ${fault} with and without a proxy`, async () => {
        const { baseUrl } = await startAsking();
        const proxy = await startProxyService(closing);
        const [without, through] = [
          open({ baseUrl, tls: wrongTls }),
          open({ baseUrl, tls: wrongTls, proxy: { url: proxy.baseUrl } }),
        ];
        const error = await failure(through.call());
        assert.deepEqual([error.code, error.reason], ['SMS_UNREACHABLE', 'tlsInvalid']);
        assert.match(error.message, wrongTls.pfx ? /\(PFX not readable\)/ : /\(ERR_OSSL_\w+\)/);
        assert.deepEqual(error.toJSON(), (await failure(without.call())).toJSON());
        // The next request opens a new tunnel, and fails in the same way.
        assert.equal((await failure(through.call())).message, error.message);
        assert.equal(proxy.tunnels.length, 2);
        await until(() => proxy.connections.every(({ closed }) => closed));
      });
    }

    it('resumes the TLS session of a closed connection', async () => {
      const service = await startAsking();
      const { call } = open({ baseUrl: service.baseUrl, tls });
      for (const isResumed of [false, true]) {
        await call();
        assert.equal(service.visits.at(-1)?.isResumed, isResumed);
        await until(() => service.connections.every(({ closed }) => closed));
      }
    });
  });
});
