import type { IncomingMessage } from 'node:http';

/** Addresses that mean every network interface. A simulator at such an address accepts requests to any host name. */
const unspecified = ['0.0.0.0', '[::]'];

/**
 * Says whether a request comes from the simulator's own page or from a program. The control API has no credentials, so
 * the simulator refuses requests from pages of other sites, and requests to other host names of this machine.
 *
 * @param origin the address at which the simulator listens
 */
export function isSameSite({ headers }: IncomingMessage, origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  const host = headers.host ?? '';
  const isOwnHost = unspecified.includes(hostname) || [hostname, 'localhost'].includes(host.replace(/:\d+$/, ''));
  return isOwnHost && (headers.origin === undefined || headers.origin === `${protocol}//${host}`);
}
