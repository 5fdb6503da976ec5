import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below what systems give to connections, and to servers that ask for no port of their own. */
const first = 12_000;
const last = 32_000;
/** Test processes run side by side: each tries ports of its own, so that two do not find the same one before either listens. */
const perProcess = 100;
const processes = (last - first) / perProcess;
let tried = 0;

/** A port of loopback that nobody listens on, and that nobody else is given while this process runs. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < perProcess; attempt++) {
    const port = first + (process.pid % processes) * perProcess + (tried++ % perProcess);
    if (await isFree(port)) return port;
  }
  throw new Error('There is no free port.');
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
