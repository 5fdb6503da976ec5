import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to connections, and to servers that ask for no port of their own. */
const first = 12_000;
const last = 32_000;

/**
 * A port of loopback that nobody listens on. While this process lives, no other test process is given it, though nothing listens on
 * it yet, or between a kill and a new start: the port of the same number of UDP, which nobody else uses, says that it is taken.
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
