import { Agent, request } from 'undici';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { createRecorder, readObservations } from './recorder';

/** Time limit of a request, in ms. It is needed because a route whose node is not deployed never answers. */
const feedLimitMs = 30_000;

/** Creates an account at a simulator that stores data on disk and polls without a pause. */
export function createAccount(simulator: Simulator, properties: Partial<FlowNode> = {}): FlowNode {
  return {
    id: 'account',
    type: 'sms-account',
    baseUrl: simulator.baseUrl,
    authType: 'bearer',
    pause: 0,
    credentials: { apiKey: simulator.credentials.apiKey },
    ...properties,
  };
}

/** Creates a node of the tab. A node of this package uses the account of {@link createAccount}. */
export function createNode(id: string, type: string, wires: string[][], properties: Partial<FlowNode> = {}): FlowNode {
  const account = type.startsWith('sms-') && { account: 'account' };
  return { id, type, z: 'tab', x: 100, y: 100, wires, ...account, ...properties };
}

/** Creates a node that catches the errors of all nodes of the tab. */
export function createCatch(wires: string[][], properties: Partial<FlowNode> = {}): FlowNode {
  return createNode('catch', 'catch', wires, { scope: null, uncaught: false, ...properties });
}

/**
 * Creates a flow that stores and sends each message posted to `/feed` with `to` and `body`. `send` configures the
 * sending node.
 */
export function createFeed(send: Partial<FlowNode>): FlowNode[] {
  const to = { to: 'payload.to', toType: 'msg' };
  const body = { body: 'payload.body', bodyType: 'msg' };
  return [
    { id: 'tab', type: 'tab', label: 'flow' },
    createNode('feed', 'http in', [['send', 'answer']], { url: '/feed', method: 'post' }),
    createNode('answer', 'http response', [], { statusCode: '200' }),
    createNode('send', 'sms-send', [], { ...to, ...body, messageIdType: 'uuid', keep: true, expire: 0, ...send }),
  ];
}

/** A message for the route of {@link createFeed}. */
interface FedMessage {
  to: string | string[];
  body: string;
  ballast?: string;
}

/**
 * Opens a new connection for each request. Otherwise, a request would fail if a busy Node-RED closed the reused
 * connection just as the request leaves.
 */
const withoutKeepAlive = new Agent({ pipelining: 0 });

/** Posts a message to the route of {@link createFeed}. Rejects if the flow has not received it. */
export async function post(url: string, message: FedMessage): Promise<void> {
  const { statusCode, body } = await request(`${url}/feed`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(feedLimitMs),
    dispatcher: withoutKeepAlive,
  });
  await body.dump();
  if (statusCode !== 200) throw new Error(`The route /feed answered ${statusCode}`);
}

/** Posts a message to a process that might be killed at any time. Returns whether the flow has received the message. */
export function feed(url: string, message: FedMessage): Promise<boolean> {
  return post(url, message).then(
    () => true,
    () => false,
  );
}

/** Returns the number of times that the service received each body. */
export function countBodies({ messages }: Simulator): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { body } of messages) counts.set(body, (counts.get(body) ?? 0) + 1);
  return counts;
}

/** Returns the recorded outcomes of each message, by the body of the message. The outcomes are in order. */
export function readOutcomes(file: string): Map<string, { name: string; redelivered: boolean }[]> {
  const outcomes = new Map<string, { name: string; redelivered: boolean }[]>();
  for (const { payload, sms } of readObservations(file)) {
    const { body } = Object(payload) as { body?: string };
    const { error, redelivered } = sms ?? {};
    // Skips errors of an outage: the message still waits and has no outcome yet.
    if (body === undefined || (error && 'waiting' in error)) continue;
    const name = error ? error.code : 'sent';
    outcomes.set(body, [...(outcomes.get(body) ?? []), { name, redelivered: redelivered === true }]);
  }
  return outcomes;
}

/** Creates a flow that records each received message in a file. */
export function createReceiver(
  simulator: Simulator,
  file: string,
  { account, node }: { account?: Partial<FlowNode>; node?: Partial<FlowNode> } = {},
): FlowNode[] {
  return [
    createAccount(simulator, account),
    { id: 'tab', type: 'tab', label: 'flow' },
    createNode('in', 'sms-in', [['write']], node),
    createRecorder('write', file),
  ];
}
