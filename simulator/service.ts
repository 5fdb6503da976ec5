import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { createErrorAnswer } from './answer';
import type { Exchange, Work } from './exchange';
import type { Endpoint } from './model';

interface Route {
  endpoint: Endpoint;
  path: string;
  methods: string[];
}

const routes: readonly Route[] = [
  { endpoint: 'send', path: '/api/:version{[123]}/sms/out', methods: ['POST', 'GET'] },
  { endpoint: 'incoming', path: '/api/1/sms/in', methods: ['POST', 'GET'] },
  { endpoint: 'status', path: '/api/1/sms/status', methods: ['POST', 'GET'] },
  { endpoint: 'outbox', path: '/api/3/sms/out/poll', methods: ['GET'] },
  { endpoint: 'feed', path: '/api/2/sms/list', methods: ['POST', 'GET'] },
];

/** The service's paths and methods (§4, §9): another method is answered with 405. */
export function createService(
  exchange: Exchange,
  works: Readonly<Record<Endpoint, Work>>,
): Hono<{ Bindings: HttpBindings }> {
  const service = new Hono<{ Bindings: HttpBindings }>();
  for (const { endpoint, path, methods } of routes) {
    const serve = exchange.handler(endpoint, works[endpoint]);
    const refusal = createErrorAnswer(405, undefined, { allow: methods.join(', ') });
    const refuse = exchange.handler(undefined, () => refusal);
    // Hono routes HEAD as GET, which would mark messages as read.
    service.all(path, (context) =>
      methods.includes(context.env.incoming.method ?? '') ? serve(context) : refuse(context),
    );
  }
  return service;
}
