import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type MiddlewareHandler } from 'hono';

const folder = join(__dirname, 'page');

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=UTF-8',
  '.html': 'text/html; charset=UTF-8',
  '.mjs': 'text/javascript; charset=UTF-8',
  '.svg': 'image/svg+xml',
};

/** The page loads nothing from elsewhere, and nobody frames it. */
const headers = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

type PageContext = Context<{ Bindings: HttpBindings }>;

/**
 * Serves the page at `/` and what it loads below `/control/page/`, where no path of the service can be.
 * @param guard runs before every answer
 */
export function createPage(guard: MiddlewareHandler<{ Bindings: HttpBindings }>): Hono<{ Bindings: HttpBindings }> {
  const page = new Hono<{ Bindings: HttpBindings }>();
  page.get('/', guard, (context) => serve(context, 'index.html'));
  for (const name of readdirSync(folder)) {
    if (name !== 'index.html') page.get(`/control/page/${name}`, guard, (context) => serve(context, name));
  }
  return page;
}

function serve(context: PageContext, name: string): Response {
  const contentType = contentTypes[extname(name)] ?? 'application/octet-stream';
  return context.body(readFileSync(join(folder, name), 'utf8'), 200, { ...headers, 'content-type': contentType });
}
