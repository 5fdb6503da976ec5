import { TextDecoder } from 'node:util';

/** Thrown if a body is not a form although its content type says so. The error message is for the client. */
export class UnreadableBodyError extends Error {}

/** Parameters by name, and the body as text, for the log. */
export interface ReadBody {
  params: Record<string, string>;
  text: string;
}

/**
 * Returns the parameters of a query string. If a parameter repeats, the last value counts. Every name becomes an own
 * property, even `__proto__`.
 */
export function readQuery(query: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(query));
}

/** Whether a content type declares a URL-encoded form. */
export function isForm(contentType: string | undefined): boolean {
  return contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded') ?? false;
}

export function isMultipart(contentType: string | undefined): boolean {
  return contentType?.toLowerCase().startsWith('multipart/form-data') ?? false;
}

/**
 * Reads the parameters of a body: a URL-encoded form in its character set (default: UTF-8), or a multipart form, which
 * public clients of the service send. Any other body has no parameters.
 *
 * @throws UnreadableBodyError if the character set is unknown, or the parts cannot be separated
 */
export async function readBodyParams(body: Buffer, contentType: string | undefined): Promise<ReadBody> {
  if (isMultipart(contentType)) return { params: await readMultipart(body, contentType ?? ''), text: String(body) };
  if (!isForm(contentType)) return { params: {}, text: String(body) };
  const decoder = createDecoder(/;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8');
  const decode = (encoded: string): string =>
    decoder.decode(
      Buffer.from(
        encoded
          .replaceAll('+', ' ')
          .replace(/%([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
        'latin1',
      ),
    );
  const pairs = body
    .toString('latin1')
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      return equals < 0 ? [decode(pair), ''] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
    });
  return { params: Object.fromEntries(pairs), text: decoder.decode(body) };
}

async function readMultipart(body: Buffer, contentType: string): Promise<Record<string, string>> {
  try {
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
    const fields = [...form].map(async ([name, value]) => [
      name,
      typeof value === 'string' ? value : await value.text(),
    ]);
    return Object.fromEntries(await Promise.all(fields));
  } catch {
    throw new UnreadableBodyError('The body is not a multipart form');
  }
}

function createDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset, { ignoreBOM: true });
  } catch {
    throw new UnreadableBodyError(`The character set ${charset} is not known`);
  }
}
