import { createErrorAnswer } from './answer';
import type { Exchange, Handler, Work } from './exchange';
import type { Endpoint } from './model';

interface Route {
  endpoint: Endpoint;
  path: RegExp;
  methods: string[];
}

const routes: readonly Route[] = [
  { endpoint: 'send', path: /^\/api\/[123]\/sms\/out$/, methods: ['POST', 'GET'] },
  { endpoint: 'incoming', path: /^\/api\/1\/sms\/in$/, methods: ['POST', 'GET'] },
  { endpoint: 'status', path: /^\/api\/1\/sms\/status$/, methods: ['POST', 'GET'] },
  { endpoint: 'outbox', path: /^\/api\/3\/sms\/out\/poll$/, methods: ['GET'] },
  { endpoint: 'feed', path: /^\/api\/2\/sms\/list$/, methods: ['POST', 'GET'] },
];

/**
 * Finds the handler of a request to the service (§4, §9). Answers 405 to a wrong method. This includes HEAD, because a
 * poll by HEAD would mark messages as read.
 *
 * @returns undefined if the service has no such path
 */
export function createService(
  exchange: Exchange,
  works: Readonly<Record<Endpoint, Work>>,
): (method: string, path: string) => Handler | undefined {
  return (method, path) => {
    const route = routes.find((candidate) => candidate.path.test(path));
    if (route === undefined) return undefined;
    if (route.methods.includes(method)) return exchange.handler(route.endpoint, works[route.endpoint]);
    const refusal = createErrorAnswer(405, undefined, { allow: route.methods.join(', ') });
    return exchange.handler(undefined, () => refusal);
  };
}
