import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** First port of the range, which is below the ports that operating systems assign automatically. */
const first = 12_000;
const last = 32_000;

/**
 * Finds a TCP port of loopback without a listener, and reserves it for this process, so that a test can kill and
 * restart a server on it. As a reservation, the process opens the UDP port with the same number, which other test
 * processes check.
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = first + Math.floor(Math.random() * (last - first));
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error('There is no free port.');
}

async function claim(port: number): Promise<boolean> {
  const socket = createSocket('udp4').bind({ port, address: '127.0.0.1', exclusive: true });
  try {
    await once(socket, 'listening');
  } catch {
    return false;
  }
  socket.unref();
  return true;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
