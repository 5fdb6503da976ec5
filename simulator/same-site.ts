import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';

/** Listening on every address, the simulator cannot know its own names. */
const unspecified = ['0.0.0.0', '[::]'];

/**
 * Lets only the simulator's own page and programs through: there are no credentials, so the pages of other sites, and
 * names of other sites that point to this machine, get 403.
 * @param origin address the simulator listens at, known once it listens
 */
export function onlySameSite(origin: () => string): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async (context, next) => {
    const headers = context.env.incoming.headers;
    const { protocol, hostname } = new URL(origin());
    const host = headers.host ?? '';
    const isOwnHost = unspecified.includes(hostname) || [hostname, 'localhost'].includes(host.replace(/:\d+$/, ''));
    if (isOwnHost && (headers.origin === undefined || headers.origin === `${protocol}//${host}`)) return next();
    return context.json({ error: 'The control API is not for pages of other sites' }, 403);
  };
}
