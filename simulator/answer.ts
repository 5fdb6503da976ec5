import { type ServerResponse, STATUS_CODES } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatRefusal, xmlType } from './wire/send';

export interface Answer {
  status: number;
  /** Reason phrase of the status line. Default: the standard phrase. */
  reason?: string;
  body?: string;
  contentType?: string;
  headers?: Record<string, string>;
}

/** A fault during the transfer of an answer: half of it arrives, or it arrives byte by byte. */
export type Mishap = { half: true } | { dripMs: number };

/** Creates an error answer with the reason in the status line and in the heading of an HTML body (§7.1). */
export function createErrorAnswer(status: number, text?: string, headers: Record<string, string> = {}): Answer {
  const reason = text ?? STATUS_CODES[status] ?? 'Error';
  const escaped = reason.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  return {
    status,
    reason,
    headers,
    contentType: 'text/html; charset=UTF-8',
    body: `<!DOCTYPE html><html><head><title>${status} ${escaped}</title></head><body><h1>${escaped}</h1></body></html>`,
  };
}

/** Creates the answer to a wrong login or a wrong path (§7.1). */
export function createUnauthorized(): Answer {
  return createErrorAnswer(401, undefined, { 'www-authenticate': 'Basic realm="SMS"' });
}

/** Creates the answer to a refused send. The XML states the reason in its root element too (§5). */
export function createRefusal(status: number, message: string, messageId: string | undefined): Answer {
  return { status, contentType: xmlType, body: formatRefusal(status, message, messageId) };
}

/** Writes an answer. Resolves when all data was passed to the socket, or the client has disconnected. */
export async function writeAnswer(outgoing: ServerResponse, answer: Answer, mishap?: Mishap): Promise<void> {
  if (outgoing.destroyed) return;
  const bytes = Buffer.from(answer.body ?? '', 'utf8');
  const headers: Record<string, string | number> = { ...answer.headers };
  if (answer.status !== 204 && answer.status !== 304) {
    headers['content-length'] = bytes.length;
    if (answer.contentType !== undefined) headers['content-type'] = answer.contentType;
  }
  if (mishap !== undefined && 'half' in mishap && bytes.length < 2) {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(answer.status, statusLineText(answer), headers);
  if (mishap === undefined) {
    outgoing.end(bytes);
  } else if ('half' in mishap) {
    outgoing.flushHeaders();
    await writeBytes(outgoing, bytes.subarray(0, bytes.length >> 1));
    outgoing.destroy();
  } else {
    outgoing.flushHeaders();
    for (let index = 0; index < bytes.length && !outgoing.destroyed; index += 1) {
      await writeBytes(outgoing, bytes.subarray(index, index + 1));
      await sleep(mishap.dripMs);
    }
    outgoing.end();
  }
}

/**
 * Writes only the beginning of a status line. Writes directly to the socket, because a `ServerResponse` writes only
 * complete headers.
 */
export function writeFirstBytes({ socket }: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (socket?.writable) socket.write('HTTP/1.1 2', () => resolve());
    else resolve();
  });
}

function writeBytes(outgoing: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    outgoing.write(bytes, () => resolve());
  });
}

/** Returns the reason phrase in Latin-1 and without control characters, as a status line requires. */
function statusLineText({ status, reason }: Answer): string {
  return (reason ?? STATUS_CODES[status] ?? 'Unknown').replace(/\p{Cc}/gu, ' ').replace(/[^\u0020-\u00ff]/gu, '?');
}
