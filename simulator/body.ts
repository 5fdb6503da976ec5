import type { IncomingMessage } from 'node:http';

/**
 * Reads the body of a request. Resolves with undefined if the client disconnects first. A body over the limit is cut
 * shortly after the limit.
 */
export function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes + chunk.length) chunks.push(chunk);
    });
    incoming.once('end', () => resolve(Buffer.concat(chunks)));
    incoming.once('error', () => resolve(undefined));
    incoming.once('close', () => resolve(undefined));
  });
}
