import { createConnection, type Socket } from 'node:net';

/** Total duration of all requests, and the duration of each one, in ms. */
export interface LoadResult {
  wallMs: number;
  /** Time from each request to the end of its answer. */
  delaysMs: number[];
}

/**
 * Posts `count` bodies over `connections` persistent connections. Each connection has one request in flight at a time.
 *
 * @throws Error for any answer other than 200
 */
export async function postAll(
  url: URL,
  { count, connections, createBody }: { count: number; connections: number; createBody(number: number): string },
): Promise<LoadResult> {
  const delaysMs: number[] = [];
  let startedCount = 0;
  const sockets = await Promise.all(Array.from({ length: connections }, () => connect(url)));
  const startedAt = performance.now();
  try {
    await Promise.all(
      sockets.map(async (socket) => {
        while (startedCount < count) {
          const body = createBody(startedCount++);
          const sentAt = performance.now();
          await post(socket, url, body);
          delaysMs.push(performance.now() - sentAt);
        }
      }),
    );
    return { wallMs: performance.now() - startedAt, delaysMs };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

function connect(url: URL): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: url.hostname, port: Number(url.port), noDelay: true });
    socket.setEncoding('latin1').once('error', reject);
    socket.once('connect', () => resolve(socket));
  });
}

function post(socket: Socket, url: URL, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = '';
    const onData = (chunk: string) => {
      received += chunk;
      if (!isWhole(received)) return;
      socket.removeListener('data', onData).removeListener('close', onClose);
      if (received.startsWith('HTTP/1.1 200 ')) resolve();
      else reject(new Error(`${url.pathname} answered ${received.slice(0, 200)}`));
    };
    const onClose = () => reject(new Error(`${url.pathname} closed the connection`));
    socket.on('data', onData).once('close', onClose);
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: text/xml; charset=UTF-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  });
}

/** Says whether an answer is complete. Every answer here has a Content-Length. */
function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1];
  if (length === undefined) throw new Error(`an answer without a length: ${received.slice(0, 200)}`);
  return received.length >= end + 4 + Number(length);
}
