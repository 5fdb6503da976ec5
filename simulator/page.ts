import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, join } from 'node:path';

const folder = join(__dirname, 'page');

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=UTF-8',
  '.html': 'text/html; charset=UTF-8',
  '.mjs': 'text/javascript; charset=UTF-8',
  '.svg': 'image/svg+xml',
};

/** Headers that prevent the page from loading anything from other origins, and from being framed. */
const headers = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

const files: ReadonlyMap<string, string> = new Map([
  ['/', 'index.html'],
  ...readdirSync(folder).map((name): [string, string] => [`/control/page/${name}`, name]),
]);

/**
 * Serves the page at `/`, and its files below `/control/page/`, because the service has no paths there.
 *
 * @returns false if there is no such file
 */
export function servePage(path: string, outgoing: ServerResponse): boolean {
  const name = files.get(path);
  if (name === undefined) return false;
  const contentType = contentTypes[extname(name)] ?? 'application/octet-stream';
  outgoing.writeHead(200, { ...headers, 'content-type': contentType });
  outgoing.end(readFileSync(join(folder, name), 'utf8'));
  return true;
}
