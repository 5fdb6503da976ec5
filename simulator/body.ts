import type { IncomingMessage } from 'node:http';

/**
 * The body of a request, read to its end; undefined when the client went away before. Of what exceeds the limit only enough is
 * kept to make the body longer than the limit.
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
