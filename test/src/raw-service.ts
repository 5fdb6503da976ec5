import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server as HttpServer, type RequestListener, request } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect, createServer as createSocketServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsSocketServer } from 'node:tls';
import type { Closing } from './closing';

/** A server whose faulty behaviour the test defines. */
export interface RawService {
  baseUrl: string;
  port: number;
  /** Every connection so far. */
  connections: Socket[];
}

/** Starts a server on loopback that answers requests with `listener`. */
export function startRawService(closing: Closing, listener: RequestListener, tls?: ServerOptions): Promise<RawService> {
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  return listen(closing, server as HttpServer, tls ? 'https' : 'http');
}

/** Starts a server on loopback that passes each socket to `onConnection`. */
export function startSocketService(
  closing: Closing,
  onConnection: (socket: Socket) => void,
  tls?: ServerOptions,
): Promise<RawService> {
  const server = tls ? createTlsSocketServer(tls, onConnection) : createSocketServer(onConnection);
  return listen(closing, server, tls ? 'https' : 'http');
}

/** A proxy, with the addresses and the logins that it has received. */
export interface ProxyService extends RawService {
  forwarded: (string | undefined)[];
  tunnels: (string | undefined)[];
  authorizations: (string | undefined)[];
}

/**
 * Starts a proxy that forwards http, and tunnels to ports of loopback.
 *
 * @param status answer to CONNECT
 */
export async function startProxyService(closing: Closing, { status = 200 } = {}): Promise<ProxyService> {
  const seen: Omit<ProxyService, keyof RawService> = { forwarded: [], tunnels: [], authorizations: [] };
  const server = createServer((incoming, outgoing) => {
    const { 'proxy-authorization': login, ...headers } = incoming.headers;
    seen.forwarded.push(incoming.url);
    seen.authorizations.push(login);
    const onward = request(incoming.url ?? '', { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(onward);
  });
  server.on('connect', (incoming, socket) => {
    const { url = '', headers } = incoming;
    seen.tunnels.push(url);
    seen.authorizations.push(headers['proxy-authorization']);
    const onward = connect(Number(url.split(':')[1]), '127.0.0.1', () => {
      socket.write(`HTTP/1.1 ${status} Fine\r\n\r\n`);
      socket.pipe(onward).pipe(socket);
    });
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  return { ...(await listen(closing, server, 'http')), ...seen };
}

async function listen(closing: Closing, server: Server, scheme: string): Promise<RawService> {
  const connections: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    connections.push(socket);
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.add(server, async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of connections) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `${scheme}://127.0.0.1:${port}`, port, connections };
}

/** Finds a port of loopback without a listener. */
export async function findClosedPort(): Promise<number> {
  const server = createSocketServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Creates a key and a self-signed certificate for `localhost` and 127.0.0.1.
 *
 * @param until end of the validity, in the format of an ASN.1 time in UTC
 */
export function createSelfSigned(until = '491231235959Z'): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const name = der(
    0x30,
    der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from('localhost')))),
  );
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from(until)));
  const alternativeNames = der(0x30, der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extension = der(0x30, der(0x06, Buffer.from('551d11', 'hex')), der(0x04, alternativeNames));
  const toBeSigned = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, extension)),
  );
  const signature = sign('sha256', toBeSigned, privateKey);
  const certificate = der(0x30, toBeSigned, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

/** Returns one element of ASN.1 in its distinguished encoding. */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}
